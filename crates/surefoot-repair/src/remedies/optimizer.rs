//! `optimizer` (S7): replace the optimizer.

use crate::action::{Action, OptimizerKind};
use crate::remedy::{Remedy, RemedyContext};
use surefoot_diagnose::Problem;

/// `optimizer` (S7): another optimizer, with its default learning rate.
///
/// AutoTrainer takes one with momentum against oscillation and a random one against slowness. So plain
/// gradient descent that oscillates gets a momentum of 0.9 first. Otherwise it is Adam, or Nadam if the
/// run has Adam, then gradient descent with momentum; nothing is random.
#[derive(Clone, Copy, Debug)]
pub struct SubstituteOptimizer;

impl Remedy for SubstituteOptimizer {
    fn id(&self) -> &'static str {
        "optimizer"
    }

    fn title(&self) -> &'static str {
        "replace the optimizer"
    }

    fn propose(&self, context: &RemedyContext<'_>, variant: usize) -> Result<Vec<Action>, String> {
        let facts = context.facts;
        let mut candidates = [
            (OptimizerKind::Adam, 0.001),
            (OptimizerKind::Nadam, 0.001),
            (OptimizerKind::Momentum, 0.01),
        ];
        let is_plain = facts.optimizer.as_deref() == Some("sgd") && facts.momentum == Some(0.0);
        if is_plain && context.finding.problem == Problem::OSCILLATING_LOSS {
            candidates.rotate_right(1);
        }
        let mut others = candidates.into_iter().filter(|(other, _)| !other.is_that_of(facts));
        let (optimizer, learning_rate) = others.nth(variant).ok_or("all optimizers were tried")?;
        Ok(vec![Action::SwapOptimizer { optimizer, learning_rate }])
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, propose};
    use super::*;
    use surefoot_diagnose::Facts;

    fn names(problem: Problem, facts: &Facts) -> Vec<&'static str> {
        let actions = propose(&SubstituteOptimizer, problem, facts).concat();
        let name = |action| match action {
            Action::SwapOptimizer { optimizer, .. } => Some(optimizer.name()),
            _ => None,
        };
        actions.into_iter().filter_map(name).collect()
    }

    #[test]
    fn the_optimizer_of_the_run_is_not_proposed() {
        let facts = Facts { optimizer: Some("adam".to_owned()), ..facts() };
        assert_eq!(names(Problem::SLOW_CONVERGENCE, &facts), ["nadam", "sgd"]);
    }

    #[test]
    fn plain_gradient_descent_that_oscillates_gets_a_momentum_first() {
        let sgd = |momentum| Facts { optimizer: Some("sgd".to_owned()), momentum, ..facts() };
        let of = |momentum| names(Problem::OSCILLATING_LOSS, &sgd(momentum));
        assert_eq!(of(Some(0.0)), ["sgd", "adam", "nadam"]);
        assert_eq!(of(Some(0.9)), ["adam", "nadam"]);
        assert_eq!(of(None), ["adam", "nadam"]);
        assert_eq!(names(Problem::SLOW_CONVERGENCE, &sgd(Some(0.0)))[0], "adam");
    }
}
