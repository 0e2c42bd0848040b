//! Hyperband.

use super::asha::Asha;
use super::{PruneReason, Pruner};
use crate::learning_curve::LearningCurve;
use crate::registry::{above_one, positive_fraction};
use libm::{log, pow};
use serde::{Deserialize, Serialize};

/// Hyperband (Li et al., 2018): several brackets of successive halving, from one that prunes early and
/// often to one that never prunes. The later brackets protect trials that improve late.
///
/// The trial number selects the bracket, with the bracket sizes of the paper. Within a bracket the
/// rule is [`Asha`], so no trial waits for others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hyperband {
    /// Position of the first rung of the first bracket, as a fraction of the planned epochs.
    #[serde(deserialize_with = "positive_fraction")]
    pub first_rung: f64,
    /// Ratio of trials, and of epochs, between two rungs.
    #[serde(deserialize_with = "above_one")]
    pub reduction_factor: f64,
}

impl Default for Hyperband {
    fn default() -> Self {
        let Asha { first_rung, reduction_factor } = Asha::default();
        Self { first_rung, reduction_factor }
    }
}

impl Hyperband {
    /// Number of rungs in the bracket of a trial: most for the first bracket, none for the last.
    fn rungs(&self, number: u64) -> u32 {
        let factor = self.reduction_factor.max(1.1);
        let first = self.first_rung.clamp(f64::MIN_POSITIVE, 1.0);
        // The epsilon keeps an exact power from being rounded down.
        let most = (log(1.0 / first) / log(factor) + 1e-9).floor().min(60.0) as u32;
        let size = |rungs: u32| {
            let share = f64::from(most + 1) / f64::from(rungs + 1);
            (share * pow(factor, f64::from(rungs))).ceil().min(1e15) as u64
        };
        let mut place = number % (0..=most).map(size).sum::<u64>();
        for rungs in (0..=most).rev() {
            match place.checked_sub(size(rungs)) {
                Some(left) => place = left,
                None => return rungs,
            }
        }
        0
    }
}

impl Pruner for Hyperband {
    fn name(&self) -> &'static str {
        "hyperband"
    }

    fn prune(&self, trial: &LearningCurve, others: &[LearningCurve]) -> Option<PruneReason> {
        let rungs = self.rungs(trial.number);
        let rule = Asha {
            first_rung: pow(self.reduction_factor.max(1.1), -f64::from(rungs)),
            reduction_factor: self.reduction_factor,
        };
        let peers = others.iter().filter(|other| self.rungs(other.number) == rungs);
        rule.prune_as(self.name(), trial, &peers.cloned().collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::super::rank::tests::{curve, ended};
    use super::*;

    #[test]
    fn bracket_sizes_match_the_paper() {
        let rule = Hyperband::default();
        let mut sizes = [0; 4];
        for number in 0..49 {
            sizes[rule.rungs(number) as usize] += 1;
        }
        assert_eq!(sizes, [4, 6, 12, 27]);
        assert_eq!(rule.rungs(0), 3);
        assert_eq!(rule.rungs(49), 3);
    }

    #[test]
    fn a_trial_is_compared_within_its_bracket() {
        let rule = Hyperband::default();
        let numbered = |number, curve: LearningCurve| LearningCurve { number, ..curve };
        let peers: Vec<LearningCurve> = (0..3).map(|i| numbered(i, ended(&[1.0; 10]))).collect();
        let bad = curve(&[9.0]);
        assert!(rule.prune(&numbered(3, bad.clone()), &peers).is_some());
        assert_eq!(rule.prune(&numbered(48, bad), &peers), None, "the last bracket never prunes");
    }
}
