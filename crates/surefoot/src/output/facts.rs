//! Text in columns.

use super::Role;

/// Names and values, a line each, aligned.
pub(crate) fn facts(facts: &[(String, String)]) -> String {
    let width = facts.iter().map(|(name, _)| name.chars().count()).max();
    let width = width.unwrap_or(0);
    let lines: Vec<String> = facts
        .iter()
        .map(|(name, value)| {
            let name = format!("{name:<width$}");
            format!("  {}   {value}", Role::Quiet.paint(name))
        })
        .collect();
    lines.join("\n")
}

/// Rows below a heading. The last column is of numbers and ends at its right.
pub(crate) fn table<const N: usize>(heading: [&str; N], rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([heading[column].len()]).max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |cells: [&str; N]| {
        let cells: Vec<String> = cells
            .iter()
            .zip(widths)
            .enumerate()
            .map(|(column, (cell, width))| match column + 1 == N {
                true => format!("{cell:>width$}"),
                false => format!("{cell:<width$}"),
            })
            .collect();
        format!("  {}", cells.join("   "))
    };
    let mut lines = vec![Role::Strong.paint(line(heading))];
    lines.extend(rows.iter().map(|row| line(row.each_ref().map(String::as_str))));
    lines.join("\n")
}

/// The lines of a text, broken between words to be no wider than that.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn values_stand_in_one_column() {
        let text = facts(&[("run".into(), "runs/x-001".into()), ("digest".into(), "ab".into())]);
        assert_eq!(plain(&text), "  run      runs/x-001\n  digest   ab");
    }

    #[test]
    fn numbers_end_at_the_right() {
        let rows = [["dense_1".into(), "24".into()], ["a".into(), "1,024".into()]];
        assert_eq!(
            plain(&table(["layer", "size"], &rows)),
            "  layer      size\n  dense_1      24\n  a         1,024"
        );
    }

    #[test]
    fn text_is_broken_between_words() {
        assert_eq!(wrapped("a bb ccc dddddddd e", 6), ["a bb", "ccc", "dddddddd", "e"]);
        assert!(wrapped("", 6).is_empty());
    }
}
