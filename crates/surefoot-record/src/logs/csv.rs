//! CSV files of metrics: a header, then a row for a step, some steps or an epoch.

use crate::logs::error::Error;
use crate::logs::log::{Format, Log};
use crate::logs::name::{Meaning, meaning};
use crate::logs::role::{Map, Role};
use crate::logs::table::{Choice, Named, Row, Table, choose};
use ::csv::{ReaderBuilder, StringRecord, Trim};
use std::path::Path;

/// Reads a file.
pub(crate) fn read(path: &Path, map: &Map) -> Result<Log, Error> {
    let bytes = std::fs::read(path).map_err(Error::io(path))?;
    let (header, records) = records(path, &bytes)?;
    let named: Vec<Named> = header
        .iter()
        .enumerate()
        .map(|(column, name)| Named {
            name: name.to_owned(),
            // The row says where it is, whatever the name of a column.
            meaning: meaning(name, None).map(|meaning| Meaning { by_epoch: false, ..meaning }),
            count: records
                .iter()
                .filter(|record| record.get(column).is_some_and(|cell| !is_missing(cell)))
                .count(),
        })
        .collect();
    let choices = choose(path, &named, map, "column")?;
    let (positions, values): (Vec<Choice>, Vec<Choice>) = choices
        .into_iter()
        .partition(|choice| matches!(choice.series.role, Role::Step | Role::Epoch));
    let mut rows = Vec::with_capacity(records.len());
    for record in &records {
        let number = |choice: &Choice| number(path, record, choice);
        let mut row = Row::new(values.len());
        for choice in &positions {
            match choice.series.role {
                Role::Step => row.step = number(choice)?,
                _ => row.epoch = number(choice)?,
            }
        }
        for (cell, choice) in row.cells.iter_mut().zip(&values) {
            *cell = number(choice)?;
        }
        rows.push(row);
    }
    Ok(Log::from(Table {
        path: path.to_owned(),
        format: Format::Csv,
        series: values.into_iter().map(|choice| choice.series).collect(),
        rows: in_order(rows),
    }))
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
            "line {line} has {cells} cells, and the header names {}",
            header.len()
        )));
    }
    Ok((header, records))
}

/// A comma if the header has one, or else a semicolon or a tab if it has.
fn delimiter(bytes: &[u8]) -> u8 {
    let header = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let found = [b',', b';', b'\t'].into_iter().find(|byte| header.contains(byte));
    found.unwrap_or(b',')
}

/// The number in a cell. The end of a line may be missing, in a file that is being written.
fn number(path: &Path, record: &StringRecord, choice: &Choice) -> Result<Option<f64>, Error> {
    match record.get(choice.index) {
        Some(cell) if !is_missing(cell) => match cell.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(Error::NotANumber {
                path: path.to_owned(),
                line: line(record),
                column: choice.series.name.clone(),
                value: cell.chars().take(40).collect(),
            }),
        },
        _ => Ok(None),
    }
}

fn line(record: &StringRecord) -> u64 {
    record.position().map_or(0, ::csv::Position::line)
}

/// Whether a cell is what programs write for a value they do not have. NaN is a value.
fn is_missing(cell: &str) -> bool {
    ["", "na", "n/a", "null", "none"].iter().any(|word| cell.eq_ignore_ascii_case(word))
}

/// One row for each step, in order.
///
/// Lightning writes what it knows of a step into several rows, and a run that was resumed comes
/// again to steps it had done; the later row is right. Without steps the rows are in order.
fn in_order(mut rows: Vec<Row>) -> Vec<Row> {
    let stepped = rows.iter().any(|row| row.step.is_some());
    let (mut step, mut epoch) = (None, None);
    for row in &mut rows {
        row.step = row.step.or(step);
        row.epoch = row.epoch.or(epoch);
        (step, epoch) = (row.step, row.epoch);
    }
    let key = |row: &Row| [row.epoch.unwrap_or(0.0), row.step.unwrap_or(0.0)];
    if stepped {
        rows.sort_by(|a, b| {
            let [a, b] = [key(a), key(b)];
            a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1]))
        });
    }
    let mut merged: Vec<Row> = Vec::with_capacity(rows.len());
    for row in rows {
        match merged.last_mut() {
            Some(last)
                if row.step.or(row.epoch).is_some()
                    && key(last) == key(&row)
                    && (stepped || last.complements(&row)) =>
            {
                last.update(&row);
            }
            _ => merged.push(row),
        }
    }
    merged
}
