//! The tables of a store.
//!
//! Every write locks the row of its study, so that changes of a study come one after the other and
//! become visible in that order. `pointed`, `told` and `change` say by which change others knew of
//! something: a study as it was at any change can be rebuilt from them. Reports are only added.

use super::Error;
use super::database::{Database, Session, cells};

/// The version of this layout. A store with a later one is not touched.
pub(super) const VERSION: i64 = 1;

/// What makes an empty database a store.
const TABLES: &[&str] = &[
    "CREATE TABLE surefoot_schema (version {int} NOT NULL) {strict}",
    "CREATE TABLE surefoot_study (
        id {id},
        name TEXT NOT NULL UNIQUE,
        fingerprint TEXT NOT NULL,
        document TEXT NOT NULL,
        space TEXT NOT NULL,
        direction TEXT NOT NULL,
        seed TEXT NOT NULL,
        program TEXT NOT NULL,
        created {int} NOT NULL,
        trials {int} NOT NULL,
        change {int} NOT NULL
    ) {strict}",
    "CREATE TABLE surefoot_trial (
        study {int} NOT NULL REFERENCES surefoot_study (id) ON DELETE CASCADE,
        number {int} NOT NULL,
        state TEXT NOT NULL CHECK (state IN
            ('waiting', 'running', 'lost', 'complete', 'stopped', 'failed')),
        creator TEXT NOT NULL UNIQUE,
        point TEXT,
        seen {int},
        planned {int},
        run TEXT,
        value {float},
        seconds {float},
        reason TEXT,
        message TEXT,
        attempt {int} NOT NULL,
        deaths {int} NOT NULL,
        reported {int} NOT NULL,
        reporter {int} NOT NULL,
        token TEXT,
        heartbeat {int},
        created {int} NOT NULL,
        ended {int},
        pointed {int},
        told {int},
        changed {int} NOT NULL,
        PRIMARY KEY (study, number)
    ) {strict}",
    "CREATE INDEX surefoot_trial_changed ON surefoot_trial (study, changed)",
    "CREATE INDEX surefoot_trial_state ON surefoot_trial (study, state, number)",
    "CREATE TABLE surefoot_attempt (
        study {int} NOT NULL,
        number {int} NOT NULL,
        attempt {int} NOT NULL,
        token TEXT NOT NULL UNIQUE,
        worker TEXT NOT NULL,
        began {int} NOT NULL,
        ended {int},
        fate TEXT NOT NULL CHECK (fate IN ('running', 'lost', 'released', 'over')),
        PRIMARY KEY (study, number, attempt),
        FOREIGN KEY (study, number) REFERENCES surefoot_trial (study, number) ON DELETE CASCADE
    ) {strict}",
    "CREATE TABLE surefoot_report (
        study {int} NOT NULL,
        number {int} NOT NULL,
        step {int} NOT NULL,
        attempt {int} NOT NULL,
        value {float} NOT NULL,
        seconds {float} NOT NULL,
        operations {float} NOT NULL,
        reported {int} NOT NULL,
        change {int} NOT NULL,
        PRIMARY KEY (study, number, step, attempt),
        FOREIGN KEY (study, number) REFERENCES surefoot_trial (study, number) ON DELETE CASCADE
    ) {strict}",
    "CREATE INDEX surefoot_report_change ON surefoot_report (study, change)",
];

/// Opens a database: makes it a store if it is none and `create` says so, and fails on a store of a
/// later layout.
pub(super) fn open(database: &mut dyn Database, create: bool) -> Result<(), Error> {
    let mut there = false;
    database.read(&mut |session| {
        there = is_there(session)?;
        if there { check(session) } else { Ok(()) }
    })?;
    match (there, create) {
        (true, _) => Ok(()),
        (false, true) => database.make(),
        (false, false) => Err(Error::Missing { store: database.name().to_owned() }),
    }
}

/// Makes the tables, unless another worker was first.
pub(super) fn prepare(session: &mut dyn Session) -> Result<(), Error> {
    if is_there(session)? {
        return check(session);
    }
    for statement in TABLES.iter().chain(session.dialect().guards) {
        session.execute(statement, &[])?;
    }
    let sql = "INSERT INTO surefoot_schema (version) VALUES (?1)";
    session.execute(sql, &cells![VERSION])?;
    Ok(())
}

fn is_there(session: &mut dyn Session) -> Result<bool, Error> {
    let there = session.dialect().there;
    Ok(!session.query(there, &[])?.is_empty())
}

/// Fails on a store of a later layout.
pub(super) fn check(session: &mut dyn Session) -> Result<(), Error> {
    let rows = session.query("SELECT version FROM surefoot_schema", &[])?;
    let row = rows.into_iter().next().unwrap_or_default();
    let found = session.reader("the version of the layout", row).int()?;
    if found > VERSION {
        return Err(Error::Newer { store: session.store().to_owned(), found, known: VERSION });
    }
    Ok(())
}
