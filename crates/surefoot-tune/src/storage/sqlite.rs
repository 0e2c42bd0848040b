//! Storage in a SQLite file.

use super::StorageError;
use super::database::{Cell, Database, Dialect, Durability, NAN, Session, Take, Work};
use super::schema;
use rusqlite::types::{ToSql, ToSqlOutput, Value as SqlValue, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time to wait for other writers. A write takes milliseconds, so this suffices for hundreds of
/// workers.
const BUSY_TIMEOUT: Duration = Duration::from_secs(60);

/// Pause between attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// Size of the statement cache.
const STATEMENTS: usize = 64;

const DIALECT: Dialect = Dialect {
    words: &[
        ("{now}", "CAST(unixepoch('subsec') * 1000 AS INTEGER)"),
        // A write transaction locks the whole file.
        ("{lock}", ""),
        // AUTOINCREMENT does not reuse the id of a deleted study.
        ("{id}", "INTEGER PRIMARY KEY AUTOINCREMENT"),
        ("{int}", "INTEGER"),
        // `REAL` would turn -0.0 into 0.0 and cannot hold the text for NaN.
        ("{float}", "ANY"),
        ("{strict}", "STRICT"),
    ],
    exists: "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'surefoot_schema'",
    guards: &["CREATE TRIGGER surefoot_trial_has_ended BEFORE UPDATE ON surefoot_trial
        WHEN OLD.state IN ('complete', 'pruned', 'failed')
        BEGIN SELECT RAISE(ABORT, 'a trial that has ended does not change'); END"],
};

/// A SQLite file.
pub(super) struct Sqlite {
    connection: Connection,
    name: String,
    /// The file and its identity, to notice that it was moved or deleted.
    file: Option<(PathBuf, FileId)>,
    durability: Durability,
}

/// Device and inode.
type FileId = (u64, u64);

fn file_id(path: &Path) -> Option<FileId> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

impl Sqlite {
    /// Opens a file. Creates it if `create` is set.
    pub(super) fn open(path: &Path, create: bool) -> Result<Sqlite, StorageError> {
        let name = path.display().to_string();
        // SQLite takes an empty file for a database and would write to it.
        let is_there = || std::fs::metadata(path).is_ok_and(|file| file.len() > 0);
        if !create && !is_there() {
            return Err(StorageError::Missing { storage: name });
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            return Err(StorageError::Url {
                url: name,
                message: format!("the directory `{}` does not exist", folder.display()),
            });
        }
        if path.is_dir() {
            return Err(StorageError::Url {
                url: name,
                message: "this is a directory, not a file".to_owned(),
            });
        }
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags.set(OpenFlags::SQLITE_OPEN_CREATE, create);
        match Sqlite::connect(path, flags, &name)?.ready(create, path) {
            // SQLite creates files next to a database it reads, unless the database is immutable.
            Err(StorageError::ReadOnly { .. }) if !create && !has_log(path) => {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
                    | OpenFlags::SQLITE_OPEN_NO_MUTEX
                    | OpenFlags::SQLITE_OPEN_URI;
                let uri = PathBuf::from(immutable_uri(path));
                Sqlite::connect(&uri, flags, &name)?.ready(create, path)
            }
            Err(StorageError::ReadOnly { .. }) if !create => {
                Err(StorageError::UnreadableLog { storage: name })
            }
            storage => storage,
        }
    }

    fn connect(path: &Path, flags: OpenFlags, name: &str) -> Result<Sqlite, StorageError> {
        let connection = Connection::open_with_flags(path, flags);
        let connection = connection.map_err(|error| StorageError::Rejected {
            storage: name.to_owned(),
            message: error.to_string(),
        })?;
        let waits = connection.busy_timeout(BUSY_TIMEOUT / 12);
        waits.map_err(|error| failure(name, &error))?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        Ok(Sqlite::new(connection, name))
    }

    fn new(connection: Connection, name: &str) -> Sqlite {
        let name = name.to_owned();
        Sqlite { connection, name, file: None, durability: Durability::Synced }
    }

    /// Checks and configures the database.
    fn ready(mut self, create: bool, path: &Path) -> Result<Sqlite, StorageError> {
        self.inspect()?;
        self.configure()?;
        schema::open(&mut self, create)?;
        self.file = file_id(path).map(|id| (path.to_owned(), id));
        Ok(self)
    }

    /// Fails if the file is gone. SQLite would keep writing to the deleted or renamed file.
    fn check_file(&self) -> Result<(), StorageError> {
        match &self.file {
            Some((path, id)) if file_id(path) != Some(*id) => {
                Err(StorageError::Moved { storage: self.name.clone() })
            }
            _ => Ok(()),
        }
    }

    /// A database in memory.
    pub(super) fn in_memory() -> Result<Sqlite, StorageError> {
        let name = "memory";
        let connection = Connection::open_in_memory().map_err(|error| failure(name, &error))?;
        let mut storage = Sqlite::new(connection, name);
        schema::open(&mut storage, true)?;
        Ok(storage)
    }

    fn configure(&mut self) -> Result<(), StorageError> {
        self.retry(|connection| {
            connection.pragma_update(None, "foreign_keys", true)?;
            if connection.is_readonly("main")? {
                return Ok(());
            }
            // Readers and the writer do not block each other, and commits survive a power failure.
            connection.pragma_update(None, "journal_mode", "wal")?;
            connection.pragma_update(None, "synchronous", "full")
        })
    }

    fn set_durability(&mut self, durability: Durability) -> Result<(), StorageError> {
        if durability != self.durability {
            let synchronous = match durability {
                Durability::Synced => "full",
                // The log is synced with the next full commit or checkpoint.
                Durability::Deferred => "normal",
            };
            let set = self.connection.pragma_update(None, "synchronous", synchronous);
            set.map_err(|error| failure(&self.name, &error))?;
            self.durability = durability;
        }
        Ok(())
    }

    /// Fails on a database of another program or another layout, before anything is written.
    fn inspect(&mut self) -> Result<(), StorageError> {
        let mut table = None;
        self.read(&mut |session| {
            if !session.query(DIALECT.exists, &[])?.is_empty() {
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
            Some(row) => Err(StorageError::Foreign {
                storage: self.name.clone(),
                table: match row.into_iter().next() {
                    Some(Cell::Text(table)) => table,
                    _ => String::new(),
                },
            }),
            None => Ok(()),
        }
    }

    /// Retries while the file is locked.
    fn retry(
        &self,
        attempt: impl Fn(&Connection) -> rusqlite::Result<()>,
    ) -> Result<(), StorageError> {
        let begun = Instant::now();
        loop {
            match attempt(&self.connection) {
                Err(error) if is_busy(&error) && begun.elapsed() < BUSY_TIMEOUT => {
                    std::thread::sleep(PAUSE);
                }
                result => return result.map_err(|error| failure(&self.name, &error)),
            }
        }
    }

    fn transact(
        &mut self,
        behavior: TransactionBehavior,
        work: Work<'_>,
    ) -> Result<(), StorageError> {
        let begun = Instant::now();
        let mut has_checkpointed = false;
        loop {
            match self.once(behavior, work) {
                Err(StorageError::Busy { .. }) if begun.elapsed() < BUSY_TIMEOUT => {
                    std::thread::sleep(PAUSE);
                }
                Err(StorageError::Full { .. }) if !has_checkpointed => {
                    has_checkpointed = true;
                    self.checkpoint();
                }
                result => return result,
            }
        }
    }

    /// Moves the write-ahead log into the file and truncates it, to free some space.
    fn checkpoint(&self) {
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        let _ = self.connection.query_row(sql, [], |_| Ok(()));
    }

    fn once(&mut self, behavior: TransactionBehavior, work: Work<'_>) -> Result<(), StorageError> {
        let name = &self.name;
        let transaction = self.connection.transaction_with_behavior(behavior);
        let transaction = transaction.map_err(|error| failure(name, &error))?;
        // On an error the transaction is rolled back when it is dropped.
        work(&mut SqliteSession { connection: &transaction, name })?;
        transaction.commit().map_err(|error| failure(name, &error))
    }
}

impl Database for Sqlite {
    fn name(&self) -> &str {
        &self.name
    }

    fn read(&mut self, work: Work<'_>) -> Result<(), StorageError> {
        self.transact(TransactionBehavior::Deferred, work)
    }

    fn write(&mut self, durability: Durability, work: Work<'_>) -> Result<(), StorageError> {
        self.check_file()?;
        self.set_durability(durability)?;
        // A deferred transaction could fail when it starts to write.
        self.transact(TransactionBehavior::Immediate, work)
    }

    fn create_tables(&mut self) -> Result<(), StorageError> {
        self.write(Durability::Synced, &mut schema::create_tables)
    }
}

struct SqliteSession<'a> {
    connection: &'a Connection,
    name: &'a str,
}

impl Session for SqliteSession<'_> {
    fn storage(&self) -> &str {
        self.name
    }

    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }

    fn each(&mut self, sql: &str, cells: &[Cell], take: Take<'_>) -> Result<(), StorageError> {
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

    fn execute(&mut self, sql: &str, cells: &[Cell]) -> Result<u64, StorageError> {
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

/// Returns true if the write-ahead log is not empty.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).is_ok_and(|log| log.len() > 0)
}

/// URI of an immutable file.
fn immutable_uri(path: &Path) -> String {
    let path = path.display().to_string();
    let path = path.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{path}?immutable=1")
}

/// Converts an error.
fn failure(name: &str, error: &rusqlite::Error) -> StorageError {
    let storage = name.to_owned();
    let message = error.to_string();
    // No space for the shared-memory file.
    let no_room_to_share = error
        .sqlite_error()
        .is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE);
    if no_room_to_share {
        return StorageError::Full { storage };
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StorageError::Busy { storage, waited: BUSY_TIMEOUT }
        }
        Some(ErrorCode::DiskFull) => StorageError::Full { storage },
        // The database was opened, so it is a file next to it that cannot be.
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen) => StorageError::ReadOnly { storage },
        // `Unknown`: a statement does not fit the tables.
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt | ErrorCode::Unknown) => {
            StorageError::NotADatabase { storage, message }
        }
        _ => StorageError::Database { storage, message },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Point;
    use crate::storage::fixture::digits;
    use crate::storage::{ClaimLimits, Claimed, Start, Storage, TrialState, View};
    use std::fs;

    fn file(content: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("study.db");
        fs::write(&path, content).expect("a file");
        (dir, path)
    }

    #[test]
    fn a_file_that_is_not_a_database_is_untouched() {
        let content = b"[study]\nname = \"this is the study, not the store of it\"\n".repeat(40);
        let (_dir, path) = file(&content);
        let error = Sqlite::open(&path, true).err().expect("refused");
        assert!(matches!(error, StorageError::NotADatabase { .. }), "{error}");
        assert!(error.to_string().starts_with(path.to_str().expect("a path")));
        assert_eq!(fs::read(&path).expect("a file"), content);
    }

    #[test]
    fn an_empty_file_stays_empty() {
        let (_dir, path) = file(b"");
        let error = Sqlite::open(&path, false).err().expect("refused");
        assert!(matches!(error, StorageError::Missing { .. }), "{error}");
        assert_eq!(fs::read(&path).expect("a file"), b"");
    }

    #[test]
    fn a_missing_directory_is_named() {
        let (dir, _) = file(b"");
        let folder = dir.path().join("studies");
        let error = Sqlite::open(&folder.join("a.db"), true).err().expect("refused");
        let said = format!("the directory `{}` does not exist", folder.display());
        assert!(error.to_string().ends_with(&said), "{error}");
    }

    #[test]
    fn a_damaged_file_is_an_error() {
        let (_dir, path) = file(b"");
        drop(Sqlite::open(&path, true).expect("a store"));
        let mut content = fs::read(&path).expect("a file");
        for byte in content.iter_mut().skip(100) {
            *byte = 0xa5;
        }
        fs::write(&path, content).expect("a file");
        let error = Sqlite::open(&path, true).err().expect("refused");
        assert!(matches!(error, StorageError::NotADatabase { .. }), "{error}");
    }

    #[test]
    fn a_damaged_table_is_an_error() {
        let (_dir, path) = file(b"");
        drop(Sqlite::open(&path, true).expect("a store"));
        let other = Connection::open(&path).expect("a database");
        other.execute_batch("DROP TABLE surefoot_trial").expect("a damage");
        let mut storage = Storage::open(path.to_str().expect("a path")).expect("a store");
        let study = storage.join(&digits()).expect("a study");
        let error =
            storage.claim(study.id, "worker", &ClaimLimits::default()).expect_err("damaged");
        assert!(matches!(error, StorageError::NotADatabase { .. }), "{error}");
    }

    #[test]
    fn a_moved_or_deleted_file_is_an_error() {
        let (dir, path) = file(b"");
        let mut storage = Storage::open(path.to_str().expect("a path")).expect("a store");
        let study = storage.join(&digits()).expect("a study");
        let claimed = storage.claim(study.id, "worker", &ClaimLimits::default());
        let Ok(Claimed::Trial(claim)) = claimed else {
            panic!("no trial: {claimed:?}");
        };
        let elsewhere = dir.path().join("elsewhere.db");
        fs::rename(&path, &elsewhere).expect("moved");
        let error = storage.heartbeat(&claim).expect_err("moved");
        assert!(matches!(error, StorageError::Moved { .. }), "{error}");
        fs::copy(&elsewhere, &path).expect("another file");
        let error = storage.heartbeat(&claim).expect_err("another file");
        assert!(matches!(error, StorageError::Moved { .. }), "{error}");
        fs::rename(&elsewhere, &path).expect("moved back");
        storage.heartbeat(&claim).expect("the same file");
    }

    #[test]
    fn only_deferred_changes_skip_the_disk() {
        let (_dir, path) = file(b"");
        let mut database = Sqlite::open(&path, true).expect("a store");
        for durability in [Durability::Deferred, Durability::Synced, Durability::Deferred] {
            let work: Work<'_> = &mut |_| Ok(());
            database.write(durability, work).expect("a transaction");
            let pragma = database.connection.query_row("PRAGMA synchronous", [], |row| row.get(0));
            let expected = if durability == Durability::Synced { 2 } else { 1 };
            assert_eq!(pragma, Ok(expected));
        }
    }

    #[test]
    fn the_database_of_another_program_is_untouched() {
        let (_dir, path) = file(b"");
        let other = Connection::open(&path).expect("a database");
        other.execute_batch("CREATE TABLE songs (title TEXT)").expect("a table");
        let before = fs::read(&path).expect("a file");
        let error = Sqlite::open(&path, true).err().expect("refused");
        let said = "not a Surefoot database: it contains the table `songs`";
        assert!(error.to_string().ends_with(said), "{error}");
        assert_eq!(fs::read(&path).expect("a file"), before);
    }

    #[test]
    fn a_read_only_file_can_be_read() {
        let (_dir, path) = file(b"");
        let mut writer = Storage::open(path.to_str().expect("a path")).expect("a store");
        writer.join(&digits()).expect("a study");
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let mut storage = Storage {
            database: Box::new(Sqlite::new(
                Connection::open_with_flags(&path, flags).expect("a file"),
                "study.db",
            )),
        };
        let id = storage.study("digits").expect("a study").id;
        let error = storage.claim(id, "worker", &ClaimLimits::default()).expect_err("refused");
        assert_eq!(error.to_string(), "study.db: read-only");
    }

    #[test]
    fn immutable_uris_escape_special_characters() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("50% of #1?.db");
        let mut writer = Storage::open(path.to_str().expect("a path")).expect("a store");
        writer.join(&digits()).expect("a study");
        drop(writer);
        assert!(!has_log(&path));
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let storage = Sqlite::connect(Path::new(&immutable_uri(&path)), flags, "study.db");
        let mut storage = Storage {
            database: Box::new(
                storage.and_then(|storage| storage.ready(false, &path)).expect("a store"),
            ),
        };
        assert_eq!(storage.study("digits").expect("a study").seed, 1);
    }

    #[test]
    fn a_full_disk_loses_nothing() {
        let (_dir, path) = file(b"");
        let url = path.to_str().expect("a path");
        let mut storage = Storage::open(url).expect("a store");
        let study = storage.join(&digits()).expect("a study");
        let connection = Connection::open(&path).expect("a database");
        let pages: i64 =
            connection.query_row("PRAGMA page_count", [], |row| row.get(0)).expect("pages");
        let mut small = Storage { database: Box::new(Sqlite::new(connection, "study.db")) };
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
        assert_eq!(error.to_string(), "study.db: disk full; committed data is safe");
        assert!(done.len() > 1);
        let mut view = View::new(&study);
        storage.refresh(&mut view).expect("a view");
        let over = view.trials().iter().filter(|trial| trial.final_state().is_some());
        let over: Vec<u64> = over.map(|trial| trial.number).collect();
        assert_eq!(over, done);
        small
            .read(|session| session.query("PRAGMA max_page_count = 10000", &[]))
            .expect("a larger disk");
        assert!(one_trial(&mut small, &study).is_ok());
    }

    fn one_trial(
        storage: &mut Storage,
        study: &crate::storage::StoredStudy,
    ) -> Result<u64, StorageError> {
        let claimed = storage.claim(study.id, "worker", &ClaimLimits::default())?;
        let Claimed::Trial(claim) = claimed else {
            panic!("no trial");
        };
        let start = Start {
            point: Point::default(),
            seen: None,
            planned: Some(1),
            run: Some("runs/".repeat(50)),
        };
        storage.start(&claim, &start)?;
        storage.finish(&claim, &TrialState::Complete { value: 1.0 }, 1.0)?;
        Ok(claim.number)
    }
}
