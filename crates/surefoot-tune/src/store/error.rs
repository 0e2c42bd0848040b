//! What can go wrong with a store.

use std::time::Duration;

/// What can go wrong with a store. Each names the store, never the password in its URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The URL is none, or asks for what there is not.
    #[error("{url}: {message}")]
    Url {
        /// The URL, without its password.
        url: String,
        /// What is wrong with it.
        message: String,
    },
    /// There is no store where one is to be read.
    #[error("{store}: there is no store here")]
    Missing {
        /// The store.
        store: String,
    },
    /// The file is no SQLite database, or a damaged one.
    #[error("{store}: this is no SQLite database, or it is damaged ({message})")]
    NoDatabase {
        /// The file.
        store: String,
        /// What SQLite says.
        message: String,
    },
    /// A database of another program.
    #[error("{store}: this database is not a store of Surefoot: it has the table `{table}`")]
    Foreign {
        /// The file.
        store: String,
        /// A table in it.
        table: String,
    },
    /// A store of a later Surefoot.
    #[error(
        "{store}: a later Surefoot has written this store (layout {found}; this one knows {known})"
    )]
    Newer {
        /// The store.
        store: String,
        /// The version of its layout.
        found: i64,
        /// The latest version that this program knows.
        known: i64,
    },
    /// The store cannot be written.
    #[error("{store}: the store can be read but not written")]
    ReadOnly {
        /// The store.
        store: String,
    },
    /// What was written last cannot be read by one who may not write.
    #[error(
        "{store}: what was written last lies beside it, in `-wal`, and can only be read by one who may write; \
         copy both to a place of your own, or have their owner open the store once"
    )]
    Logged {
        /// The file.
        store: String,
    },
    /// No room on the disk. What was written before is whole.
    #[error("{store}: the disk is full; what was stored before is safe")]
    Full {
        /// The store.
        store: String,
    },
    /// Others held the store for too long.
    #[error("{store}: others kept the store locked for {} s", .waited.as_secs())]
    Busy {
        /// The store.
        store: String,
        /// How long this one waited.
        waited: Duration,
    },
    /// The server does not answer.
    #[error("{store}: no answer from the database for {} s: {message}", .waited.as_secs())]
    Unreachable {
        /// The store.
        store: String,
        /// How long this one tried.
        waited: Duration,
        /// What the last try gave.
        message: String,
    },
    /// The database refuses, for another reason.
    #[error("{store}: {message}")]
    Database {
        /// The store.
        store: String,
        /// What it says.
        message: String,
    },
    /// A row that no Surefoot has written like this.
    #[error("{store}: {what} cannot be read: {message}")]
    Damaged {
        /// The store.
        store: String,
        /// The row.
        what: String,
        /// What is wrong with it.
        message: String,
    },
    /// There is no study of this name.
    #[error("{store}: there is no study `{study}` (there are: {})", known(.studies))]
    NoStudy {
        /// The store.
        store: String,
        /// The name.
        study: String,
        /// Those that are there.
        studies: Vec<String>,
    },
    /// The study was deleted while it was worked on. Nothing was written.
    #[error("{store}: the study is gone: somebody has deleted it")]
    Gone {
        /// The store.
        store: String,
    },
    /// A study of this name is there, and looks for something else.
    #[error("{store}: the study `{study}` is another one: {}", .differences.join("; "))]
    Differs {
        /// The store.
        store: String,
        /// The name of the study.
        study: String,
        /// What differs, a clause each.
        differences: Vec<String>,
    },
    /// The trial belongs to another worker now, or to none. Nothing was written.
    #[error("trial {number} is no longer this worker's: it was thought dead")]
    ClaimLost {
        /// The number of the trial.
        number: u64,
    },
    /// The trial is over, and not as it is said to be now. Nothing was written.
    #[error("trial {number} is over; what is over does not change")]
    Over {
        /// The number of the trial.
        number: u64,
    },
    /// What was said before is said otherwise now. Nothing was written.
    #[error("trial {number}: {message}")]
    Contradiction {
        /// The number of the trial.
        number: u64,
        /// What does not fit.
        message: String,
    },
}

/// A list of names, for people.
fn known(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
