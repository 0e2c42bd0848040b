//! `--set` options: changes of a document that keep the rest of its text.

use crate::tree::Node;
use std::ops::Range;
use toml_edit::{DocumentMut, InlineTable, Item, Table, Value};

/// Returns the text with `key` set to `value`.
pub(crate) fn set(text: &str, key: &str, value: &str) -> Result<String, String> {
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
    let path: Vec<&str> = key.split('.').map(str::trim).collect();
    if path.iter().any(|part| part.is_empty()) {
        return Err(format!("`{key}` is not a key"));
    }
    let mut value = value.trim().parse::<Value>().unwrap_or_else(|_| Value::from(value));
    value.decor_mut().clear();
    in_table(document.as_table_mut(), &path, value)?;
    Ok(document.to_string())
}

/// Position in `now` of what setting `key` added to `given`: the first part of the path that was
/// absent, or the value.
pub(crate) fn added(given: &Node, now: &Node, key: &str) -> Option<Range<usize>> {
    let path: Vec<&str> = key.split('.').map(str::trim).collect();
    (1..path.len())
        .map(|len| &path[..len])
        .find(|part| find(given, part).is_none())
        .or(Some(&path))
        .and_then(|part| find(now, part))
}

/// Position of a key and its value.
pub(crate) fn find(root: &Node, path: &[&str]) -> Option<Range<usize>> {
    let mut node = root;
    let mut place = None;
    for part in path {
        if let Some(entry) = node.get(part) {
            place = Some(entry.span.start..entry.node.span.end.max(entry.span.end));
            node = &entry.node;
        } else {
            node = node.at(part.parse().ok()?)?;
            place = Some(node.span.clone());
        }
    }
    place
}

fn in_table(table: &mut Table, path: &[&str], value: Value) -> Result<(), String> {
    let Some((key, rest)) = path.split_first() else {
        return Err("a whole table cannot be set; name one of its keys".to_owned());
    };
    match (table.get_mut(key), rest.is_empty()) {
        (Some(Item::Value(old)), true) => replace(old, value),
        (Some(Item::Value(old)), false) => in_value(old, key, rest, value)?,
        (Some(Item::Table(inner)), false) => in_table(inner, rest, value)?,
        (Some(Item::ArrayOfTables(tables)), false) => {
            let (index, rest) = index(key, rest, tables.len())?;
            if let Some(table) = tables.get_mut(index) {
                in_table(table, rest, value)?;
            }
        }
        (_, true) => {
            table.insert(key, Item::Value(value));
        }
        // A section at the top (`[watch]`), an inline table elsewhere.
        (None | Some(Item::None), false) if key_is_section(key) => {
            let mut inner = Table::new();
            in_table(&mut inner, rest, value)?;
            table.insert(key, Item::Table(inner));
        }
        (None | Some(Item::None), false) => {
            let mut inner = Value::InlineTable(InlineTable::new());
            in_value(&mut inner, key, rest, value)?;
            table.insert(key, Item::Value(inner));
        }
    }
    Ok(())
}

fn key_is_section(key: &str) -> bool {
    matches!(key, "data" | "training" | "watch")
}

/// Sets `path` within the value of `key`.
fn in_value(target: &mut Value, key: &str, path: &[&str], value: Value) -> Result<(), String> {
    let Some((part, rest)) = path.split_first() else {
        replace(target, value);
        return Ok(());
    };
    match target {
        Value::Array(array) => {
            let (index, rest) = index(key, path, array.len())?;
            match array.get_mut(index) {
                Some(entry) => in_value(entry, key, rest, value),
                None => Ok(()),
            }
        }
        Value::InlineTable(table) => {
            if let Some(inner) = table.get_mut(part) {
                return in_value(inner, part, rest, value);
            }
            let mut inner = value.clone();
            if !rest.is_empty() {
                inner = Value::InlineTable(InlineTable::new());
                in_value(&mut inner, part, rest, value)?;
            }
            table.insert(*part, inner);
            Ok(())
        }
        // "adam" is short for { name = "adam" }, to which the key can be added.
        Value::String(name) => {
            let mut table = InlineTable::new();
            table.insert(tag(key), Value::from(name.value().as_str()));
            replace(target, Value::InlineTable(table));
            in_value(target, key, path, value)
        }
        _ => Err(format!("`{key}` has no keys")),
    }
}

/// The key that holds the name when `key` is written as a table.
fn tag(key: &str) -> &'static str {
    match key {
        "source" => "kind",
        "schedule" => "decay",
        _ => "name",
    }
}

fn index<'a, 'b>(
    key: &str,
    path: &'a [&'b str],
    len: usize,
) -> Result<(usize, &'a [&'b str]), String> {
    let (part, rest) = path.split_first().unwrap_or((&"", &[]));
    match part.parse::<usize>() {
        Ok(index) if index < len => Ok((index, rest)),
        _ if len == 0 => Err(format!("`{key}` is an empty list")),
        _ => Err(format!(
            "`{key}` is a list: expected an index from 0 to {}, found `{part}`",
            len - 1
        )),
    }
}

/// Replaces a value and keeps the whitespace and the comment around it.
fn replace(old: &mut Value, mut new: Value) {
    *new.decor_mut() = old.decor().clone();
    *old = new;
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# circles
[data]
source = "circles" # two of them

[[model]]
layer = "dense"
units = 8

[[model]]
layer = "residual"
layers = [{ layer = "dense", units = 8 }]

[training]
epochs = 5
"#;

    fn with(key: &str, value: &str) -> String {
        set(TEXT, key, value).unwrap()
    }

    #[test]
    fn a_value_is_replaced_in_place() {
        assert_eq!(with("training.epochs", "7"), TEXT.replace("epochs = 5", "epochs = 7"));
    }

    #[test]
    fn lists_are_indexed_from_zero_at_any_depth() {
        assert_eq!(with("model.1.layers.0.units", "9"), TEXT.replace("units = 8 }", "units = 9 }"));
        assert_eq!(
            with("model.0.activation", "relu"),
            TEXT.replace("units = 8\n", "units = 8\nactivation = \"relu\"\n")
        );
    }

    #[test]
    fn a_name_becomes_a_table_and_keeps_its_comment() {
        assert_eq!(
            with("data.source.noise", "0.2"),
            TEXT.replace("\"circles\" #", "{ kind = \"circles\", noise = 0.2 } #")
        );
    }

    #[test]
    fn missing_sections_and_tables_are_added() {
        assert!(with("watch.every", "never").ends_with("[watch]\nevery = \"never\"\n"));
        assert!(
            with("training.optimizer.learning_rate", "0.1")
                .ends_with("epochs = 5\noptimizer = { learning_rate = 0.1 }\n")
        );
        assert!(with("seed", "3").contains("seed = 3\n"));
    }

    #[test]
    fn an_index_must_be_in_range() {
        let message = set(TEXT, "model.7.units", "1").unwrap_err();
        assert_eq!(message, "`model` is a list: expected an index from 0 to 1, found `7`");
        assert!(set(TEXT, "model.units", "1").is_err());
        assert!(set(TEXT, "model.0", "1").is_err());
        assert!(set(TEXT, "training..epochs", "1").is_err());
        assert!(set(TEXT, "training.epochs.x", "1").is_err());
    }
}
