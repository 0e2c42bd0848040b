//! Export of studies to CSV, Parquet, JSON lines and Optuna.
//!
//! CSV and Parquet have one row per trial ([`Table`]). JSON lines add the learning curves. The Optuna
//! journal can be opened with `JournalFileBackend`.

mod csv;
mod journal;
mod json;
mod parquet;
mod table;

use crate::storage::{StoredStudy, View};
use std::path::Path;

pub use json::line as trial_json;
pub use table::{Cell, Column, Kind, Table};

/// An export format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// CSV, one row per trial.
    Csv,
    /// Parquet, one row per trial.
    Parquet,
    /// One JSON object per trial, with its learning curve.
    JsonLines,
    /// A log for Optuna's `JournalFileBackend`.
    OptunaJournal,
}

/// Error of an export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Parquet could not be written.
    #[error("the table cannot be written as Parquet: {0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
    /// JSON could not be written.
    #[error("this cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 4] =
        [Format::Csv, Format::Parquet, Format::JsonLines, Format::OptunaJournal];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Parquet => "parquet",
            Format::JsonLines => "jsonl",
            Format::OptunaJournal => "optuna-journal",
        }
    }

    /// File extension.
    pub fn ending(self) -> &'static str {
        match self {
            Format::OptunaJournal => "log",
            other => other.name(),
        }
    }

    /// The format of a name.
    pub fn named(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The format of a file extension.
    pub fn of(file: &Path) -> Option<Format> {
        let ending = file.extension()?.to_str()?.to_ascii_lowercase();
        let mut all = Format::ALL.into_iter();
        all.find(|format| format.ending() == ending)
    }

    /// Serializes a study. The view must contain the reports.
    pub fn write(self, study: &StoredStudy, view: &View) -> Result<Vec<u8>, ExportError> {
        match self {
            Format::Csv => Ok(csv::write(&Table::of(study, view)).into_bytes()),
            Format::Parquet => Ok(parquet::write(&Table::of(study, view))?),
            Format::JsonLines => Ok(json::write(view)?.into_bytes()),
            Format::OptunaJournal => Ok(journal::write(study, view)?.into_bytes()),
        }
    }
}

#[cfg(test)]
mod fixture;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_found_by_name_and_extension() {
        for format in Format::ALL {
            assert_eq!(Format::named(format.name()), Some(format));
            let file = format!("a.b/study.{}", format.ending());
            assert_eq!(Format::of(Path::new(&file)), Some(format));
        }
        assert_eq!(Format::of(Path::new("study.CSV")), Some(Format::Csv));
        assert_eq!(Format::of(Path::new("study")), None);
        assert_eq!(Format::named("xml"), None);
    }
}
