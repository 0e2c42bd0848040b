//! `initializer` (S4): replace initializers.

use crate::action::{Action, Initializers};
use crate::remedy::{Remedy, RemedyContext};
use surefoot_diagnose::Problem;

/// `initializer` (S4): draws the initial weights to fit the activation that they feed: He's for ReLU
/// and its relatives, LeCun's for SELU, Glorot's for the others; recurrent ones orthogonal, biases
/// zero.
///
/// Against dying ReLU, Glorot's come first: they are smaller, and He's are what ReLUs die from (Lu and
/// others, 2019; AutoTrainer, section 4.4).
#[derive(Clone, Copy, Debug)]
pub struct SubstituteInitializer;

impl Remedy for SubstituteInitializer {
    fn id(&self) -> &'static str {
        "initializer"
    }

    fn title(&self) -> &'static str {
        "replace initializers"
    }

    fn propose(&self, context: &RemedyContext<'_>, variant: usize) -> Result<Vec<Action>, String> {
        let candidates = match context.finding.problem == Problem::DYING_RELU {
            true => &[Initializers::Glorot, Initializers::Fitting][..],
            false => &[Initializers::Fitting],
        };
        let initializers = candidates.get(variant).ok_or("the initializers that fit were tried")?;
        Ok(vec![Action::Reinitialize(*initializers)])
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, propose};
    use super::*;

    #[test]
    fn dying_relus_are_initialized_with_smaller_weights_first() {
        let of = |problem| propose(&SubstituteInitializer, problem, &facts()).concat();
        let [glorot, fitting] =
            [Initializers::Glorot, Initializers::Fitting].map(Action::Reinitialize);
        assert_eq!(of(Problem::DYING_RELU), [glorot, fitting.clone()]);
        assert_eq!(of(Problem::SLOW_CONVERGENCE), [fitting]);
    }
}
