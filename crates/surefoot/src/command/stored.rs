//! Studies given on the command line by their store.

use crate::failure::Failure;
use std::path::{Path, PathBuf};
use surefoot_tune::storage::{Storage, StoredStudy, View};

/// File name of the store in the directory of a study.
const FILE: &str = "study.db";

/// A study with its trials and their reports.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) study: StoredStudy,
    pub(super) view: View,
    /// Name of the store: its file, or its URL without the password.
    pub(super) name: String,
    /// The file of a SQLite store.
    pub(super) file: Option<PathBuf>,
}

/// URL of a store, given by its URL, its file or the directory of its study.
pub(super) fn url(path: &str) -> Option<String> {
    let is_url = path.starts_with("sqlite:") || path.contains("://");
    if is_url || Path::new(path).is_file() {
        return Some(path.to_owned());
    }
    let within = Path::new(path).join(FILE);
    within.is_file().then(|| within.display().to_string())
}

/// Reads a study by name, or the only one.
pub(super) fn open(url: &str, name: Option<&str>) -> Result<Stored, Failure> {
    let mut store = Storage::open_existing(url)?;
    let study = match name {
        Some(name) => store.study(name)?,
        None => only(&mut store)?,
    };
    let mut view = View::new(&study);
    store.refresh_reports(&mut view)?;
    let is_file = !url.contains("://") || url.starts_with("sqlite:");
    let name = store.name().to_owned();
    Ok(Stored { study, view, file: is_file.then(|| PathBuf::from(&name)), name })
}

fn only(store: &mut Storage) -> Result<StoredStudy, Failure> {
    let mut studies = store.studies()?;
    match (studies.pop(), studies.len()) {
        (Some(study), 0) => Ok(study),
        (None, _) => Err(Failure::input(format!("{}: the store contains no study", store.name()))),
        (Some(last), _) => {
            let names = studies.into_iter().chain([last]).map(|study| study.name);
            let names = names.collect::<Vec<_>>().join(", ");
            let message = format!("{}: the store contains several studies: {names}", store.name());
            Err(Failure::input(message).help("choose one with --study NAME"))
        }
    }
}

impl Stored {
    /// Fails if `file` is the store itself.
    pub(super) fn check_output(&self, file: &Path) -> Result<(), Failure> {
        let (Some(store), Ok(file)) = (&self.file, file.canonicalize()) else {
            return Ok(());
        };
        // Or a file that SQLite keeps next to it.
        let is_part = ["", "-wal", "-shm"].iter().any(|ending| {
            let mut part = store.clone().into_os_string();
            part.push(ending);
            Path::new(&part).canonicalize().is_ok_and(|part| part == file)
        });
        match is_part {
            true => Err(Failure::input(format!(
                "{} is the store itself and would be overwritten",
                file.display()
            ))
            .help("choose another file with -o")),
            false => Ok(()),
        }
    }
}
