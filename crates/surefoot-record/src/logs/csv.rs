//! CSV files of metrics: a header, then one row per step, several steps or epoch.
//!
//! Keras, Lightning, fastai, timm, YOLO, XGBoost, Stable Baselines and pandas write them; Weights & Biases
//! and TensorBoard export them.

use crate::logs::LogFormat;
use crate::logs::error::Error;
use crate::logs::log::Log;
use crate::logs::number;
use crate::logs::role::Map;
use crate::logs::rows::{decoded, is_loss};
use ::csv::{ReaderBuilder, StringRecord, Trim};
use std::borrow::Cow;
use std::path::Path;

/// Tables: separated by commas, semicolons, tabs, bars or spaces, with decimal points or commas.
pub(crate) struct Csv;

/// Names of columns that say which run a row belongs to.
const RUN: &[&str] =
    &["run", "run_id", "run_name", "trial", "trial_id", "experiment", "seed", "fold"];

impl LogFormat for Csv {
    fn name(&self) -> &'static str {
        "CSV"
    }

    fn recognizes(&self, path: &Path) -> Result<bool, Error> {
        Ok(path.is_file())
    }

    fn read(&self, path: &Path, map: &Map) -> Result<Vec<Log>, Error> {
        let bytes = std::fs::read(path).map_err(Error::io(path))?;
        let file = File::parse(path, &decoded(&bytes))?;
        let mut logs = Vec::new();
        for (run, records) in file.runs() {
            let read = Log::from_table(
                path,
                self.name(),
                &file.columns,
                records.len(),
                map,
                |row, column| file.number(path, records[row], column),
            )?;
            logs.extend(read.into_iter().map(|mut log| {
                log.origin.run = log.origin.run.or_else(|| run.map(str::to_owned));
                log
            }));
        }
        if let Some(log) = logs.first_mut() {
            log.warnings.extend(file.warnings);
        }
        Ok(logs)
    }
}

/// A parsed file.
struct File {
    columns: Vec<String>,
    records: Vec<StringRecord>,
    /// True if numbers may have decimal commas.
    commas: bool,
    warnings: Vec<String>,
}

impl File {
    fn parse(path: &Path, text: &str) -> Result<File, Error> {
        let malformed = |error: ::csv::Error| Error::Malformed {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        let text = tabulated(text);
        let delimiter = delimiter(&text);
        let mut reader = ReaderBuilder::new()
            .flexible(true)
            .delimiter(delimiter)
            .comment(Some(b'#'))
            .trim(Trim::All)
            .from_reader(text.as_bytes());
        let header = reader.headers().map_err(malformed)?.clone();
        let mut records = Vec::new();
        let mut warnings = Vec::new();
        let is_number = |cell: &str| is_missing(cell) || number::parse(cell).is_some();
        let headless = !header.is_empty() && header.iter().all(is_number);
        if headless {
            records.push(header.clone());
        }
        for record in reader.records() {
            let record = record.map_err(malformed)?;
            if record.len() > header.len() {
                let (line, cells) = (line(&record), record.len());
                warnings.push(format!(
                    "line {line} has {cells} cells, the header has {}; the line is ignored",
                    header.len()
                ));
            } else if headless || record != header {
                // A program that appends to its log repeats the header.
                records.push(record);
            }
        }
        let mut columns: Vec<String> = match headless {
            true => {
                let (columns, warning) = unnamed(&records, header.len());
                warnings.push(warning);
                columns
            }
            false => header.iter().map(str::to_owned).collect(),
        };
        if columns == ["Wall time", "Step", "Value"] {
            columns[2] = downloaded_tag(path);
        }
        Ok(File { columns, records, commas: delimiter != b',', warnings })
    }

    /// The records of each run, if a column tells them apart.
    fn runs(&self) -> Vec<(Option<&str>, Vec<&StringRecord>)> {
        let is_run = |name: &String| RUN.contains(&name.to_lowercase().as_str());
        let all = || vec![(None, self.records.iter().collect())];
        let Some(column) = self.columns.iter().position(is_run) else {
            return all();
        };
        let mut runs: Vec<(Option<&str>, Vec<&StringRecord>)> = Vec::new();
        for record in &self.records {
            let name = record.get(column);
            match runs.iter_mut().find(|(known, _)| *known == name) {
                Some((_, records)) => records.push(record),
                None => runs.push((name, vec![record])),
            }
        }
        // A column with a name for every row does not tell runs apart.
        if 2 * runs.len() > self.records.len() { all() } else { runs }
    }

    /// The number in a cell. The last line may be incomplete while the file is being written.
    fn number(
        &self,
        path: &Path,
        record: &StringRecord,
        column: usize,
    ) -> Result<Option<f64>, Error> {
        let Some(cell) = record.get(column).filter(|cell| !is_missing(cell)) else {
            return Ok(None);
        };
        let plain = cell.trim_end_matches('%');
        let decimal_comma = self.commas && plain.matches(',').count() == 1;
        let number = match decimal_comma {
            true => plain.replace(',', ".").parse().ok(),
            false => number::parse(plain),
        };
        number.map(Some).ok_or_else(|| Error::NotANumber {
            path: path.to_owned(),
            line: line(record),
            column: self.columns[column].clone(),
            value: cell.chars().take(40).collect(),
        })
    }
}

/// The tag of a chart that was downloaded from TensorBoard as `run-NAME-tag-TAG.csv`; the loss if the
/// file was renamed.
fn downloaded_tag(path: &Path) -> String {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    match name.split_once("tag-") {
        Some((_, tag)) => tag.to_owned(),
        None => "loss".to_owned(),
    }
}

/// A comma if the header has one, otherwise a semicolon or a tab if it has one of those.
fn delimiter(text: &str) -> u8 {
    let header = text.lines().next().unwrap_or_default();
    let found = [b',', b';', b'\t'].into_iter().find(|&byte| header.contains(char::from(byte)));
    found.unwrap_or(b',')
}

/// The text with tabs instead of bars or spaces, if its first line is the header of such a table:
/// `epoch train_loss valid_loss` or `| epoch | loss |`.
fn tabulated(text: &str) -> Cow<'_, str> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let header = lines.next().unwrap_or_default();
    let first = lines.find(|line| line.contains(char::is_alphanumeric)).unwrap_or_default();
    let splits: [fn(&str) -> Vec<&str>; 3] = [
        |line| line.trim().trim_matches('|').split('|').map(str::trim).collect(),
        |line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect(),
        |line| line.split_whitespace().collect(),
    ];
    let width = |split: fn(&str) -> Vec<&str>| split(first).len();
    let names = splits.into_iter().map(|split| (split(header), split)).find(|(names, split)| {
        // Numbers have no spaces in them, names may.
        let rows = if header.contains('|') { width(*split) } else { width(splits[2]) };
        names.len() > 1 && rows == names.len() && names.iter().any(|name| is_loss(name))
    });
    let Some((names, _)) = names.filter(|_| !header.contains([',', ';', '\t'])) else {
        return Cow::Borrowed(text);
    };
    let split = if header.contains('|') { splits[0] } else { splits[2] };
    let rows = text.lines().skip_while(|line| *line != header).skip(1);
    let rows = rows.filter(|line| line.contains(char::is_alphanumeric));
    let rows = rows.map(|line| split(line).join("\t"));
    Cow::Owned([names.join("\t")].into_iter().chain(rows).collect::<Vec<_>>().join("\n"))
}

/// Names for the columns of a table without a header, and a note: one column is the loss, two are steps
/// and losses if the first one rises.
fn unnamed(records: &[StringRecord], width: usize) -> (Vec<String>, String) {
    let first = records.iter().filter_map(|record| number::parse(record.get(0)?));
    let rises = first.collect::<Vec<f64>>().is_sorted_by(|a, b| a < b);
    let names = match width {
        1 => vec!["loss".to_owned()],
        2 if rises => vec!["step".to_owned(), "loss".to_owned()],
        _ => (1..=width).map(|column| format!("column {column}")).collect(),
    };
    let note = format!("the file has no header; its columns are taken as {}", names.join(", "));
    (names, note)
}

fn line(record: &StringRecord) -> u64 {
    record.position().map_or(0, ::csv::Position::line)
}

/// Returns true for the words that programs write for a missing value. NaN is a value.
fn is_missing(cell: &str) -> bool {
    ["", "na", "n/a", "null", "none"].iter().any(|word| cell.eq_ignore_ascii_case(word))
}
