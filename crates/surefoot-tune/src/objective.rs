//! The objective of a study: what a worker runs for each trial.

use crate::storage::{StorageError, TrialState};
use crate::trial::Trial;
use std::path::Path;
use surefoot_diagnose::Finding;

/// Runs trials one at a time: trains plans, starts commands, calls closures.
pub trait Objective {
    /// Runs a trial and returns its final state, or [`TrialState::Waiting`] to release it.
    ///
    /// Returns the state that [`Trial::update`] asks for, if any. A trial that was attempted before
    /// continues from its directory if it can and reports only the steps that it repeats.
    fn run(&mut self, trial: &mut Trial<'_>) -> Result<TrialState, WorkerError>;
}

/// Progress of a trial after a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// 1-based step, usually an epoch. Steps are consecutive, but an attempt may start after the steps
    /// that an earlier one reported.
    pub step: u64,
    /// Total number of steps, if known.
    pub planned: Option<u64>,
    /// Objective value.
    pub value: f64,
    /// Multiplications so far, including earlier attempts; 0 if they are not counted.
    pub operations: f64,
    /// Findings since the last report.
    pub findings: Vec<Finding>,
}

/// An error that ends a worker. The trial is not at fault, and another worker continues it.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The storage failed, or the claim was lost.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// This machine failed: a full disk, for example.
    #[error("{0}")]
    Machine(String),
}

impl WorkerError {
    /// The directory of a trial contains something else.
    pub fn occupied(dir: &Path) -> WorkerError {
        WorkerError::Machine(format!(
            "{} already exists and does not belong to this study: move it away, or choose another directory with --runs",
            dir.display()
        ))
    }
}
