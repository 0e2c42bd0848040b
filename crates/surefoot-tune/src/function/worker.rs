//! A worker in a thread of its own.

use super::gate::Gate;
use super::{FunctionObjective, FunctionTrial};
use crate::objective::WorkerError;
use crate::storage::Storage;
use crate::study::Study;
use crate::worker::{Worker, WorkerExit};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use surefoot_diagnose::{Diagnosis, Facts, Thresholds, panic_message};

/// Runs a [`Worker`] in a thread and hands out its trials.
#[derive(Debug)]
pub struct FunctionWorker {
    trials: Option<Receiver<FunctionTrial>>,
    thread: Option<JoinHandle<Result<WorkerExit, WorkerError>>>,
    gate: Arc<Gate>,
}

/// Handle that stops a [`FunctionWorker`].
#[derive(Clone, Debug)]
pub struct StopHandle(Arc<Gate>);

impl StopHandle {
    /// Same as [`FunctionWorker::stop`].
    pub fn stop(&self) {
        self.0.stop();
    }
}

/// Result of waiting for a trial.
#[derive(Debug)]
pub enum NextTrial {
    /// A trial to run.
    Trial(FunctionTrial),
    /// None yet: check for signals and wait again.
    NotYet,
    /// No more: [`FunctionWorker::join`] says why.
    Over,
}

impl FunctionWorker {
    /// Starts to work on a study in the storage at `url`. Trials have directories below `runs`.
    pub fn start(
        study: Study,
        url: String,
        runs: PathBuf,
        name: String,
    ) -> std::io::Result<FunctionWorker> {
        let (trials, received) = sync_channel(0);
        let gate = Arc::new(Gate::default());
        let shared = Arc::clone(&gate);
        let work = move || {
            // Also after a panic: the function must not wait forever.
            let _leave = Leave(&shared);
            let mut storage = Storage::open_existing(&url)?;
            let stored = storage.join(&study.entry())?;
            let settings = &study.settings;
            let stop_requested = || shared.stop_requested();
            let worker = Worker::new(&name, settings, &url, &runs, &stop_requested)?;
            let diagnosis = |facts: Facts| {
                let detectors = settings.pruners.detectors();
                let any = !detectors.is_empty();
                any.then(|| Diagnosis::with(facts, Thresholds::default(), detectors))
            };
            let direction = settings.direction;
            let gate = Arc::clone(&shared);
            let mut objective = FunctionObjective { trials, gate, direction, diagnosis };
            worker.run(&mut storage, &stored, &mut objective)
        };
        let thread = std::thread::Builder::new().name("surefoot-worker".to_owned()).spawn(work)?;
        Ok(FunctionWorker { trials: Some(received), thread: Some(thread), gate })
    }

    /// Waits for the next trial. The one before must have ended.
    pub fn next_trial(&self, timeout: Duration) -> NextTrial {
        self.gate.ask();
        let received = self.trials.as_ref().map(|trials| trials.recv_timeout(timeout));
        match received {
            Some(Ok(trial)) => {
                self.gate.begin();
                NextTrial::Trial(trial)
            }
            Some(Err(RecvTimeoutError::Timeout)) => NextTrial::NotYet,
            Some(Err(RecvTimeoutError::Disconnected)) | None => NextTrial::Over,
        }
    }

    /// Asks the running trial to stop, and hands out no more.
    pub fn stop(&self) {
        self.gate.stop();
    }

    /// Returns a handle that stops the worker from another thread or a signal handler.
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle(Arc::clone(&self.gate))
    }

    /// Stops, waits for the thread, and returns the reason for its end.
    pub fn join(&mut self) -> Result<Option<WorkerExit>, WorkerError> {
        self.stop();
        // A trial that waits to be received goes back to the storage.
        self.trials = None;
        let Some(thread) = self.thread.take() else { return Ok(None) };
        match thread.join() {
            Ok(exit) => exit.map(Some),
            Err(panic) => Err(WorkerError::Machine(format!(
                "the worker panicked: {}",
                panic_message(panic.as_ref())
            ))),
        }
    }
}

struct Leave<'a>(&'a Gate);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FunctionEnd, FunctionError};
    use super::*;
    use crate::space::{Domain, Value};
    use crate::storage::{TrialState, View};

    const STUDY: &str = "[tune]\nfunction = 'f'\nname = 's'\ndirection = 'minimize'\n";

    fn opened(dir: &std::path::Path, keys: &str) -> (FunctionWorker, String) {
        let url = dir.join("study.db").display().to_string();
        let study = Study::parse(&format!("{STUDY}{keys}"), "test").expect("a study");
        Storage::open(&url).and_then(|mut storage| storage.join(&study.entry())).expect("a store");
        let runs = dir.to_owned();
        let worker = FunctionWorker::start(study, url.clone(), runs, "w".to_owned());
        (worker.expect("a thread"), url)
    }

    fn view(url: &str) -> View {
        let mut storage = Storage::open_existing(url).expect("a store");
        let study = storage.study("s").expect("a study");
        let mut view = View::new(&study);
        storage.refresh_reports(&mut view).expect("trials");
        view
    }

    fn next(worker: &FunctionWorker) -> Option<FunctionTrial> {
        loop {
            match worker.next_trial(Duration::from_millis(50)) {
                NextTrial::Trial(trial) => return Some(trial),
                NextTrial::NotYet => {}
                NextTrial::Over => return None,
            }
        }
    }

    #[test]
    fn a_trial_is_stored_when_its_end_returns() {
        let dir = tempfile::tempdir().expect("a directory");
        let (mut worker, url) = opened(dir.path(), "trials = 3\n");
        let mut ended = 0;
        while let Some(trial) = next(&worker) {
            let x = trial.suggest("x", Domain::Uniform(0.0, 1.0), None).expect("a value");
            assert!(matches!(x, Value::Float(_)));
            trial.end(FunctionEnd::Returned(Some(trial.number as f64)));
            ended += 1;
            let view = view(&url);
            assert_eq!(view.trials().len(), ended, "the next trial is not claimed yet");
            assert!(view.trials()[ended - 1].state.is_final());
        }
        assert_eq!(worker.join().expect("no error"), Some(WorkerExit::StudyDone));
        assert_eq!(view(&url).best().map(|trial| trial.number), Some(0));
    }

    #[test]
    fn a_stop_leaves_no_trial_behind() {
        let dir = tempfile::tempdir().expect("a directory");
        let (mut worker, url) = opened(dir.path(), "");
        let trial = next(&worker).expect("a trial");
        assert!(!trial.should_stop().expect("an answer"));
        worker.stop();
        assert!(trial.should_stop().expect("an answer"));
        trial.end(FunctionEnd::Returned(None));
        assert_eq!(worker.join().expect("no error"), Some(WorkerExit::Interrupted));
        let states: Vec<TrialState> = view(&url).trials().iter().map(|t| t.state.clone()).collect();
        assert_eq!(states, [TrialState::Waiting]);
    }

    #[test]
    fn invalid_ranges_and_reports_do_not_end_the_worker() {
        let dir = tempfile::tempdir().expect("a directory");
        let (mut worker, url) = opened(dir.path(), "trials = 1\n");
        let trial = next(&worker).expect("a trial");
        let error = trial.suggest("x", Domain::Uniform(1.0, 0.0), None).expect_err("refused");
        assert_eq!(error.to_string(), "x: lower bound 1 is above upper bound 0");
        assert!(matches!(trial.report("{\"epoch\": 1}"), Err(FunctionError::Report(_))));
        trial.end(FunctionEnd::Failed("ValueError".to_owned()));
        assert!(next(&worker).is_none());
        worker.join().expect("no error");
        let failed = TrialState::Failed { message: "ValueError".to_owned() };
        assert_eq!(view(&url).trials()[0].state, failed);
    }

    #[test]
    fn parameters_that_trials_suggest_are_sampled_together_later() {
        let dir = tempfile::tempdir().expect("a directory");
        let (mut worker, url) = opened(dir.path(), "trials = 3\n");
        while let Some(trial) = next(&worker) {
            let known = trial.point.0.len();
            trial.suggest("x", Domain::Uniform(0.0, 1.0), None).expect("a value");
            let n = trial.suggest("n", Domain::Int(0, 64), Some(16.0)).expect("a value");
            assert!(matches!(n, Value::Int(n) if n % 16 == 0), "{n}");
            assert_eq!(known, if trial.number == 0 { 0 } else { 2 });
            trial.end(FunctionEnd::Returned(Some(0.5)));
        }
        worker.join().expect("no error");
        let mut storage = Storage::open_existing(&url).expect("a store");
        let study = storage.study("s").expect("a study");
        assert!(study.grows() && study.space.parameters().len() == 2);
        let trials = view(&url);
        let seen = trials.trials()[1].seen.expect("sampled");
        assert_eq!(storage.space_at(&study, seen).expect("a space").parameters().len(), 2);
        let first = study.since[0] - 1;
        assert!(storage.space_at(&study, first).expect("a space").parameters().is_empty());
    }
}
