//! Studies that are followed by the threads of their stores.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use surefoot_tune::storage::{FrozenTrial, Storage, StorageError, StoredStudy, TrialState, View};

use crate::study::{Fragments, StudyPage, live};

/// Time that a page waits for a store.
const PATIENCE: Duration = Duration::from_secs(3);

/// Minimum time between two computations of importances and tables, in multiples of their duration.
const SPARING: u32 = 10;

/// All studies.
#[derive(Debug, Default)]
pub(super) struct StudyList {
    studies: Mutex<BTreeMap<String, Arc<LiveStudy>>>,
    /// Errors by store.
    notes: Mutex<BTreeMap<String, String>>,
    revision: AtomicU64,
    /// Number of pages that asked for more.
    wishes: AtomicU64,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StudyList {
    pub(super) fn revision(&self) -> u64 {
        let studies = held(&self.studies);
        let changes = studies.values().map(|study| study.changes.load(Ordering::Relaxed));
        self.revision.load(Ordering::Relaxed) + changes.sum::<u64>()
    }

    pub(super) fn rows(&self) -> Vec<Value> {
        let studies = held(&self.studies);
        let row = |(id, study): (&String, &Arc<LiveStudy>)| {
            let mut row = held(&study.row).clone();
            row["id"] = id.as_str().into();
            row
        };
        studies.iter().map(row).collect()
    }

    pub(super) fn notes(&self) -> Vec<String> {
        held(&self.notes).values().cloned().collect()
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<LiveStudy>> {
        held(&self.studies).get(id).cloned()
    }

    pub(super) fn entry(&self, id: &str, new: impl FnOnce() -> LiveStudy) -> Arc<LiveStudy> {
        let mut studies = held(&self.studies);
        let study = studies.entry(id.to_owned()).or_insert_with(|| Arc::new(new()));
        Arc::clone(study)
    }

    /// A store was read without an error.
    pub(super) fn keep(&self, store: &str, ids: &BTreeSet<String>) {
        let mut studies = held(&self.studies);
        let before = studies.len();
        studies.retain(|id, study| study.store != store || ids.contains(id));
        let healed = held(&self.notes).remove(store).is_some();
        if healed || studies.len() != before {
            self.revision.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn fail(&self, store: &str, message: &str) {
        let text = format!("A study store cannot be read. {message}");
        let before = held(&self.notes).insert(store.to_owned(), text.clone());
        if before != Some(text) {
            self.revision.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The file of a store was deleted.
    pub(super) fn remove_store(&self, store: &str) {
        held(&self.studies).retain(|_, study| study.store != store);
        held(&self.notes).remove(store);
        self.revision.fetch_add(1, Ordering::Relaxed);
    }

    /// Asks the threads to read at once.
    pub(super) fn wish(&self) {
        self.wishes.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn wishes(&self) -> u64 {
        self.wishes.load(Ordering::Relaxed)
    }
}

/// A study with its trials.
#[derive(Debug)]
pub(super) struct LiveStudy {
    pub(super) store: String,
    state: RwLock<State>,
    row: Mutex<Value>,
    changes: AtomicU64,
    /// True once a page was opened, which needs the reports of all trials.
    is_wanted: AtomicBool,
    fragments: Mutex<Option<Computed>>,
}

#[derive(Debug)]
struct State {
    study: StoredStudy,
    view: View,
    has_reports: bool,
    revision: u64,
    /// Revision in which each trial was last seen to change.
    revisions: Vec<u64>,
    /// Last change of the study that the revisions include.
    marked: u64,
}

/// Parts of the page that take longer.
#[derive(Debug)]
struct Computed {
    at: Instant,
    took: Duration,
    revision: u64,
    fragments: Fragments,
}

impl LiveStudy {
    pub(super) fn new(study: &StoredStudy, store: &str) -> LiveStudy {
        let state = State {
            study: study.clone(),
            view: View::new(study),
            has_reports: false,
            revision: 0,
            revisions: Vec::new(),
            marked: 0,
        };
        LiveStudy {
            store: store.to_owned(),
            state: RwLock::new(state),
            row: Mutex::default(),
            changes: AtomicU64::new(0),
            is_wanted: AtomicBool::new(false),
            fragments: Mutex::default(),
        }
    }

    /// Reads what has changed in the store.
    pub(super) fn refresh(
        &self,
        storage: &mut Storage,
        study: &StoredStudy,
    ) -> Result<(), StorageError> {
        let is_wanted = self.is_wanted.load(Ordering::Relaxed);
        let mut state = self.write();
        if state.study.id != study.id {
            // Deleted and created again.
            state.view = View::new(study);
            state.revisions.clear();
            state.has_reports = false;
        }
        let is_known = state.view.change() == study.change && state.revision > 0;
        if is_known && (!is_wanted || state.has_reports) {
            return Ok(());
        }
        state.study = study.clone();
        if !is_wanted {
            storage.refresh(&mut state.view)?;
        }
        // The value of a paused trial is one of its reports.
        let is_paused = |trial: &FrozenTrial| trial.state == TrialState::Paused;
        if is_wanted || state.view.trials().iter().any(is_paused) {
            storage.refresh_reports(&mut state.view)?;
        }
        if is_wanted && !state.has_reports {
            state.revisions.clear();
        }
        state.has_reports = is_wanted;
        state.revision += 1;
        state.mark();
        let mut row = live::row(&state.page(&self.store));
        row["created"] = state.study.created.into();
        *held(&self.row) = row;
        self.changes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the thread of the store, which may wait for its database.
    fn read(&self) -> Result<RwLockReadGuard<'_, State>, String> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Ok(state) = self.state.try_read() {
                let is_ready = state.has_reports && state.revision > 0;
                if is_ready {
                    return Ok(state);
                }
            }
            if Instant::now() > end {
                return Err(format!("{} does not answer", self.store));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(super) fn revision(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Data of the page: trials that changed after `since`, and everything else.
    pub(super) fn data(&self, list: &StudyList, since: u64) -> Result<Value, String> {
        if !self.is_wanted.swap(true, Ordering::Relaxed) {
            list.wish();
        }
        let state = self.read()?;
        let page = state.page(&self.store);
        let since = if since > state.revision { 0 } else { since };
        let changed = |number: u64| {
            state.revisions.get(number as usize).is_some_and(|revision| *revision > since)
        };
        let mut data = live::data(&page, changed);
        data["revision"] = state.revision.into();
        data["created"] = state.study.created.into();
        data["whole"] = (since == 0).into();
        data["html"] = self.fragments(&page, state.revision);
        Ok(data)
    }

    /// The parts that the server draws, recomputed at intervals.
    fn fragments(&self, page: &StudyPage<'_>, revision: u64) -> Value {
        let mut computed = held(&self.fragments);
        let is_stale = computed.as_ref().is_none_or(|known| {
            known.revision != revision && known.at.elapsed() > known.took * SPARING
        });
        if is_stale {
            let at = Instant::now();
            let fragments = Fragments::of(page);
            *computed = Some(Computed { at, took: at.elapsed(), revision, fragments });
        }
        computed.as_ref().map_or(Value::Null, |known| json!(known.fragments))
    }

    /// The static report.
    pub(super) fn report(&self, list: &StudyList) -> Result<(String, String), String> {
        if !self.is_wanted.swap(true, Ordering::Relaxed) {
            list.wish();
        }
        let state = self.read()?;
        Ok((state.study.name.clone(), crate::study_report(&state.page(&self.store))))
    }

    /// Run directory of a trial.
    pub(super) fn run_of(&self, number: u64) -> Option<String> {
        let state = self.read().ok()?;
        state.view.trials().get(usize::try_from(number).ok()?)?.run.clone()
    }
}

impl State {
    fn page<'a>(&'a self, store: &'a str) -> StudyPage<'a> {
        StudyPage::new(&self.study, &self.view, store)
    }

    /// Notes which trials may have changed: those that were not final before.
    fn mark(&mut self) {
        let trials = self.view.trials();
        let known = self.revisions.len();
        self.revisions.resize(trials.len(), self.revision);
        for (trial, revision) in trials.iter().zip(&mut self.revisions).take(known) {
            // A final state never changes, but its reports may have been read only now.
            let was_final = trial.end_change.is_some_and(|end| end <= self.marked);
            if !was_final {
                *revision = self.revision;
            }
        }
        self.marked = self.view.change();
    }
}
