//! Stores in a SQLite file.

use super::Error;
use super::database::{Cell, Database, Dialect, NAN, Session, Work};
use super::schema;
use rusqlite::types::{ToSql, ToSqlOutput, Value as SqlValue, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long to wait for others that write, in all. A write takes milliseconds, so this is more than
/// hundreds of workers on one file need.
const PATIENCE: Duration = Duration::from_secs(60);

/// The pause after SQLite gave up waiting by itself, or did not wait.
const PAUSE: Duration = Duration::from_millis(20);

const DIALECT: Dialect = Dialect {
    words: &[
        ("{now}", "CAST(unixepoch('subsec') * 1000 AS INTEGER)"),
        // A transaction that writes has the whole file.
        ("{lock}", ""),
        ("{id}", "INTEGER PRIMARY KEY"),
        ("{int}", "INTEGER"),
        // `REAL` would make 0.0 of -0.0, and has no room for the text that stands for NaN.
        ("{float}", "ANY"),
        ("{strict}", "STRICT"),
    ],
    there: "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'surefoot_schema'",
    guards: &[
        "CREATE TRIGGER surefoot_trial_is_over BEFORE UPDATE ON surefoot_trial
        WHEN OLD.state IN ('complete', 'stopped', 'failed')
        BEGIN SELECT RAISE(ABORT, 'what is over does not change'); END",
    ],
};

/// A SQLite file.
pub(super) struct Sqlite {
    connection: Connection,
    name: String,
}

impl Sqlite {
    /// Opens a file, and makes it a store if it is new and `create` says so.
    pub(super) fn open(path: &Path, create: bool) -> Result<Sqlite, Error> {
        let name = path.display().to_string();
        if !create && !path.exists() {
            return Err(Error::Missing { store: name });
        }
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags.set(OpenFlags::SQLITE_OPEN_CREATE, create);
        let connection = Connection::open_with_flags(path, flags);
        let connection = connection.map_err(|error| failure(&name, &error))?;
        let mut store = Sqlite { connection, name };
        store.connect()?;
        Ok(store)
    }

    fn connect(&mut self) -> Result<(), Error> {
        let begun = Instant::now();
        self.patiently(begun, |store| {
            store.connection.busy_timeout(Duration::from_secs(5))?;
            store.connection.pragma_update(None, "foreign_keys", true)
        })?;
        self.refuse_foreign()?;
        if self.connection.is_readonly("main").unwrap_or(false) {
            return self.read(&mut schema::check);
        }
        // Readers and the writer do not wait for each other, and what is committed stays committed
        // when the machine loses its power.
        self.patiently(begun, |store| {
            store
                .connection
                .pragma_update(None, "journal_mode", "wal")?;
            store.connection.pragma_update(None, "synchronous", "full")
        })?;
        self.write(&mut schema::prepare)
    }

    /// Fails on a database of another program.
    fn refuse_foreign(&mut self) -> Result<(), Error> {
        let mut table = None;
        self.read(&mut |session| {
            if session.query(DIALECT.there, &[])?.is_empty() {
                let rows = session.query(
                    "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name LIMIT 1",
                    &[],
                )?;
                table = rows.into_iter().next();
            }
            Ok(())
        })?;
        match table {
            Some(row) => Err(Error::Foreign {
                store: self.name.clone(),
                table: match row.into_iter().next() {
                    Some(Cell::Text(table)) => table,
                    _ => String::new(),
                },
            }),
            None => Ok(()),
        }
    }

    /// Tries again while others hold the file, until the patience that began then is used up.
    fn patiently<T>(
        &mut self,
        begun: Instant,
        mut attempt: impl FnMut(&mut Sqlite) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        loop {
            match attempt(self) {
                Ok(value) => return Ok(value),
                Err(error) if is_busy(&error) && begun.elapsed() < PATIENCE => {
                    std::thread::sleep(PAUSE);
                }
                Err(error) => return Err(failure(&self.name, &error)),
            }
        }
    }

    fn transact(&mut self, behavior: TransactionBehavior, work: Work<'_>) -> Result<(), Error> {
        let begun = Instant::now();
        loop {
            match self.once(behavior, work) {
                Err(Error::Busy { .. }) if begun.elapsed() < PATIENCE => {
                    std::thread::sleep(PAUSE);
                }
                result => return result,
            }
        }
    }

    fn once(&mut self, behavior: TransactionBehavior, work: Work<'_>) -> Result<(), Error> {
        let name = &self.name;
        let transaction = self.connection.transaction_with_behavior(behavior);
        let transaction = transaction.map_err(|error| failure(name, &error))?;
        // Whatever goes wrong from here on, the transaction is rolled back as it is dropped.
        work(&mut SqliteSession {
            connection: &transaction,
            name,
        })?;
        transaction.commit().map_err(|error| failure(name, &error))
    }
}

impl Database for Sqlite {
    fn name(&self) -> &str {
        &self.name
    }

    fn read(&mut self, work: Work<'_>) -> Result<(), Error> {
        self.transact(TransactionBehavior::Deferred, work)
    }

    fn write(&mut self, work: Work<'_>) -> Result<(), Error> {
        // One that only later asks for the right to write can be refused in the middle.
        self.transact(TransactionBehavior::Immediate, work)
    }
}

struct SqliteSession<'a> {
    connection: &'a Connection,
    name: &'a str,
}

impl Session for SqliteSession<'_> {
    fn store(&self) -> &str {
        self.name
    }

    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }

    fn query(&mut self, sql: &str, cells: &[Cell]) -> Result<Vec<Vec<Cell>>, Error> {
        let query = || -> rusqlite::Result<Vec<Vec<Cell>>> {
            let mut statement = self.connection.prepare_cached(&DIALECT.render(sql))?;
            let columns = statement.column_count();
            let mut rows = statement.query(rusqlite::params_from_iter(cells))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let cells = (0..columns).map(|index| cell(row.get_ref(index)?));
                found.push(cells.collect::<rusqlite::Result<Vec<Cell>>>()?);
            }
            Ok(found)
        };
        query().map_err(|error| failure(self.name, &error))
    }

    fn execute(&mut self, sql: &str, cells: &[Cell]) -> Result<u64, Error> {
        let execute = || {
            let mut statement = self.connection.prepare_cached(&DIALECT.render(sql))?;
            statement.execute(rusqlite::params_from_iter(cells))
        };
        let changed = execute().map_err(|error| failure(self.name, &error))?;
        Ok(changed as u64)
    }
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Cell::Null => ToSqlOutput::Owned(SqlValue::Null),
            Cell::Int(value) => ToSqlOutput::Owned(SqlValue::Integer(*value)),
            Cell::Float(value) if value.is_nan() => {
                ToSqlOutput::Borrowed(ValueRef::Text(NAN.as_bytes()))
            }
            Cell::Float(value) => ToSqlOutput::Owned(SqlValue::Real(*value)),
            Cell::Text(value) => ToSqlOutput::Borrowed(ValueRef::Text(value.as_bytes())),
        })
    }
}

fn cell(value: ValueRef<'_>) -> rusqlite::Result<Cell> {
    Ok(match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(value) => Cell::Int(value),
        ValueRef::Real(value) => Cell::Float(value),
        ValueRef::Text(_) | ValueRef::Blob(_) => Cell::Text(value.as_str()?.to_owned()),
    })
}

fn is_busy(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(
        code,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

/// What went wrong, in the words of a store.
fn failure(name: &str, error: &rusqlite::Error) -> Error {
    let store = name.to_owned();
    let message = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy {
            store,
            waited: PATIENCE,
        },
        Some(ErrorCode::DiskFull) => Error::Full { store },
        Some(ErrorCode::ReadOnly) => Error::ReadOnly { store },
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            Error::NoDatabase { store, message }
        }
        _ => Error::Database { store, message },
    }
}

/// The path in a URL of a SQLite file: after `sqlite:`, or all of it.
pub(super) fn path(url: &str) -> PathBuf {
    let path = url.strip_prefix("sqlite:").unwrap_or(url);
    // `sqlite:///a/b` is how other programs write the path `/a/b`.
    PathBuf::from(path.strip_prefix("//").unwrap_or(path))
}
