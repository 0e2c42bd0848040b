//! Studies for other programs: as a table, or as a study of Optuna's.
//!
//! A table has one row a trial ([`Table`]), in CSV or Parquet. JSON lines have the curve of each trial
//! besides. An Optuna journal is what Optuna itself would have written.

mod csv;
mod journal;
mod json;
mod parquet;
mod table;

use crate::store::{Study, View};
use std::path::Path;

pub use table::{Cell, Column, Kind, Table};

/// A form in which a study can be handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A row a trial, with commas between.
    Csv,
    /// The same, with types.
    Parquet,
    /// A JSON object a trial, with its curve.
    JsonLines,
    /// The log of Optuna's `JournalFileBackend`.
    OptunaJournal,
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A row that cannot be written as Parquet.
    #[error("the table cannot be written as Parquet: {0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
    /// Something that cannot be written as JSON.
    #[error("this cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 4] =
        [Format::Csv, Format::Parquet, Format::JsonLines, Format::OptunaJournal];

    /// The name it has on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Parquet => "parquet",
            Format::JsonLines => "jsonl",
            Format::OptunaJournal => "optuna-journal",
        }
    }

    /// The ending of its files.
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

    /// The format that a file's name tells.
    pub fn of(file: &Path) -> Option<Format> {
        let ending = file.extension()?.to_str()?.to_ascii_lowercase();
        let mut all = Format::ALL.into_iter();
        all.find(|format| format.ending() == ending)
    }

    /// A study in this form. The view has to have the reports.
    pub fn write(self, study: &Study, view: &View) -> Result<Vec<u8>, ExportError> {
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
    fn formats_are_known_by_name_and_by_the_ending_of_a_file() {
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
