//! Objectives that another thread runs, such as a function of a Python program.
//!
//! A [`FunctionWorker`] runs a [`Worker`](crate::worker::Worker) in a thread and hands out each trial as a
//! [`FunctionTrial`], which passes suggestions and reports to the worker. So the function runs in the thread that its
//! program chooses, usually the main one, and heartbeats continue while it is busy.

mod gate;
mod worker;

pub use worker::{FunctionWorker, NextTrial, StopHandle};

use crate::command::{ReportLine, Reports, take_ownership};
use crate::direction::Direction;
use crate::objective::{Objective, WorkerError};
use crate::pruner::PruneReason;
use crate::space::{Domain, Parameter, Point, Space, SpaceError, Value};
use crate::storage::TrialState;
use crate::trial::Trial;
use gate::Gate;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use surefoot_diagnose::{Diagnosis, Facts, Observation};

/// Message of a trial without a result.
const NO_VALUE: &str = "the function returned no value and reported none";

/// Passes trials to another thread.
struct FunctionObjective<F> {
    /// Receives the trials, one at a time.
    trials: SyncSender<FunctionTrial>,
    gate: Arc<Gate>,
    direction: Direction,
    /// Creates the diagnosis of a trial; returns `None` for no diagnosis.
    diagnosis: F,
}

/// A trial for a function to run.
#[derive(Debug)]
pub struct FunctionTrial {
    /// 0-based number in the study.
    pub number: u64,
    /// 1-based attempt number.
    pub attempt: u32,
    /// Directory for this trial only, the same for every attempt.
    pub dir: PathBuf,
    /// Parameter values so far.
    pub point: Point,
    requests: Sender<Request>,
    gate: Arc<Gate>,
    is_over: AtomicBool,
}

/// Error of a call of a [`FunctionTrial`].
#[derive(Debug, thiserror::Error)]
pub enum FunctionError {
    /// The range of a parameter is invalid.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// The report is invalid.
    #[error("{0}")]
    Report(String),
    /// The worker has lost the trial or its storage. The trial should return.
    #[error("the worker no longer runs this trial")]
    Gone,
}

/// End of the function.
#[derive(Clone, Debug, PartialEq)]
pub enum FunctionEnd {
    /// It returned, with a value or with the best reported one.
    Returned(Option<f64>),
    /// It stopped because [`FunctionTrial::should_stop`] returned true, or for a reason of its own.
    Stopped(PruneReason),
    /// It failed.
    Failed(String),
    /// The program was interrupted. Another attempt continues the trial.
    Interrupted,
}

enum Request {
    Suggest { name: String, domain: Domain, step: Option<f64>, answer: Sender<Value> },
    Report { text: String, line: Box<ReportLine>, answer: Sender<bool> },
    ShouldStop { answer: Sender<bool> },
    Observe { line: Box<ReportLine> },
    End(FunctionEnd),
}

impl FunctionTrial {
    /// Returns a value of a parameter, a multiple of `step` above the lower bound if there is one.
    pub fn suggest(
        &self,
        name: &str,
        domain: Domain,
        step: Option<f64>,
    ) -> Result<Value, FunctionError> {
        let parameter = Parameter { name: name.to_owned(), domain, conditions: Vec::new() };
        let Parameter { name, domain, .. } = parameter.clone();
        Space::new(vec![parameter])?;
        self.ask(|answer| Request::Suggest { name, domain, step, answer })
    }

    /// Takes a report, written as a command prints it. Returns true if the function should return.
    pub fn report(&self, text: &str) -> Result<bool, FunctionError> {
        match ReportLine::read(text) {
            None => Err(FunctionError::Report("a report has a value or a loss".to_owned())),
            Some(Err(error)) => Err(FunctionError::Report(error)),
            Some(Ok(line)) => self.ask(|answer| {
                let text = text.to_owned();
                Request::Report { text, line: Box::new(line), answer }
            }),
        }
    }

    /// Returns true if the function should save a checkpoint and return: the trial is pruned, paused or interrupted.
    pub fn should_stop(&self) -> Result<bool, FunctionError> {
        self.ask(|answer| Request::ShouldStop { answer })
    }

    /// Passes observed steps of the training to the indicators.
    pub fn observer(&self, facts: &Facts) -> TrialObserver {
        TrialObserver { facts: facts.clone(), requests: self.requests.clone() }
    }

    /// Ends the trial, unless it has ended. Returns when that is stored.
    pub fn end(&self, end: FunctionEnd) {
        if self.is_over.swap(true, Ordering::Relaxed) {
            return;
        }
        self.gate.end(|| {
            // A worker that has lost the trial does not receive it.
            let _ = self.requests.send(Request::End(end));
        });
    }

    fn ask<T>(&self, request: impl FnOnce(Sender<T>) -> Request) -> Result<T, FunctionError> {
        let (answer, answered) = channel();
        self.requests.send(request(answer)).map_err(|_| FunctionError::Gone)?;
        answered.recv().map_err(|_| FunctionError::Gone)
    }
}

/// Passes observations of a training to the indicators of its trial.
#[derive(Clone, Debug)]
pub struct TrialObserver {
    facts: Facts,
    requests: Sender<Request>,
}

impl TrialObserver {
    /// Adds a step. Ignored once the trial has ended.
    pub fn observe(&self, seen: &Observation) {
        let line = Box::new(ReportLine::of(seen, &self.facts));
        let _ = self.requests.send(Request::Observe { line });
    }
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Request")
    }
}

impl<F: Fn(Facts) -> Option<Diagnosis>> Objective for FunctionObjective<F> {
    fn run(&mut self, trial: &mut Trial<'_>) -> Result<TrialState, WorkerError> {
        let machine = |error: std::io::Error| {
            WorkerError::Machine(format!("cannot create {}: {error}", trial.dir().display()))
        };
        let dir = std::path::absolute(trial.dir()).map_err(machine)?;
        if !take_ownership(&dir, &trial.owner()).map_err(machine)? {
            return Err(WorkerError::occupied(trial.dir()));
        }
        let (requests, received) = channel();
        let sent = self.trials.send(FunctionTrial {
            number: trial.number(),
            attempt: trial.attempt(),
            dir: dir.clone(),
            point: trial.point().clone(),
            requests,
            gate: Arc::clone(&self.gate),
            is_over: AtomicBool::new(false),
        });
        let state = match sent {
            Ok(()) => self.serve(&received, Reports::new(trial, &dir, self.direction), trial),
            // The thread of the function has ended.
            Err(_) => Ok(TrialState::Waiting),
        };
        self.gate.release();
        state
    }
}

impl<F: Fn(Facts) -> Option<Diagnosis>> FunctionObjective<F> {
    fn serve(
        &self,
        requests: &Receiver<Request>,
        mut reports: Reports,
        trial: &mut Trial<'_>,
    ) -> Result<TrialState, WorkerError> {
        // Answers fail if the function no longer waits for them; its end is the next request.
        let (mut requested, mut is_stopping) = (None, false);
        for request in requests {
            match request {
                Request::Suggest { name, domain, step, answer } => {
                    let value = match step {
                        None => trial.suggest(&name, domain)?,
                        Some(step) => trial.suggest_stepped(&name, domain, step)?,
                    };
                    let _ = answer.send(value);
                }
                Request::Observe { line } => reports.observe_step(&line, &self.diagnosis),
                Request::Report { text, line, answer } => {
                    let state = reports.take(&text, &line, &self.diagnosis, trial)?;
                    requested = requested.or(state);
                    let _ = answer.send(requested.is_some());
                }
                Request::ShouldStop { answer } => {
                    if requested.is_none() && trial.is_interrupted() {
                        requested = Some(TrialState::Waiting);
                    }
                    is_stopping = requested.is_some();
                    let _ = answer.send(is_stopping);
                }
                Request::End(end) => {
                    return Ok(match (end, requested.filter(|_| is_stopping)) {
                        (FunctionEnd::Interrupted, _) => TrialState::Waiting,
                        (FunctionEnd::Failed(message), _) => TrialState::Failed { message },
                        (_, Some(state)) => state,
                        (FunctionEnd::Stopped(reason), None) => trial.pruned(reason),
                        (FunctionEnd::Returned(None), None) if !reports.has_value => {
                            TrialState::Failed { message: NO_VALUE.to_owned() }
                        }
                        (FunctionEnd::Returned(value), None) => trial.complete(value),
                    });
                }
            }
        }
        // The function has ended without ending its trial.
        Ok(TrialState::Waiting)
    }
}
