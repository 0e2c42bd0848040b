//! Storage of studies for any number of workers on any number of machines.
//!
//! The life of a worker:
//!
//! 1. [`Storage::open`], then [`Storage::join`] a study.
//! 2. [`Storage::claim`] a trial. If it has no point, update a [`View`] with
//!    [`Storage::refresh_reports`], pass its history to the sampler, and [`Storage::start`] the trial.
//! 3. [`Storage::report`] after every step, [`Storage::refresh_reports`] for the pruners, and
//!    [`Storage::heartbeat`] in between (see [`HeartbeatThread`]).
//! 4. [`Storage::finish`], and claim again until the result is [`Claimed::Done`].
//!
//! Guarantees, whatever process dies when:
//!
//! * Trials are numbered 0, 1, 2, ... without gaps.
//! * A trial has at most one worker. A worker whose heartbeat was overdue loses its claim, and its
//!   writes change nothing.
//! * A trial in a final state never changes. A trigger in the database enforces it.
//! * A deleted study stays deleted for its workers, even if one of the same name is created.
//! * A call that returned is stored, and on disk, except that a power failure may lose the last claims and reports.
//!   A call that failed has stored nothing or, if the answer was lost, everything; it can be repeated
//!   without effect.
//! * Only the clock of the database counts.
//!
//! A search can be replayed: [`FrozenTrial::seen`] is the last change the sampler had seen, and
//! [`View::history_at`] returns the history at that change.

mod claim;
#[cfg(feature = "postgres")]
mod connection;
mod database;
mod difference;
mod error;
#[cfg(test)]
mod fixture;
mod heartbeat;
#[cfg(test)]
mod model_tests;
#[cfg(all(test, feature = "postgres"))]
mod outage_tests;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
mod postgres_url;
mod progress;
#[cfg(test)]
mod retry_tests;
mod schema;
mod sqlite;
mod study;
#[cfg(feature = "postgres")]
mod tls;
mod token;
mod trial;
mod view;

pub use claim::{Claim, ClaimLimits, Claimed, Scheduled};
pub use error::StorageError;
pub use heartbeat::{Heartbeat, HeartbeatThread};
pub use progress::{Start, StepCost};
pub use study::{NewStudy, StoredStudy, StudyId, vectors};
pub use token::host;
pub use trial::{
    Change, ClaimState, FrozenTrial, Millis, StoredDecision, TrialAttempt, TrialReport, TrialState,
};
pub use view::View;

use database::{Database, Durability, Session};
use sqlite::Sqlite;
use std::path::PathBuf;

/// A database with studies.
///
/// Each thread and process opens its own.
pub struct Storage {
    database: Box<dyn Database>,
}

impl Storage {
    /// Opens or creates a storage: a file (`sqlite:PATH` or a path) or a PostgreSQL database
    /// (`postgres://USER:PASSWORD@HOST:PORT/DATABASE`).
    pub fn open(url: &str) -> Result<Storage, StorageError> {
        Storage::connect(url, true)
    }

    /// Creates a storage in memory, for this process only.
    pub fn in_memory() -> Result<Storage, StorageError> {
        Ok(Storage { database: Box::new(Sqlite::in_memory()?) })
    }

    /// Opens an existing storage.
    pub fn open_existing(url: &str) -> Result<Storage, StorageError> {
        Storage::connect(url, false)
    }

    fn connect(url: &str, create: bool) -> Result<Storage, StorageError> {
        if is_postgres(url) {
            return Storage::on_server(url, create);
        }
        let path = sqlite_path(url)?;
        let database = Box::new(Sqlite::open(&path, create)?);
        Ok(Storage { database })
    }

    #[cfg(feature = "postgres")]
    fn on_server(url: &str, create: bool) -> Result<Storage, StorageError> {
        let database = Box::new(postgres::Postgres::open(url, create)?);
        Ok(Storage { database })
    }

    #[cfg(not(feature = "postgres"))]
    fn on_server(_: &str, _: bool) -> Result<Storage, StorageError> {
        Err(StorageError::Url {
            url: "postgres://".to_owned(),
            message: "built without PostgreSQL support".to_owned(),
        })
    }

    /// Name in messages: the file, or the URL without its password.
    pub fn name(&self) -> &str {
        self.database.name()
    }

    fn read<T>(
        &mut self,
        mut work: impl FnMut(&mut dyn Session) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let mut answer = None;
        self.database.read(&mut |session| {
            answer = Some(work(session)?);
            Ok(())
        })?;
        self.answered(answer)
    }

    fn write<T>(
        &mut self,
        work: impl FnMut(&mut dyn Session) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        self.write_with(Durability::Synced, work)
    }

    fn write_with<T>(
        &mut self,
        durability: Durability,
        mut work: impl FnMut(&mut dyn Session) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let mut answer = None;
        self.database.write(durability, &mut |session| {
            answer = Some(work(session)?);
            Ok(())
        })?;
        self.answered(answer)
    }

    fn answered<T>(&self, answer: Option<T>) -> Result<T, StorageError> {
        answer.ok_or_else(|| StorageError::Database {
            storage: self.name().to_owned(),
            message: "the transaction did not run".to_owned(),
        })
    }
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Storage").field(&self.name()).finish()
    }
}

fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

/// Environment variable with the password of a PostgreSQL server, for URLs without one.
pub const PASSWORD_VARIABLE: &str = "PGPASSWORD";

/// Adds the password of the environment to the URL of a PostgreSQL database, to pass it on without the variable.
pub fn with_password(url: &str) -> String {
    let password = std::env::var_os(PASSWORD_VARIABLE).filter(|password| !password.is_empty());
    match password {
        Some(password) if is_postgres(url) => add_password(url, password.as_encoded_bytes()),
        _ => url.to_owned(),
    }
}

/// Adds a password in front of all options: a later one replaces it.
fn add_password(url: &str, password: &[u8]) -> String {
    let rest = url.find("://").map_or(0, |at| at + 3);
    let user = url[rest..].find('@').map_or(rest, |at| rest + at);
    if url[rest..user].contains(':') {
        return url.to_owned();
    }
    let escaped: String = password.iter().map(|byte| format!("%{byte:02X}")).collect();
    let query = url[user..].find('?').map_or(url.len(), |at| user + at);
    let (place, options) = (&url[..query], url[query..].trim_start_matches('?'));
    let and = if options.is_empty() { "" } else { "&" };
    format!("{place}?password={escaped}{and}{options}")
}

/// Path of a SQLite URL.
fn sqlite_path(url: &str) -> Result<PathBuf, StorageError> {
    let path = match url.strip_prefix("sqlite:") {
        // Some programs write `sqlite:///a/b` for `/a/b`.
        Some(path) => path.strip_prefix("//").unwrap_or(path),
        None => {
            if let Some(kind) = other_kind(url) {
                return Err(StorageError::Url {
                    url: kind,
                    message: "expected a file, `sqlite:PATH` or `postgres://...`".to_owned(),
                });
            }
            url
        }
    };
    if path.is_empty() {
        return Err(StorageError::Url {
            url: url.to_owned(),
            message: "the URL has no path".to_owned(),
        });
    }
    Ok(PathBuf::from(path))
}

/// Start of a URL for another database, or of a misspelled one. The rest may contain a password.
fn other_kind(url: &str) -> Option<String> {
    if let Some((scheme, _)) = url.split_once("://") {
        return Some(format!("{scheme}://"));
    }
    let lower = url.to_ascii_lowercase();
    let is_server = lower.starts_with("postgres") || lower.contains("password=");
    let beginning = || url.split([':', '=', '/', ' ']).next().unwrap_or_default();
    is_server.then(|| format!("{}…", beginning()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn files_have_urls_or_paths() {
        for (url, path) in [
            ("study.db", "study.db"),
            ("sqlite:study.db", "study.db"),
            ("sqlite:/a/study.db", "/a/study.db"),
            ("sqlite:///a/study.db", "/a/study.db"),
        ] {
            assert_eq!(sqlite_path(url).as_deref(), Ok(Path::new(path)));
        }
    }

    #[test]
    fn errors_do_not_contain_passwords() {
        let error = Storage::open("mysql://me:secret@db/x").expect_err("refused");
        assert_eq!(
            error.to_string(),
            "mysql://: expected a file, `sqlite:PATH` or `postgres://...`"
        );
        assert!(Storage::open("sqlite:").is_err());
    }

    #[test]
    fn passwords_are_added_to_urls_without_one() {
        for (url, expected) in [
            ("postgres://me@db/s", "postgres://me@db/s?password=%61%26"),
            ("postgres://db/s?user=me", "postgres://db/s?password=%61%26&user=me"),
            ("postgres://me:b@db/s", "postgres://me:b@db/s"),
            ("postgres://db/s?password=b", "postgres://db/s?password=%61%26&password=b"),
        ] {
            assert_eq!(add_password(url, b"a&"), expected);
        }
    }

    #[test]
    fn a_misspelled_server_url_is_not_a_file() {
        for (url, shown) in [
            ("postgres:/me:secret@db/x", "postgres…"),
            ("postgresql:me:secret@db", "postgresql…"),
            ("Postgres//me:secret@db/x", "Postgres…"),
            ("host=db password=secret", "host…"),
            ("password=secret host=db", "password…"),
        ] {
            let error = Storage::open(url).expect_err("refused");
            assert_eq!(
                error.to_string(),
                format!("{shown}: expected a file, `sqlite:PATH` or `postgres://...`")
            );
        }
        let path = sqlite_path("sqlite:postgres.db");
        assert_eq!(path.as_deref(), Ok(Path::new("postgres.db")));
    }
}
