//! A connection to a PostgreSQL server that can be given up.
//!
//! The driver waits for an answer without end, and a server that is stopped or stuck keeps its connections open and says
//! nothing. So a connection lives in a thread of its own, and who asks it something waits only so long. A thread that is
//! given up ends when the server answers or is gone, and then lets go of the connection: what was not committed is not.

use super::StorageError;
use super::database::{Cell, Take};
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::ToSql;
use postgres::{Client, Config, Row, Statement};
use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Duration;
use tokio_postgres_rustls::MakeRustlsConnect;

/// How many rows are handed over at once.
const PORTION: usize = 1000;

/// Why something could not be asked.
pub(super) enum Trouble {
    /// Nothing came for too long.
    Silence(Duration),
    /// The server refuses, or the connection is broken.
    Refusal(postgres::Error),
}

impl From<postgres::Error> for Trouble {
    fn from(error: postgres::Error) -> Trouble {
        Trouble::Refusal(error)
    }
}

/// A connection to a server.
pub(super) struct Line {
    orders: mpsc::Sender<Order>,
    patience: Duration,
}

type Order = Box<dyn FnOnce(&mut Connection) + Send>;

impl Line {
    /// Connects to a server, and sets the session to `settings`. From then on each answer may take as long as
    /// `patience` says.
    pub(super) fn open(
        config: &Config,
        encrypted: &MakeRustlsConnect,
        settings: &'static str,
        patience: Duration,
    ) -> Result<Line, Trouble> {
        let (orders, taken) = mpsc::channel::<Order>();
        let (answer, answered) = mpsc::sync_channel(1);
        let (config, encrypted) = (config.clone(), encrypted.clone());
        let work = move || match Connection::open(&config, encrypted, settings) {
            Ok(mut connection) => {
                // Whoever is gone does not ask anything either.
                let _ = answer.send(Ok(()));
                for order in taken {
                    order(&mut connection);
                }
            }
            Err(error) => {
                let _ = answer.send(Err(error));
            }
        };
        thread::spawn(work);
        let line = Line { orders, patience };
        line.wait(&answered)??;
        Ok(line)
    }

    /// Runs statements that give nothing.
    pub(super) fn run(&self, sql: &'static str) -> Result<(), Trouble> {
        self.ask(move |connection| connection.client.batch_execute(sql))
    }

    /// Runs a statement and says how many rows it changed.
    pub(super) fn execute(&self, sql: String, cells: &[Cell]) -> Result<u64, Trouble> {
        let cells = cells.to_vec();
        self.ask(move |connection| {
            let statement = connection.prepare(&sql)?;
            let cells = cells.iter().map(|cell| cell as &(dyn ToSql + Sync));
            let cells: Vec<_> = cells.collect();
            connection.client.execute(&statement, &cells)
        })
    }

    /// Runs a statement and hands over its rows. `failed` puts trouble into words.
    pub(super) fn each(
        &self,
        sql: String,
        cells: &[Cell],
        take: Take<'_>,
        failed: impl Fn(Trouble) -> StorageError,
    ) -> Result<(), StorageError> {
        let cells = cells.to_vec();
        // No more than a portion waits while another one is taken.
        let (portions, portion) = mpsc::sync_channel(1);
        self.order(move |connection| {
            let end = connection.each(&sql, cells, &portions);
            let _ = portions.send(end.map(|()| None));
        });
        loop {
            match self.wait(&portion).map_err(&failed)? {
                Ok(Some(rows)) => rows.into_iter().try_for_each(&mut *take)?,
                Ok(None) => return Ok(()),
                Err(error) => return Err(failed(error.into())),
            }
        }
    }

    fn ask<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Connection) -> Result<T, postgres::Error> + Send + 'static,
    ) -> Result<T, Trouble> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.order(move |connection| {
            let _ = answer.send(call(connection));
        });
        Ok(self.wait(&answered)??)
    }

    /// Where the thread is gone, nobody answers.
    fn order(&self, order: impl FnOnce(&mut Connection) + Send + 'static) {
        let _ = self.orders.send(Box::new(order));
    }

    fn wait<T>(&self, answered: &Receiver<T>) -> Result<T, Trouble> {
        let answer = answered.recv_timeout(self.patience);
        answer.map_err(|_| Trouble::Silence(self.patience))
    }
}

/// Some rows; `None` after the last ones.
type Portion = Result<Option<Vec<Vec<Cell>>>, postgres::Error>;

/// What the thread has.
struct Connection {
    client: Client,
    statements: BTreeMap<String, Statement>,
}

impl Connection {
    fn open(
        config: &Config,
        encrypted: MakeRustlsConnect,
        settings: &str,
    ) -> Result<Connection, postgres::Error> {
        let mut client = config.connect(encrypted)?;
        client.batch_execute(settings)?;
        Ok(Connection { client, statements: BTreeMap::new() })
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement, postgres::Error> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql)?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn each(
        &mut self,
        sql: &str,
        cells: Vec<Cell>,
        portions: &SyncSender<Portion>,
    ) -> Result<(), postgres::Error> {
        let statement = self.prepare(sql)?;
        let mut rows = self.client.query_raw(&statement, cells)?;
        let mut portion = Vec::new();
        while let Some(row) = rows.next()? {
            portion.push(read(&row)?);
            if portion.len() == PORTION {
                // Whoever does not want the rest is gone, and it is not read.
                let full = std::mem::take(&mut portion);
                if portions.send(Ok(Some(full))).is_err() {
                    return Ok(());
                }
            }
        }
        let _ = portions.send(Ok(Some(portion)));
        Ok(())
    }
}

fn read(row: &Row) -> Result<Vec<Cell>, postgres::Error> {
    (0..row.len()).map(|index| row.try_get(index)).collect()
}
