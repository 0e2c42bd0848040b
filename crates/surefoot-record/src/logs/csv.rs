//! CSV files of metrics: a header, then one row per step, several steps or epoch.

use crate::logs::LogFormat;
use crate::logs::error::Error;
use crate::logs::log::Log;
use crate::logs::role::Map;
use ::csv::{ReaderBuilder, StringRecord, Trim};
use std::path::Path;

/// CSV files, and directories with the `metrics.csv` that Lightning writes.
pub(crate) struct Csv;

impl LogFormat for Csv {
    fn name(&self) -> &'static str {
        "CSV"
    }

    fn recognizes(&self, path: &Path) -> Result<bool, Error> {
        Ok(path.is_file() || path.join("metrics.csv").is_file())
    }

    fn read(&self, path: &Path, map: &Map) -> Result<Log, Error> {
        let metrics = path.join("metrics.csv");
        let path = if path.is_dir() { &metrics } else { path };
        let bytes = std::fs::read(path).map_err(Error::io(path))?;
        let (header, records) = records(path, &bytes)?;
        let columns: Vec<String> = header.iter().map(str::to_owned).collect();
        Log::from_table(path, self.name(), &columns, records.len(), map, |row, column| {
            number(path, &records[row], column, &columns[column])
        })
    }
}

fn records(path: &Path, bytes: &[u8]) -> Result<(StringRecord, Vec<StringRecord>), Error> {
    let malformed = |reason: String| Error::Malformed { path: path.to_owned(), reason };
    let mut reader = ReaderBuilder::new()
        .flexible(true)
        .delimiter(delimiter(bytes))
        .trim(Trim::All)
        .from_reader(bytes);
    let header = reader.headers().map_err(|e| malformed(e.to_string()))?.clone();
    let records: Result<Vec<StringRecord>, _> = reader.records().collect();
    let records = records.map_err(|error| malformed(error.to_string()))?;
    if let Some(long) = records.iter().find(|record| record.len() > header.len()) {
        let (line, cells) = (line(long), long.len());
        return Err(malformed(format!(
            "line {line} has {cells} cells and the header has {}",
            header.len()
        )));
    }
    Ok((header, records))
}

/// A comma if the header has one, otherwise a semicolon or a tab if it has one of those.
fn delimiter(bytes: &[u8]) -> u8 {
    let header = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let found = [b',', b';', b'\t'].into_iter().find(|byte| header.contains(byte));
    found.unwrap_or(b',')
}

/// Parses a cell. The last line may be incomplete while the file is being written.
fn number(
    path: &Path,
    record: &StringRecord,
    column: usize,
    name: &str,
) -> Result<Option<f64>, Error> {
    match record.get(column) {
        Some(cell) if !is_missing(cell) => match cell.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(Error::NotANumber {
                path: path.to_owned(),
                line: line(record),
                column: name.to_owned(),
                value: cell.chars().take(40).collect(),
            }),
        },
        _ => Ok(None),
    }
}

fn line(record: &StringRecord) -> u64 {
    record.position().map_or(0, ::csv::Position::line)
}

/// Returns true for the words that programs write for a missing value. NaN is a value.
fn is_missing(cell: &str) -> bool {
    ["", "na", "n/a", "null", "none"].iter().any(|word| cell.eq_ignore_ascii_case(word))
}
