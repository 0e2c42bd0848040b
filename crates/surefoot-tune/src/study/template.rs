//! Plans with ranges in place of values.

use crate::space::{Condition, Point, Value};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value as Toml};

/// A position that depends on the point.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    /// Keys and list indices from the top.
    pub(super) path: Vec<String>,
    /// Action at the position.
    pub(super) action: Action,
}

/// Action at a position.
#[derive(Clone, Debug)]
pub(super) enum Action {
    /// Inserts the value of a parameter; removes the key if it is inactive.
    Value(String),
    /// Removes the part unless the conditions hold.
    Keep(Vec<Condition>),
}

impl Action {
    /// True if the position remains at a point.
    fn stays(&self, point: &Point) -> bool {
        match self {
            Action::Value(name) => point.get(name).is_some(),
            Action::Keep(conditions) => conditions.iter().all(|condition| {
                let value = point.get(&condition.parameter);
                value.is_some_and(|value| condition.values.contains(value))
            }),
        }
    }
}

/// A plan with ranges in place of values.
#[derive(Clone, Debug)]
pub struct Template {
    /// Document without `[tune]` and `[parameters]`.
    document: DocumentMut,
    /// Last position first, so that removals keep earlier indices valid.
    spots: Vec<Spot>,
}

impl Template {
    pub(super) fn new(document: DocumentMut, mut spots: Vec<Spot>) -> Template {
        spots.reverse();
        Template { document, spots }
    }

    /// Fills in a point.
    pub(super) fn fill(&self, point: &Point) -> String {
        let mut document = self.document.clone();
        for spot in &self.spots {
            let root = document.as_item_mut();
            match &spot.action {
                action if !action.stays(point) => remove(root, &spot.path),
                Action::Value(name) => {
                    if let Some(value) = point.get(name) {
                        set(root, &spot.path, toml(value));
                    }
                }
                Action::Keep(_) => remove_key(root, &spot.path, "if"),
            }
        }
        document.to_string()
    }

    /// Maps a path in a trial's plan to the study, which may have more list entries.
    pub(super) fn source(&self, point: &Point, path: Vec<String>) -> Vec<String> {
        let gone: Vec<&[String]> = self
            .spots
            .iter()
            .rev()
            .filter(|spot| !spot.action.stays(point))
            .map(|spot| spot.path.as_slice())
            .collect();
        let mut source: Vec<String> = Vec::with_capacity(path.len());
        for key in path {
            let key = match key.parse::<usize>() {
                Ok(index) => {
                    let gone = gone.iter().filter_map(|path| match path.split_last() {
                        Some((last, list)) if list == source => last.parse::<usize>().ok(),
                        _ => None,
                    });
                    let index = gone.fold(index, |index, gone| index + usize::from(gone <= index));
                    index.to_string()
                }
                Err(_) => key,
            };
            source.push(key);
        }
        source
    }
}

fn toml(value: &Value) -> Toml {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Float(value) => (*value).into(),
        Value::Text(value) => value.as_str().into(),
    }
}

/// Canonical text of a document without some keys of a table and without comments.
pub(super) fn without(text: &str, table: &str, keys: &[&str]) -> String {
    let Ok(mut document) = text.parse::<DocumentMut>() else {
        return text.to_owned();
    };
    if let Some(table) = document.get_mut(table).and_then(Item::as_table_like_mut) {
        for key in keys {
            table.remove(key);
        }
    }
    plain(document.as_table())
}

/// A table in canonical form on one line.
fn plain(table: &dyn toml_edit::TableLike) -> String {
    let mut entries: Vec<String> =
        table.iter().map(|(key, item)| format!("{key:?}={}", plain_item(item))).collect();
    entries.sort();
    format!("{{{}}}", entries.join(","))
}

fn plain_item(item: &Item) -> String {
    match item {
        Item::None => String::new(),
        Item::Table(table) => plain(table),
        Item::ArrayOfTables(tables) => {
            let tables: Vec<String> = tables.iter().map(|table| plain(table)).collect();
            format!("[{}]", tables.join(","))
        }
        Item::Value(value) => plain_value(value),
    }
}

fn plain_value(value: &Toml) -> String {
    match value {
        Toml::String(text) => format!("{:?}", text.value()),
        Toml::Integer(number) => number.value().to_string(),
        Toml::Float(number) => format!("{:?}", number.value()),
        Toml::Boolean(value) => value.value().to_string(),
        Toml::Datetime(date) => date.value().to_string(),
        Toml::Array(values) => {
            let values: Vec<String> = values.iter().map(plain_value).collect();
            format!("[{}]", values.join(","))
        }
        Toml::InlineTable(table) => plain(table),
    }
}

/// A container in a document.
enum Place<'a> {
    Item(&'a mut Item),
    Value(&'a mut Toml),
    Table(&'a mut Table),
}

/// The child with a key or index.
fn part<'a>(place: Place<'a>, key: &str) -> Option<Place<'a>> {
    let index = || key.parse::<usize>().ok();
    match place {
        Place::Table(table) => table.get_mut(key).map(Place::Item),
        Place::Item(Item::Table(table)) => table.get_mut(key).map(Place::Item),
        Place::Item(Item::ArrayOfTables(tables)) => tables.get_mut(index()?).map(Place::Table),
        Place::Item(Item::Value(value)) => part(Place::Value(value), key),
        Place::Item(Item::None) => None,
        Place::Value(Toml::InlineTable(table)) => table.get_mut(key).map(Place::Value),
        Place::Value(Toml::Array(values)) => values.get_mut(index()?).map(Place::Value),
        Place::Value(_) => None,
    }
}

fn find<'a>(root: &'a mut Item, path: &[String]) -> Option<Place<'a>> {
    let mut place = Place::Item(root);
    for key in path {
        place = part(place, key)?;
    }
    Some(place)
}

/// Replaces the value at a path.
fn set(root: &mut Item, path: &[String], value: Toml) {
    match find(root, path) {
        Some(Place::Item(item)) => *item = Item::Value(value),
        Some(Place::Value(old)) => {
            let decor = old.decor().clone();
            *old = value;
            *old.decor_mut() = decor;
        }
        Some(Place::Table(_)) | None => {}
    }
}

/// Removes the value at a path.
fn remove(root: &mut Item, path: &[String]) {
    if let Some((last, parent)) = path.split_last() {
        remove_key(root, parent, last);
    }
}

/// Removes a child.
fn remove_key(root: &mut Item, path: &[String], key: &str) {
    let table = |table: &mut Table| drop(table.remove(key));
    let inline = |table: &mut InlineTable| drop(table.remove(key));
    let index = key.parse::<usize>();
    let list = |values: &mut Array| {
        if let Ok(index) = index
            && index < values.len()
        {
            values.remove(index);
        }
    };
    match find(root, path) {
        Some(Place::Table(found) | Place::Item(Item::Table(found))) => table(found),
        Some(Place::Item(Item::ArrayOfTables(tables))) => {
            if let Ok(index) = index
                && index < tables.len()
            {
                tables.remove(index);
            }
        }
        Some(Place::Item(Item::Value(Toml::InlineTable(found)))) => inline(found),
        Some(Place::Value(Toml::InlineTable(found))) => inline(found),
        Some(Place::Item(Item::Value(Toml::Array(found)))) => list(found),
        Some(Place::Value(Toml::Array(found))) => list(found),
        _ => {}
    }
}
