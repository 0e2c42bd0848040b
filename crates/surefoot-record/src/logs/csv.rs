//! CSV files of metrics: a header, then one row per step, several steps or epoch.
//!
//! Keras, Lightning, fastai, timm, YOLO, XGBoost, Stable Baselines and pandas write them; Weights & Biases
//! and TensorBoard export them.

use crate::logs::LogFormat;
use crate::logs::error::Error;
use crate::logs::log::Log;
use crate::logs::role::Map;
use ::csv::{ReaderBuilder, StringRecord, Trim};
use std::path::Path;

/// CSV files: separated by commas, semicolons or tabs, with decimal points or commas.
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
        let file = File::parse(path, &bytes)?;
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
    fn parse(path: &Path, bytes: &[u8]) -> Result<File, Error> {
        let malformed = |error: ::csv::Error| Error::Malformed {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        let delimiter = delimiter(bytes);
        let mut reader = ReaderBuilder::new()
            .flexible(true)
            .delimiter(delimiter)
            .comment(Some(b'#'))
            .trim(Trim::All)
            .from_reader(bytes);
        let header = reader.headers().map_err(malformed)?.clone();
        let mut records = Vec::new();
        let mut warnings = Vec::new();
        for record in reader.records() {
            let record = record.map_err(malformed)?;
            if record.len() > header.len() {
                let (line, cells) = (line(&record), record.len());
                warnings.push(format!(
                    "line {line} has {cells} cells, the header has {}; the line is ignored",
                    header.len()
                ));
            } else if record != header {
                // A program that appends to its log repeats the header.
                records.push(record);
            }
        }
        let mut columns: Vec<String> = header.iter().map(str::to_owned).collect();
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
        let number = plain.parse().ok();
        let number = number.or_else(|| match self.commas && plain.matches(',').count() == 1 {
            true => plain.replace(',', ".").parse().ok(),
            false => None,
        });
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
fn delimiter(bytes: &[u8]) -> u8 {
    let header = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let found = [b',', b';', b'\t'].into_iter().find(|byte| header.contains(byte));
    found.unwrap_or(b',')
}

fn line(record: &StringRecord) -> u64 {
    record.position().map_or(0, ::csv::Position::line)
}

/// Returns true for the words that programs write for a missing value. NaN is a value.
fn is_missing(cell: &str) -> bool {
    ["", "na", "n/a", "null", "none"].iter().any(|word| cell.eq_ignore_ascii_case(word))
}
