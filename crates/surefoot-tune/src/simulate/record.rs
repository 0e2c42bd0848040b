//! Recorded trials.

use crate::space::Point;
use std::collections::BTreeSet;
use surefoot_diagnose::{Evaluation, Facts, Observation, Quantity};

/// Recorded trials of one study or task.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Name.
    pub name: String,
    /// Trials in the order in which they ran.
    pub trials: Vec<RecordedTrial>,
}

/// A trial with all data that pruners and indicators use.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedTrial {
    /// Configuration, if recorded.
    pub point: Option<Point>,
    /// Facts of the run.
    pub facts: Facts,
    /// Recorded quantities. Indicators that need others are skipped.
    pub available: BTreeSet<Quantity>,
    /// Reported epochs.
    pub epochs: Vec<RecordedEpoch>,
    /// Planned number of epochs.
    pub planned: usize,
    /// Final cost; `None` if the trial did not run to its end.
    pub truth: Option<f64>,
}

/// One reported epoch of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedEpoch {
    /// Observed steps.
    pub observations: Vec<Observation>,
    /// Evaluations at its end.
    pub evaluations: Vec<Evaluation>,
    /// Reported cost.
    pub cost: f64,
    /// Time spent, in any unit.
    pub spent: f64,
}

impl RecordedTrial {
    /// A trial from a training loss and a cost per epoch. All epochs take the same time, and the last cost is
    /// final.
    pub fn from_losses(training: &[f64], costs: &[f64]) -> RecordedTrial {
        let epochs: Vec<RecordedEpoch> = training
            .iter()
            .zip(costs)
            .enumerate()
            .map(|(i, (loss, cost))| RecordedEpoch {
                observations: vec![Observation::new(i as u64 + 1, *loss).with_epoch(i as u64 + 1)],
                evaluations: Vec::new(),
                cost: *cost,
                spent: 1.0,
            })
            .collect();
        let planned = epochs.len();
        RecordedTrial {
            point: None,
            facts: Facts {
                steps_per_epoch: Some(1),
                epochs: Some(planned as u64),
                ..Facts::default()
            },
            available: BTreeSet::from([Quantity::Loss]),
            truth: epochs.last().map(|epoch| epoch.cost),
            epochs,
            planned,
        }
    }
}
