//! `optimizer` (S7): replace the optimizer.

use crate::action::{Action, OptimizerKind};
use crate::remedy::{Remedy, RemedyContext};

/// `optimizer` (S7): another optimizer, with its default learning rate.
///
/// AutoTrainer takes one with momentum against oscillation and a random one against slowness. Here it is
/// Adam, or Nadam if the run has Adam, then gradient descent with momentum; nothing is random.
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
        let given = context.facts.optimizer.as_deref().unwrap_or_default();
        let candidates = [
            (OptimizerKind::Adam, 0.001),
            (OptimizerKind::Nadam, 0.001),
            (OptimizerKind::Momentum, 0.01),
        ];
        let mut others = candidates.into_iter().filter(|(other, _)| other.name() != given);
        let (optimizer, learning_rate) = others.nth(variant).ok_or("all optimizers were tried")?;
        Ok(vec![Action::SwapOptimizer { optimizer, learning_rate }])
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, propose};
    use super::*;
    use surefoot_diagnose::{Facts, Problem};

    #[test]
    fn the_optimizer_of_the_run_is_not_proposed() {
        let facts = Facts { optimizer: Some("adam".to_owned()), ..facts() };
        let actions = propose(&SubstituteOptimizer, Problem::SLOW_CONVERGENCE, &facts);
        let names: Vec<&str> = actions
            .iter()
            .filter_map(|actions| match actions[0] {
                Action::SwapOptimizer { optimizer, .. } => Some(optimizer.name()),
                _ => None,
            })
            .collect();
        assert_eq!(names, ["nadam", "sgd"]);
    }
}
