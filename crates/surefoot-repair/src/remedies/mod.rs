//! The remedies, one a file.

mod activation;
mod batch_norm;
mod batch_size;
mod clip;
mod data;
mod initializer;
mod learning_rate;
mod loss;
mod optimizer;
mod recipe;
mod residual;

pub use activation::SubstituteActivation;
pub use batch_norm::BatchNormalisation;
pub use batch_size::BatchSize;
pub use clip::GradientClipping;
pub use data::InputData;
pub use initializer::SubstituteInitializer;
pub use learning_rate::LearningRate;
pub use loss::SubstituteLoss;
pub use optimizer::SubstituteOptimizer;
pub use recipe::SoundRecipe;
pub use residual::ResidualConnections;

use crate::remedy::Remedy;

/// A new set of all remedies: AutoTrainer's S1 to S9 (section 4.4), and our own.
pub fn all() -> Vec<Box<dyn Remedy>> {
    vec![
        Box::new(BatchNormalisation),
        Box::new(SubstituteActivation),
        Box::new(GradientClipping),
        Box::new(SubstituteInitializer),
        Box::new(BatchSize),
        Box::new(LearningRate),
        Box::new(SubstituteOptimizer),
        Box::new(SubstituteLoss),
        Box::new(InputData),
        Box::new(SoundRecipe),
        Box::new(ResidualConnections),
    ]
}

#[cfg(test)]
pub(crate) mod fixture {
    use surefoot_diagnose::{Facts, Finding, Problem, TaskKind};
    use surefoot_plan::Plan;

    /// Two hidden sigmoids and a sigmoid, on circles.
    pub(crate) fn plan() -> Plan {
        let text = r#"
            [data]
            source = "circles"
            [[model]]
            layer = "dense"
            units = 8
            activation = "sigmoid"
            [[model]]
            layer = "dense"
            units = 8
            activation = "sigmoid"
            [[model]]
            layer = "dense"
            units = 1
            activation = "sigmoid"
            [training]
            epochs = 10
        "#;
        Plan::parse(text, "fixture").expect("a sound plan")
    }

    pub(crate) fn facts() -> Facts {
        Facts { task: Some(TaskKind::Binary), classes: Some(2), ..Facts::default() }
    }

    pub(crate) fn finding(problem: Problem) -> Finding {
        Finding::new(problem, 10, "Something is wrong.")
    }
}
