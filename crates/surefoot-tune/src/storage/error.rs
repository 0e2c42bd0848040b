//! Storage errors.

use std::time::Duration;

/// A failed storage call. Messages name the storage, never the password in its URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages describe the fields")]
pub enum StorageError {
    /// Invalid or unsupported URL.
    #[error("{url}: {message}")]
    Url { url: String, message: String },
    /// Nothing to open.
    #[error("{storage}: no study storage found here")]
    Missing { storage: String },
    /// Not a SQLite database, or a damaged one.
    #[error("{storage}: not a SQLite database, or damaged ({message})")]
    NotADatabase { storage: String, message: String },
    /// Database of another program.
    #[error("{storage}: not a Surefoot database: it contains the table `{table}`")]
    Foreign { storage: String, table: String },
    /// Written by a version of Surefoot with another layout.
    #[error(
        "{storage}: written by another version of Surefoot (layout {found}, supported: {supported})"
    )]
    Layout { storage: String, found: i64, supported: i64 },
    /// Not writable.
    #[error("{storage}: read-only")]
    ReadOnly { storage: String },
    /// The write-ahead log cannot be read without write access.
    #[error(
        "{storage}: the last changes are in the `-wal` file next to it, which needs write access to read; \
         copy both files to a writable directory, or open the file once as its owner"
    )]
    UnreadableLog { storage: String },
    /// The file was renamed, deleted or replaced while it was open.
    #[error(
        "{storage}: the file was moved or deleted while in use; restore it and run the command again"
    )]
    Moved { storage: String },
    /// No space left. Committed data is intact.
    #[error("{storage}: disk full; committed data is safe")]
    Full { storage: String },
    /// Locked by others for too long.
    #[error("{storage}: locked by other processes for {} s", .waited.as_secs())]
    Busy { storage: String, waited: Duration },
    /// The server does not answer.
    #[error("{storage}: no answer from the database for {} s: {message}", .waited.as_secs())]
    Unreachable { storage: String, waited: Duration, message: String },
    /// The file cannot be opened, or the server refuses the connection: wrong password, missing database, rejected
    /// certificate.
    #[error("{storage}: {message}")]
    Rejected { storage: String, message: String },
    /// Any other database error.
    #[error("{storage}: {message}")]
    Database { storage: String, message: String },
    /// A row with unexpected content.
    #[error("{storage}: cannot read {what}: {message}")]
    Damaged { storage: String, what: String, message: String },
    /// No study with this name.
    #[error("{storage}: no study `{study}` (found: {})", list(.studies))]
    NoStudy { storage: String, study: String, studies: Vec<String> },
    /// The study was deleted while a worker used it. Nothing was written.
    #[error("{storage}: the study was deleted")]
    Deleted { storage: String },
    /// A different study with this name exists.
    #[error("{storage}: the existing study `{study}` differs: {}", .differences.join("; "))]
    Differs { storage: String, study: String, differences: Vec<String> },
    /// Another worker owns the trial, or none. Nothing was written.
    #[error("trial {number}: the claim was lost because the worker's heartbeat was overdue")]
    ClaimLost { number: u64 },
    /// The trial already has another final state. Nothing was written.
    #[error("trial {number} has already ended")]
    Ended { number: u64 },
    /// Contradicts an earlier call. Nothing was written.
    #[error("trial {number}: {message}")]
    Conflict { number: u64, message: String },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
