//! Where a study is kept, for any number of workers on any number of machines.
//!
//! A worker's life:
//!
//! 1. [`Store::open`], then [`Store::join`] a study.
//! 2. [`Store::claim`] a trial. If the claim has no point, [`Store::refresh_reports`] of a [`View`], ask the
//!    sampler with its history, and [`Store::start`] the trial.
//! 3. [`Store::report`] after every stretch, [`Store::refresh_reports`] for the pruners, and
//!    [`Store::heartbeat`] in between (a [`Heart`] does it).
//! 4. [`Store::finish`], and claim the next one until it says [`Claimed::Done`].
//!
//! What holds, whatever dies when:
//!
//! * Trials have the numbers 0, 1, 2, ... and each number is given out once.
//! * A trial has at most one worker. One that was thought dead and is not finds that its claim is
//!   lost, and what it writes then changes nothing.
//! * A trial that is over does not change. Nothing here changes it, and a trigger in the database
//!   refuses to update its row by hand.
//! * A study that was deleted is over for its workers, also where one of the same name is made.
//! * A call that returned is stored. One that failed has stored nothing or, where the answer was
//!   lost on the way, all; it can be made again and does nothing twice.
//! * Only the clock of the database is asked.
//!
//! A search can be replayed: each trial knows up to which change of the study its sampler knew the
//! others ([`Trial::seen`]), and [`View::history_at`] gives what that was.

#[cfg(all(test, feature = "postgres"))]
mod away;
mod claim;
mod database;
mod difference;
mod error;
#[cfg(test)]
mod exactly_once;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod laws;
#[cfg(feature = "postgres")]
mod line;
#[cfg(feature = "postgres")]
mod postgres;
mod progress;
mod pulse;
mod schema;
mod sqlite;
mod study;
#[cfg(feature = "postgres")]
mod tls;
mod token;
mod trial;
mod view;

pub use claim::{Claim, Claimed, Limits};
pub use error::Error;
pub use progress::{Effort, Start};
pub use pulse::{Heart, Pulse};
pub use study::{NewStudy, Study, StudyId};
pub use token::host;
pub use trial::{Attempt, Change, End, Fate, Millis, Report, State, Trial};
pub use view::View;

use database::{Database, Session};
use sqlite::Sqlite;
use std::path::PathBuf;

/// A place in which studies are kept.
///
/// It belongs to one thread at a time; another thread or process opens its own.
pub struct Store {
    database: Box<dyn Database>,
}

impl Store {
    /// Opens a store, and makes it if there is none: a file (`sqlite:PATH`, or just the path), or
    /// a database on a server (`postgres://USER:PASSWORD@HOST:PORT/DATABASE`).
    pub fn open(url: &str) -> Result<Store, Error> {
        Store::connect(url, true)
    }

    /// Opens a store that is there already.
    pub fn open_existing(url: &str) -> Result<Store, Error> {
        Store::connect(url, false)
    }

    fn connect(url: &str, create: bool) -> Result<Store, Error> {
        if is_postgres(url) {
            return Store::on_server(url, create);
        }
        let path = sqlite_path(url)?;
        let database = Box::new(Sqlite::open(&path, create)?);
        Ok(Store { database })
    }

    #[cfg(feature = "postgres")]
    fn on_server(url: &str, create: bool) -> Result<Store, Error> {
        let database = Box::new(postgres::Postgres::open(url, create)?);
        Ok(Store { database })
    }

    #[cfg(not(feature = "postgres"))]
    fn on_server(_: &str, _: bool) -> Result<Store, Error> {
        Err(Error::Url {
            url: "postgres://".to_owned(),
            message: "this program was built without PostgreSQL".to_owned(),
        })
    }

    /// What it is called in messages: the file, or the URL without its password.
    pub fn name(&self) -> &str {
        self.database.name()
    }

    fn read<T>(
        &mut self,
        mut work: impl FnMut(&mut dyn Session) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut answer = None;
        self.database.read(&mut |session| {
            answer = Some(work(session)?);
            Ok(())
        })?;
        self.answered(answer)
    }

    fn write<T>(
        &mut self,
        mut work: impl FnMut(&mut dyn Session) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut answer = None;
        self.database.write(&mut |session| {
            answer = Some(work(session)?);
            Ok(())
        })?;
        self.answered(answer)
    }

    fn answered<T>(&self, answer: Option<T>) -> Result<T, Error> {
        answer.ok_or_else(|| Error::Database {
            store: self.name().to_owned(),
            message: "a transaction ended before it began".to_owned(),
        })
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Store").field(&self.name()).finish()
    }
}

fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

/// The path in the URL of a SQLite file: after `sqlite:`, or all of it.
fn sqlite_path(url: &str) -> Result<PathBuf, Error> {
    let path = match url.strip_prefix("sqlite:") {
        // `sqlite:///a/b` is how other programs write the path `/a/b`.
        Some(path) => path.strip_prefix("//").unwrap_or(path),
        None => {
            if let Some(kind) = other_kind(url) {
                return Err(Error::Url {
                    url: kind,
                    message: "a store is a file, `sqlite:PATH` or `postgres://...`".to_owned(),
                });
            }
            url
        }
    };
    if path.is_empty() {
        return Err(Error::Url { url: url.to_owned(), message: "it names no file".to_owned() });
    }
    Ok(PathBuf::from(path))
}

/// How that begins which is meant for another database, or for this one and misspelled. No more of it is shown: what
/// follows may be a password.
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
    fn files_are_named_by_url_or_path() {
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
    fn a_url_of_something_else_is_refused_without_what_may_be_a_password() {
        let error = Store::open("mysql://me:secret@db/x").expect_err("refused");
        assert_eq!(
            error.to_string(),
            "mysql://: a store is a file, `sqlite:PATH` or `postgres://...`"
        );
        assert!(Store::open("sqlite:").is_err());
    }

    #[test]
    fn the_url_of_a_server_that_is_misspelled_is_no_file_and_not_shown() {
        for (url, shown) in [
            ("postgres:/me:secret@db/x", "postgres…"),
            ("postgresql:me:secret@db", "postgresql…"),
            ("Postgres//me:secret@db/x", "Postgres…"),
            ("host=db password=secret", "host…"),
            ("password=secret host=db", "password…"),
        ] {
            let error = Store::open(url).expect_err("refused");
            assert_eq!(
                error.to_string(),
                format!("{shown}: a store is a file, `sqlite:PATH` or `postgres://...`")
            );
        }
        let path = sqlite_path("sqlite:postgres.db");
        assert_eq!(path.as_deref(), Ok(Path::new("postgres.db")));
    }
}
