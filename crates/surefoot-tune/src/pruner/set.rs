//! All pruners and indicators of a study together.

use super::rank::{EarlyEnd, Rank, chance_level, is_done};
use super::{PruneReason, PrunerConfig};
use crate::learning_curve::LearningCurve;
use surefoot_diagnose::{Finding, Severity};

/// The reason id for a trial whose cost is NaN or infinite.
pub const NON_FINITE: &str = "non_finite";

/// A converged trial among this many best is not stopped: little of it is left to save.
const CONVERGED_PROTECTED: usize = 10;

/// Prunes a trial if any pruner or indicator says so, except the protected best trials.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PrunerSet {
    pub(super) pruners: Vec<PrunerConfig>,
    /// True if a NaN or infinite cost ends a trial: with any pruner, or with the `agv` indicator.
    pub(super) prunes_non_finite: bool,
    /// Number of best trials that are never pruned.
    pub(super) protect: usize,
}

impl PrunerSet {
    /// Returns the reason to prune the trial after its last report, given the `new` findings of the
    /// indicators and the `earlier` ones. Only new findings prune a trial, and none prunes a protected
    /// one. If a pruner does, and there is a finding, the finding is the reason.
    pub fn decide(
        &self,
        trial: &LearningCurve,
        others: &[LearningCurve],
        earlier: &[Finding],
        new: &[Finding],
    ) -> Option<PruneReason> {
        if is_done(trial) {
            return None;
        }
        let is_problem = |finding: &&Finding| finding.severity == Severity::Problem;
        let problem = new.iter().find(is_problem);
        let broken = trial.last().filter(|cost| !cost.is_finite());
        if let Some(cost) = broken.filter(|_| self.prunes_non_finite) {
            let plain = || {
                let kind = if cost.is_nan() { "NaN" } else { "infinite" };
                PruneReason::at(NON_FINITE, trial, format!("the reported value is {kind}"))
                    .with("cost", cost, None)
            };
            let known = problem.or_else(|| earlier.iter().rfind(is_problem));
            return Some(known.map_or_else(plain, PruneReason::from));
        }
        if self.is_protected(trial, others) {
            return None;
        }
        // Without a problem, the findings are warnings: the trial has converged.
        let converged = || {
            let finding = new.first()?;
            (!self.is_among_best(trial, others, CONVERGED_PROTECTED)).then_some(finding)
        };
        let found = problem.or_else(converged).map(PruneReason::from);
        found.or_else(|| {
            let reason = self.pruners.iter().find_map(|pruner| pruner.prune(trial, others))?;
            if self.protect > 0 && are_at_chance(others) {
                return None;
            }
            Some(earlier.iter().rfind(is_problem).map_or(reason, PruneReason::from))
        })
    }

    /// True if the trial is among the best at its epoch, or holds the best cost of all trials.
    pub fn is_protected(&self, trial: &LearningCurve, others: &[LearningCurve]) -> bool {
        self.protect > 0
            && (self.is_among_best(trial, others, self.protect) || holds_best(trial, others))
    }

    fn is_among_best(&self, trial: &LearningCurve, others: &[LearningCurve], count: usize) -> bool {
        Rank::new(trial, others, EarlyEnd::AtBest).is_some_and(|rank| rank.better() < count)
    }
}

/// True if no trial is better than chance, so that a comparison with them says nothing.
fn are_at_chance(others: &[LearningCurve]) -> bool {
    let chance = chance_level(others);
    chance.is_finite() && others.iter().all(|other| other.best().is_none_or(|best| best >= chance))
}

fn holds_best(trial: &LearningCurve, others: &[LearningCurve]) -> bool {
    let is_best = |best: f64| others.iter().all(|o| o.best().is_none_or(|o| best < o));
    trial.best().is_some_and(is_best)
}

#[cfg(test)]
mod tests {
    use super::super::rank::tests::{curve, ended};
    use super::super::{Median, Percentile};
    use super::*;
    use surefoot_diagnose::Problem;

    fn others() -> Vec<LearningCurve> {
        let costs = |i: i32| (0..10).map(move |t| f64::from(i) + 0.01 * f64::from(9 - t));
        (1..=9).map(|i| ended(&costs(i).collect::<Vec<_>>())).collect()
    }

    fn strict(protect: usize) -> PrunerSet {
        let rule = Percentile { quantile: 0.0, ..Percentile::default() };
        let pruners = vec![PrunerConfig::new(Median::default()), PrunerConfig::new(rule)];
        PrunerSet { pruners, prunes_non_finite: true, protect }
    }

    fn watched(protect: usize) -> PrunerSet {
        PrunerSet { prunes_non_finite: true, protect, ..PrunerSet::default() }
    }

    #[test]
    fn any_pruner_may_prune_a_trial() {
        let by = |cost: f64| {
            let reason = strict(0).decide(&curve(&[cost; 3]), &others(), &[], &[]);
            reason.map(|reason| reason.by)
        };
        assert_eq!(by(8.5).as_deref(), Some("median"));
        assert_eq!(by(2.5).as_deref(), Some("percentile"));
        assert_eq!(by(0.5), None);
    }

    #[test]
    fn the_best_are_protected_from_pruners_and_indicators() {
        let found = [Finding::new(Problem::ERG, 3, "The gradient vanishes.")];
        let decide = |cost: f64, protect: usize| {
            let trial = curve(&[cost; 3]);
            strict(protect).decide(&trial, &others(), &[], &found).map(|reason| reason.by)
        };
        assert_eq!(decide(2.5, 3), None);
        assert_eq!(decide(3.5, 3).as_deref(), Some("erg"));
        assert_eq!(decide(2.5, 0).as_deref(), Some("erg"));
    }

    #[test]
    fn an_earlier_finding_is_the_reason() {
        let found = [Finding::new(Problem::ERG, 1, "The gradient vanishes.")];
        let decide = |cost: f64| strict(3).decide(&curve(&[cost; 3]), &others(), &found, &[]);
        assert_eq!(decide(8.5).map(|reason| reason.by).as_deref(), Some("erg"));
        assert_eq!(decide(2.5), None, "an earlier finding alone does not prune");
    }

    #[test]
    fn trials_at_chance_are_no_reason() {
        let flat: Vec<LearningCurve> = (0..9).map(|_| ended(&[-0.75; 10])).collect();
        let trial = curve(&[-0.25, -0.25, -0.25]);
        assert_eq!(strict(3).decide(&trial, &flat, &[], &[]), None);
        assert!(strict(0).decide(&trial, &flat, &[], &[]).is_some(), "the rules as published");
    }

    #[test]
    fn the_leader_is_never_pruned() {
        let decide = |costs: &[f64], protect: usize| {
            let reason = strict(protect).decide(&curve(costs), &others(), &[], &[]);
            reason.map(|reason| reason.by)
        };
        assert_eq!(decide(&[0.5, 8.5, 8.5], 3), None);
        assert_eq!(decide(&[1.0, 8.5, 8.5], 3).as_deref(), Some("median"));
        assert_eq!(decide(&[0.5, 8.5, 8.5], 0).as_deref(), Some("median"));
    }

    #[test]
    fn a_converged_trial_among_the_ten_best_continues() {
        let others: Vec<LearningCurve> = (1..=20).map(|i| ended(&[f64::from(i); 10])).collect();
        let done = [Finding::new(Problem::NMG, 3, "The loss has converged.").warning()];
        let decide = |cost: f64| watched(3).decide(&curve(&[cost; 8]), &others, &[], &done);
        assert_eq!(decide(9.5), None);
        assert!(decide(10.5).is_some_and(|reason| reason.counts));
    }

    #[test]
    fn non_finite_trials_are_not_protected() {
        let broken: Vec<LearningCurve> = (0..3).map(|_| ended(&[f64::NAN; 10])).collect();
        for cost in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let reason = strict(3).decide(&curve(&[1.0, cost]), &broken, &[], &[]);
            assert_eq!(reason.map(|reason| reason.by).as_deref(), Some(NON_FINITE));
            // Also without a finding: indicators report only once, and protected trials drop it.
            let reason = watched(3).decide(&curve(&[1.0, cost]), &broken, &[], &[]);
            assert_eq!(reason.map(|reason| reason.by).as_deref(), Some(NON_FINITE));
        }
    }

    #[test]
    fn without_pruners_no_trial_is_pruned() {
        let nothing = PrunerSet::default();
        assert_eq!(nothing.decide(&curve(&[f64::NAN]), &others(), &[], &[]), None);
        assert_eq!(nothing.decide(&curve(&[9.0; 5]), &others(), &[], &[]), None);
    }

    #[test]
    fn findings_prune_a_trial_without_reports() {
        let found = [Finding::new(Problem::AGV, 3, "The loss is NaN.")];
        let reason = strict(3).decide(&curve(&[]), &others(), &[], &found);
        assert_eq!(reason.map(|reason| reason.by).as_deref(), Some("agv"));
    }
}
