//! Paths in a run directory.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::header::{FORMAT, StoredHeader};

/// A run directory.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    dir: PathBuf,
}

/// Paths of one table of observations.
#[derive(Clone, Debug)]
pub(crate) struct TablePaths {
    /// Arrow stream, while the run trains.
    pub(crate) live: PathBuf,
    /// When it is over.
    pub(crate) closed: PathBuf,
}

impl Layout {
    pub(crate) fn of(dir: &Path) -> Layout {
        Layout { dir: dir.into() }
    }

    /// Makes `runs/<name>-001`, or with the first number that is free.
    pub(crate) fn create(runs: &Path, name: &str) -> Result<Layout> {
        fs::create_dir_all(runs).map_err(Error::io("create", runs))?;
        let name = sanitise(name);
        let mut number = 1_u64;
        loop {
            let dir = runs.join(format!("{name}-{number:03}"));
            match fs::create_dir(&dir) {
                Ok(()) => return Ok(Layout { dir }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(Error::io("create", &dir)(error)),
            }
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn plan(&self) -> PathBuf {
        self.dir.join("plan.toml")
    }

    /// Program, arguments and versions of a run that another framework trains.
    pub(crate) fn program(&self) -> PathBuf {
        self.dir.join("program.json")
    }

    /// The definition of the run: its program, or else its plan.
    pub(crate) fn source(&self) -> PathBuf {
        let program = self.program();
        if program.exists() { program } else { self.plan() }
    }

    pub(crate) fn final_plan(&self) -> PathBuf {
        self.dir.join("plan.final.toml")
    }

    /// The program as delivered: with the actions of its repair.
    pub(crate) fn final_program(&self) -> PathBuf {
        self.dir.join("program.final.json")
    }

    pub(crate) fn preprocessing(&self) -> PathBuf {
        self.dir.join("preprocessing.json")
    }

    pub(crate) fn header(&self) -> PathBuf {
        self.dir.join("header.json")
    }

    /// The header until it is written.
    pub(crate) fn partial_header(&self) -> PathBuf {
        self.header().with_extension("partial")
    }

    /// Returns true if the directory contains only files that are created before the header.
    pub(crate) fn is_hardly_begun(&self) -> bool {
        let made = [
            self.lock_file(),
            self.plan(),
            self.program(),
            self.partial_header(),
            self.steps().live,
            self.layers().live,
            self.digests(),
            self.events(),
        ];
        let is_made = |path: PathBuf| match path == self.checkpoints() {
            true => fs::read_dir(path).is_ok_and(|mut within| within.next().is_none()),
            false => made.contains(&path),
        };
        let entries = fs::read_dir(&self.dir);
        entries.is_ok_and(|mut all| all.all(|entry| entry.is_ok_and(|entry| is_made(entry.path()))))
    }

    pub(crate) fn events(&self) -> PathBuf {
        self.dir.join("events.jsonl")
    }

    pub(crate) fn digests(&self) -> PathBuf {
        self.dir.join("digests.bin")
    }

    pub(crate) fn checkpoints(&self) -> PathBuf {
        self.dir.join("checkpoints")
    }

    pub(crate) fn model(&self) -> PathBuf {
        self.dir.join("model.safetensors")
    }

    pub(crate) fn summary(&self) -> PathBuf {
        self.dir.join("summary.json")
    }

    pub(crate) fn steps(&self) -> TablePaths {
        self.table("observations.steps")
    }

    pub(crate) fn layers(&self) -> TablePaths {
        self.table("observations.layers")
    }

    fn table(&self, name: &str) -> TablePaths {
        TablePaths {
            live: self.dir.join(format!("{name}.arrows")),
            closed: self.dir.join(format!("{name}.parquet")),
        }
    }

    fn lock_file(&self) -> PathBuf {
        self.dir.join("lock")
    }

    /// Takes the run for this process. The lock ends with the process, however that ends.
    pub(crate) fn lock(&self) -> Result<File> {
        let path = self.lock_file();
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(Error::io("open", &path))?;
        let mut taken = file.try_lock();
        if matches!(taken, Err(TryLockError::WouldBlock)) {
            // It may be a reader, which only tests the lock.
            std::thread::sleep(Duration::from_millis(20));
            taken = file.try_lock();
        }
        match taken {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(Error::Locked { path: self.dir.clone() }),
            Err(TryLockError::Error(error)) => Err(Error::io("lock", &path)(error)),
        }
    }

    /// Returns true if a process has taken the run.
    pub(crate) fn is_locked(&self) -> bool {
        let file = File::open(self.lock_file());
        file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Removes the lock of a run that is over. Whoever locks it after that finds a summary.
    pub(crate) fn remove_lock(&self) {
        let _ = fs::remove_file(self.lock_file());
    }

    /// Removes files that a killed process was writing: `.NAME.XXXXXX` beside `NAME`, and tables that
    /// were not complete.
    pub(crate) fn remove_temporary(&self) -> Result<()> {
        let written = [
            self.final_plan(),
            self.final_program(),
            self.preprocessing(),
            self.model(),
            self.summary(),
            self.steps().closed,
            self.layers().closed,
        ];
        for dir in [self.dir.clone(), self.checkpoints()] {
            let entries = match fs::read_dir(&dir) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(Error::io("read", &dir)(error)),
            };
            for entry in entries {
                let path = entry.map_err(Error::io("read", &dir))?.path();
                let target = path.file_name().and_then(target_of).map(|name| dir.join(name));
                let is_partial = [self.steps().live, self.layers().live]
                    .iter()
                    .any(|live| path == live.with_extension("partial"));
                let is_temporary = target
                    .is_some_and(|target| written.contains(&target) || dir == self.checkpoints());
                if is_partial || is_temporary {
                    remove(&path)?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn read_header(&self) -> Result<StoredHeader> {
        let not_a_run =
            |reason: &str| Error::NotARun { path: self.dir.clone(), reason: reason.to_owned() };
        let path = self.header();
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(not_a_run(if !self.dir.exists() {
                    "there is no such directory"
                } else if self.source().exists() {
                    "it has a plan or program but no header.json, so it was stopped before it began; delete it"
                } else {
                    "it has no header.json"
                }));
            }
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Err(not_a_run("it is not a directory"));
            }
            Err(error) => return Err(Error::io("read", &path)(error)),
        };
        let value: serde_json::Value =
            serde_json::from_slice(&text).map_err(|error| Error::damaged(&path, error))?;
        let found = value["format"].as_u64().unwrap_or(0);
        if found > u64::from(FORMAT) {
            return Err(Error::Newer {
                path,
                found: u32::try_from(found).unwrap_or(u32::MAX),
                known: FORMAT,
            });
        }
        serde_json::from_value(value).map_err(|error| Error::damaged(&path, error))
    }
}

/// The name of the file that a temporary file was to become; `None` for other files.
fn target_of(name: &OsStr) -> Option<&str> {
    let (target, random) = name.to_str()?.strip_prefix('.')?.rsplit_once('.')?;
    let is_random = random.len() == 6 && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_random.then_some(target)
}

/// A name that is a single, plain component of a path.
fn sanitise(name: &str) -> String {
    let plain = name.chars().map(|c| match c {
        c if c.is_alphanumeric() => c,
        '-' | '_' | '.' => c,
        _ => '-',
    });
    let plain: String = plain.take(64).collect();
    let plain = plain.trim_matches(['.', '-']);
    if plain.is_empty() { "run" } else { plain }.to_owned()
}

/// Removes a file if it exists.
pub(crate) fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// Content of a file; `None` if it does not exist.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_numbered_from_one_and_fill_gaps() {
        let dir = tempfile::tempdir().unwrap();
        let runs = dir.path().join("deep/runs");
        let make = || {
            let layout = Layout::create(&runs, "circles").unwrap();
            let name = layout.dir().file_name().unwrap();
            name.to_str().unwrap().to_owned()
        };
        assert_eq!(make(), "circles-001");
        assert_eq!(make(), "circles-002");
        assert_eq!(make(), "circles-003");
        fs::remove_dir(runs.join("circles-002")).unwrap();
        assert_eq!(make(), "circles-002");
    }

    #[test]
    fn runs_made_at_once_are_apart() {
        let dir = tempfile::tempdir().unwrap();
        let make = || Layout::create(dir.path(), "x").unwrap().dir;
        let mut dirs: Vec<PathBuf> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(make)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        dirs.sort();
        dirs.dedup();
        assert_eq!(dirs.len(), 8);
    }

    #[test]
    fn names_become_plain_components() {
        assert_eq!(sanitise("circles"), "circles");
        assert_eq!(sanitise("../../etc/passwd"), "etc-passwd");
        assert_eq!(sanitise("a b/c\\d:e"), "a-b-c-d-e");
        assert_eq!(sanitise("größe_1.5"), "größe_1.5");
        assert_eq!(sanitise(""), "run");
        assert_eq!(sanitise("..."), "run");
        assert_eq!(sanitise(&"x".repeat(500)).len(), 64);
    }

    #[test]
    fn what_is_not_a_run_is_said_clearly() {
        let dir = tempfile::tempdir().unwrap();
        let message = |path: &Path| {
            let error = Layout::of(path).read_header().unwrap_err();
            error.to_string()
        };
        assert!(message(dir.path()).ends_with("is not a run: it has no header.json"));
        assert!(message(&dir.path().join("no")).contains("no such directory"));
        fs::write(dir.path().join("file"), "").unwrap();
        assert!(message(&dir.path().join("file")).contains("not a directory"));
        fs::write(dir.path().join("plan.toml"), "").unwrap();
        assert!(message(dir.path()).contains("before it began"));
        fs::write(dir.path().join("header.json"), "{").unwrap();
        assert!(message(dir.path()).contains("header.json is damaged"));
        fs::write(dir.path().join("header.json"), r#"{"format": 99}"#).unwrap();
        assert!(message(dir.path()).contains("use a newer surefoot"));
    }

    #[test]
    fn a_second_lock_is_refused_until_the_first_ends() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::of(dir.path());
        let first = layout.lock().unwrap();
        let error = layout.lock().unwrap_err();
        assert!(matches!(error, Error::Locked { .. }));
        assert!(error.to_string().contains("in use by another process"));
        assert!(layout.is_locked());
        drop(first);
        assert!(!layout.is_locked());
        assert!(layout.lock().is_ok());
    }
}
