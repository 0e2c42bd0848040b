//! Median stop.

use super::percentile::Percentile;
use super::{PruneReason, Pruner};
use crate::learning_curve::LearningCurve;
use serde::{Deserialize, Serialize};

/// Ends a trial that is worse than the median of those that came as far.
///
/// The rule that most use, and the mark for the others: the trial's last cost, against the costs of the
/// other trials after as many epochs, those that were stopped before left out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Median {
    /// The share of its epochs that a trial has done before it is judged.
    pub from: f64,
    /// How many others there have to be at the same epoch.
    pub trials: usize,
}

impl Default for Median {
    fn default() -> Self {
        Self { from: 0.2, trials: 5 }
    }
}

impl Pruner for Median {
    fn name(&self) -> &'static str {
        "median"
    }

    fn judge(&self, trial: &LearningCurve, others: &[LearningCurve]) -> Option<PruneReason> {
        let rule = Percentile { keep: 0.5, from: self.from, trials: self.trials };
        rule.judge_as(self.name(), trial, others)
    }
}

#[cfg(test)]
mod tests {
    use super::super::standing::tests::{curve, ended};
    use super::*;

    #[test]
    fn a_trial_is_stopped_above_the_median_and_not_at_it() {
        let others: Vec<LearningCurve> = (1..=5).map(|i| ended(&[f64::from(i); 10])).collect();
        let judge = |cost| Median::default().judge(&curve(&[0.0, cost]), &others);
        assert_eq!(judge(3.0), None);
        assert_eq!(judge(3.1).map(|reason| reason.by), Some("median".to_owned()));
    }
}
