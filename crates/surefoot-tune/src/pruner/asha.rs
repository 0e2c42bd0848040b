//! Asynchronous successive halving.

use super::rank::{EarlyEnd, Rank, is_done};
use super::{PruneReason, Pruner};
use crate::learning_curve::LearningCurve;
use crate::registry::{above_one, positive_fraction};
use serde::{Deserialize, Serialize};

/// Asynchronous successive halving (Li et al., 2020) as a stopping rule.
///
/// The first rung is at the fraction `first_rung` of the planned epochs; each further rung is
/// `reduction_factor` times as far. At a rung, a trial continues only if it is among the best
/// `1 / reduction_factor` of the trials that have reached the rung so far. No trial waits for others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Asha {
    /// Position of the first rung, as a fraction of the planned epochs.
    #[serde(deserialize_with = "positive_fraction")]
    pub first_rung: f64,
    /// Ratio of trials, and of epochs, between two rungs.
    #[serde(deserialize_with = "above_one")]
    pub reduction_factor: f64,
}

impl Default for Asha {
    fn default() -> Self {
        Self { first_rung: 1.0 / 27.0, reduction_factor: 3.0 }
    }
}

impl Asha {
    fn is_rung(&self, epochs: usize, planned: usize) -> bool {
        let mut rung = (self.first_rung * planned as f64).max(1.0);
        // A factor of 1 or less would never terminate.
        let step = self.reduction_factor.max(1.1);
        while (rung.round() as usize) < epochs {
            rung *= step;
        }
        rung.round() as usize == epochs
    }

    /// Decides on behalf of another pruner.
    pub(super) fn prune_as(
        &self,
        name: &str,
        trial: &LearningCurve,
        others: &[LearningCurve],
    ) -> Option<PruneReason> {
        if is_done(trial) || !self.is_rung(trial.costs.len(), trial.planned) {
            return None;
        }
        let rank = Rank::new(trial, others, EarlyEnd::Excluded)?;
        let (better, reached) = (rank.better(), rank.count() + 1);
        let promoted = (reached as f64 / self.reduction_factor.max(1.0)).floor().max(1.0);
        // With fewer trials than the factor, all continue.
        let is_pruned = reached as f64 >= self.reduction_factor && better as f64 >= promoted;
        is_pruned.then(|| {
            let why = format!(
                "{better} of the {reached} trials at this rung are better, and the best {promoted} \
                 continue"
            );
            PruneReason::at(name, trial, why).with("better trials", better as f64, promoted)
        })
    }
}

impl Pruner for Asha {
    fn name(&self) -> &'static str {
        "asha"
    }

    fn prune(&self, trial: &LearningCurve, others: &[LearningCurve]) -> Option<PruneReason> {
        self.prune_as(self.name(), trial, others)
    }
}

#[cfg(test)]
mod tests {
    use super::super::rank::tests::{curve, ended};
    use super::*;

    const RULE: Asha = Asha { first_rung: 0.2, reduction_factor: 2.0 };

    #[test]
    fn rungs_are_spaced_geometrically() {
        let rungs: Vec<usize> = (1..=20).filter(|&at| RULE.is_rung(at, 10)).collect();
        assert_eq!(rungs, [2, 4, 8, 16]);
    }

    #[test]
    fn only_the_best_share_passes_a_rung() {
        let others = [ended(&[1.0; 10]), ended(&[2.0; 10]), ended(&[3.0; 2])];
        assert_eq!(RULE.prune(&curve(&[1.5; 2]), &others), None);
        assert!(RULE.prune(&curve(&[2.5; 2]), &others).is_some());
        assert_eq!(RULE.prune(&curve(&[2.5; 3]), &others), None, "no rung");
        assert_eq!(RULE.prune(&curve(&[9.0; 2]), &[]), None, "alone");
    }

    #[test]
    fn a_nan_trial_is_pruned() {
        let others = [ended(&[1.0; 10]), ended(&[f64::NAN; 10])];
        assert!(RULE.prune(&curve(&[1.0, f64::NAN]), &others).is_some());
    }
}
