//! `recipe` (E1): a sound recipe.

use super::batch_norm::normalised;
use super::initializer::reinitialize;
use crate::remedy::{Change, Remedy, RemedyContext};
use surefoot_plan::{Activation, Layer, Optimizer, Plan, Schedule, walk_mut};

/// `recipe` (E1): everything at once, our own last resort: ReLU-like activations with weights to suit, batch
/// normalisation, Adam at its default rate, clipped gradients, batches of 32.
///
/// Problems come in company, and remedies that each answer one can fail one by one where all of them
/// together work.
#[derive(Clone, Copy, Debug)]
pub struct SoundRecipe;

impl Remedy for SoundRecipe {
    fn id(&self) -> &'static str {
        "recipe"
    }

    fn title(&self) -> &'static str {
        "start from a sound recipe"
    }

    fn reinitializes(&self) -> bool {
        true
    }

    fn apply(&self, plan: &Plan, _: &RemedyContext<'_>, variant: usize) -> Result<Change, String> {
        let rate = match variant {
            0 => 0.003,
            1 => 0.0005,
            _ => return Err("the recipe was tried".to_owned()),
        };
        let mut changed = plan.clone();
        walk_mut(&mut changed.model, &mut |layer, output| {
            let keeps = output
                || layer.is_recurrent()
                || layer.activation().is_none_or(|a| a == Activation::Linear)
                || matches!(layer, Layer::Transformer(_));
            if !keeps && let Some(activation) = layer.activation_mut() {
                *activation = Activation::leaky_relu();
            }
        });
        reinitialize(&mut changed);
        changed.model = normalised(std::mem::take(&mut changed.model), true).0;
        changed.training.optimizer =
            Optimizer { learning_rate: rate, global_clipnorm: Some(1.0), ..Optimizer::adam() };
        changed.training.schedule = Schedule::default();
        let given = plan.training.batch_size;
        if given < 16 {
            changed.training.batch_size = 32;
            changed.training.epochs = plan.training.epochs.saturating_mul(5);
        }
        let message = format!(
            "Starts over with a robust recipe: leaky ReLU, batch normalization, Adam \
             at {rate}, clipped gradients."
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
    fn the_recipe_is_a_sound_plan() {
        let (facts, finding) = (facts(), finding(Problem::VANISHING_GRADIENT));
        let context = RemedyContext { finding: &finding, facts: &facts };
        let change = SoundRecipe.apply(&plan(), &context, 0).unwrap();
        change.plan.validate().unwrap();
        assert!(change.plan.model.iter().any(Layer::is_norm));
    }
}
