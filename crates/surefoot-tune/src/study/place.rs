//! Key path of a position in a plan.

use surefoot_plan::Snippet;
use toml_edit::{Document, Item, TableLike, Value};

/// The keys and list indices of the item that a snippet shows; empty if it shows the whole text.
pub(super) fn path_of(text: &str, snippet: &Snippet) -> Vec<String> {
    let head: usize =
        text.split_inclusive('\n').take(snippet.line.saturating_sub(1)).map(str::len).sum();
    let letters = snippet.text.chars().take(snippet.column.saturating_sub(1));
    let at = head + letters.map(char::len_utf8).sum::<usize>();
    // No header or key of a plan has one letter.
    let is_whole = at == 0 && snippet.width == 1;
    let mut search = Search { at, path: Vec::new(), start: 0, found: Vec::new() };
    if let (false, Ok(document)) = (is_whole, Document::parse(text)) {
        search.table(document.as_table());
    }
    search.found
}

/// Finds the item that starts last before a position.
struct Search {
    at: usize,
    /// Current path.
    path: Vec<String>,
    /// Start of the best item so far.
    start: usize,
    found: Vec<String>,
}

impl Search {
    fn table(&mut self, table: &dyn TableLike) {
        for (key, item) in table.iter() {
            self.path.push(key.to_owned());
            self.begins(table.key(key).and_then(toml_edit::Key::span));
            self.begins(item.span());
            match item {
                Item::None => {}
                Item::Table(table) => self.table(table),
                Item::ArrayOfTables(tables) => {
                    for (index, table) in tables.iter().enumerate() {
                        self.path.push(index.to_string());
                        self.begins(table.span());
                        self.table(table);
                        self.path.pop();
                    }
                }
                Item::Value(value) => self.value(value),
            }
            self.path.pop();
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::InlineTable(table) => self.table(table),
            Value::Array(values) => {
                for (index, value) in values.iter().enumerate() {
                    self.path.push(index.to_string());
                    self.begins(value.span());
                    self.value(value);
                    self.path.pop();
                }
            }
            _ => {}
        }
    }

    fn begins(&mut self, span: Option<std::ops::Range<usize>>) {
        if let Some(span) = span
            && (self.start..=self.at).contains(&span.start)
        {
            self.start = span.start;
            self.found.clone_from(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "name = \"x\"\n\n[[model]]\nunits = 1\n\n[[model]]\nlayers = [{ kind = 5 }]\n";

    fn found(shown: &str, last: bool) -> String {
        let at = if last { TEXT.rfind(shown) } else { TEXT.find(shown) };
        let at = at.expect("it is in the text");
        let head = TEXT[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let snippet = Snippet {
            line: TEXT[..at].matches('\n').count() + 1,
            column: at - head + 1,
            width: shown.len(),
            text: TEXT[head..].lines().next().unwrap_or_default().to_owned(),
        };
        path_of(TEXT, &snippet).join(".")
    }

    #[test]
    fn keys_values_and_headers_are_found() {
        assert_eq!(found("name", false), "name");
        assert_eq!(found("\"x\"", false), "name");
        assert_eq!(found("units", false), "model.0.units");
        assert_eq!(found("[[model]]", true), "model.1");
        assert_eq!(found("5", true), "model.1.layers.0.kind");
    }

    #[test]
    fn the_whole_text_has_no_key() {
        assert_eq!(found("n", false), "");
    }
}
