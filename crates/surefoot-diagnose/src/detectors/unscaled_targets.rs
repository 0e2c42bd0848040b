//! Unscaled targets.

use super::conditions;
use crate::detector::{Context, Detector, Quantity};
use crate::facts::TaskKind;
use crate::finding::{Finding, Problem};
use crate::measure::Measure;

/// The targets of a regression are far from zero or widely spread, and the model does not learn them.
///
/// An untrained output is about 0 with a spread of about 1. Targets of hundreds or thousands start with
/// an enormous loss: the gradients are large, or the whole training is spent on reaching the mean.
/// Targets that are learned all the same are no problem.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnscaledTargets;

/// Largest absolute target that needs no scaling.
const LARGEST: f64 = 100.0;
/// Skill of a model that learns its targets, with the default Θ.
const LEARNS: f64 = 0.1;
/// Blocks after which a model has learned something, with the default α.
const AFTER: usize = 20;

impl Detector for UnscaledTargets {
    fn problem(&self) -> Problem {
        Problem::UNSCALED_TARGETS
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Loss, Quantity::Model]
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        let facts = context.facts;
        let [low, high] =
            facts.target_range.filter(|_| facts.task == Some(TaskKind::Regression))?;
        let largest = low.abs().max(high.abs());
        let skill = context.curve.recent_skill(4)?;
        let learns = context.thresholds.expected_skill(LEARNS);
        let early = !context.has_run_for(conditions::share_of(context, AFTER));
        if largest <= LARGEST || early || skill >= learns {
            return None;
        }
        let message = format!(
            "The targets range from {} to {}, far from an untrained output, and the model has not \
             learned them.",
            crate::number::rough(low),
            crate::number::rough(high)
        );
        Some(
            Finding::new(self.problem(), context.step(), message)
                .with(Measure::LargestTarget, largest, LARGEST)
                .with(Measure::Skill, skill, learns),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, facts};
    use super::*;
    use crate::facts::Facts;

    fn regression(range: [f64; 2]) -> Facts {
        let task = Some(TaskKind::Regression);
        Facts { task, classes: None, target_range: Some(range), ..facts() }
    }

    fn found(range: [f64; 2], skill: impl Fn(f64) -> f64) -> bool {
        Course::new(regression(range)).skill(skill).run(UnscaledTargets).is_some()
    }

    #[test]
    fn large_targets_that_are_not_learned_are_found() {
        assert!(found([900.0, 1100.0], |_| 0.0));
        assert!(!found([-1.0, 1.0], |_| 0.0));
    }

    #[test]
    fn large_targets_that_are_learned_are_no_problem() {
        assert!(!found([0.0, 1000.0], |progress| 0.2 + progress));
    }
}
