//! `optimizer` (S7): substitute the optimizer.

use crate::remedy::{Change, Remedy, RemedyContext};
use surefoot_plan::{Algorithm, Optimizer, Plan, Schedule};

/// `optimizer` (S7): another optimizer, with its default rate.
///
/// AutoTrainer takes one with momentum against oscillation and a random one against slowness. Here
/// it is Adam for whoever has another, Nadam for whoever has Adam, then gradient descent with
/// momentum; nothing is random. Clipping and weight decay stay; schedules, made for another rate, do
/// not.
#[derive(Clone, Copy, Debug)]
pub struct SubstituteOptimizer;

impl Remedy for SubstituteOptimizer {
    fn id(&self) -> &'static str {
        "optimizer"
    }

    fn title(&self) -> &'static str {
        "replace the optimizer"
    }

    fn apply(&self, plan: &Plan, _: &RemedyContext<'_>, variant: usize) -> Result<Change, String> {
        let given = plan.training.optimizer;
        let momentum = Optimizer::new(Algorithm::Sgd { momentum: 0.9, nesterov: true }, 0.01);
        let candidates = [Optimizer::adam(), Optimizer::nadam(), momentum];
        let mut others =
            candidates.into_iter().filter(|other| other.algorithm.name() != given.algorithm.name());
        let Some(other) = others.nth(variant) else {
            return Err("all optimizers were tried".to_owned());
        };
        let mut changed = plan.clone();
        changed.training.optimizer = Optimizer {
            weight_decay: given.weight_decay,
            clipvalue: given.clipvalue,
            clipnorm: given.clipnorm,
            global_clipnorm: given.global_clipnorm,
            ..other
        };
        changed.training.schedule = Schedule::default();
        let message = format!(
            "Trains with {} at its default rate of {} instead of {} at {}.",
            other.algorithm.name(),
            other.learning_rate,
            given.algorithm.name(),
            given.learning_rate
        );
        Change::new(plan, changed, message)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, finding, plan};
    use super::*;
    use surefoot_diagnose::Problem;

    #[test]
    fn another_optimizer_is_another() {
        let (facts, finding) = (facts(), finding(Problem::SLOW_CONVERGENCE));
        let context = RemedyContext { finding: &finding, facts: &facts };
        let names: Vec<&str> = (0..4)
            .filter_map(|variant| SubstituteOptimizer.apply(&plan(), &context, variant).ok())
            .map(|change| change.plan.training.optimizer.algorithm.name())
            .collect();
        assert_eq!(names, ["nadam", "sgd"]);
    }
}
