//! Stores in a database of a PostgreSQL server.

use super::Error;
use super::database::{Cell, Database, Dialect, Session, Work};
use super::schema;
use super::tls::{self, Encryption};
use postgres::config::{Host, SslMode};
use postgres::error::SqlState;
use postgres::types::private::BytesMut;
use postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Config, IsolationLevel, Statement, Transaction};
use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::ffi::OsString;
use std::time::{Duration, Instant};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long to try again when the server does not answer. A restart takes seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// The same for the first connection, where a wrong address is likelier than a restart.
const FIRST_PATIENCE: Duration = Duration::from_secs(10);

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
        (
            "{now}",
            "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
        ),
        ("{lock}", "FOR UPDATE"),
        ("{id}", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
        ("{int}", "BIGINT"),
        ("{float}", "DOUBLE PRECISION"),
        ("{strict}", ""),
    ],
    // `to_regclass` would answer from what the connection knew before it waited for its turn.
    there: "SELECT 1 FROM pg_catalog.pg_class
            WHERE relname = 'surefoot_schema' AND pg_catalog.pg_table_is_visible(oid)",
    guards: &[
        "CREATE FUNCTION surefoot_trial_is_over() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN RAISE EXCEPTION ''what is over does not change''; END'",
        "CREATE TRIGGER surefoot_trial_is_over BEFORE UPDATE ON surefoot_trial FOR EACH ROW
            WHEN (OLD.state IN ('complete', 'stopped', 'failed'))
            EXECUTE FUNCTION surefoot_trial_is_over()",
    ],
};

/// A database of a PostgreSQL server.
pub(super) struct Postgres {
    config: Config,
    encrypted: MakeRustlsConnect,
    name: String,
    connection: Option<Connection>,
    patience: Duration,
}

struct Connection {
    client: Client,
    statements: BTreeMap<String, Statement>,
}

impl Postgres {
    /// Connects to a server, and makes the tables if there are none and `create` says so.
    pub(super) fn open(url: &str, create: bool) -> Result<Postgres, Error> {
        let (mut config, encrypted) = configuration(url, |name| std::env::var_os(name))?;
        config.application_name("surefoot");
        config.connect_timeout(Duration::from_secs(10));
        config.keepalives_idle(Duration::from_secs(30));
        config.tcp_user_timeout(Duration::from_secs(30));
        let mut store = Postgres {
            name: name(&config),
            config,
            encrypted,
            connection: None,
            patience: FIRST_PATIENCE,
        };
        schema::open(&mut store, create)?;
        store.patience = PATIENCE;
        Ok(store)
    }

    fn transact(&mut self, read_only: bool, work: Work<'_>) -> Result<(), Error> {
        let begun = Instant::now();
        let (mut pause, longest) = PAUSES;
        loop {
            match self.once(read_only, work) {
                Err(Error::Unreachable { message, .. }) => {
                    let waited = begun.elapsed();
                    if waited >= self.patience {
                        return Err(Error::Unreachable {
                            store: self.name.clone(),
                            waited,
                            message,
                        });
                    }
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(longest);
                }
                result => return result,
            }
        }
    }

    fn once(&mut self, read_only: bool, work: Work<'_>) -> Result<(), Error> {
        let result = self.attempt(read_only, work);
        // After an error that may pass, a new connection is the safest start.
        if matches!(result, Err(Error::Unreachable { .. })) {
            self.connection = None;
        }
        result
    }

    fn attempt(&mut self, read_only: bool, work: Work<'_>) -> Result<(), Error> {
        let failed = |error: postgres::Error| failure(&self.name, &error);
        if self.connection.is_none() {
            let client = self.config.connect(self.encrypted.clone());
            let mut client = client.map_err(|error| match tls::refusal(&error) {
                Some(message) => Error::Database {
                    store: self.name.clone(),
                    message,
                },
                None => failed(error),
            })?;
            client.batch_execute(SETTINGS).map_err(failed)?;
            self.connection = Some(Connection {
                client,
                statements: BTreeMap::new(),
            });
        }
        let Some(connection) = &mut self.connection else {
            return Ok(());
        };
        // Readers see one state. Writers lock the row of the study first and then read what the
        // last one that had it left behind.
        let level = if read_only {
            IsolationLevel::RepeatableRead
        } else {
            IsolationLevel::ReadCommitted
        };
        let builder = connection.client.build_transaction();
        let builder = builder.isolation_level(level).read_only(read_only);
        let mut session = PostgresSession {
            transaction: builder.start().map_err(failed)?,
            statements: &mut connection.statements,
            name: &self.name,
        };
        // Whatever goes wrong here, the transaction is rolled back as it is dropped.
        work(&mut session)?;
        session.transaction.commit().map_err(failed)
    }
}

impl Database for Postgres {
    fn name(&self) -> &str {
        &self.name
    }

    fn read(&mut self, work: Work<'_>) -> Result<(), Error> {
        self.transact(true, work)
    }

    fn write(&mut self, work: Work<'_>) -> Result<(), Error> {
        self.transact(false, work)
    }

    fn make(&mut self) -> Result<(), Error> {
        self.write(&mut |session| {
            session.query("SELECT pg_advisory_xact_lock(?1)", &[Cell::Int(MAKING)])?;
            schema::prepare(session)
        })
    }
}

struct PostgresSession<'a> {
    transaction: Transaction<'a>,
    statements: &'a mut BTreeMap<String, Statement>,
    name: &'a str,
}

impl PostgresSession<'_> {
    fn prepare(&mut self, sql: &str) -> Result<Statement, postgres::Error> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.transaction.prepare(&DIALECT.render(sql))?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

impl Session for PostgresSession<'_> {
    fn store(&self) -> &str {
        self.name
    }

    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }

    fn query(&mut self, sql: &str, cells: &[Cell]) -> Result<Vec<Vec<Cell>>, Error> {
        let mut query = || -> Result<Vec<Vec<Cell>>, postgres::Error> {
            let statement = self.prepare(sql)?;
            let rows = self.transaction.query(&statement, &parameters(cells))?;
            let rows = rows.iter().map(|row| {
                let cells = (0..row.len()).map(|index| row.try_get(index));
                cells.collect::<Result<Vec<Cell>, postgres::Error>>()
            });
            rows.collect()
        };
        query().map_err(|error| failure(self.name, &error))
    }

    fn execute(&mut self, sql: &str, cells: &[Cell]) -> Result<u64, Error> {
        let mut execute = || {
            let statement = self.prepare(sql)?;
            self.transaction.execute(&statement, &parameters(cells))
        };
        execute().map_err(|error| failure(self.name, &error))
    }
}

fn parameters(cells: &[Cell]) -> Vec<&(dyn ToSql + Sync)> {
    cells
        .iter()
        .map(|cell| cell as &(dyn ToSql + Sync))
        .collect()
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
) -> Result<(Config, MakeRustlsConnect), Error> {
    let refuse = |message: String| Error::Url {
        url: without_password(url),
        message,
    };
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
            return Err(refuse("it names no host".to_owned()));
        }
        // An encrypted connection is one to a name, which an address may do without.
        if encryption.mode == SslMode::Require {
            return Err(refuse(
                "an encrypted connection needs the name of the host".to_owned(),
            ));
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

/// What a database is called in messages.
fn name(config: &Config) -> String {
    let hosts = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(host) => host.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    });
    let hosts = hosts.collect::<Vec<String>>().join(",");
    let port = config.get_ports().first();
    let port = port.map_or_else(String::new, |port| format!(":{port}"));
    let user = config
        .get_user()
        .map_or_else(String::new, |user| format!("{user}@"));
    let database = config.get_dbname().unwrap_or_default();
    format!("postgres://{user}{hosts}{port}/{database}")
}

/// What went wrong, in the words of a store. What may pass is [`Error::Unreachable`].
fn failure(name: &str, error: &postgres::Error) -> Error {
    let store = name.to_owned();
    let message = match (error.as_db_error(), error.source()) {
        (Some(answer), _) => answer.message().to_owned(),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    };
    let passes = match error.code() {
        Some(code) => may_pass(code),
        None => error.is_closed() || is_about_the_network(error),
    };
    if passes {
        return Error::Unreachable {
            store,
            waited: Duration::ZERO,
            message,
        };
    }
    match error.code() {
        Some(&SqlState::DISK_FULL) => Error::Full { store },
        Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => Error::ReadOnly { store },
        _ => Error::Database { store, message },
    }
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
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
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
        configuration(url, |_| None)
            .err()
            .expect("refused")
            .to_string()
    }

    fn mode(url: &str) -> SslMode {
        configuration(url, |_| None)
            .expect("a URL")
            .0
            .get_ssl_mode()
    }

    #[test]
    fn what_stays_on_the_machine_is_not_encrypted() {
        assert_eq!(mode("postgres://db/studies"), SslMode::Prefer);
        assert_eq!(
            mode("postgres://db/studies?sslmode=require"),
            SslMode::Require
        );
        let socket = "postgres://me@%2Ftmp/studies?sslmode=require";
        assert_eq!(mode(socket), SslMode::Disable);
    }

    #[test]
    fn an_address_without_a_name_cannot_be_encrypted_to() {
        let address = "postgres:///studies?hostaddr=10.0.0.1";
        assert_eq!(mode(address), SslMode::Disable);
        assert_eq!(
            refused(&format!("{address}&sslmode=require")),
            "postgres:///studies: an encrypted connection needs the name of the host"
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
        let url = "postgres://me:secret@db:5433/studies";
        let (config, _) = configuration(url, |_| None).expect("a URL");
        assert_eq!(name(&config), "postgres://me@db:5433/studies");
    }

    #[test]
    fn a_password_that_is_not_in_the_url_is_taken_from_the_environment() {
        let password = |url: &str| {
            let (config, _) = configuration(url, |name| (name == PASSWORD).then(|| "there".into()))
                .expect("a URL");
            config.get_password().map(<[u8]>::to_vec)
        };
        assert_eq!(password("postgres://me@db/studies"), Some(b"there".into()));
        assert_eq!(
            password("postgres://me:here@db/studies"),
            Some(b"here".into())
        );
    }

    #[test]
    fn a_url_without_a_host_is_refused() {
        assert_eq!(
            refused("postgres:///studies"),
            "postgres:///studies: it names no host"
        );
    }

    #[test]
    fn a_server_that_is_not_there_is_named() {
        // Port 1 of this machine: nothing listens, and the answer comes at once.
        let url = "postgres://me@127.0.0.1:1/studies";
        let (config, encrypted) = configuration(url, |_| None).expect("a URL");
        let mut store = Postgres {
            name: name(&config),
            config,
            encrypted,
            connection: None,
            patience: Duration::ZERO,
        };
        let error = store.read(&mut |_| Ok(())).expect_err("unreachable");
        assert!(
            error
                .to_string()
                .starts_with("postgres://me@127.0.0.1:1/studies: no answer from the database"),
            "{error}"
        );
    }
}
