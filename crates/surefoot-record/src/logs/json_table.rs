//! JSON tables: a list of objects, or an object of lists such as the `history` of Keras.

use crate::logs::LogFormat;
use crate::logs::error::Error;
use crate::logs::log::Log;
use crate::logs::role::Map;
use crate::logs::rows::{Rows, number, opening, pairs, parse_json, text};
use serde_json::Value;
use std::path::Path;

/// JSON files with a list of objects or an object of lists, also inside of other objects.
pub(crate) struct JsonTable;

impl LogFormat for JsonTable {
    fn name(&self) -> &'static str {
        "JSON"
    }

    fn recognizes(&self, path: &Path) -> Result<bool, Error> {
        // Lines such as `{'loss': 0.5}`, which Python prints, are text.
        let opening = opening(path)?;
        let mut signs = opening.chars().filter(|c| !c.is_whitespace());
        Ok(matches!(signs.next(), Some('{' | '[')) && signs.next() != Some('\''))
    }

    fn read(&self, path: &Path, map: &Map) -> Result<Vec<Log>, Error> {
        let malformed = |reason: String| Error::Malformed { path: path.to_owned(), reason };
        let value = parse_json(&text(path)?).map_err(|error| malformed(error.to_string()))?;
        let rows = table(&value).ok_or_else(|| {
            malformed("it has neither a list of objects nor an object of lists".to_owned())
        })?;
        rows.logs(path, self.name(), map)
    }
}

/// The first table in `value`.
fn table(value: &Value) -> Option<Rows> {
    let mut rows = Rows::default();
    match value {
        Value::Array(items) if items.iter().any(Value::is_object) => {
            items.iter().for_each(|item| rows.push(pairs(item)));
            Some(rows)
        }
        Value::Object(members) => {
            let columns: Vec<(&String, Vec<Option<f64>>)> =
                members.iter().filter_map(|(name, value)| Some((name, column(value)?))).collect();
            let length = columns.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
            if length == 0 {
                return members.values().find_map(table);
            }
            for row in 0..length {
                let cell = |values: &Vec<Option<f64>>| values.get(row).copied().flatten();
                rows.push(columns.iter().map(|(name, values)| ((*name).clone(), cell(values))));
            }
            Some(rows)
        }
        _ => None,
    }
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
