//! Trials as they were recorded.

use crate::space::Point;
use std::collections::BTreeSet;
use surefoot_diagnose::{Evaluation, Facts, Observation, Quantity};

/// Recorded trials that belong together: a study, or the configurations tried on one task.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// What to call it.
    pub name: String,
    /// The trials in the order in which they were run.
    pub trials: Vec<RecordedTrial>,
}

/// A trial of which all is known that a pruner or an indicator may ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedTrial {
    /// What it was run with, if that was recorded.
    pub point: Option<Point>,
    /// What was known of the run.
    pub facts: Facts,
    /// What was recorded. Indicators that need more are not asked.
    pub available: BTreeSet<Quantity>,
    /// What happened, epoch by epoch.
    pub epochs: Vec<RecordedEpoch>,
    /// How many epochs were planned.
    pub planned: usize,
    /// The cost it truly ends with; `None` if it was not run to its end.
    pub truth: Option<f64>,
}

/// A epoch of a trial, usually an epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedEpoch {
    /// Its steps.
    pub observations: Vec<Observation>,
    /// What was evaluated at its end.
    pub evaluations: Vec<Evaluation>,
    /// What the trial reported after it. Lower is better.
    pub cost: f64,
    /// What it took, in whatever unit: seconds, steps.
    pub spent: f64,
}

impl RecordedTrial {
    /// A trial of which only losses are known: one of training and one cost a epoch. Each epoch
    /// takes as long as another, and the last cost is the truth.
    pub fn from_losses(training: &[f64], costs: &[f64]) -> RecordedTrial {
        let epochs: Vec<RecordedEpoch> = training
            .iter()
            .zip(costs)
            .enumerate()
            .map(|(i, (loss, cost))| RecordedEpoch {
                observations: vec![Observation::of_loss(i as u64 + 1, i as u64 + 1, *loss)],
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
