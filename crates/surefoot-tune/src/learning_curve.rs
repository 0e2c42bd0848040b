//! Learning curves: what trials report on their way.

use serde::{Deserialize, Serialize};

/// The curve of a trial: a cost after each of its epochs, usually epochs.
///
/// Lower is better, as in [`Outcome`](crate::Outcome). A cost may be NaN or infinite: that is what a
/// trial that has gone wrong reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LearningCurve {
    /// The number of the trial in its study.
    #[serde(default)]
    pub number: u64,
    /// The costs, the first epoch's first.
    pub costs: Vec<f64>,
    /// How many epochs there will be, if it runs to its end.
    pub planned: usize,
    /// Whether it is over, by itself or because it was stopped.
    pub over: bool,
}

impl LearningCurve {
    /// The lowest cost that is a finite number. An infinite one is never the best, in either direction.
    pub fn best(&self) -> Option<f64> {
        let costs = self.costs.iter().copied();
        costs.filter(|cost| cost.is_finite()).reduce(f64::min)
    }

    /// The last cost.
    pub fn last(&self) -> Option<f64> {
        self.costs.last().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_infinite_is_never_the_best() {
        let best = |costs: &[f64]| {
            let curve = LearningCurve { costs: costs.to_vec(), ..LearningCurve::default() };
            curve.best()
        };
        assert_eq!(best(&[3.0, f64::NEG_INFINITY, 1.0, f64::NAN]), Some(1.0));
        assert_eq!(best(&[f64::INFINITY, f64::NAN]), None);
    }
}
