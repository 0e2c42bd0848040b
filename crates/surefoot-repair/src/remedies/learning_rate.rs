//! `learning_rate` (S6): learning rate.

use crate::remedy::{Change, Remedy, RemedyContext};
use surefoot_diagnose::Problem;
use surefoot_plan::{Algorithm, Plan, Schedule};

/// `learning_rate` (S6): the default rate of the optimizer first (0.01 for gradient descent, 0.001 for adaptive
/// ones), then ten times more for a run that is slow, or ten times less for one that is restless.
/// A schedule that takes the rate away goes.
#[derive(Clone, Copy, Debug)]
pub struct LearningRate;

/// The rate that an optimizer's authors suggest.
pub(super) fn default_rate(algorithm: &Algorithm) -> f64 {
    match algorithm {
        Algorithm::Sgd { .. } => 0.01,
        // Its rate is a factor on steps that it finds itself.
        Algorithm::Adadelta { .. } => 1.0,
        Algorithm::Adagrad { .. } => 0.01,
        _ => 0.001,
    }
}

impl Remedy for LearningRate {
    fn id(&self) -> &'static str {
        "learning_rate"
    }

    fn title(&self) -> &'static str {
        "adjust the learning rate"
    }

    fn apply(
        &self,
        plan: &Plan,
        context: &RemedyContext<'_>,
        variant: usize,
    ) -> Result<Change, String> {
        let slow = context.finding.problem == Problem::SLOW_CONVERGENCE
            || context.finding.problem == Problem::VANISHING_GRADIENT;
        let given = plan.training.optimizer.learning_rate;
        let default = default_rate(&plan.training.optimizer.algorithm);
        let factor = if slow { 10.0 } else { 0.1 };
        // The default is a step in the right direction, or there is none.
        let towards = if slow { default > given } else { default < given };
        let start = if towards { default } else { given * factor };
        let unscheduled = slow && plan.training.schedule != Schedule::default();
        let rate = match (variant, unscheduled) {
            // A rate that was sound until it was taken away.
            (0, true) => given.max(default),
            (variant, _) if variant < 3 => start * f64::powi(factor, variant as i32),
            _ => return Err("all rates were tried".to_owned()),
        };
        let mut changed = plan.clone();
        changed.training.optimizer.learning_rate = tidy(rate);
        if slow {
            changed.training.schedule = Schedule::default();
        }
        let message = if changed.training.optimizer.learning_rate == given {
            "Keeps the learning rate constant instead of letting it decay.".to_owned()
        } else {
            format!(
                "Sets the learning rate to {} instead of {}.",
                changed.training.optimizer.learning_rate, given
            )
        };
        Change::new(plan, changed, message)
    }
}

/// The number without the last digits that a multiplication leaves.
fn tidy(rate: f64) -> f64 {
    format!("{rate:.3e}").parse().unwrap_or(rate)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, finding, plan};
    use super::*;
    use surefoot_diagnose::Facts;

    fn rates(facts: &Facts, problem: Problem, rate: f64) -> Vec<f64> {
        let finding = finding(problem);
        let context = RemedyContext { finding: &finding, facts };
        let mut plan = plan();
        plan.training.optimizer.learning_rate = rate;
        (0..5)
            .filter_map(|variant| LearningRate.apply(&plan, &context, variant).ok())
            .map(|change| change.plan.training.optimizer.learning_rate)
            .collect()
    }

    #[test]
    fn a_slow_run_gets_the_default_then_more() {
        let facts = facts();
        assert_eq!(rates(&facts, Problem::SLOW_CONVERGENCE, 1e-6), [0.001, 0.01, 0.1]);
        assert_eq!(rates(&facts, Problem::SLOW_CONVERGENCE, 0.001), [0.01, 0.1, 1.0]);
    }

    #[test]
    fn a_restless_run_gets_the_default_then_less() {
        let facts = facts();
        assert_eq!(rates(&facts, Problem::OSCILLATING_LOSS, 0.5), [0.001, 1e-4, 1e-5]);
    }
}
