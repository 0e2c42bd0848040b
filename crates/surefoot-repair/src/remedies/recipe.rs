//! `recipe`: a robust recipe.

use crate::action::{Action, Initializers, OptimizerKind};
use crate::remedy::{Remedy, RemedyContext};
use surefoot_diagnose::Activation;

/// `recipe`: everything at once, our own last resort: leaky ReLU with fitting weights, batch
/// normalization, Adam, clipped gradients, batches of 32.
///
/// Problems often occur together, and remedies that each answer one can fail one by one where all of
/// them together work.
#[derive(Clone, Copy, Debug)]
pub struct RobustRecipe;

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
        if context.facts.batch_size.is_some_and(|size| size < 16) {
            actions.extend([Action::SetBatchSize(32), Action::ExtendTraining { factor: 5 }]);
        }
        Ok(actions)
    }
}
