//! Differences between two plans.

use crate::Plan;
use similar::{ChangeTag, TextDiff};

impl Plan {
    /// Lines that differ from those of `changed`, marked by `-` and `+`, with a line of context. Empty
    /// if there are none.
    pub fn diff(&self, changed: &Plan) -> String {
        let (before, after) = (self.to_toml(), changed.to_toml());
        let diff = TextDiff::from_lines(&before, &after);
        let mut text = String::new();
        for (i, group) in diff.grouped_ops(1).iter().enumerate() {
            if i > 0 {
                text.push_str("...\n");
            }
            for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                let line = change.value();
                let mark = match change.tag() {
                    ChangeTag::Equal if line.trim().is_empty() => continue,
                    ChangeTag::Equal => "  ",
                    ChangeTag::Delete => "- ",
                    ChangeTag::Insert => "+ ",
                };
                text.push_str(mark);
                text.push_str(line);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_are_shown_with_context() {
        let text = "[data]\nsource = \"circles\"\n[[model]]\nlayer = \"dense\"\nunits = 1\n\
                    [training]\nepochs = 10\nloss = \"binary_crossentropy\"\n";
        let before = Plan::parse(text, "fixture").unwrap();
        let mut after = before.clone();
        after.training.batch_size = 64;
        assert_eq!(
            before.diff(&after),
            "  epochs = 10\n+ batch_size = 64\n  loss = \"binary_crossentropy\"\n"
        );
        assert_eq!(before.diff(&before), "");
    }
}
