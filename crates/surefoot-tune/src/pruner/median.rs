//! Median pruning.

use super::percentile::Percentile;
use super::{PruneReason, Pruner};
use crate::learning_curve::LearningCurve;
use crate::registry::fraction;
use serde::{Deserialize, Serialize};

/// Prunes a trial whose last cost is worse than the median of the other trials at the same epoch.
///
/// Trials that ended before that epoch are ignored, as in Optuna's `MedianPruner`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Median {
    /// Fraction of the planned epochs before the first decision.
    #[serde(deserialize_with = "fraction")]
    pub warmup: f64,
    /// Number of other trials required at the same epoch.
    pub n_startup_trials: usize,
}

impl Default for Median {
    fn default() -> Self {
        Self { warmup: 0.2, n_startup_trials: 5 }
    }
}

impl Pruner for Median {
    fn name(&self) -> &'static str {
        "median"
    }

    fn prune(&self, trial: &LearningCurve, others: &[LearningCurve]) -> Option<PruneReason> {
        let Median { warmup, n_startup_trials } = *self;
        let rule = Percentile { quantile: 0.5, warmup, n_startup_trials };
        rule.prune_as(self.name(), trial, others)
    }
}

#[cfg(test)]
mod tests {
    use super::super::rank::tests::{curve, ended};
    use super::*;

    #[test]
    fn a_trial_above_the_median_is_pruned() {
        let others: Vec<LearningCurve> = (1..=5).map(|i| ended(&[f64::from(i); 10])).collect();
        let prune = |cost| Median::default().prune(&curve(&[0.0, cost]), &others);
        assert_eq!(prune(3.0), None);
        assert_eq!(prune(3.1).map(|reason| reason.by), Some("median".to_owned()));
    }
}
