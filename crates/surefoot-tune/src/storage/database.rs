//! Database interface: statements in transactions that are retried.
//!
//! Statements are written once for both databases, with `?1` for the first parameter and words in
//! braces where the dialects differ ([`Dialect`]).

use super::StorageError;
use std::fmt::Display;

/// A parameter of a statement or a value of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Null,
    Int(i64),
    /// Any number, including NaN.
    Float(f64),
    Text(String),
}

/// Text for NaN in a database without it.
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

/// Counts of trials and changes stay far below 2^63.
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

/// Replaces control characters ([`shown`]).
impl From<&str> for Cell {
    fn from(value: &str) -> Cell {
        Cell::Text(shown(value))
    }
}

/// Replaces control characters ([`shown`]).
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

/// Replaces control characters except tabs and line ends by U+FFFD. PostgreSQL cannot store U+0000,
/// and both databases store the same text. JSON and TOML escape them.
pub(super) fn shown(text: &str) -> String {
    let is_control = |c: char| c < ' ' && !matches!(c, '\t' | '\n' | '\r');
    text.replace(is_control, "\u{fffd}")
}

/// Parameters of a statement.
macro_rules! cells {
    ($($value:expr),* $(,)?) => { [$($crate::storage::database::Cell::from($value)),*] };
}
pub(super) use cells;

/// SQL dialect of a database.
pub(super) struct Dialect {
    /// Replacements for the words in braces.
    pub(super) words: &'static [(&'static str, &'static str)],
    /// Query that returns a row if the tables exist.
    pub(super) exists: &'static str,
    /// Triggers that protect trials in a final state.
    pub(super) guards: &'static [&'static str],
}

impl Dialect {
    /// Translates a statement.
    pub(super) fn render(&self, sql: &str) -> String {
        let words = self.words.iter();
        words.fold(sql.to_owned(), |sql, (word, meaning)| sql.replace(word, meaning))
    }
}

/// A running transaction.
pub(super) trait Session {
    /// Name of the storage for messages.
    fn storage(&self) -> &str;

    /// SQL dialect.
    fn dialect(&self) -> &'static Dialect;

    /// Runs a query and passes its rows one by one.
    fn each(&mut self, sql: &str, cells: &[Cell], take: Take<'_>) -> Result<(), StorageError>;

    /// Runs a statement and returns the number of changed rows.
    fn execute(&mut self, sql: &str, cells: &[Cell]) -> Result<u64, StorageError>;

    /// Runs a query and returns its rows.
    fn query(&mut self, sql: &str, cells: &[Cell]) -> Result<Vec<Vec<Cell>>, StorageError> {
        let mut rows = Vec::new();
        self.each(sql, cells, &mut |row| {
            rows.push(row);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Runs a query and returns its first row.
    fn first(&mut self, sql: &str, cells: &[Cell]) -> Result<Option<Vec<Cell>>, StorageError> {
        Ok(self.query(sql, cells)?.into_iter().next())
    }

    /// Reader for a row.
    fn reader<'a>(&'a self, what: &'a str, row: Vec<Cell>) -> Reader<'a> {
        Reader::new(self.storage(), what, row)
    }
}

/// Receives a row.
pub(super) type Take<'a> = &'a mut dyn FnMut(Vec<Cell>) -> Result<(), StorageError>;

/// Body of a transaction. It may run again after a commit whose answer was lost, so it must detect
/// its own earlier changes.
pub(super) type Work<'a> = &'a mut dyn FnMut(&mut dyn Session) -> Result<(), StorageError>;

/// Moment at which a committed change is safe from a power failure. It is always safe from the death of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    /// Before the call returns, which takes a write to disk.
    Synced,
    /// With the next synced change, or soon after. For changes of a running trial, whose end is synced.
    Deferred,
}

/// A connection that reconnects when it breaks.
pub(super) trait Database: Send {
    /// Name of the storage for messages.
    fn name(&self) -> &str;

    /// Runs a read transaction on one snapshot.
    fn read(&mut self, work: Work<'_>) -> Result<(), StorageError>;

    /// Runs a write transaction.
    fn write(&mut self, durability: Durability, work: Work<'_>) -> Result<(), StorageError>;

    /// Creates the tables, under a lock.
    fn create_tables(&mut self) -> Result<(), StorageError>;
}

/// Reads the cells of a row in order.
pub(super) struct Reader<'a> {
    storage: &'a str,
    what: &'a str,
    cells: std::vec::IntoIter<Cell>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(storage: &'a str, what: &'a str, row: Vec<Cell>) -> Reader<'a> {
        Reader { storage, what, cells: row.into_iter() }
    }

    /// Error for unexpected content.
    pub(super) fn damaged(&self, message: impl Display) -> StorageError {
        StorageError::Damaged {
            storage: self.storage.to_owned(),
            what: self.what.to_owned(),
            message: message.to_string(),
        }
    }

    /// Reads the next cell.
    pub(super) fn get<T: Column>(&mut self) -> Result<T, StorageError> {
        let cell = self.cells.next().ok_or_else(|| self.damaged("too few columns"))?;
        T::read(cell).map_err(|cell| self.damaged(format!("{cell:?} is not {}", T::KIND)))
    }

    /// Reads the next cell as JSON.
    pub(super) fn json<T: serde::de::DeserializeOwned>(
        &mut self,
    ) -> Result<Option<T>, StorageError> {
        let text: Option<String> = self.get()?;
        let value = text.map(|text| serde_json::from_str(&text).map_err(|e| self.damaged(e)));
        value.transpose()
    }
}

/// Type of a column.
pub(super) trait Column: Sized {
    /// Name in messages.
    const KIND: &'static str;

    /// Converts a cell, or returns it if it has another type.
    fn read(cell: Cell) -> Result<Self, Cell>;
}

/// Implements [`Column`] by the values that match a pattern.
macro_rules! columns {
    ($($type:ty, $kind:literal: $($cell:pat $(if $guard:expr)? => $value:expr),+;)*) => {$(
        impl Column for $type {
            const KIND: &'static str = $kind;

            fn read(cell: Cell) -> Result<Self, Cell> {
                match cell {
                    $($cell $(if $guard)? => Ok($value),)+
                    other => Err(other),
                }
            }
        }
    )*};
}

columns! {
    i64, "an integer": Cell::Int(value) => value;
    u64, "a count": Cell::Int(value @ 0..) => value.unsigned_abs();
    u32, "a count": Cell::Int(value @ 0..=0xffff_ffff) => value as u32;
    // SQLite stores NaN as text.
    f64, "a number": Cell::Float(value) => value, Cell::Text(text) if text == NAN => f64::NAN;
    String, "a text": Cell::Text(value) => value;
}

impl<T: Column> Column for Option<T> {
    const KIND: &'static str = T::KIND;

    fn read(cell: Cell) -> Result<Self, Cell> {
        match cell {
            Cell::Null => Ok(None),
            cell => T::read(cell).map(Some),
        }
    }
}
