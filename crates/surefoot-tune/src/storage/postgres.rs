//! Stores in a database of a PostgreSQL server.

use super::StorageError;
use super::connection::{Line, Trouble};
use super::database::{Cell, Database, Dialect, Session, Take, Work};
use super::schema;
use super::tls::{self, Encryption};
use postgres::Config;
use postgres::config::{Host, SslMode};
use postgres::error::{DbError, Severity, SqlState};
use postgres::types::private::BytesMut;
use postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use std::error::Error as StdError;
use std::ffi::OsString;
use std::time::{Duration, Instant};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long to try again when the server does not answer. A restart takes seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// The same for the first connection, where a wrong address is likelier than a restart.
const FIRST_PATIENCE: Duration = Duration::from_secs(10);

/// How long a server may take for one answer before it is given up. It waits for a lock no longer than [`SETTINGS`] say,
/// and no statement of a store takes seconds.
const ANSWER: Duration = Duration::from_secs(30);

/// The pauses between tries: the first one, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// What a session is set to. The first ends waits that outlast a restart of a stuck worker, the
/// second frees what a machine holds that is gone without a word.
const SETTINGS: &str = "SET lock_timeout = '20s'; SET idle_in_transaction_session_timeout = '30s'";

/// The number of the lock that a worker holds while it makes the tables.
const MAKING: i64 = 0x5375_7265_666f_6f74;

/// The variable with the password, as PostgreSQL's own clients have it, if the URL has none: all that run on a machine
/// can see what a program was called with. A password need not be a text.
const PASSWORD: &str = "PGPASSWORD";

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
    // `to_regclass` would answer from what the connection knew before it waited for its turn.
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

/// A database of a PostgreSQL server.
pub(super) struct Postgres {
    config: Config,
    encrypted: MakeRustlsConnect,
    name: String,
    line: Option<Line>,
    patience: Duration,
    answer: Duration,
    /// Whether the server has let this one write. If it then does not, it has become one of those that only follow
    /// another, and that one can be written.
    has_written: bool,
}

impl Postgres {
    /// Connects to a server, and makes the tables if there are none and `create` says so.
    pub(super) fn open(url: &str, create: bool) -> Result<Postgres, StorageError> {
        let (mut config, encrypted) = configuration(url, |name| std::env::var_os(name))?;
        config.application_name("surefoot");
        config.connect_timeout(Duration::from_secs(10));
        config.keepalives_idle(Duration::from_secs(30));
        config.tcp_user_timeout(Duration::from_secs(30));
        let mut storage = Postgres {
            name: name(url),
            config,
            encrypted,
            line: None,
            patience: FIRST_PATIENCE,
            answer: ANSWER,
            has_written: false,
        };
        schema::open(&mut storage, create)?;
        storage.patience = PATIENCE;
        Ok(storage)
    }

    /// One that gives up sooner: an answer, and all tries together.
    #[cfg(test)]
    pub(super) fn hasty(
        url: &str,
        answer: Duration,
        patience: Duration,
    ) -> Result<Postgres, StorageError> {
        let mut storage = Postgres::open(url, true)?;
        storage.line = None;
        storage.answer = answer;
        storage.patience = patience;
        Ok(storage)
    }

    fn transact(&mut self, read_only: bool, work: Work<'_>) -> Result<(), StorageError> {
        let begun = Instant::now();
        let (mut pause, longest) = PAUSES;
        loop {
            let error = match self.once(read_only, work) {
                Ok(()) => {
                    self.has_written |= !read_only;
                    return Ok(());
                }
                Err(error) => error,
            };
            if !self.may_pass(&error) {
                return Err(error);
            }
            let waited = begun.elapsed();
            if waited >= self.patience {
                return Err(match error {
                    StorageError::Unreachable { storage, message, .. } => {
                        StorageError::Unreachable { storage, waited, message }
                    }
                    other => other,
                });
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(longest);
        }
    }

    /// Whether the same may go well a little later, with a new connection.
    fn may_pass(&self, error: &StorageError) -> bool {
        match error {
            StorageError::Unreachable { .. } => true,
            StorageError::ReadOnly { .. } => self.has_written,
            _ => false,
        }
    }

    fn once(&mut self, read_only: bool, work: Work<'_>) -> Result<(), StorageError> {
        // It is put back only where its transaction is over. One that is dropped is rolled back by the server.
        let line = match self.line.take() {
            Some(line) => line,
            None => self.connect()?,
        };
        let failed = |trouble| in_session(&self.name, &trouble);
        // Readers see one state. Writers lock the row of the study first and then read what the
        // last one that had it left behind. Whether they may write, the server says.
        let begin = if read_only {
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        } else {
            "BEGIN ISOLATION LEVEL READ COMMITTED"
        };
        line.run(begin).map_err(failed)?;
        let mut session = PostgresSession { line: &line, name: &self.name };
        let result = work(&mut session).and_then(|()| line.run("COMMIT").map_err(failed));
        let is_over = match &result {
            Ok(()) => true,
            Err(error) => !self.may_pass(error) && line.run("ROLLBACK").is_ok(),
        };
        self.line = is_over.then_some(line);
        result
    }

    fn connect(&self) -> Result<Line, StorageError> {
        let line = Line::open(&self.config, &self.encrypted, SETTINGS, self.answer);
        line.map_err(|trouble| at_the_door(&self.name, &trouble))
    }
}

impl Database for Postgres {
    fn name(&self) -> &str {
        &self.name
    }

    fn read(&mut self, work: Work<'_>) -> Result<(), StorageError> {
        self.transact(true, work)
    }

    fn write(&mut self, work: Work<'_>) -> Result<(), StorageError> {
        self.transact(false, work)
    }

    fn create_tables(&mut self) -> Result<(), StorageError> {
        self.write(&mut |session| {
            session.query("SELECT pg_advisory_xact_lock(?1)", &[Cell::Int(MAKING)])?;
            schema::create_tables(session)
        })
    }
}

struct PostgresSession<'a> {
    line: &'a Line,
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
        let failed = |trouble| in_session(self.name, &trouble);
        self.line.each(DIALECT.render(sql), cells, take, failed)
    }

    fn execute(&mut self, sql: &str, cells: &[Cell]) -> Result<u64, StorageError> {
        let changed = self.line.execute(DIALECT.render(sql), cells);
        changed.map_err(|trouble| in_session(self.name, &trouble))
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
            (cell, ty) => Err(format!("{cell:?} is put where a {ty} belongs").into()),
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
            ref other => return Err(format!("a {other} is read").into()),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Cell, Box<dyn StdError + Sync + Send>> {
        Ok(Cell::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// What a URL asks for, if it can be had. Variables of the environment say what it does not.
fn configuration(
    url: &str,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<(Config, MakeRustlsConnect), StorageError> {
    let refuse = |message: String| StorageError::Url { url: without_password(url), message };
    // A variable that is empty says nothing.
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    let text = |name: &str| variable(name).map(|value| value.to_string_lossy().into_owned());
    let (encryption, rest) = Encryption::taken_from(url, text).map_err(refuse)?;
    let mut config: Config = rest.parse().map_err(|error: postgres::Error| {
        let cause = error.source().map(ToString::to_string);
        refuse(cause.unwrap_or_else(|| error.to_string()))
    })?;
    if config.get_password().is_none()
        && let Some(password) = variable(PASSWORD)
    {
        config.password(password.into_encoded_bytes());
    }
    config.ssl_mode(encryption.mode);
    if config.get_hosts().is_empty() {
        if config.get_hostaddrs().is_empty() {
            return Err(refuse("the URL has no host".to_owned()));
        }
        // An encrypted connection is one to a name, which an address may do without.
        if encryption.mode == SslMode::Require {
            return Err(refuse("an encrypted connection needs a host name".to_owned()));
        }
        config.ssl_mode(SslMode::Disable);
    }
    // What goes through a socket does not leave the machine, and servers do not encrypt it.
    if config.get_hosts().iter().all(is_socket) {
        config.ssl_mode(SslMode::Disable);
    }
    let encrypted = encryption.connector().map_err(refuse)?;
    Ok((config, encrypted))
}

fn is_socket(host: &Host) -> bool {
    match host {
        Host::Tcp(_) => false,
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

/// A URL for messages.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    // What follows may have a password too: `?password=`.
    let shown = rest.split('?').next().unwrap_or_default();
    match shown.rsplit_once('@') {
        Some((user, place)) => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}@{place}")
        }
        // Nobody can tell where such a password ends.
        None if rest.contains('@') => format!("{scheme}://…"),
        None => format!("{scheme}://{shown}"),
    }
}

/// What a database is called in messages and where its URL is to be used again: that URL, which is sound, without its
/// password.
fn name(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    let (user, rest) = match rest.split_once('@') {
        Some((user, rest)) => (user.split(':').next().unwrap_or_default(), rest),
        None => ("", rest),
    };
    let at = if user.is_empty() { "" } else { "@" };
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let is_password = |pair: &&str| tls::key(pair).is_ok_and(|key| key == "password");
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs: Vec<&str> = pairs.filter(|pair| !is_password(pair)).collect();
    let mark = if pairs.is_empty() { "" } else { "?" };
    format!("{scheme}://{user}{at}{place}{mark}{}", pairs.join("&"))
}

/// What went wrong with a connection that there was, in the words of a store. What may pass is [`Error::Unreachable`].
fn in_session(name: &str, trouble: &Trouble) -> StorageError {
    match trouble {
        Trouble::Refusal(error) if error.as_db_error().is_some_and(is_farewell) => {
            unreachable(name, words(error))
        }
        trouble => failure(name, trouble),
    }
}

/// What went wrong before there was a connection, where a password can be wrong.
fn at_the_door(name: &str, trouble: &Trouble) -> StorageError {
    if let Trouble::Refusal(error) = trouble
        && let Some(message) = tls::refusal(error)
    {
        return StorageError::Database { storage: name.to_owned(), message };
    }
    failure(name, trouble)
}

fn failure(name: &str, trouble: &Trouble) -> StorageError {
    let error = match trouble {
        Trouble::Refusal(error) => error,
        Trouble::Silence(waited) => {
            let message = format!("it took longer than {} s", waited.as_secs());
            return unreachable(name, message);
        }
    };
    let passes = match error.code() {
        Some(code) => may_pass(code),
        None => error.is_closed() || is_about_the_network(error),
    };
    if passes {
        return unreachable(name, words(error));
    }
    let storage = name.to_owned();
    match error.code() {
        Some(&SqlState::DISK_FULL) => StorageError::Full { storage },
        Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => StorageError::ReadOnly { storage },
        _ => StorageError::Database { storage, message: words(error) },
    }
}

fn unreachable(name: &str, message: String) -> StorageError {
    StorageError::Unreachable { storage: name.to_owned(), waited: Duration::ZERO, message }
}

fn words(error: &postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(answer), _) => answer.message().to_owned(),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}

/// Whether a server ends the session with this answer, for whatever reason: it was silent for too long, the server is
/// stopped, somebody wanted it so. Another session may have more luck; if not, it is told why as it begins.
fn is_farewell(answer: &DbError) -> bool {
    matches!(answer.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
}

/// Whether the same may go well a little later.
fn may_pass(code: &SqlState) -> bool {
    let passing = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
        // It took longer than this server lets anything take, or somebody has cancelled it.
        SqlState::QUERY_CANCELED,
    ];
    // Class 08 is about connections.
    passing.contains(code) || code.code().starts_with("08")
}

fn is_about_the_network(error: &postgres::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.is::<std::io::Error>() {
            return true;
        }
        cause = error.source();
    }
    // A server that does not answer leaves no cause.
    error.to_string().contains("timeout")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        configuration(url, |_| None).err().expect("refused").to_string()
    }

    fn mode(url: &str) -> SslMode {
        configuration(url, |_| None).expect("a URL").0.get_ssl_mode()
    }

    #[test]
    fn what_stays_on_the_machine_is_not_encrypted() {
        assert_eq!(mode("postgres://db/studies"), SslMode::Prefer);
        assert_eq!(mode("postgres://db/studies?sslmode=require"), SslMode::Require);
        let socket = "postgres://me@%2Ftmp/studies?sslmode=require";
        assert_eq!(mode(socket), SslMode::Disable);
    }

    #[test]
    fn an_address_without_a_name_cannot_be_encrypted_to() {
        let address = "postgres:///studies?hostaddr=10.0.0.1";
        assert_eq!(mode(address), SslMode::Disable);
        assert_eq!(
            refused(&format!("{address}&sslmode=require")),
            "postgres:///studies: an encrypted connection needs a host name"
        );
    }

    #[test]
    fn passwords_are_in_no_message() {
        let urls = [
            "postgres://me:secret@db:x/studies",
            "postgres://db/studies?password=secret&sslmode=never",
            "postgres://me:sec@ret@db/studies?port=secret",
            "postgres://me:sec?ret@db/studies?sslmode=never",
            "postgres://me:sec/ret@db/studies",
            "postgres://db/studies?password=sec@ret",
        ];
        for url in urls {
            let message = refused(url);
            assert!(!message.contains("sec"), "{message}");
        }
        let urls = [
            "postgres://me:secret@db:5433/studies",
            "postgres://me:sec?ret@db:5433/studies?password=secret",
            "postgres://me@db:5433/studies?pass%77ord=secret&",
        ];
        for url in urls {
            configuration(url, |_| None).expect("a URL");
            assert_eq!(name(url), "postgres://me@db:5433/studies");
        }
    }

    #[test]
    fn a_name_can_be_used_as_a_url_again() {
        let urls = [
            "postgresql://me@db/studies",
            "postgres://me@%2Ftmp%2Fpg:5499/studies",
            "postgres://[::1]:5433/studies?sslmode=require&sslrootcert=/ca's.pem&user=me",
            "postgres:///studies?hostaddr=10.0.0.1",
        ];
        for url in urls {
            assert_eq!(name(url), url);
        }
        assert_eq!(
            name("postgres://me:secret@a,b/s?sslmode=verify-full&password=x&sslrootcert=system"),
            "postgres://me@a,b/s?sslmode=verify-full&sslrootcert=system"
        );
    }

    #[test]
    fn a_password_that_is_not_in_the_url_is_taken_from_the_environment() {
        let password = |url: &str| {
            let (config, _) = configuration(url, |name| (name == PASSWORD).then(|| "there".into()))
                .expect("a URL");
            config.get_password().map(<[u8]>::to_vec)
        };
        assert_eq!(password("postgres://me@db/studies"), Some(b"there".into()));
        assert_eq!(password("postgres://me:here@db/studies"), Some(b"here".into()));
    }

    #[test]
    fn a_url_without_a_host_is_refused() {
        assert_eq!(refused("postgres:///studies"), "postgres:///studies: the URL has no host");
    }

    #[test]
    fn a_server_that_is_not_there_is_named() {
        // Port 1 of this machine: nothing listens, and the answer comes at once.
        let url = "postgres://me@127.0.0.1:1/studies";
        let (config, encrypted) = configuration(url, |_| None).expect("a URL");
        let mut storage = Postgres {
            name: name(url),
            config,
            encrypted,
            line: None,
            patience: Duration::ZERO,
            answer: ANSWER,
            has_written: false,
        };
        let error = storage.read(&mut |_| Ok(())).expect_err("unreachable");
        assert!(
            error
                .to_string()
                .starts_with("postgres://me@127.0.0.1:1/studies: no answer from the database"),
            "{error}"
        );
    }
}
