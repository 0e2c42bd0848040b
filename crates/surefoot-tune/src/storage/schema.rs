//! Tables of a storage.
//!
//! Every write locks the row of its study, so changes are ordered and become visible in that order.
//! `point_change`, `end_change` and `change` record when something became visible, so a study can be
//! rebuilt as it was at any change. Reports are never changed.

use super::StorageError;
use super::database::{Database, Session, cells};

/// Layout version. Other versions are rejected.
pub(super) const VERSION: i64 = 4;

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
        vectors TEXT NOT NULL,
        created {int} NOT NULL,
        trials {int} NOT NULL,
        change {int} NOT NULL
    ) {strict}",
    "CREATE TABLE surefoot_trial (
        study {int} NOT NULL REFERENCES surefoot_study (id) ON DELETE CASCADE,
        number {int} NOT NULL,
        state TEXT NOT NULL CHECK (state IN
            ('waiting', 'running', 'paused', 'lost', 'complete', 'pruned', 'failed')),
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
        point_change {int},
        end_change {int},
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
        state TEXT NOT NULL CHECK (state IN ('running', 'lost', 'released', 'paused', 'finished')),
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
    "CREATE TABLE surefoot_decision (
        study {int} NOT NULL,
        decision {int} NOT NULL,
        number {int} NOT NULL,
        until {int},
        budget {int},
        seen {int} NOT NULL,
        change {int} NOT NULL,
        PRIMARY KEY (study, decision),
        FOREIGN KEY (study, number) REFERENCES surefoot_trial (study, number) ON DELETE CASCADE
    ) {strict}",
    "CREATE INDEX surefoot_decision_number ON surefoot_decision (study, number)",
];

/// Checks the layout of a database. Creates the tables if there are none and `create` is set.
pub(super) fn open(database: &mut dyn Database, create: bool) -> Result<(), StorageError> {
    let mut exists_already = false;
    database.read(&mut |session| {
        exists_already = exists(session)?;
        if exists_already { check(session) } else { Ok(()) }
    })?;
    match (exists_already, create) {
        (true, _) => Ok(()),
        (false, true) => database.create_tables(),
        (false, false) => Err(StorageError::Missing { storage: database.name().to_owned() }),
    }
}

/// Creates the tables, unless another worker was faster.
pub(super) fn create_tables(session: &mut dyn Session) -> Result<(), StorageError> {
    if exists(session)? {
        return check(session);
    }
    for statement in TABLES.iter().chain(session.dialect().guards) {
        session.execute(statement, &[])?;
    }
    let sql = "INSERT INTO surefoot_schema (version) VALUES (?1)";
    session.execute(sql, &cells![VERSION])?;
    Ok(())
}

fn exists(session: &mut dyn Session) -> Result<bool, StorageError> {
    let exists = session.dialect().exists;
    Ok(!session.query(exists, &[])?.is_empty())
}

/// Fails if the layout version differs.
pub(super) fn check(session: &mut dyn Session) -> Result<(), StorageError> {
    let row = session.first("SELECT version FROM surefoot_schema", &[])?.unwrap_or_default();
    let found = session.reader("the version of the layout", row).get()?;
    if found != VERSION {
        return Err(StorageError::Layout {
            storage: session.storage().to_owned(),
            found,
            supported: VERSION,
        });
    }
    Ok(())
}
