//! Rows of named numbers, for formats without a header.

use crate::logs::error::Error;
use crate::logs::log::Log;
use crate::logs::role::Map;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

/// Rows of named numbers. Columns are in the order in which their names first occur.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    columns: Vec<String>,
    places: HashMap<String, usize>,
    rows: Vec<Vec<Option<f64>>>,
}

impl Rows {
    /// Adds a row. Of a name that occurs twice, the first value is used.
    pub(crate) fn push(&mut self, pairs: impl IntoIterator<Item = (String, Option<f64>)>) {
        let mut row = vec![None; self.columns.len()];
        for (name, value) in pairs {
            let place = *self.places.entry(name).or_insert_with_key(|name| {
                self.columns.push(name.clone());
                self.columns.len() - 1
            });
            row.resize(self.columns.len().max(row.len()), None);
            if row[place].is_none() {
                row[place] = value;
            }
        }
        self.rows.push(row);
    }

    /// Builds the logs in these rows.
    pub(crate) fn logs(
        &self,
        path: &Path,
        format: &'static str,
        map: &Map,
    ) -> Result<Vec<Log>, Error> {
        Log::from_table(path, format, &self.columns, self.rows.len(), map, |row, column| {
            Ok(self.rows[row].get(column).copied().flatten())
        })
    }
}

/// Parses JSON with the `NaN`, `Infinity` and `-Infinity` that Python writes.
pub(crate) fn parse_json(text: &str) -> Result<Value, serde_json::Error> {
    let error = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let mut quoted = String::with_capacity(text.len() + 64);
    let (mut inside, mut escaped) = (false, false);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let word = ["NaN", "-Infinity", "Infinity"].iter().find(|word| rest.starts_with(**word));
        if let Some(word) = word.filter(|_| !inside) {
            quoted.extend(["\"", word, "\""]);
            rest = &rest[word.len()..];
            continue;
        }
        inside ^= c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        quoted.push(c);
        rest = &rest[c.len_utf8()..];
    }
    serde_json::from_str(&quoted).map_err(|_| error)
}

/// The number of a JSON value; numbers may be written as text.
pub(crate) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// Names and numbers of a JSON object. Nested names are joined by `/`.
pub(crate) fn pairs(value: &Value) -> Vec<(String, Option<f64>)> {
    fn collect(prefix: &str, value: &Value, pairs: &mut Vec<(String, Option<f64>)>) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    let name = match prefix.is_empty() {
                        true => name.clone(),
                        false => format!("{prefix}/{name}"),
                    };
                    collect(&name, value, pairs);
                }
            }
            Value::Array(_) | Value::Bool(_) => {}
            value => pairs.push((prefix.to_owned(), number(value))),
        }
    }
    let mut pairs = Vec::new();
    collect("", value, &mut pairs);
    pairs
}

/// Reads a text file; bytes that are not UTF-8 are replaced.
pub(crate) fn text(path: &Path) -> Result<String, Error> {
    let bytes = std::fs::read(path).map_err(Error::io(path))?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// The first bytes of a file as text; empty for a directory.
pub(crate) fn opening(path: &Path) -> Result<String, Error> {
    use std::io::Read;
    const LENGTH: u64 = 64 * 1024;
    if path.is_dir() {
        return Ok(String::new());
    }
    let file = std::fs::File::open(path).map_err(Error::io(path))?;
    let mut bytes = Vec::new();
    file.take(LENGTH).read_to_end(&mut bytes).map_err(Error::io(path))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns true for a file with one of these extensions.
pub(crate) fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|found| extensions.iter().any(|known| found.eq_ignore_ascii_case(known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_of_python_is_parsed() {
        let value = parse_json(r#"{"a": NaN, "b \" NaN": -Infinity, "c": {"d": 2}}"#).unwrap();
        let pairs = pairs(&value);
        assert!(pairs[0].1.is_some_and(f64::is_nan));
        assert_eq!(pairs[1], ("b \" NaN".to_owned(), Some(f64::NEG_INFINITY)));
        assert_eq!(pairs[2], ("c/d".to_owned(), Some(2.0)));
        assert!(parse_json("{").is_err());
    }
}
