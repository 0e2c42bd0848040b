//! Storage in a PostgreSQL database.

use super::StorageError;
use super::connection::{Connection, ConnectionError};
use super::database::{Cell, Database, Dialect, Durability, Session, Take, Work};
use super::postgres_url::ServerUrl;
use super::{schema, tls};
use std::error::Error as StdError;
use std::time::{Duration, Instant};
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// Time to retry while the server does not answer. A restart takes seconds.
const RETRY: Duration = Duration::from_secs(60);

/// The same for the first connection, where a wrong address is likelier than a restart.
const FIRST_RETRY: Duration = Duration::from_secs(10);

/// Time limit of an answer. Statements take milliseconds, and wait for a lock no longer than 20 s.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// First and longest pause between retries.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Advisory lock that a worker holds while it creates the tables.
const CREATION_LOCK: i64 = 0x5375_7265_666f_6f74;

/// Readers see one snapshot.
const READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Writers lock the row of the study first, and then read what the previous owner of the lock has written.
const WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

const DIALECT: Dialect = Dialect {
    words: &[
        ("?", "$"),
        ("{now}", "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"),
        ("{lock}", "FOR UPDATE"),
        ("{id}", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
        ("{int}", "BIGINT"),
        ("{float}", "DOUBLE PRECISION"),
        ("{strict}", ""),
    ],
    // `to_regclass` would use the catalog from before the wait for the creation lock.
    exists: "SELECT 1 FROM pg_catalog.pg_class
            WHERE relname = 'surefoot_schema' AND pg_catalog.pg_table_is_visible(oid)",
    guards: &[
        "CREATE FUNCTION surefoot_trial_has_ended() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN RAISE EXCEPTION ''a trial that has ended does not change''; END'",
        "CREATE TRIGGER surefoot_trial_has_ended BEFORE UPDATE ON surefoot_trial FOR EACH ROW
            WHEN (OLD.state IN ('complete', 'pruned', 'failed'))
            EXECUTE FUNCTION surefoot_trial_has_ended()",
    ],
};

/// A PostgreSQL database.
pub(super) struct Postgres {
    url: ServerUrl,
    connection: Option<Connection>,
    retry: Duration,
    answer_timeout: Duration,
    /// Waits between retries.
    pause: Box<dyn FnMut(Duration) + Send>,
    /// True once something was written. If the server is read-only later, there was a failover and a retry reaches the
    /// new primary.
    has_written: bool,
}

impl Postgres {
    /// Connects to a server. Creates the tables if there are none and `create` is set.
    pub(super) fn open(url: &str, create: bool) -> Result<Postgres, StorageError> {
        let mut url = ServerUrl::parse(url, |name| std::env::var_os(name))?;
        url.config
            .application_name("surefoot")
            .connect_timeout(Duration::from_secs(10))
            .keepalives_idle(Duration::from_secs(30))
            .tcp_user_timeout(Duration::from_secs(30));
        let mut storage = Postgres::new(url, FIRST_RETRY);
        schema::open(&mut storage, create)?;
        storage.retry = RETRY;
        Ok(storage)
    }

    fn new(url: ServerUrl, retry: Duration) -> Postgres {
        Postgres {
            url,
            connection: None,
            retry,
            answer_timeout: ANSWER_TIMEOUT,
            pause: Box::new(std::thread::sleep),
            has_written: false,
        }
    }

    /// Sets the time limits and calls `pause` between retries.
    #[cfg(test)]
    pub(super) fn with_retries(
        mut self,
        answer_timeout: Duration,
        retry: Duration,
        pause: impl FnMut(Duration) + Send + 'static,
    ) -> Postgres {
        self.connection = None;
        self.answer_timeout = answer_timeout;
        self.retry = retry;
        self.pause = Box::new(pause);
        self
    }

    fn transact(&mut self, begin: &str, work: Work<'_>) -> Result<(), StorageError> {
        let begun = Instant::now();
        let (mut pause, longest) = PAUSES;
        loop {
            let error = match self.once(begin, work) {
                Ok(()) => {
                    self.has_written |= begin != READ;
                    return Ok(());
                }
                Err(error) => error,
            };
            let elapsed = begun.elapsed();
            if !self.is_temporary(&error) || elapsed >= self.retry {
                return Err(match error {
                    StorageError::Unreachable { storage, message, .. } => {
                        StorageError::Unreachable { storage, waited: elapsed, message }
                    }
                    other => other,
                });
            }
            (self.pause)(pause);
            pause = (pause * 2).min(longest);
        }
    }

    /// True if a retry with a new connection may succeed.
    fn is_temporary(&self, error: &StorageError) -> bool {
        match error {
            StorageError::Unreachable { .. } => true,
            StorageError::ReadOnly { .. } => self.has_written,
            _ => false,
        }
    }

    fn once(&mut self, begin: &str, work: Work<'_>) -> Result<(), StorageError> {
        let name = self.url.name.as_str();
        // Kept only after the end of the transaction. The server rolls back a dropped one.
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(&self.url.config, &self.url.tls, self.answer_timeout)
                .map_err(|error| connect_error(name, error))?,
        };
        connection.run(begin).map_err(|error| session_error(name, error))?;
        let result = work(&mut PostgresSession { connection: &mut connection, name });
        let result = result
            .and_then(|()| connection.run("COMMIT").map_err(|error| session_error(name, error)));
        let is_over = match &result {
            Ok(()) => true,
            Err(error) => !self.is_temporary(error) && connection.run("ROLLBACK").is_ok(),
        };
        self.connection = is_over.then_some(connection);
        result
    }
}

impl Database for Postgres {
    fn name(&self) -> &str {
        &self.url.name
    }

    fn read(&mut self, work: Work<'_>) -> Result<(), StorageError> {
        self.transact(READ, work)
    }

    /// Every commit is synchronous: without that, the death of the server would lose confirmed reports.
    fn write(&mut self, _: Durability, work: Work<'_>) -> Result<(), StorageError> {
        self.transact(WRITE, work)
    }

    fn create_tables(&mut self) -> Result<(), StorageError> {
        self.write(Durability::Synced, &mut |session| {
            session.query("SELECT pg_advisory_xact_lock(?1)", &[Cell::Int(CREATION_LOCK)])?;
            schema::create_tables(session)
        })
    }
}

struct PostgresSession<'a> {
    connection: &'a mut Connection,
    name: &'a str,
}

impl Session for PostgresSession<'_> {
    fn storage(&self) -> &str {
        self.name
    }

    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }

    fn each(&mut self, sql: &str, cells: &[Cell], take: Take<'_>) -> Result<(), StorageError> {
        let failed = |error| session_error(self.name, error);
        let rows = self.connection.query(&DIALECT.render(sql), cells).map_err(failed)?;
        for row in rows {
            let cells = (0..row.len()).map(|index| row.try_get(index));
            let cells = cells.collect::<Result<Vec<Cell>, _>>();
            take(cells.map_err(|error| failed(ConnectionError::Server(error)))?)?;
        }
        Ok(())
    }

    fn execute(&mut self, sql: &str, cells: &[Cell]) -> Result<u64, StorageError> {
        let changed = self.connection.execute(&DIALECT.render(sql), cells);
        changed.map_err(|error| session_error(self.name, error))
    }
}

impl ToSql for Cell {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match (self, ty) {
            (Cell::Null, _) => Ok(IsNull::Yes),
            (Cell::Int(value), &Type::INT8) => value.to_sql(ty, out),
            (Cell::Float(value), &Type::FLOAT8) => value.to_sql(ty, out),
            (Cell::Text(value), &Type::TEXT) => value.to_sql(ty, out),
            (cell, ty) => Err(format!("{cell:?} does not fit a column of type {ty}").into()),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Cell {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Cell, Box<dyn StdError + Sync + Send>> {
        Ok(match *ty {
            Type::INT8 => Cell::Int(i64::from_sql(ty, raw)?),
            Type::INT4 => Cell::Int(i32::from_sql(ty, raw)?.into()),
            Type::FLOAT8 => Cell::Float(f64::from_sql(ty, raw)?),
            Type::TEXT => Cell::Text(String::from_sql(ty, raw)?),
            Type::VOID => Cell::Null,
            ref other => return Err(format!("unexpected column type {other}").into()),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Cell, Box<dyn StdError + Sync + Send>> {
        Ok(Cell::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Converts an error of a session.
fn session_error(name: &str, error: ConnectionError) -> StorageError {
    if let ConnectionError::Server(error) = &error
        && let Some(answer) = error.as_db_error()
        && matches!(answer.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
    {
        // The server has ended the session: it was idle, the server stops, or an administrator did it.
        return unreachable(name, answer.message().to_owned());
    }
    storage_error(name, error)
}

/// Converts an error of connecting. Permanent ones are wrong input: the address, the password, the certificates.
fn connect_error(name: &str, error: ConnectionError) -> StorageError {
    let rejected = |message| StorageError::Rejected { storage: name.to_owned(), message };
    if let ConnectionError::Server(error) = &error
        && let Some(message) = tls::handshake_error(error)
    {
        return rejected(message);
    }
    match storage_error(name, error) {
        StorageError::Database { message, .. } => rejected(message),
        other => other,
    }
}

fn storage_error(name: &str, error: ConnectionError) -> StorageError {
    let storage = name.to_owned();
    let error = match error {
        ConnectionError::Server(error) => error,
        ConnectionError::Timeout(limit) => {
            return unreachable(name, format!("it took longer than {} s", limit.as_secs_f64()));
        }
        ConnectionError::Runtime(error) => {
            return StorageError::Database { storage, message: error.to_string() };
        }
    };
    let message = match (error.as_db_error(), error.source()) {
        (Some(answer), _) => answer.message().to_owned(),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    };
    match error.code() {
        Some(code) if is_temporary(code) => unreachable(name, message),
        None if error.is_closed() || is_network(&error) => unreachable(name, message),
        Some(&SqlState::DISK_FULL) => StorageError::Full { storage },
        Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => StorageError::ReadOnly { storage },
        _ => StorageError::Database { storage, message },
    }
}

fn unreachable(name: &str, message: String) -> StorageError {
    StorageError::Unreachable { storage: name.to_owned(), waited: Duration::ZERO, message }
}

/// True if a retry may succeed.
fn is_temporary(code: &SqlState) -> bool {
    let temporary = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
        // `statement_timeout` of the server, or an administrator.
        SqlState::QUERY_CANCELED,
    ];
    // Class 08: connection errors.
    temporary.contains(code) || code.code().starts_with("08")
}

fn is_network(error: &tokio_postgres::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.is::<std::io::Error>() {
            return true;
        }
        cause = error.source();
    }
    // A timeout has no source.
    error.to_string().contains("timeout")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreachable_server_is_named() {
        // Nothing listens on port 1.
        let name = "postgres://me@127.0.0.1:1/studies";
        let url = ServerUrl::parse(name, |_| None).unwrap_or_else(|error| panic!("{error}"));
        let error = Postgres::new(url, Duration::ZERO).read(&mut |_| Ok(())).expect_err("an error");
        let start = format!("{name}: no answer from the database");
        assert!(error.to_string().starts_with(&start), "{error}");
    }
}
