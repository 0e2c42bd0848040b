//! What can be wrong with a log, and what to do about it.

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
        /// What the system said.
        source: io::Error,
    },
    /// A directory without anything to read.
    #[error(
        "{} has no log: no header.json of a run, no TensorBoard file (*tfevents*), no metrics.csv",
        path.display()
    )]
    NotALog {
        /// The directory.
        path: PathBuf,
    },
    /// A directory with the logs of more than one run.
    #[error("{} has the logs of several runs; name one of them: {}", path.display(), runs.join(", "))]
    SeveralRuns {
        /// The directory.
        path: PathBuf,
        /// The directories of the runs.
        runs: Vec<String>,
    },
    /// Nothing in the log is the loss, as far as names tell.
    #[error("{} has no {what} that looks like the loss\n  {what}s: {}", path.display(), list(found))]
    NoLoss {
        /// The file or directory.
        path: PathBuf,
        /// What its series are called: `column` or `tag`.
        what: &'static str,
        /// The names that are there.
        found: Vec<String>,
    },
    /// A column that was asked for is not there.
    #[error("{} has no {what} `{name}`\n  {what}s: {}", path.display(), list(found))]
    NoSuchName {
        /// The file or directory.
        path: PathBuf,
        /// What its series are called: `column` or `tag`.
        what: &'static str,
        /// The name that was asked for.
        name: String,
        /// The names that are there.
        found: Vec<String>,
    },
    /// There are names and no numbers.
    #[error("{} has no number in its {what} `{name}`, which would be the loss", path.display())]
    Empty {
        /// The file or directory.
        path: PathBuf,
        /// What its series are called: `column` or `tag`.
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
        /// What stands there.
        value: String,
    },
    /// The file is not a table.
    #[error("{} is not a CSV file that can be read: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is not what was written.
    #[error("{} is damaged at byte {offset}: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the record begins that is damaged.
        offset: u64,
        /// What is wrong with it.
        reason: String,
    },
}

impl Error {
    /// For `map_err`: says what could not be read.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { path, source }
    }

    /// Whether naming a column or tag would help.
    pub fn is_about_names(&self) -> bool {
        matches!(self, Error::NoLoss { .. } | Error::NoSuchName { .. } | Error::Empty { .. })
    }
}

/// How many names an error lists; logs can have thousands.
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
