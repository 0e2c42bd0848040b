//! Rows of named numbers, for formats without a header.

use crate::logs::error::Error;
use crate::logs::log::Log;
use crate::logs::name::meaning;
use crate::logs::role::{Map, Role};
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

    /// Returns true if a column is a loss by its name.
    pub(crate) fn has_loss(&self) -> bool {
        self.columns.iter().any(|name| is_loss(name))
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

/// Returns true for the name of a training or validation loss.
pub(crate) fn is_loss(name: &str) -> bool {
    let role = meaning(name, None).map(|meaning| meaning.role);
    matches!(role, Some(Role::Loss | Role::ValidationLoss))
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
        Value::String(text) => crate::logs::number::parse(text),
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

/// Reads a text file; see [`decoded`].
pub(crate) fn text(path: &Path) -> Result<String, Error> {
    Ok(decoded(&std::fs::read(path).map_err(Error::io(path))?))
}

/// Lines of a console. A progress bar returns to the start of its line, or deletes what it wrote.
/// Marks of quotations and comments are removed.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', '\r', '\u{8}'])
        .map(|line| line.trim_start_matches(['>', '#', ' ', '\t']).trim_end())
        .filter(|line| !line.is_empty())
}

/// The text of UTF-8 or, as PowerShell redirects output, UTF-16. Other bytes are replaced. Colours of
/// a terminal are removed.
pub(crate) fn decoded(bytes: &[u8]) -> String {
    let text = match bytes {
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    };
    match text.contains('\u{1b}') {
        true => without_colours(&text),
        false => text,
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let (pairs, _) = bytes.as_chunks();
    let units: Vec<u16> = pairs.iter().map(|&pair| unit(pair)).collect();
    String::from_utf16_lossy(&units)
}

/// Removes escape sequences such as `ESC [ 32 m`.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic());
        plain.push_str(end.map_or("", |end| &part[end + 1..]));
    }
    plain
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
    Ok(decoded(&bytes))
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

    #[test]
    fn output_that_powershell_redirected_is_text() {
        let utf16: Vec<u8> = "\u{feff}loss 0.5".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(decoded(&utf16), "loss 0.5");
        assert_eq!(decoded(b"\xEF\xBB\xBFloss"), "loss");
        assert_eq!(decoded(b"\x1b[1;32mloss\x1b[0m: \xFF"), "loss: \u{fffd}");
    }
}
