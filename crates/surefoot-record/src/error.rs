//! Errors of writing and reading records.

use std::io;
use std::path::{Path, PathBuf};

/// Why a record could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}{}", path.display(), advice(source))]
    Io {
        /// Attempted action, as a verb.
        action: &'static str,
        /// The file or directory it was tried on.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The directory is not the record of a run.
    #[error("{} is not a run: {reason}", path.display())]
    NotARun {
        /// The directory.
        path: PathBuf,
        /// Missing or wrong part.
        reason: String,
    },
    /// Another process is training this run.
    #[error(
        "{} is in use by another process; wait for it to end, or stop it, before resuming this run",
        path.display()
    )]
    Locked {
        /// The run directory.
        path: PathBuf,
    },
    /// The run is over.
    #[error("{} is finished and cannot be resumed; start a new run from its plan.toml", path.display())]
    Finished {
        /// The run directory.
        path: PathBuf,
    },
    /// The plan is not the one that the run was started with.
    #[error(
        "{} is not the plan this run was started with; restore it, or start a new run with the changed plan",
        path.display()
    )]
    PlanChanged {
        /// The plan file of the run.
        path: PathBuf,
    },
    /// The file was written by a later version.
    #[error(
        "{} has format version {found}, and this version of surefoot reads up to {known}; use a newer surefoot",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version it is written in.
        found: u32,
        /// The latest version that can be read.
        known: u32,
    },
    /// The record was written by an earlier version.
    #[error(
        "{} has format version {found}, whose digests and checkpoints are not those of version {known}; \
         use the surefoot it was recorded with, or start a new run from its plan.toml",
        path.display()
    )]
    Older {
        /// The file.
        path: PathBuf,
        /// The version it is written in.
        found: u32,
        /// The version that is needed.
        known: u32,
    },
    /// The content of a file is not what was written.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Cause.
        reason: String,
    },
    /// There are checkpoints, and none of them can be resumed from.
    #[error(
        "no checkpoint in {} can be used; start a new run from its plan.toml. The newest failed with: {newest}",
        path.display()
    )]
    NoUsableCheckpoint {
        /// The directory of checkpoints.
        path: PathBuf,
        /// Error of the newest checkpoint.
        newest: Box<Error>,
    },
    /// A value does not fit the record.
    #[error("cannot record {what}: {reason}")]
    Unrecordable {
        /// The value.
        what: String,
        /// Why it does not fit.
        reason: String,
    },
    /// Writing failed earlier; what was written until then is kept.
    #[error("the record in {} is incomplete since an earlier failure: {reason}", path.display())]
    Failed {
        /// The run directory.
        path: PathBuf,
        /// The first failure.
        reason: String,
    },
}

/// The result of an operation on a record.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Adds the action and the path to an I/O error; for `map_err`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { action, path, source }
    }

    pub(crate) fn damaged(path: &Path, reason: impl ToString) -> Error {
        Error::Damaged { path: path.to_owned(), reason: reason.to_string() }
    }
}

fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space, then resume the run"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; choose a directory that can be written"
        }
        _ => "",
    }
}
