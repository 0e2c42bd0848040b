//! A parsed document with the position of every key and value.
//!
//! TOML has several notations for the same value (tables, inline tables, dotted keys, lists of
//! tables). The tree represents all of them in the same way.

use std::ops::Range;
use toml_edit::{Item, TableLike, Value};

/// A value and its position.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Byte range in the text; for a table with a `[header]`, that of the header.
    pub(crate) span: Range<usize>,
    pub(crate) value: Tree,
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Tree {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    Date,
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) span: Range<usize>,
    pub(crate) node: Node,
}

impl Node {
    /// The tree of a parsed document.
    pub(crate) fn of(root: &toml_edit::Table) -> Self {
        Self::table(root, 0..0)
    }

    /// The entry of a key, if this is a table that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            Tree::Table(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// The element at an index, if this is a list that has it.
    pub(crate) fn at(&self, index: usize) -> Option<&Node> {
        match &self.value {
            Tree::List(nodes) => nodes.get(index),
            _ => None,
        }
    }

    /// Noun for the type of the value, for messages.
    pub(crate) fn noun(&self) -> &'static str {
        match &self.value {
            Tree::Text(_) => "a string",
            Tree::Integer(_) => "a whole number",
            Tree::Float(_) => "a number",
            Tree::Bool(_) => "true or false",
            Tree::Date => "a date",
            Tree::List(_) => "a list",
            Tree::Table(_) => "a table",
        }
    }

    fn item(item: &Item, key: Range<usize>) -> Self {
        match item {
            Item::None => Self { span: key, value: Tree::Table(Vec::new()) },
            Item::Value(value) => Self::value(value, key),
            Item::Table(table) => Self::table(table, table.span().unwrap_or(key)),
            Item::ArrayOfTables(tables) => Self {
                span: tables.span().unwrap_or(key.clone()),
                value: Tree::List(
                    tables
                        .iter()
                        .map(|table| Self::table(table, table.span().unwrap_or(key.clone())))
                        .collect(),
                ),
            },
        }
    }

    fn value(value: &Value, key: Range<usize>) -> Self {
        let span = value.span().unwrap_or(key);
        let value = match value {
            Value::String(text) => Tree::Text(text.value().clone()),
            Value::Integer(number) => Tree::Integer(*number.value()),
            Value::Float(number) => Tree::Float(*number.value()),
            Value::Boolean(bool) => Tree::Bool(*bool.value()),
            Value::Datetime(_) => Tree::Date,
            Value::Array(array) => {
                Tree::List(array.iter().map(|value| Self::value(value, span.clone())).collect())
            }
            Value::InlineTable(table) => return Self::table(table, span),
        };
        Self { span, value }
    }

    fn table(table: &dyn TableLike, span: Range<usize>) -> Self {
        let entries = table
            .iter()
            .map(|(key, item)| {
                let place = table
                    .key(key)
                    .and_then(|key| key.span())
                    .or(item.span())
                    .unwrap_or(span.clone());
                Entry { key: key.to_owned(), span: place.clone(), node: Self::item(item, place) }
            })
            .collect();
        Self { span, value: Tree::Table(entries) }
    }
}
