//! Learning curves.

use serde::{Deserialize, Serialize};

/// The costs that a trial has reported, usually one per epoch.
///
/// Lower is better. A cost may be NaN or infinite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LearningCurve {
    /// Trial number in the study.
    #[serde(default)]
    pub number: u64,
    /// Costs by epoch.
    pub costs: Vec<f64>,
    /// Planned number of epochs.
    pub planned: usize,
    /// True once the trial has ended.
    pub over: bool,
}

impl LearningCurve {
    /// The lowest finite cost.
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
    fn non_finite_costs_are_never_the_best() {
        let best = |costs: &[f64]| {
            let curve = LearningCurve { costs: costs.to_vec(), ..LearningCurve::default() };
            curve.best()
        };
        assert_eq!(best(&[3.0, f64::NEG_INFINITY, 1.0, f64::NAN]), Some(1.0));
        assert_eq!(best(&[f64::INFINITY, f64::NAN]), None);
    }
}
