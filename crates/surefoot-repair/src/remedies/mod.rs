//! The remedies, one a file.

mod activation;
mod autotrainer;
mod batch_norm;
mod batch_size;
mod clip;
mod data;
mod epochs;
mod initializer;
mod learning_rate;
mod loss;
mod optimizer;
mod output_units;
mod recipe;
mod residual;
mod target;

pub use activation::SubstituteActivation;
pub use autotrainer::autotrainer;
pub use batch_norm::BatchNormalization;
pub use batch_size::BatchSize;
pub use clip::GradientClipping;
pub use data::InputData;
pub use epochs::MoreEpochs;
pub use initializer::SubstituteInitializer;
pub use learning_rate::LearningRate;
pub use loss::SubstituteLoss;
pub use optimizer::SubstituteOptimizer;
pub use output_units::OutputUnits;
pub use recipe::RobustRecipe;
pub use residual::ResidualConnections;
pub use target::TargetScale;

use crate::remedy::Remedy;

/// A new set of all remedies: AutoTrainer's S1 to S9 (section 4.4), and our own.
pub fn all() -> Vec<Box<dyn Remedy>> {
    vec![
        Box::new(BatchNormalization),
        Box::new(SubstituteActivation),
        Box::new(GradientClipping),
        Box::new(SubstituteInitializer),
        Box::new(BatchSize),
        Box::new(LearningRate),
        Box::new(SubstituteOptimizer),
        Box::new(SubstituteLoss),
        Box::new(InputData),
        Box::new(OutputUnits),
        Box::new(TargetScale),
        Box::new(MoreEpochs),
        Box::new(RobustRecipe),
        Box::new(ResidualConnections),
    ]
}

/// Rounds away the last digits that a multiplication leaves.
fn tidy(rate: f64) -> f64 {
    format!("{rate:.3e}").parse().unwrap_or(rate)
}

#[cfg(test)]
pub(crate) mod fixture {
    use crate::action::Action;
    use crate::remedy::{Remedy, RemedyContext};
    use surefoot_diagnose::{Activation, Facts, Finding, LayerInfo, LayerKind, Problem, TaskKind};

    /// A binary classification by a hidden layer and one sigmoid.
    pub(crate) fn facts() -> Facts {
        let layer = |units| {
            LayerInfo::new(format!("dense{units}"), LayerKind::Dense)
                .with_units(units)
                .with_activation(Activation::Sigmoid)
        };
        Facts {
            layers: vec![layer(8), layer(1)],
            task: Some(TaskKind::Binary),
            classes: Some(2),
            batch_size: Some(32),
            learning_rate: Some(0.001),
            ..Facts::default()
        }
    }

    /// The same with `units` outputs.
    pub(crate) fn wide(units: usize) -> Facts {
        let mut facts = facts();
        facts.layers[1].units = Some(units);
        facts
    }

    pub(crate) fn finding(problem: Problem) -> Finding {
        Finding::new(problem, 10, "Something is wrong.")
    }

    /// The actions of all variants of `remedy`.
    pub(crate) fn propose(
        remedy: &dyn Remedy,
        problem: Problem,
        facts: &Facts,
    ) -> Vec<Vec<Action>> {
        let finding = finding(problem);
        let context = RemedyContext { finding: &finding, facts };
        (0..4).filter_map(|variant| remedy.propose(&context, variant).ok()).collect()
    }
}
