//! A connection to a PostgreSQL server with a time limit for every answer.
//!
//! A server that is suspended or stuck keeps its connections open and does not answer. The driver would wait forever.

use super::database::Cell;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Error, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Session settings. The first bounds the wait for the lock of a stuck worker, the second frees the locks of a machine
/// that disappeared.
const SETTINGS: &str = "SET lock_timeout = '20s'; SET idle_in_transaction_session_timeout = '30s'";

/// A failed call.
pub(super) enum ConnectionError {
    /// No answer within this time.
    Timeout(Duration),
    /// Error of the server or the connection.
    Server(Error),
    /// The event loop could not be started.
    Runtime(std::io::Error),
}

/// A connection with its prepared statements. Drop it after a [`ConnectionError::Timeout`].
pub(super) struct Connection {
    client: Client,
    statements: BTreeMap<String, Statement>,
    answer_timeout: Duration,
    runtime: Runtime,
}

impl Connection {
    /// Connects to a server.
    pub(super) fn open(
        config: &Config,
        tls: &MakeRustlsConnect,
        answer_timeout: Duration,
    ) -> Result<Connection, ConnectionError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(ConnectionError::Runtime)?;
        let client = wait(&runtime, answer_timeout, async {
            let (client, connection) = config.connect(tls.clone()).await?;
            tokio::spawn(connection);
            client.batch_execute(SETTINGS).await?;
            Ok(client)
        });
        match client {
            Ok(client) => {
                Ok(Connection { client, statements: BTreeMap::new(), answer_timeout, runtime })
            }
            Err(error) => {
                // Does not wait for a name server.
                runtime.shutdown_background();
                Err(error)
            }
        }
    }

    /// Runs statements without parameters and results.
    pub(super) fn run(&self, sql: &str) -> Result<(), ConnectionError> {
        wait(&self.runtime, self.answer_timeout, self.client.batch_execute(sql))
    }

    /// Runs a statement and returns the number of changed rows.
    pub(super) fn execute(&mut self, sql: &str, cells: &[Cell]) -> Result<u64, ConnectionError> {
        let statement = self.prepare(sql)?;
        let call = self.client.execute_raw(&statement, parameters(cells));
        wait(&self.runtime, self.answer_timeout, call)
    }

    /// Runs a query.
    pub(super) fn query(&mut self, sql: &str, cells: &[Cell]) -> Result<Vec<Row>, ConnectionError> {
        let statement = self.prepare(sql)?;
        let cells: Vec<_> = parameters(cells).collect();
        wait(&self.runtime, self.answer_timeout, self.client.query(&statement, &cells))
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement, ConnectionError> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = wait(&self.runtime, self.answer_timeout, self.client.prepare(sql))?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

fn parameters(cells: &[Cell]) -> impl ExactSizeIterator<Item = &(dyn ToSql + Sync)> {
    cells.iter().map(|cell| cell as &(dyn ToSql + Sync))
}

fn wait<T>(
    runtime: &Runtime,
    limit: Duration,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, ConnectionError> {
    match runtime.block_on(async { timeout(limit, call).await }) {
        Ok(result) => result.map_err(ConnectionError::Server),
        Err(_) => Err(ConnectionError::Timeout(limit)),
    }
}
