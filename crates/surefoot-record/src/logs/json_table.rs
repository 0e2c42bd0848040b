//! JSON tables: a list of objects, or an object of lists such as the `history` of Keras.

use crate::logs::LogFormat;
use crate::logs::error::Error;
use crate::logs::log::Log;
use crate::logs::name::split_of_folder;
use crate::logs::natural;
use crate::logs::role::Map;
use crate::logs::rows::{Rows, has_extension, number, opening, pairs, parse_json, text};
use serde_json::Value;
use std::path::Path;

/// JSON files with a list of objects or an object of lists, also nested in other objects.
pub(crate) struct JsonTable;

impl LogFormat for JsonTable {
    fn name(&self) -> &'static str {
        "JSON"
    }

    fn recognizes(&self, path: &Path) -> Result<bool, Error> {
        // Lines such as `{'loss': 0.5}`, which Python prints, and `[12:30:01] loss 0.5` are text.
        let opening = opening(path)?;
        let mut signs = opening.chars().filter(|c| !c.is_whitespace());
        let first = (signs.next(), signs.next());
        Ok(matches!(first, (Some('{'), Some('"')) | (Some('['), Some('{' | '[')))
            || has_extension(path, &["json"]) && path.is_file())
    }

    fn read(&self, path: &Path, map: &Map) -> Result<Vec<Log>, Error> {
        let malformed = |reason: String| Error::Malformed { path: path.to_owned(), reason };
        let value = parse_json(&text(path)?).map_err(|error| malformed(error.to_string()))?;
        let mut found = Vec::new();
        tables("", &value, &mut found);
        if found.iter().any(|(_, rows)| rows.has_loss()) {
            found.retain(|(_, rows)| rows.has_loss());
        } else {
            found.truncate(1);
        }
        if found.is_empty() {
            let reason = "it has neither a list of objects nor an object of lists";
            return Err(malformed(reason.to_owned()));
        }
        let several = found.len() > 1;
        let mut logs = Vec::new();
        for (name, rows) in found {
            logs.extend(rows.logs(path, self.name(), map)?.into_iter().map(|mut log| {
                let run = Some(name.clone()).filter(|_| several);
                log.origin.run = run.or(log.origin.run);
                log
            }));
        }
        Ok(logs)
    }
}

/// Collects the tables in `value`, with the names of the objects that they are in.
fn tables(name: &str, value: &Value, found: &mut Vec<(String, Rows)>) {
    let mut rows = Rows::default();
    match value {
        Value::Array(items) if items.iter().any(Value::is_object) => {
            items.iter().for_each(|item| rows.push(pairs(item)));
        }
        // A chart of TensorBoard: time, step and value.
        Value::Array(items)
            if items.iter().all(|item| item.as_array().is_some_and(|it| is_point(it))) =>
        {
            for item in items {
                rows.push([
                    ("step".to_owned(), number(&item[1])),
                    ("loss".to_owned(), number(&item[2])),
                ]);
            }
        }
        Value::Object(members) => {
            let numbered = |name: &String| name.ends_with(|c: char| c.is_ascii_digit());
            if members.len() > 1
                && members.keys().all(numbered)
                && members.values().all(|item| pairs(item).iter().any(|(_, value)| value.is_some()))
            {
                let mut items: Vec<(&String, &Value)> = members.iter().collect();
                items.sort_by_key(|(name, _)| natural::key(name));
                items.iter().for_each(|(_, item)| rows.push(pairs(item)));
                found.push((name.to_owned(), rows));
                return;
            }
            let columns = columns(members);
            let length = columns.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
            for row in 0..length {
                let cell = |values: &Vec<Option<f64>>| values.get(row).copied().flatten();
                rows.push(columns.iter().map(|(name, values)| (name.clone(), cell(values))));
            }
            if length > 0 {
                found.push((name.to_owned(), rows));
            }
            for (member, value) in members.iter().filter(|(name, _)| !is_split(name)) {
                if column(value).is_none() {
                    tables(member, value, found);
                }
            }
            return;
        }
        _ => return,
    }
    found.push((name.to_owned(), rows));
}

/// The lists of an object, and of the objects for its splits: `{"train": {"loss": [2, 1]}}`.
fn columns(members: &serde_json::Map<String, Value>) -> Vec<(String, Vec<Option<f64>>)> {
    let mut columns = Vec::new();
    for (name, value) in members {
        match (column(value), value) {
            (Some(values), _) => columns.push((name.clone(), values)),
            (None, Value::Object(inner)) if is_split(name) => columns.extend(
                inner
                    .iter()
                    .filter_map(|(of, value)| Some((format!("{name}/{of}"), column(value)?))),
            ),
            _ => {}
        }
    }
    columns
}

/// Returns true for the name of a split: `train`, `val`.
fn is_split(name: &str) -> bool {
    split_of_folder(name).is_some()
}

fn is_point(values: &[Value]) -> bool {
    values.len() == 3 && values.iter().all(|value| number(value).is_some())
}

/// A list of numbers, or the object from row numbers to numbers that pandas writes.
fn column(value: &Value) -> Option<Vec<Option<f64>>> {
    let values: Vec<Option<f64>> = match value {
        Value::Array(items) => items.iter().map(number).collect(),
        Value::Object(members) if members.keys().all(|key| key.parse::<u64>().is_ok()) => {
            let mut members: Vec<(u64, &Value)> = members
                .iter()
                .filter_map(|(key, value)| Some((key.parse().ok()?, value)))
                .collect();
            members.sort_by_key(|(row, _)| *row);
            members.into_iter().map(|(_, value)| number(value)).collect()
        }
        _ => return None,
    };
    values.iter().any(Option::is_some).then_some(values)
}
