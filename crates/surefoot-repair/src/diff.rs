//! Changes of a remedy as a line diff.

use similar::{ChangeTag, TextDiff};
use surefoot_plan::Plan;

/// The lines of the plans that differ, with `-` and `+` before them and a line of context about
/// them. Empty if there are none.
pub fn diff(before: &Plan, after: &Plan) -> String {
    let (before, after) = (before.to_toml(), after.to_toml());
    let diff = TextDiff::from_lines(&before, &after);
    let mut text = String::new();
    for (i, group) in diff.grouped_ops(1).iter().enumerate() {
        if i > 0 {
            text.push_str("...\n");
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let line = change.value();
            // An empty line says nothing about where one is.
            if change.tag() == ChangeTag::Equal && line.trim().is_empty() {
                continue;
            }
            text.push_str(match change.tag() {
                ChangeTag::Equal => "  ",
                ChangeTag::Delete => "- ",
                ChangeTag::Insert => "+ ",
            });
            text.push_str(line);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remedies::fixture::plan;

    #[test]
    fn the_lines_that_change_are_shown() {
        let before = plan();
        let mut after = before.clone();
        after.training.batch_size = 64;
        assert_eq!(
            diff(&before, &after),
            "  epochs = 10\n+ batch_size = 64\n  loss = \"binary_crossentropy\"\n"
        );
        assert_eq!(diff(&before, &before), "");
    }
}
