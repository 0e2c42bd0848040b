//! Hyperband.

use super::asha::Asha;
use super::{PruneReason, Pruner};
use crate::learning_curve::LearningCurve;
use libm::{log, pow};
use serde::{Deserialize, Serialize};

/// Hyperband (Li et al., 2018): several brackets of successive halving, from one that halves early and
/// often to one that never does. It hedges against trials that start late.
///
/// The number of a trial says which bracket it belongs to; as many go to each as in the original. Within
/// a bracket the rule is that of [`Asha`], so that nobody waits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hyperband {
    /// The share of the epochs at which the first rung of the first bracket is.
    pub first: f64,
    /// How many times fewer trials go on from a rung, and how many times longer.
    pub reduction: f64,
}

impl Default for Hyperband {
    fn default() -> Self {
        let Asha { first, reduction } = Asha::default();
        Self { first, reduction }
    }
}

impl Hyperband {
    /// How many rungs the bracket of a trial has: the most for the first, none for the last.
    fn bracket(&self, number: u64) -> u32 {
        let reduction = self.reduction.max(1.1);
        let first = self.first.clamp(f64::MIN_POSITIVE, 1.0);
        // An exact power must not be lost to rounding.
        let most = (log(1.0 / first) / log(reduction) + 1e-9).floor().min(60.0) as u32;
        let size = |rungs: u32| {
            let share = f64::from(most + 1) / f64::from(rungs + 1);
            (share * pow(reduction, f64::from(rungs))).ceil().min(1e15) as u64
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

    fn judge(&self, trial: &LearningCurve, others: &[LearningCurve]) -> Option<PruneReason> {
        let bracket = self.bracket(trial.number);
        let rule = Asha {
            first: pow(self.reduction.max(1.1), -f64::from(bracket)),
            reduction: self.reduction,
        };
        let peers: Vec<LearningCurve> =
            others.iter().filter(|other| self.bracket(other.number) == bracket).cloned().collect();
        rule.judge_as(self.name(), trial, &peers)
    }
}

#[cfg(test)]
mod tests {
    use super::super::standing::tests::{curve, ended};
    use super::*;

    #[test]
    fn brackets_have_the_sizes_of_the_original() {
        let rule = Hyperband::default();
        let mut sizes = [0; 4];
        for number in 0..49 {
            sizes[rule.bracket(number) as usize] += 1;
        }
        assert_eq!(sizes, [4, 6, 12, 27]);
        assert_eq!(rule.bracket(0), 3);
        assert_eq!(rule.bracket(49), 3);
    }

    #[test]
    fn a_trial_is_compared_within_its_bracket() {
        let rule = Hyperband::default();
        let numbered = |number, curve: LearningCurve| LearningCurve { number, ..curve };
        let peers: Vec<LearningCurve> = (0..3).map(|i| numbered(i, ended(&[1.0; 10]))).collect();
        let bad = curve(&[9.0]);
        assert!(rule.judge(&numbered(3, bad.clone()), &peers).is_some());
        assert_eq!(rule.judge(&numbered(48, bad), &peers), None, "it never halves");
    }
}
