//! Percentile stop.

use super::standing::{Ended, Standing, is_done, progress};
use super::{PruneReason, Pruner};
use crate::learning_curve::LearningCurve;
use serde::{Deserialize, Serialize};

/// Ends a trial that is not among the best of those that came as far.
///
/// A trial goes on if at most `keep` of the others that have done as many epochs are better. With a
/// half of them this is the [`Median`](super::Median) rule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Percentile {
    /// The share of the others that may be better.
    pub keep: f64,
    /// The share of its epochs that a trial has done before it is judged.
    pub from: f64,
    /// How many others there have to be at the same epoch.
    pub trials: usize,
}

impl Default for Percentile {
    fn default() -> Self {
        Self { keep: 0.25, from: 0.2, trials: 5 }
    }
}

impl Pruner for Percentile {
    fn name(&self) -> &'static str {
        "percentile"
    }

    fn judge(&self, trial: &LearningCurve, others: &[LearningCurve]) -> Option<PruneReason> {
        self.judge_as(self.name(), trial, others)
    }
}

impl Percentile {
    /// Judges in the name of another.
    pub(super) fn judge_as(
        &self,
        name: &str,
        trial: &LearningCurve,
        others: &[LearningCurve],
    ) -> Option<PruneReason> {
        if is_done(trial) || progress(trial) < self.from {
            return None;
        }
        let standing = Standing::of(trial, others, Ended::LeftOut)?;
        let (better, count) = (standing.better(), standing.count());
        let share = better as f64 / count as f64;
        (count >= self.trials && share > self.keep).then(|| {
            let sentence = format!(
                "After {} of {} epochs, {better} of {count} trials were better.",
                trial.costs.len(),
                trial.planned
            );
            PruneReason::new(name, sentence).with("share that is better", share, self.keep)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::standing::tests::{curve, ended};
    use super::*;

    fn others() -> Vec<LearningCurve> {
        (0..8).map(|i| ended(&[f64::from(i); 10])).collect()
    }

    #[test]
    fn a_trial_beyond_its_share_is_stopped_and_told_why() {
        let reason = Percentile::default().judge(&curve(&[2.5, 2.5]), &others()).unwrap();
        assert_eq!(reason.by, "percentile");
        assert!(reason.sentence.contains("3 of 8"), "{}", reason.sentence);
        assert_eq!(Percentile::default().judge(&curve(&[1.5, 1.5]), &others()), None);
    }

    #[test]
    fn nothing_is_said_too_early_or_among_too_few_or_when_it_is_done() {
        let rule = Percentile::default();
        assert_eq!(rule.judge(&curve(&[9.0]), &others()), None);
        assert_eq!(rule.judge(&curve(&[9.0; 3]), &others()[..4]), None);
        assert_eq!(rule.judge(&curve(&[9.0; 10]), &others()), None);
    }

    #[test]
    fn a_trial_that_is_no_number_is_stopped_and_protects_nobody() {
        let rule = Percentile::default();
        assert!(rule.judge(&curve(&[1.0, f64::NAN]), &others()).is_some());
        let broken: Vec<LearningCurve> = (0..8).map(|_| ended(&[f64::NAN; 10])).collect();
        assert_eq!(rule.judge(&curve(&[1.0, 1.0]), &broken), None);
    }
}
