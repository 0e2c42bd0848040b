//! Asynchronous successive halving.

use super::standing::{Ended, Standing, is_done};
use super::{PruneReason, Pruner};
use crate::learning_curve::LearningCurve;
use serde::{Deserialize, Serialize};

/// Asynchronous successive halving (Li et al., 2020) as a stopping rule: at each rung a trial goes on
/// only if it is among the best one in `reduction` of those that came to that rung.
///
/// Rungs are at `first` of the epochs, then at `reduction` times as many, and so on. Nobody waits:
/// whoever comes to a rung is compared with those that came before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Asha {
    /// The share of the epochs at which the first rung is.
    pub first: f64,
    /// How many times fewer trials go on from a rung, and how many times longer.
    pub reduction: f64,
}

impl Default for Asha {
    fn default() -> Self {
        Self { first: 1.0 / 27.0, reduction: 3.0 }
    }
}

impl Asha {
    /// Whether there is a rung after so many epochs of a trial of `planned`.
    pub(super) fn is_rung(&self, epochs: usize, planned: usize) -> bool {
        let mut rung = (self.first * planned as f64).max(1.0);
        // A reduction of one or less would have rungs without end.
        let step = self.reduction.max(1.1);
        while (rung.round() as usize) < epochs {
            rung *= step;
        }
        rung.round() as usize == epochs
    }

    /// Judges in the name of another.
    pub(super) fn judge_as(
        &self,
        name: &str,
        trial: &LearningCurve,
        others: &[LearningCurve],
    ) -> Option<PruneReason> {
        let epochs = trial.costs.len();
        if is_done(trial) || !self.is_rung(epochs, trial.planned) {
            return None;
        }
        let standing = Standing::of(trial, others, Ended::LeftOut)?;
        let (better, came) = (standing.better(), standing.count() + 1);
        let promoted = (came as f64 / self.reduction.max(1.0)).floor().max(1.0);
        // Among too few to take one of `reduction`, all go on.
        let stopped = came as f64 >= self.reduction && better as f64 >= promoted;
        stopped.then(|| {
            let sentence = format!(
                "Of {came} trials that came to the rung at {epochs} epochs, {better} were \
                 better; {promoted} go on."
            );
            PruneReason::new(name, sentence).with("trials that are better", better as f64, promoted)
        })
    }
}

impl Pruner for Asha {
    fn name(&self) -> &'static str {
        "asha"
    }

    fn judge(&self, trial: &LearningCurve, others: &[LearningCurve]) -> Option<PruneReason> {
        self.judge_as(self.name(), trial, others)
    }
}

#[cfg(test)]
mod tests {
    use super::super::standing::tests::{curve, ended};
    use super::*;

    const RULE: Asha = Asha { first: 0.2, reduction: 2.0 };

    #[test]
    fn rungs_lie_further_and_further_apart() {
        let rungs: Vec<usize> = (1..=20).filter(|&at| RULE.is_rung(at, 10)).collect();
        assert_eq!(rungs, [2, 4, 8, 16]);
    }

    #[test]
    fn at_a_rung_one_in_so_many_goes_on() {
        let others = [ended(&[1.0; 10]), ended(&[2.0; 10]), ended(&[3.0; 2])];
        assert_eq!(RULE.judge(&curve(&[1.5; 2]), &others), None);
        assert!(RULE.judge(&curve(&[2.5; 2]), &others).is_some());
        assert_eq!(RULE.judge(&curve(&[2.5; 3]), &others), None, "no rung");
        assert_eq!(RULE.judge(&curve(&[9.0; 2]), &[]), None, "alone");
    }

    #[test]
    fn a_trial_that_is_no_number_does_not_go_on() {
        let others = [ended(&[1.0; 10]), ended(&[f64::NAN; 10])];
        assert!(RULE.judge(&curve(&[1.0, f64::NAN]), &others).is_some());
    }
}
