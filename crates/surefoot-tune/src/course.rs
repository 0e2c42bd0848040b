//! Learning curves: what trials report on their way.

use serde::{Deserialize, Serialize};

/// The course of a trial: a cost after each of its stretches, usually epochs.
///
/// Lower is better, as in [`Outcome`](crate::Outcome). A cost may be NaN or infinite: that is what a
/// trial that has gone wrong reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// The number of the trial in its study.
    #[serde(default)]
    pub number: u64,
    /// The costs, the first stretch's first.
    pub costs: Vec<f64>,
    /// How many stretches there will be, if it runs to its end.
    pub planned: usize,
    /// Whether it is over, by itself or because it was stopped.
    pub over: bool,
}

impl Course {
    /// The lowest cost that is a number, up to and including stretch `len` (from 1).
    pub fn best_until(&self, len: usize) -> Option<f64> {
        let costs = self.costs.iter().take(len).copied();
        costs.filter(|cost| !cost.is_nan()).reduce(f64::min)
    }

    /// The lowest cost that is a number.
    pub fn best(&self) -> Option<f64> {
        self.best_until(self.costs.len())
    }

    /// The last cost.
    pub fn last(&self) -> Option<f64> {
        self.costs.last().copied()
    }
}
