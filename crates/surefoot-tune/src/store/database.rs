//! What a store wants of a database: statements in transactions that are tried again.
//!
//! The statements are written once, for both databases. They use `?1` for the first parameter, and
//! words in braces where the databases differ ([`Dialect`]).

use super::Error;
use std::fmt::Display;

/// What is put into a statement, and what comes out.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Null,
    Int(i64),
    /// Any number, NaN too.
    Float(f64),
    Text(String),
}

/// How NaN is written where a database has no number for it.
pub(super) const NAN: &str = "NaN";

impl From<i64> for Cell {
    fn from(value: i64) -> Cell {
        Cell::Int(value)
    }
}

impl From<u32> for Cell {
    fn from(value: u32) -> Cell {
        Cell::Int(value.into())
    }
}

/// Counts stay far below 2^63: they count trials and changes.
impl From<u64> for Cell {
    fn from(value: u64) -> Cell {
        Cell::Int(value as i64)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Cell {
        Cell::Float(value)
    }
}

/// What cannot be shown is not stored ([`shown`]).
impl From<&str> for Cell {
    fn from(value: &str) -> Cell {
        Cell::Text(shown(value))
    }
}

/// What cannot be shown is not stored ([`shown`]).
impl From<String> for Cell {
    fn from(value: String) -> Cell {
        Cell::from(value.as_str())
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Null, Into::into)
    }
}

/// A text with U+FFFD for each character that steers a terminal and is not one of a line. PostgreSQL
/// has no room for one of them (U+0000), and a store has the same in both databases. JSON and TOML have
/// none of them as they are.
pub(super) fn shown(text: &str) -> String {
    let steers = |c: char| c < ' ' && !matches!(c, '\t' | '\n' | '\r');
    text.replace(steers, "\u{fffd}")
}

/// The parameters of a statement.
macro_rules! cells {
    ($($value:expr),* $(,)?) => { [$($crate::store::database::Cell::from($value)),*] };
}
pub(super) use cells;

/// The words that differ between databases.
pub(super) struct Dialect {
    /// What stands for each word in braces.
    pub(super) words: &'static [(&'static str, &'static str)],
    /// Has a row if the database is a store.
    pub(super) there: &'static str,
    /// What keeps trials that are over from being changed, by anyone.
    pub(super) guards: &'static [&'static str],
}

impl Dialect {
    /// A statement in the words of the database.
    pub(super) fn render(&self, sql: &str) -> String {
        let words = self.words.iter();
        words.fold(sql.to_owned(), |sql, (word, meaning)| sql.replace(word, meaning))
    }
}

/// A transaction that is under way.
pub(super) trait Session {
    /// The store, for messages.
    fn store(&self) -> &str;

    /// The words of the database.
    fn dialect(&self) -> &'static Dialect;

    /// Runs a statement and hands over its rows one by one, so that many need not be held at once.
    fn each(&mut self, sql: &str, cells: &[Cell], take: Take<'_>) -> Result<(), Error>;

    /// Runs a statement and says how many rows it changed.
    fn execute(&mut self, sql: &str, cells: &[Cell]) -> Result<u64, Error>;

    /// Runs a statement and gives its rows.
    fn query(&mut self, sql: &str, cells: &[Cell]) -> Result<Vec<Vec<Cell>>, Error> {
        let mut rows = Vec::new();
        self.each(sql, cells, &mut |row| {
            rows.push(row);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Reads a row, cell by cell.
    fn reader<'a>(&'a self, what: &'a str, row: Vec<Cell>) -> Reader<'a> {
        Reader::new(self.store(), what, row)
    }
}

/// What is done with a row.
pub(super) type Take<'a> = &'a mut dyn FnMut(Vec<Cell>) -> Result<(), Error>;

/// What is done in a transaction. It may be run more than once, also after a run whose commit went
/// through but whose answer was lost, so a second run must find what the first has done.
pub(super) type Work<'a> = &'a mut dyn FnMut(&mut dyn Session) -> Result<(), Error>;

/// A connection that is made again when it breaks.
pub(super) trait Database: Send {
    /// The store, for messages.
    fn name(&self) -> &str;

    /// Reads one state of the database.
    fn read(&mut self, work: Work<'_>) -> Result<(), Error>;

    /// Writes all or nothing.
    fn write(&mut self, work: Work<'_>) -> Result<(), Error>;

    /// Makes the tables ([`schema::prepare`](super::schema::prepare)), while nobody else does.
    fn make(&mut self) -> Result<(), Error>;
}

/// The cells of a row, one after the other.
pub(super) struct Reader<'a> {
    store: &'a str,
    what: &'a str,
    cells: std::vec::IntoIter<Cell>,
}

impl<'a> Reader<'a> {
    /// Reads a row of a store. `what` it is of is for messages.
    pub(super) fn new(store: &'a str, what: &'a str, row: Vec<Cell>) -> Reader<'a> {
        Reader { store, what, cells: row.into_iter() }
    }

    /// The error for a row that cannot be.
    pub(super) fn damaged(&self, message: impl Display) -> Error {
        Error::Damaged {
            store: self.store.to_owned(),
            what: self.what.to_owned(),
            message: message.to_string(),
        }
    }

    fn next(&mut self) -> Result<Cell, Error> {
        let cell = self.cells.next();
        cell.ok_or_else(|| self.damaged("it has too few columns"))
    }

    fn optional<T>(
        &mut self,
        kind: &str,
        want: impl Fn(Cell) -> Result<T, Cell>,
    ) -> Result<Option<T>, Error> {
        match self.next()? {
            Cell::Null => Ok(None),
            cell => {
                want(cell).map(Some).map_err(|cell| self.damaged(format!("{cell:?} is not {kind}")))
            }
        }
    }

    fn there<T>(&self, value: Option<T>) -> Result<T, Error> {
        value.ok_or_else(|| self.damaged("something that must be there is not"))
    }

    pub(super) fn optional_int(&mut self) -> Result<Option<i64>, Error> {
        self.optional("a whole number", |cell| match cell {
            Cell::Int(value) => Ok(value),
            other => Err(other),
        })
    }

    pub(super) fn int(&mut self) -> Result<i64, Error> {
        let value = self.optional_int()?;
        self.there(value)
    }

    pub(super) fn optional_count<T: TryFrom<i64>>(&mut self) -> Result<Option<T>, Error> {
        let value = self.optional_int()?;
        let count = value.map(|value| {
            T::try_from(value).map_err(|_| self.damaged(format!("{value} is no count")))
        });
        count.transpose()
    }

    pub(super) fn count<T: TryFrom<i64>>(&mut self) -> Result<T, Error> {
        let value = self.optional_count()?;
        self.there(value)
    }

    pub(super) fn optional_float(&mut self) -> Result<Option<f64>, Error> {
        self.optional("a number", |cell| match cell {
            Cell::Float(value) => Ok(value),
            // SQLite has no NaN: it would store nothing.
            Cell::Text(text) if text == NAN => Ok(f64::NAN),
            other => Err(other),
        })
    }

    pub(super) fn float(&mut self) -> Result<f64, Error> {
        let value = self.optional_float()?;
        self.there(value)
    }

    pub(super) fn optional_text(&mut self) -> Result<Option<String>, Error> {
        self.optional("a text", |cell| match cell {
            Cell::Text(value) => Ok(value),
            other => Err(other),
        })
    }

    pub(super) fn text(&mut self) -> Result<String, Error> {
        let value = self.optional_text()?;
        self.there(value)
    }

    pub(super) fn optional_json<T: serde::de::DeserializeOwned>(
        &mut self,
    ) -> Result<Option<T>, Error> {
        let text = self.optional_text()?;
        let value = text.map(|text| serde_json::from_str(&text).map_err(|e| self.damaged(e)));
        value.transpose()
    }

    pub(super) fn json<T: serde::de::DeserializeOwned>(&mut self) -> Result<T, Error> {
        let value = self.optional_json()?;
        self.there(value)
    }
}
