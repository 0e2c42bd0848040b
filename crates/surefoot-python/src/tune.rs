//! Hyperparameter search over a Python function.

use crate::guard::{catch, error};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use surefoot_diagnose::Facts;
use surefoot_report::{StudyPage, study_report};
use surefoot_tune::export::{Format, trial_json};
use surefoot_tune::function::{
    FunctionEnd, FunctionError, FunctionTrial, FunctionWorker, NextTrial, StopHandle, TrialObserver,
};
use surefoot_tune::storage::{
    ClaimLimits, Claimed, Start, StepCost, Storage, StorageError, StoredStudy, TrialState, View,
};
use surefoot_tune::{Domain, Point, PruneReason, Study, WorkerError};

/// Interval between checks for signals during a wait.
const POLL: Duration = Duration::from_millis(100);

/// Reason id of a trial that its function stopped.
const OBJECTIVE: &str = "objective";

/// Reason id and worker of a trial that another program ran.
const IMPORTED: &str = "imported";

/// Reads a study. Its text comes from keyword arguments, so messages name no lines.
fn read(document: &str) -> PyResult<Study> {
    Study::parse(document, "surefoot.tune").map_err(|error| {
        let mut text = error.message;
        for more in [error.label, error.help].into_iter().flatten() {
            text = format!("{text}; {more}");
        }
        PyValueError::new_err(text)
    })
}

/// An error of the user (a wrong URL, another study) is a `ValueError`, an outage a `RuntimeError`.
fn storage_error(found: StorageError) -> PyErr {
    match found {
        StorageError::Database { .. } | StorageError::Damaged { .. } => error(found),
        found => PyValueError::new_err(found.to_string()),
    }
}

/// A worker of a study, in a thread that hands out trials.
#[pyclass(module = "surefoot._core", frozen)]
pub(crate) struct TuneWorker {
    worker: Mutex<FunctionWorker>,
    /// Separate, because a signal handler runs while `next_trial` waits.
    stop_handle: StopHandle,
    diagnoses: bool,
}

#[pymethods]
impl TuneWorker {
    /// Joins the study of `document` (TOML) in `store`. Trials have directories below `runs`.
    /// `left` is the remaining time budget in seconds; by default that of the study.
    #[new]
    #[pyo3(signature = (document, store, runs, name, left=None))]
    fn new(
        document: &str,
        store: String,
        runs: PathBuf,
        name: String,
        left: Option<f64>,
    ) -> PyResult<TuneWorker> {
        let mut study = read(document)?;
        let left = left.and_then(|left| Duration::try_from_secs_f64(left).ok());
        study.settings.time = left.or(study.settings.time);
        let diagnoses = !study.settings.pruners.indicators.is_empty();
        let worker = FunctionWorker::start(study, store, runs, name)?;
        Ok(TuneWorker { stop_handle: worker.stop_handle(), worker: Mutex::new(worker), diagnoses })
    }

    /// True if problems of the training end a trial.
    #[getter]
    fn diagnoses(&self) -> bool {
        self.diagnoses
    }

    /// Waits for the next trial. Returns `None` when there are no more.
    fn next_trial(&self, py: Python<'_>) -> PyResult<Option<TuneTrial>> {
        loop {
            match py.detach(|| self.worker().next_trial(POLL)) {
                NextTrial::Trial(trial) => return Ok(Some(TuneTrial { trial })),
                NextTrial::NotYet => py.check_signals()?,
                NextTrial::Over => return self.close(py).map(|()| None),
            }
        }
    }

    /// Asks the running trial to stop, and hands out no more.
    fn stop(&self) {
        self.stop_handle.stop();
    }

    /// Stops, and waits until everything is stored. Call it after the trial has ended.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        match py.detach(|| self.worker().join()) {
            Ok(_) => Ok(()),
            Err(WorkerError::Storage(found)) => Err(storage_error(found)),
            Err(found) => Err(error(found)),
        }
    }
}

impl TuneWorker {
    fn worker(&self) -> MutexGuard<'_, FunctionWorker> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Problem, message and evidence.
type FatalFinding = (String, String, Vec<(String, f64)>);

/// A trial that Python runs. Domains, values and reports are JSON.
#[pyclass(module = "surefoot._core", frozen)]
pub(crate) struct TuneTrial {
    trial: FunctionTrial,
}

#[pymethods]
impl TuneTrial {
    #[getter]
    fn number(&self) -> u64 {
        self.trial.number
    }

    #[getter]
    fn attempt(&self) -> u32 {
        self.trial.attempt
    }

    #[getter]
    fn directory(&self) -> PathBuf {
        self.trial.dir.clone()
    }

    /// Parameter values at the start of the attempt.
    #[getter]
    fn point(&self) -> PyResult<String> {
        serde_json::to_string(&self.trial.point).map_err(error)
    }

    /// Returns a value of a parameter; `None` if the trial is lost.
    fn suggest(
        &self,
        py: Python<'_>,
        name: &str,
        domain: &str,
        step: Option<f64>,
    ) -> PyResult<Option<String>> {
        let domain: Domain = serde_json::from_str(domain).map_err(error)?;
        let value = py.detach(|| self.trial.suggest(name, domain, step));
        let value = answer(value)?.map(|value| serde_json::to_string(&value).map_err(error));
        value.transpose()
    }

    /// Reports progress. Returns true if the trial should stop; `None` if it is lost.
    fn report(&self, py: Python<'_>, report: &str) -> PyResult<Option<bool>> {
        answer(py.detach(|| self.trial.report(report)))
    }

    /// Returns true if the trial should save a checkpoint and return; `None` if it is lost.
    fn should_stop(&self, py: Python<'_>) -> PyResult<Option<bool>> {
        answer(py.detach(|| self.trial.should_stop()))
    }

    /// Ends a trial that returned a value, or with its best reported value.
    fn complete(&self, py: Python<'_>, value: Option<f64>) {
        py.detach(|| self.trial.end(FunctionEnd::Returned(value)));
    }

    /// Ends a trial that stopped because it was asked to, or because of a finding.
    fn stopped(&self, py: Python<'_>, finding: Option<FatalFinding>) {
        let reason = match finding {
            Some((problem, message, evidence)) => {
                let reason = PruneReason::new(&problem, message);
                evidence
                    .iter()
                    .fold(reason, |reason, (name, value)| reason.with(name, *value, None))
            }
            None => PruneReason::new(OBJECTIVE, "The objective stopped the trial."),
        };
        py.detach(|| self.trial.end(FunctionEnd::Stopped(reason)));
    }

    /// Ends a trial that raised an exception.
    fn failed(&self, py: Python<'_>, message: String) {
        py.detach(|| self.trial.end(FunctionEnd::Failed(message)));
    }

    /// Gives the trial back, for another attempt.
    fn release(&self, py: Python<'_>) {
        py.detach(|| self.trial.end(FunctionEnd::Interrupted));
    }
}

impl TuneTrial {
    pub(crate) fn observer(&self, facts: &Facts) -> TrialObserver {
        self.trial.observer(facts)
    }
}

/// Converts an answer; `None` if the worker has lost the trial.
fn answer<T>(result: Result<T, FunctionError>) -> PyResult<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(FunctionError::Gone) => Ok(None),
        Err(found) => Err(PyValueError::new_err(found.to_string())),
    }
}

/// A study in its store, with its trials.
#[pyclass(module = "surefoot._core")]
pub(crate) struct TuneStudy {
    /// In a lock because a Python class must be `Sync`. Never locked: all access is through `&mut self`.
    storage: Mutex<Option<Storage>>,
    url: String,
    store: String,
    study: StoredStudy,
    view: View,
    settings: Option<Study>,
    /// States of the trials at the last call of `changed`.
    states: Vec<&'static str>,
}

#[pymethods]
impl TuneStudy {
    /// Creates the study of `document` (TOML) in `store`, or joins it.
    #[staticmethod]
    fn join(document: &str, store: &str) -> PyResult<TuneStudy> {
        let settings = read(document)?;
        let mut storage = Storage::open(store).map_err(storage_error)?;
        let study = storage.join(&settings.entry()).map_err(storage_error)?;
        TuneStudy::with(storage, store, study, Some(settings))
    }

    /// Opens a study of `store` by its name, or the only one.
    #[staticmethod]
    fn open(store: &str, name: Option<&str>) -> PyResult<TuneStudy> {
        let mut storage = Storage::open_existing(store).map_err(storage_error)?;
        let mut studies = storage.studies().map_err(storage_error)?;
        let study = match (name, studies.len()) {
            (Some(name), _) => storage.study(name).map_err(storage_error)?,
            (None, 1) => studies.remove(0),
            (None, _) => {
                let names: Vec<String> = studies.into_iter().map(|study| study.name).collect();
                let message =
                    format!("pass the name of a study; {store} has: {}", names.join(", "));
                return Err(PyValueError::new_err(message));
            }
        };
        TuneStudy::with(storage, store, study, None)
    }

    #[getter]
    fn name(&self) -> &str {
        &self.study.name
    }

    #[getter]
    fn direction(&self) -> &'static str {
        self.study.direction.name()
    }

    /// Time budget in seconds.
    #[getter]
    fn time(&self) -> Option<f64> {
        self.settings.as_ref()?.settings.time.map(|time| time.as_secs_f64())
    }

    /// The store, without a password.
    #[getter]
    fn store(&self) -> &str {
        &self.store
    }

    /// Closes the connection until it is needed again. A connection does not survive a fork.
    fn disconnect(&mut self) {
        *self.storage.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Reads the changes since the last call. Returns the trials that have ended or paused since then.
    fn changed(&mut self) -> PyResult<Vec<u64>> {
        self.refresh()?;
        let mut changed = Vec::new();
        self.states.resize(self.view.trials().len(), "");
        for (trial, known) in self.view.trials().iter().zip(&mut self.states) {
            let name = trial.state.name();
            if *known != name && (trial.state.is_final() || name == "paused") {
                changed.push(trial.number);
            }
            *known = name;
        }
        Ok(changed)
    }

    /// The number of trials.
    fn count(&self) -> usize {
        self.view.trials().len()
    }

    /// The number of trials in each state.
    fn states(&self) -> BTreeMap<&'static str, usize> {
        let mut states = BTreeMap::new();
        for trial in self.view.trials() {
            *states.entry(trial.state.name()).or_default() += 1;
        }
        states
    }

    /// A trial as JSON with its learning curve, and its value.
    fn trial(&self, number: usize) -> PyResult<(String, Option<f64>)> {
        let trial = self.view.trials().get(number);
        let trial = trial.ok_or_else(|| PyValueError::new_err(format!("no trial {number}")))?;
        Ok((trial_json(&self.view, trial).map_err(error)?, self.view.value(trial.number)))
    }

    /// Number of the best trial.
    fn best(&self) -> Option<u64> {
        self.view.best().map(|trial| trial.number)
    }

    /// Adds a trial at a point (JSON) and returns its number.
    fn enqueue(&mut self, point: &str) -> PyResult<u64> {
        let mut point: Point = serde_json::from_str(point)
            .map_err(|error| PyValueError::new_err(format!("invalid parameters: {error}")))?;
        for parameter in self.study.space.parameters() {
            if let Some(value) = point.0.get_mut(&parameter.name) {
                *value = parameter.domain.converted(value);
            }
        }
        if !self.study.grows() && !self.study.space.contains(&point) {
            let names = self.study.space.parameters().iter().map(|it| it.name.as_str());
            let message = format!(
                "these parameters are not a point of the space, which needs a value in range for each of {}",
                names.collect::<Vec<_>>().join(", ")
            );
            return Err(PyValueError::new_err(message));
        }
        let id = self.study.id;
        let number = self.storage()?.enqueue(id, &point).map_err(storage_error)?;
        self.refresh()?;
        Ok(number)
    }

    /// Adds a trial of another program that has ended: its point (JSON), its reported steps and values, its duration,
    /// its state (`complete`, `pruned` or `failed`), its value, and the reason if it did not complete.
    fn add_ended(
        &mut self,
        point: &str,
        reports: Vec<(u32, f64)>,
        seconds: f64,
        state: &str,
        value: Option<f64>,
        reason: &str,
    ) -> PyResult<()> {
        let point: Point = serde_json::from_str(point).map_err(error)?;
        let state = match (state, value) {
            ("complete", Some(value)) => TrialState::Complete { value },
            ("pruned", value) => {
                TrialState::Pruned { value, reason: PruneReason::new(IMPORTED, reason) }
            }
            _ => TrialState::Failed { message: reason.to_owned() },
        };
        let (id, each) = (self.study.id, seconds / reports.len().max(1) as f64);
        let storage = self.storage()?;
        let mut add = || -> Result<(), StorageError> {
            storage.enqueue(id, &point)?;
            let Claimed::Trial(claim) = storage.claim(id, IMPORTED, &ClaimLimits::default())?
            else {
                return Ok(());
            };
            let planned = reports.last().map(|(step, _)| *step);
            let planned = planned.filter(|_| matches!(state, TrialState::Complete { .. }));
            storage
                .start(&claim, &Start { point: point.clone(), seen: None, planned, run: None })?;
            for (step, value) in &reports {
                let cost = StepCost { seconds: each, operations: 0.0 };
                storage.report(&claim, *step, *value, cost)?;
            }
            storage.finish(&claim, &state, seconds)
        };
        add().map_err(storage_error)?;
        self.refresh()
    }

    /// Returns the trials of a dead worker to the storage.
    fn mark_dead(&mut self, worker: &str) -> PyResult<Vec<u64>> {
        let limits = self.settings.as_ref().map(|study| study.settings.limits());
        let id = self.study.id;
        let limits = limits.unwrap_or_default();
        self.storage()?.mark_dead(id, worker, &limits).map_err(storage_error)
    }

    /// The report as an HTML page.
    fn report(&self) -> PyResult<String> {
        catch(|| Ok(study_report(&StudyPage::new(&self.study, &self.view, &self.store))))
    }

    /// The study in a format: `csv`, `parquet`, `jsonl` or `optuna-journal`.
    fn export(&self, format: &str) -> PyResult<Vec<u8>> {
        let format = Format::named(format).ok_or_else(|| {
            let names = Format::ALL.map(Format::name).join(", ");
            PyValueError::new_err(format!("unknown format `{format}`; available: {names}"))
        })?;
        catch(|| format.write(&self.study, &self.view).map_err(error))
    }
}

impl TuneStudy {
    fn with(
        storage: Storage,
        url: &str,
        study: StoredStudy,
        settings: Option<Study>,
    ) -> PyResult<TuneStudy> {
        let mut study = TuneStudy {
            store: storage.name().to_owned(),
            storage: Mutex::new(Some(storage)),
            url: url.to_owned(),
            view: View::new(&study),
            study,
            settings,
            states: Vec::new(),
        };
        study.refresh()?;
        Ok(study)
    }

    fn storage(&mut self) -> PyResult<&mut Storage> {
        connected(&mut self.storage, &self.url)
    }

    fn refresh(&mut self) -> PyResult<()> {
        let storage = connected(&mut self.storage, &self.url)?;
        storage.refresh_reports(&mut self.view).map_err(storage_error)?;
        if self.study.grows() {
            self.study = storage.study(&self.study.name).map_err(storage_error)?;
        }
        Ok(())
    }
}

/// The connection, opened again if it was closed.
fn connected<'a>(storage: &'a mut Mutex<Option<Storage>>, url: &str) -> PyResult<&'a mut Storage> {
    match storage.get_mut().unwrap_or_else(PoisonError::into_inner) {
        Some(storage) => Ok(storage),
        closed => Ok(closed.insert(Storage::open_existing(url).map_err(storage_error)?)),
    }
}
