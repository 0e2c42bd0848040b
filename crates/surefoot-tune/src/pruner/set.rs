//! Several pruners and the indicators together.

use super::standing::{Ended, Standing, is_done};
use super::{PruneReason, Pruner, PrunerConfig};
use crate::learning_curve::LearningCurve;
use surefoot_diagnose::{Finding, Severity};

/// By whom a trial is ended whose cost is no number.
pub const NON_FINITE: &str = "non_finite";

/// A trial that is done and among so many best goes on all the same: it is what the search is for, and
/// what is left of it is little.
const DONE_PROTECTED: usize = 10;

/// Ends a trial if any of its pruners does, or an indicator has found something, and protects those
/// that are among the best.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PrunerSet {
    /// The pruners.
    pub(super) pruners: Vec<PrunerConfig>,
    /// Whether a trial is ended whose cost is no number: all pruners take it for worse than all others, and `agv` looks for
    /// just that.
    pub(super) ends_non_finite: bool,
    /// A trial with fewer others ahead of it goes on whatever is said of it.
    pub(super) protect: usize,
}

impl PrunerSet {
    /// Whether to end the trial, after what it reported last and what the indicators have found in it
    /// since it was last asked.
    ///
    /// What is found in a protected trial is dismissed: it is among the best, so it cannot be bad.
    pub fn decide(
        &self,
        trial: &LearningCurve,
        others: &[LearningCurve],
        findings: &[Finding],
    ) -> Option<PruneReason> {
        if is_done(trial) {
            return None;
        }
        let problem = findings.iter().find(|f| f.severity == Severity::Problem);
        let broken = trial.last().filter(|cost| !cost.is_finite());
        if let Some(cost) = broken.filter(|_| self.ends_non_finite) {
            let plain = || {
                PruneReason::new(NON_FINITE, "What it reported last is no number.")
                    .with("cost", cost, None)
            };
            return Some(problem.map_or_else(plain, PruneReason::from));
        }
        if self.is_protected(trial, others) {
            return None;
        }
        // What is bad is not done.
        let done = || {
            let done = findings.first()?;
            (!self.is_among_best(trial, others, DONE_PROTECTED)).then_some(done)
        };
        let found = problem.or_else(done).map(PruneReason::from);
        found.or_else(|| {
            let mut pruners = self.pruners.iter();
            pruners.find_map(|pruner| pruner.judge(trial, others))
        })
    }

    /// Whether the trial is among the best after as many epochs, or has been better than any other ever was: that is
    /// its result so far, and would be lost. One that has reported nothing is not.
    pub fn is_protected(&self, trial: &LearningCurve, others: &[LearningCurve]) -> bool {
        self.protect > 0
            && (self.is_among_best(trial, others, self.protect) || is_ahead(trial, others))
    }

    fn is_among_best(&self, trial: &LearningCurve, others: &[LearningCurve], count: usize) -> bool {
        let standing = Standing::of(trial, others, Ended::AtTheirBest);
        standing.is_some_and(|standing| standing.better() < count)
    }
}

/// Whether a trial has been better than all others have been so far.
fn is_ahead(trial: &LearningCurve, others: &[LearningCurve]) -> bool {
    let is_worse = |best: f64| others.iter().all(|o| o.best().is_none_or(|o| best < o));
    trial.best().is_some_and(is_worse)
}

#[cfg(test)]
mod tests {
    use super::super::standing::tests::{curve, ended};
    use super::super::{Median, Percentile};
    use super::*;
    use surefoot_diagnose::Problem;

    fn others() -> Vec<LearningCurve> {
        (1..=9).map(|i| ended(&[f64::from(i); 10])).collect()
    }

    fn strict(protect: usize) -> PrunerSet {
        let rule = Percentile { keep: 0.0, ..Percentile::default() };
        let pruners = vec![PrunerConfig::Median(Median::default()), PrunerConfig::Percentile(rule)];
        PrunerSet { pruners, ends_non_finite: true, protect }
    }

    fn watched(protect: usize) -> PrunerSet {
        PrunerSet { ends_non_finite: true, protect, ..PrunerSet::default() }
    }

    #[test]
    fn any_of_the_pruners_may_end_a_trial() {
        let by = |cost: f64| {
            let reason = strict(0).decide(&curve(&[cost; 3]), &others(), &[]);
            reason.map(|reason| reason.by)
        };
        assert_eq!(by(8.5).as_deref(), Some("median"));
        assert_eq!(by(2.5).as_deref(), Some("percentile"));
        assert_eq!(by(0.5), None);
    }

    #[test]
    fn the_best_are_protected_from_pruners_and_indicators() {
        let found = [Finding::new(Problem::ERG, 3, "The gradient dies away.")];
        let decide = |cost: f64, protect: usize| {
            let trial = curve(&[cost; 3]);
            strict(protect).decide(&trial, &others(), &found).map(|reason| reason.by)
        };
        assert_eq!(decide(2.5, 3), None);
        assert_eq!(decide(3.5, 3).as_deref(), Some("erg"));
        assert_eq!(decide(2.5, 0).as_deref(), Some("erg"));
    }

    #[test]
    fn a_trial_that_was_better_than_any_other_is_protected() {
        let decide = |costs: &[f64], protect: usize| {
            let reason = strict(protect).decide(&curve(costs), &others(), &[]);
            reason.map(|reason| reason.by)
        };
        assert_eq!(decide(&[0.5, 8.5, 8.5], 3), None);
        assert_eq!(decide(&[1.0, 8.5, 8.5], 3).as_deref(), Some("median"));
        assert_eq!(decide(&[0.5, 8.5, 8.5], 0).as_deref(), Some("median"));
    }

    #[test]
    fn a_trial_that_is_done_goes_on_among_the_ten_best() {
        let others: Vec<LearningCurve> = (1..=20).map(|i| ended(&[f64::from(i); 10])).collect();
        let done = [Finding::new(Problem::NMG, 3, "There is no more to gain.").warning()];
        let decide = |cost: f64| watched(3).decide(&curve(&[cost; 8]), &others, &done);
        assert_eq!(decide(9.5), None);
        assert!(decide(10.5).is_some_and(|reason| reason.counts));
    }

    #[test]
    fn what_is_no_number_is_not_protected() {
        let broken: Vec<LearningCurve> = (0..3).map(|_| ended(&[f64::NAN; 10])).collect();
        for cost in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let reason = strict(3).decide(&curve(&[1.0, cost]), &broken, &[]);
            assert_eq!(reason.map(|reason| reason.by).as_deref(), Some(NON_FINITE));
            // Indicators speak once, and what they said of one that was protected is forgotten.
            let reason = watched(3).decide(&curve(&[1.0, cost]), &broken, &[]);
            assert_eq!(reason.map(|reason| reason.by).as_deref(), Some(NON_FINITE));
        }
    }

    #[test]
    fn without_rules_nothing_ends() {
        let nothing = PrunerSet::default();
        assert_eq!(nothing.decide(&curve(&[f64::NAN]), &others(), &[]), None);
        assert_eq!(nothing.decide(&curve(&[9.0; 5]), &others(), &[]), None);
    }

    #[test]
    fn a_trial_without_a_report_is_judged_by_what_is_found() {
        let found = [Finding::new(Problem::AGV, 3, "The loss is no number any more.")];
        let reason = strict(3).decide(&curve(&[]), &others(), &found);
        assert_eq!(reason.map(|reason| reason.by).as_deref(), Some("agv"));
    }
}
