//! `recipe`: a robust recipe.

use crate::action::{Action, Initializers, OptimizerKind};
use crate::remedy::{Remedy, RemedyContext};
use surefoot_diagnose::Activation;

/// `recipe`: everything at once, our own last resort: leaky ReLU with fitting weights, batch
/// normalization, Adam, clipped gradients, batches of 32. A training of a few steps is extended.
///
/// Problems often occur together, and remedies that each answer one can fail one by one where all of
/// them together work.
#[derive(Clone, Copy, Debug)]
pub struct RobustRecipe;

/// Number of steps below which nothing can be learned, whatever the recipe.
const SHORT: u64 = 100;
/// Steps to which a shorter training is extended.
const ENOUGH: u64 = 2000;

impl Remedy for RobustRecipe {
    fn id(&self) -> &'static str {
        "recipe"
    }

    fn title(&self) -> &'static str {
        "start from a robust recipe"
    }

    fn propose(&self, context: &RemedyContext<'_>, variant: usize) -> Result<Vec<Action>, String> {
        let learning_rate = match variant {
            0 => 0.003,
            1 => 0.0005,
            _ => return Err("the recipe was tried".to_owned()),
        };
        let mut actions = vec![
            Action::SwapOptimizer { optimizer: OptimizerKind::Adam, learning_rate },
            Action::SwapActivation(Activation::LeakyRelu),
            Action::Reinitialize(Initializers::Fitting),
            Action::AddBatchNorm,
            Action::ClipGradient { norm: 1.0 },
        ];
        let tiny_batches = context.facts.batch_size.is_some_and(|size| size < 16);
        if tiny_batches {
            actions.push(Action::SetBatchSize(32));
        }
        let steps = context.facts.total_steps().unwrap_or(ENOUGH).max(1);
        let factor = if tiny_batches { 5 } else { 1 };
        let factor = if steps < SHORT { ENOUGH.div_ceil(steps).max(factor) } else { factor };
        if factor > 1 {
            actions.push(Action::ExtendTraining { factor });
        }
        Ok(actions)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, propose};
    use super::*;
    use surefoot_diagnose::{Facts, Problem};

    #[test]
    fn a_training_of_a_few_steps_is_extended() {
        let factor = |epochs, batch_size| {
            let (steps_per_epoch, batch_size) = (Some(2), Some(batch_size));
            let facts = Facts { epochs: Some(epochs), steps_per_epoch, batch_size, ..facts() };
            propose(&RobustRecipe, Problem::SLOW_CONVERGENCE, &facts)[0].iter().find_map(|action| {
                match action {
                    Action::ExtendTraining { factor } => Some(*factor),
                    _ => None,
                }
            })
        };
        assert_eq!([factor(10, 32), factor(500, 32)], [Some(100), None]);
        assert_eq!([factor(10, 4), factor(500, 4)], [Some(100), Some(5)]);
    }
}
