//! Percentile pruning.

use super::rank::{EarlyEnd, Rank, is_done, progress};
use super::{PruneReason, Pruner};
use crate::learning_curve::LearningCurve;
use crate::registry::fraction;
use serde::{Deserialize, Serialize};

/// Prunes a trial if more than `quantile` of the other trials were better at the same epoch.
///
/// With a quantile of 0.5 this is the [`Median`](super::Median) rule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Percentile {
    /// Fraction of the other trials that may be better.
    #[serde(deserialize_with = "fraction")]
    pub quantile: f64,
    /// Fraction of the planned epochs before the first decision.
    #[serde(deserialize_with = "fraction")]
    pub warmup: f64,
    /// Number of other trials required at the same epoch.
    pub n_startup_trials: usize,
}

impl Default for Percentile {
    fn default() -> Self {
        Self { quantile: 0.25, warmup: 0.2, n_startup_trials: 5 }
    }
}

impl Pruner for Percentile {
    fn name(&self) -> &'static str {
        "percentile"
    }

    fn prune(&self, trial: &LearningCurve, others: &[LearningCurve]) -> Option<PruneReason> {
        self.prune_as(self.name(), trial, others)
    }
}

impl Percentile {
    /// Decides on behalf of another pruner.
    pub(super) fn prune_as(
        &self,
        name: &str,
        trial: &LearningCurve,
        others: &[LearningCurve],
    ) -> Option<PruneReason> {
        if is_done(trial) || progress(trial) < self.warmup {
            return None;
        }
        let rank = Rank::new(trial, others, EarlyEnd::Excluded)?;
        let (better, count) = (rank.better(), rank.count());
        let share = better as f64 / count as f64;
        (count >= self.n_startup_trials && share > self.quantile).then(|| {
            PruneReason::at(name, trial, format!("worse than {better} of {count} trials")).with(
                "fraction of better trials",
                share,
                self.quantile,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::rank::tests::{curve, ended};
    use super::*;

    fn others() -> Vec<LearningCurve> {
        (0..8).map(|i| ended(&[f64::from(i); 10])).collect()
    }

    #[test]
    fn a_trial_above_the_quantile_is_pruned() {
        let reason = Percentile::default().prune(&curve(&[2.5, 2.5]), &others()).unwrap();
        assert_eq!(reason.by, "percentile");
        assert_eq!(reason.message, "Pruned at epoch 2 of 10: worse than 3 of 8 trials.");
        assert_eq!(Percentile::default().prune(&curve(&[1.5, 1.5]), &others()), None);
    }

    #[test]
    fn warmup_few_trials_and_done_trials_are_not_pruned() {
        let rule = Percentile::default();
        assert_eq!(rule.prune(&curve(&[9.0]), &others()), None);
        assert_eq!(rule.prune(&curve(&[9.0; 3]), &others()[..4]), None);
        assert_eq!(rule.prune(&curve(&[9.0; 10]), &others()), None);
    }

    #[test]
    fn nan_is_worse_than_every_finite_cost() {
        let rule = Percentile::default();
        assert!(rule.prune(&curve(&[1.0, f64::NAN]), &others()).is_some());
        let broken: Vec<LearningCurve> = (0..8).map(|_| ended(&[f64::NAN; 10])).collect();
        assert_eq!(rule.prune(&curve(&[1.0, 1.0]), &broken), None);
    }
}
