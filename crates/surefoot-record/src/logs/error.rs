//! Errors of reading a log.

use std::io;
use std::path::{Path, PathBuf};

/// Why a log could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A directory without anything to read.
    #[error(
        "{} has no log: no header.json of a run, no TensorBoard file (*tfevents*), none of {}",
        path.display(),
        crate::logs::KNOWN_FILES.join(", ")
    )]
    NotALog {
        /// The directory.
        path: PathBuf,
    },
    /// Nothing in the log is the loss, as far as names tell.
    #[error("{} has no {what} that looks like the loss\n  {what}s: {}", path.display(), list(found))]
    NoLoss {
        /// The file or directory.
        path: PathBuf,
        /// Kind of series: `column` or `tag`.
        what: &'static str,
        /// Names in the log.
        found: Vec<String>,
    },
    /// A column or tag in the map does not exist.
    #[error("{} has no {what} `{name}`\n  {what}s: {}", path.display(), list(found))]
    NoSuchName {
        /// The file or directory.
        path: PathBuf,
        /// Kind of series: `column` or `tag`.
        what: &'static str,
        /// The missing name.
        name: String,
        /// Names in the log.
        found: Vec<String>,
    },
    /// There are names and no numbers.
    #[error("{}: the {what} `{name}`, read as the loss, contains no numbers", path.display())]
    Empty {
        /// The file or directory.
        path: PathBuf,
        /// Kind of series: `column` or `tag`.
        what: &'static str,
        /// The name of the loss.
        name: String,
    },
    /// A cell that should be a number is not.
    #[error("{}, line {line}, column `{column}`: `{value}` is not a number", path.display())]
    NotANumber {
        /// The file.
        path: PathBuf,
        /// The line of the file.
        line: u64,
        /// The column.
        column: String,
        /// Content of the cell.
        value: String,
    },
    /// The file is not in the format that it was recognized as.
    #[error("cannot parse {}: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Cause.
        reason: String,
    },
    /// The file is not what was written.
    #[error("{} is damaged at byte {offset}: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Start of the damaged record.
        offset: u64,
        /// Cause.
        reason: String,
    },
}

impl Error {
    /// Adds the path to an I/O error; for `map_err`.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { path, source }
    }

    /// Returns true if a `map` entry could fix the error.
    pub fn is_about_names(&self) -> bool {
        matches!(self, Error::NoLoss { .. } | Error::NoSuchName { .. } | Error::Empty { .. })
    }
}

/// Maximum number of names in a message; logs can have thousands.
const LISTED: usize = 40;

fn list(names: &[String]) -> String {
    match names.len() {
        0 => "none".to_owned(),
        count if count > LISTED => {
            format!("{} and {} more", names[..LISTED].join(", "), count - LISTED)
        }
        _ => names.join(", "),
    }
}
