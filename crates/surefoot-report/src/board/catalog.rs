//! The lists of runs and studies, kept up to date by threads of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};

use super::live_run::RunCache;
use super::live_study::StudyList;
use super::rows::{RunEntry, RunRow};
use super::source::{self, Source, Walk};
use super::store;

/// Time between two scans of the directories.
const INTERVAL: Duration = Duration::from_millis(400);

/// Time after which new rows are published although more are to be read.
const SLICE: Duration = Duration::from_millis(250);

/// Everything that the board shows.
#[derive(Debug)]
pub(super) struct Catalog {
    pub(super) sources: Vec<Source>,
    pub(super) studies: StudyList,
    pub(super) runs: RunCache,
    list: Mutex<RunList>,
    is_stopped: AtomicBool,
}

/// The rows of runs, as they were last published.
#[derive(Debug, Default)]
struct RunList {
    revision: u64,
    rows: BTreeMap<String, Arc<RunRow>>,
    /// Revision at which a run disappeared.
    gone: BTreeMap<String, u64>,
    /// States of the given paths that need attention.
    notes: Vec<String>,
    /// Runs that were found but not read yet.
    waiting: usize,
}

/// Changes since a revision.
#[derive(Serialize)]
struct Changes<'a> {
    revision: u64,
    runs: Vec<&'a RunRow>,
    gone: Vec<&'a str>,
    notes: Vec<&'a str>,
    waiting: usize,
    studies: Vec<Value>,
}

impl Catalog {
    pub(super) fn new(sources: Vec<Source>) -> Catalog {
        Catalog {
            sources,
            studies: StudyList::default(),
            runs: RunCache::default(),
            list: Mutex::default(),
            is_stopped: AtomicBool::new(false),
        }
    }

    /// The given directories that do not exist.
    pub(super) fn missing(&self) -> Vec<String> {
        let missing = self.sources.iter().filter_map(|source| match source {
            Source::Directory(root) if !root.is_dir() => Some(root.display().to_string()),
            _ => None,
        });
        missing.collect()
    }

    /// Starts the threads.
    pub(super) fn follow(self: &Arc<Self>) -> io::Result<Vec<JoinHandle<()>>> {
        let mut threads = Vec::new();
        for source in &self.sources {
            if let Source::Store(url) = source {
                threads.push(self.follow_store(url.clone())?);
            }
        }
        let catalog = Arc::clone(self);
        let follow = move || catalog.follow_directories();
        threads.push(Builder::new().name("board-runs".to_owned()).spawn(follow)?);
        Ok(threads)
    }

    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    fn follow_store(self: &Arc<Self>, url: String) -> io::Result<JoinHandle<()>> {
        let catalog = Arc::clone(self);
        let follow = move || store::follow(&catalog, &url);
        Builder::new().name("board-store".to_owned()).spawn(follow)
    }

    fn follow_directories(self: &Arc<Self>) {
        let mut walks: BTreeMap<usize, Walk> = BTreeMap::new();
        let mut entries: BTreeMap<String, RunEntry> = BTreeMap::new();
        let mut stores: BTreeSet<PathBuf> = BTreeSet::new();
        while !self.is_stopped() {
            let begun = Instant::now();
            let mut ids = BTreeMap::new();
            let mut found_stores = BTreeSet::new();
            for (index, source) in self.sources.iter().enumerate() {
                if let Source::Directory(root) = source {
                    let found = walks.entry(index).or_default().find(root);
                    for dir in found.runs {
                        let relative = dir.strip_prefix(root).unwrap_or(&dir).display();
                        ids.insert(format!("{index}/{relative}"), dir);
                    }
                    found_stores.extend(found.stores);
                }
            }
            for file in &found_stores {
                // A thread ends with its file, and a new file starts a new one.
                if !stores.contains(file) {
                    let _ = self.follow_store(file.display().to_string());
                }
            }
            stores = found_stores;
            let is_complete = self.read(&mut entries, ids, begun + SLICE);
            // A large collection on a slow disk is scanned less often.
            let pause =
                if is_complete { INTERVAL.max(begun.elapsed() * 4) } else { Duration::ZERO };
            std::thread::sleep(pause);
        }
    }

    /// Reads runs until the deadline and publishes their rows. Returns false if more are to be read.
    fn read(
        &self,
        entries: &mut BTreeMap<String, RunEntry>,
        ids: BTreeMap<String, PathBuf>,
        deadline: Instant,
    ) -> bool {
        let gone: Vec<String> =
            entries.keys().filter(|id| !ids.contains_key(*id)).cloned().collect();
        entries.retain(|id, _| ids.contains_key(id));
        let mut changed: Vec<RunRow> = Vec::new();
        let mut waiting = 0;
        for (id, dir) in ids {
            if Instant::now() > deadline && !entries.contains_key(&id) {
                waiting += 1;
                continue;
            }
            let entry = entries.entry(id.clone()).or_insert_with(|| RunEntry::new(id, dir));
            match entry.refresh(&self.sources, deadline) {
                Some(true) => changed.push(entry.row.clone()),
                Some(false) => {}
                None => waiting += 1,
            }
        }
        let notes: Vec<String> = self
            .missing()
            .into_iter()
            .map(|path| {
                format!("The directory {path} does not exist. Runs appear as soon as it does.")
            })
            .collect();
        let mut list = self.list();
        if !changed.is_empty() || !gone.is_empty() || notes != list.notes || waiting != list.waiting
        {
            list.revision += 1;
        }
        let revision = list.revision;
        for mut row in changed {
            row.revision = revision;
            if let Some(entry) = entries.get_mut(&row.id) {
                entry.row.revision = revision;
            }
            list.gone.remove(&row.id);
            list.rows.insert(row.id.clone(), Arc::new(row));
        }
        for id in gone {
            list.rows.remove(&id);
            list.gone.insert(id, revision);
        }
        list.notes = notes;
        list.waiting = waiting;
        waiting == 0
    }

    fn list(&self) -> MutexGuard<'_, RunList> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sequence number of the last change of either list.
    pub(super) fn revision(&self) -> u64 {
        self.list().revision + self.studies.revision()
    }

    /// The row of a run in the list.
    pub(super) fn row(&self, id: &str) -> Option<Arc<RunRow>> {
        self.list().rows.get(id).cloned()
    }

    /// Rows that changed after a revision of the list of runs, and all studies.
    pub(super) fn changes(&self, since: u64) -> Value {
        let studies = self.studies.rows();
        let list = self.list();
        let changed = list.rows.values().filter(|row| row.revision > since);
        let gone = list.gone.iter().filter(|(_, revision)| **revision > since);
        let mut notes: Vec<&str> = list.notes.iter().map(String::as_str).collect();
        let store_notes = self.studies.notes();
        notes.extend(store_notes.iter().map(String::as_str));
        json!(Changes {
            revision: list.revision,
            runs: changed.map(AsRef::as_ref).collect(),
            gone: gone.map(|(id, _)| id.as_str()).collect(),
            notes,
            waiting: list.waiting,
            studies,
        })
    }

    /// The id of the run of a trial, if its directory is below a given path.
    pub(super) fn run_of_trial(&self, store: &str, run: &str) -> Option<String> {
        let run = PathBuf::from(run);
        // The study may have been moved with its trials.
        let beside = PathBuf::from(store).parent().zip(run.file_name()).map(|(a, b)| a.join(b));
        let places = beside.into_iter().chain([run]);
        let mut found = places.filter(|dir| dir.join("header.json").is_file());
        found.find_map(|dir| source::id_of(&self.sources, &dir))
    }
}
