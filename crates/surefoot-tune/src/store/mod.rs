//! Where a study is kept, for any number of workers on any number of machines.
//!
//! A worker's life:
//!
//! 1. [`Store::open`], then [`Store::join`] a study.
//! 2. [`Store::claim`] a trial. If the claim has no point, [`Store::refresh`] a [`View`], ask the
//!    sampler with its history, and [`Store::start`] the trial.
//! 3. [`Store::report`] after every stretch, [`Store::refresh_reports`] for the stoppers, and
//!    [`Store::heartbeat`] in between ([`Pulse`] does it).
//! 4. [`Store::finish`], and claim the next one until it says [`Claimed::Done`].
//!
//! What holds, whatever dies when:
//!
//! * Trials have the numbers 0, 1, 2, ... and each number is given out once.
//! * A trial has at most one worker. One that was thought dead and is not finds that its claim is
//!   lost, and what it writes then changes nothing.
//! * A trial that is over does not change, also not by hand: a trigger in the database refuses it.
//! * A call that returned is stored. One that failed has stored nothing or, where the answer was
//!   lost on the way, all; it can be made again and does nothing twice.
//! * Only the clock of the database is asked.
//!
//! A search can be replayed: each trial knows up to which change of the study its sampler knew the
//! others ([`Trial::seen`]), and [`View::history_at`] gives what that was.

mod claim;
mod database;
mod error;
mod progress;
mod pulse;
mod schema;
mod sqlite;
mod study;
mod token;
mod trial;
mod view;

pub use claim::{Claim, Claimed, Limits};
pub use error::Error;
pub use progress::{Effort, Start};
pub use pulse::Pulse;
pub use study::{NewStudy, Study, StudyId};
pub use trial::{Attempt, Change, End, Fate, Millis, Report, State, Trial};
pub use view::View;

use database::{Database, Session};
use sqlite::Sqlite;

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
        let database = Box::new(Sqlite::open(&sqlite::path(url), create)?);
        Ok(Store { database })
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
