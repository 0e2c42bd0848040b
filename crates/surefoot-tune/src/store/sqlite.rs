//! Stores in a SQLite file.

use super::Error;
use super::database::{Cell, Database, Dialect, NAN, Session, Take, Work};
use super::schema;
use rusqlite::types::{ToSql, ToSqlOutput, Value as SqlValue, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long to wait for others that write, in all. A write takes milliseconds, so this is more than
/// hundreds of workers on one file need.
const PATIENCE: Duration = Duration::from_secs(60);

/// The pause after SQLite gave up waiting by itself, or did not wait.
const PAUSE: Duration = Duration::from_millis(20);

/// How many statements are kept ready: more than there are.
const STATEMENTS: usize = 64;

const DIALECT: Dialect = Dialect {
    words: &[
        ("{now}", "CAST(unixepoch('subsec') * 1000 AS INTEGER)"),
        // A transaction that writes has the whole file.
        ("{lock}", ""),
        // Without the last word, the number of a study that was deleted would be given to the next one.
        ("{id}", "INTEGER PRIMARY KEY AUTOINCREMENT"),
        ("{int}", "INTEGER"),
        // `REAL` would make 0.0 of -0.0, and has no room for the text that stands for NaN.
        ("{float}", "ANY"),
        ("{strict}", "STRICT"),
    ],
    there: "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'surefoot_schema'",
    guards: &["CREATE TRIGGER surefoot_trial_is_over BEFORE UPDATE ON surefoot_trial
        WHEN OLD.state IN ('complete', 'stopped', 'failed')
        BEGIN SELECT RAISE(ABORT, 'what is over does not change'); END"],
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
        // An empty file is a database to SQLite, and would be written to.
        let is_there = || std::fs::metadata(path).is_ok_and(|file| file.len() > 0);
        if !create && !is_there() {
            return Err(Error::Missing { store: name });
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            return Err(Error::Url {
                url: name,
                message: format!("the folder `{}` does not exist", folder.display()),
            });
        }
        if path.is_dir() {
            return Err(Error::Url {
                url: name,
                message: "this is a folder, and a store is a file in one".to_owned(),
            });
        }
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags.set(OpenFlags::SQLITE_OPEN_CREATE, create);
        match Sqlite::connect(path, flags, &name)?.ready(create) {
            // To read a file, SQLite writes beside it, unless it is sure that nobody else writes.
            Err(Error::ReadOnly { .. }) if !create && !has_log(path) => {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
                    | OpenFlags::SQLITE_OPEN_NO_MUTEX
                    | OpenFlags::SQLITE_OPEN_URI;
                let unchanging = Path::new(&unchanging(path)).to_owned();
                Sqlite::connect(&unchanging, flags, &name)?.ready(create)
            }
            Err(Error::ReadOnly { .. }) if !create => Err(Error::Logged { store: name }),
            store => store,
        }
    }

    fn connect(path: &Path, flags: OpenFlags, name: &str) -> Result<Sqlite, Error> {
        let connection = Connection::open_with_flags(path, flags);
        let connection = connection.map_err(|error| Error::Database {
            store: name.to_owned(),
            message: error.to_string(),
        })?;
        let waits = connection.busy_timeout(PATIENCE / 12);
        waits.map_err(|error| failure(name, &error))?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        Ok(Sqlite { connection, name: name.to_owned() })
    }

    /// Makes sure that it is a store.
    fn ready(mut self, create: bool) -> Result<Sqlite, Error> {
        self.inspect()?;
        self.configure()?;
        schema::open(&mut self, create)?;
        Ok(self)
    }

    /// A store that is gone with this value.
    #[cfg(test)]
    pub(super) fn in_memory() -> Sqlite {
        let mut store = Sqlite {
            connection: Connection::open_in_memory().expect("memory"),
            name: "memory".to_owned(),
        };
        schema::open(&mut store, true).expect("tables");
        store
    }

    fn configure(&mut self) -> Result<(), Error> {
        self.patiently(|connection| {
            connection.pragma_update(None, "foreign_keys", true)?;
            if connection.is_readonly("main")? {
                return Ok(());
            }
            // Readers and the writer do not wait for each other, and what is committed stays
            // committed when the machine loses its power.
            connection.pragma_update(None, "journal_mode", "wal")?;
            connection.pragma_update(None, "synchronous", "full")
        })
    }

    /// Fails on a database of another program and on a store of a later layout, before anything is written.
    fn inspect(&mut self) -> Result<(), Error> {
        let mut table = None;
        self.read(&mut |session| {
            if !session.query(DIALECT.there, &[])?.is_empty() {
                return schema::check(session);
            }
            let rows = session.query(
                "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name LIMIT 1",
                &[],
            )?;
            table = rows.into_iter().next();
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

    /// Tries again while others hold the file.
    fn patiently(
        &self,
        attempt: impl Fn(&Connection) -> rusqlite::Result<()>,
    ) -> Result<(), Error> {
        let begun = Instant::now();
        loop {
            match attempt(&self.connection) {
                Err(error) if is_busy(&error) && begun.elapsed() < PATIENCE => {
                    std::thread::sleep(PAUSE);
                }
                result => return result.map_err(|error| failure(&self.name, &error)),
            }
        }
    }

    fn transact(&mut self, behavior: TransactionBehavior, work: Work<'_>) -> Result<(), Error> {
        let begun = Instant::now();
        let mut has_made_room = false;
        loop {
            match self.once(behavior, work) {
                Err(Error::Busy { .. }) if begun.elapsed() < PATIENCE => {
                    std::thread::sleep(PAUSE);
                }
                Err(Error::Full { .. }) if !has_made_room => {
                    has_made_room = true;
                    self.make_room();
                }
                result => return result,
            }
        }
    }

    /// Moves what was written last from the log beside the file into the file, and lets go of the
    /// room that the log takes. Where this fails too, the disk is full.
    fn make_room(&self) {
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        let _ = self.connection.query_row(sql, [], |_| Ok(()));
    }

    fn once(&mut self, behavior: TransactionBehavior, work: Work<'_>) -> Result<(), Error> {
        let name = &self.name;
        let transaction = self.connection.transaction_with_behavior(behavior);
        let transaction = transaction.map_err(|error| failure(name, &error))?;
        // Whatever goes wrong from here on, the transaction is rolled back as it is dropped.
        work(&mut SqliteSession { connection: &transaction, name })?;
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

    fn make(&mut self) -> Result<(), Error> {
        self.write(&mut schema::prepare)
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

    fn each(&mut self, sql: &str, cells: &[Cell], take: Take<'_>) -> Result<(), Error> {
        let failed = |error: rusqlite::Error| failure(self.name, &error);
        let statement = self.connection.prepare_cached(&DIALECT.render(sql));
        let mut statement = statement.map_err(failed)?;
        let columns = statement.column_count();
        let rows = statement.query(rusqlite::params_from_iter(cells));
        let mut rows = rows.map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let cells = (0..columns).map(|index| cell(row.get_ref(index)?));
            let cells = cells.collect::<rusqlite::Result<Vec<Cell>>>();
            take(cells.map_err(failed)?)?;
        }
        Ok(())
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
    matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Whether something was written that is not in the file yet.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).is_ok_and(|log| log.len() > 0)
}

/// The URI of a file that nobody changes.
fn unchanging(path: &Path) -> String {
    let path = path.display().to_string();
    let path = path.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{path}?immutable=1")
}

/// What went wrong, in the words of a store.
fn failure(name: &str, error: &rusqlite::Error) -> Error {
    let store = name.to_owned();
    let message = error.to_string();
    // There is no room for the file that processes share their locks in.
    let no_room_to_share = error
        .sqlite_error()
        .is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE);
    if no_room_to_share {
        return Error::Full { store };
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            Error::Busy { store, waited: PATIENCE }
        }
        Some(ErrorCode::DiskFull) => Error::Full { store },
        // What cannot be opened where the file could be is what SQLite writes beside it.
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen) => Error::ReadOnly { store },
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            Error::NoDatabase { store, message }
        }
        _ => Error::Database { store, message },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Point;
    use crate::store::fixture::digits;
    use crate::store::{Claimed, End, Limits, Start, Store, View};
    use std::fs;

    fn file(content: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("study.db");
        fs::write(&path, content).expect("a file");
        (dir, path)
    }

    #[test]
    fn a_file_that_is_no_database_is_named_and_left_alone() {
        let content = b"[study]\nname = \"this is the study, not the store of it\"\n".repeat(40);
        let (_dir, path) = file(&content);
        let error = Sqlite::open(&path, true).err().expect("refused");
        assert!(matches!(error, Error::NoDatabase { .. }), "{error}");
        assert!(error.to_string().starts_with(path.to_str().expect("a path")));
        assert_eq!(fs::read(&path).expect("a file"), content);
    }

    #[test]
    fn an_empty_file_that_is_to_be_read_is_no_store_and_stays_empty() {
        let (_dir, path) = file(b"");
        let error = Sqlite::open(&path, false).err().expect("refused");
        assert!(matches!(error, Error::Missing { .. }), "{error}");
        assert_eq!(fs::read(&path).expect("a file"), b"");
    }

    #[test]
    fn a_folder_that_does_not_exist_is_named() {
        let (dir, _) = file(b"");
        let folder = dir.path().join("studies");
        let error = Sqlite::open(&folder.join("a.db"), true).err().expect("refused");
        let said = format!("the folder `{}` does not exist", folder.display());
        assert!(error.to_string().ends_with(&said), "{error}");
    }

    #[test]
    fn a_damaged_store_is_named() {
        let (_dir, path) = file(b"");
        drop(Sqlite::open(&path, true).expect("a store"));
        let mut content = fs::read(&path).expect("a file");
        for byte in content.iter_mut().skip(100) {
            *byte = 0xa5;
        }
        fs::write(&path, content).expect("a file");
        let error = Sqlite::open(&path, true).err().expect("refused");
        assert!(matches!(error, Error::NoDatabase { .. }), "{error}");
    }

    #[test]
    fn the_database_of_another_program_is_left_alone() {
        let (_dir, path) = file(b"");
        let other = Connection::open(&path).expect("a database");
        other.execute_batch("CREATE TABLE songs (title TEXT)").expect("a table");
        let before = fs::read(&path).expect("a file");
        let error = Sqlite::open(&path, true).err().expect("refused");
        let said = "this database is not a store of Surefoot: it has the table `songs`";
        assert!(error.to_string().ends_with(said), "{error}");
        assert_eq!(fs::read(&path).expect("a file"), before);
    }

    #[test]
    fn a_store_that_cannot_be_written_can_be_read() {
        let (_dir, path) = file(b"");
        let mut writer = Store::open(path.to_str().expect("a path")).expect("a store");
        writer.join(&digits()).expect("a study");
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let mut store = Store {
            database: Box::new(Sqlite {
                connection: Connection::open_with_flags(&path, flags).expect("a file"),
                name: "study.db".to_owned(),
            }),
        };
        let id = store.study("digits").expect("a study").id;
        let error = store.claim(id, "worker", &Limits::default()).expect_err("refused");
        assert_eq!(error.to_string(), "study.db: the store can be read but not written");
    }

    #[test]
    fn a_file_that_nobody_changes_is_found_whatever_its_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("50% of #1?.db");
        let mut writer = Store::open(path.to_str().expect("a path")).expect("a store");
        writer.join(&digits()).expect("a study");
        drop(writer);
        assert!(!has_log(&path));
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let store = Sqlite::connect(Path::new(&unchanging(&path)), flags, "study.db");
        let mut store = Store {
            database: Box::new(store.and_then(|store| store.ready(false)).expect("a store")),
        };
        assert_eq!(store.study("digits").expect("a study").seed, 1);
    }

    #[test]
    fn a_full_disk_loses_nothing_and_can_be_gone_on_from() {
        let (_dir, path) = file(b"");
        let url = path.to_str().expect("a path");
        let mut store = Store::open(url).expect("a store");
        let study = store.join(&digits()).expect("a study");
        let connection = Connection::open(&path).expect("a database");
        let pages: i64 =
            connection.query_row("PRAGMA page_count", [], |row| row.get(0)).expect("pages");
        let mut small =
            Store { database: Box::new(Sqlite { connection, name: "study.db".to_owned() }) };
        let limit = format!("PRAGMA max_page_count = {}", pages + 2);
        small.read(|session| session.query(&limit, &[])).expect("a small disk");
        let mut done = Vec::new();
        let error = loop {
            let one = one_trial(&mut small, &study);
            match one {
                Ok(number) => done.push(number),
                Err(error) => break error,
            }
        };
        assert_eq!(error.to_string(), "study.db: the disk is full; what was stored before is safe");
        assert!(done.len() > 1);
        let mut view = View::new(&study);
        store.refresh(&mut view).expect("a view");
        let over = view.trials().iter().filter(|trial| trial.end().is_some());
        let over: Vec<u64> = over.map(|trial| trial.number).collect();
        assert_eq!(over, done);
        small
            .read(|session| session.query("PRAGMA max_page_count = 10000", &[]))
            .expect("a larger disk");
        assert!(one_trial(&mut small, &study).is_ok());
    }

    fn one_trial(store: &mut Store, study: &crate::store::Study) -> Result<u64, Error> {
        let claimed = store.claim(study.id, "worker", &Limits::default())?;
        let Claimed::Trial(claim) = claimed else {
            panic!("no trial");
        };
        let start = Start {
            point: Point::default(),
            seen: None,
            planned: Some(1),
            run: Some("runs/".repeat(50)),
        };
        store.start(&claim, &start)?;
        store.finish(&claim, &End::Complete { value: 1.0 }, 1.0)?;
        Ok(claim.number)
    }
}
