//! AutoTrainer's nine solutions as published.

use super::{SubstituteActivation, SubstituteLoss};
use crate::action::{Action, Initializers, OptimizerKind, Outliers};
use crate::remedy::{Remedy, RemedyContext};
use surefoot_diagnose::Problem;

/// The nine solutions of AutoTrainer (section 4.4), S1 to S9, with its values.
///
/// | id | change |
/// | --- | --- |
/// | `batch_norm` (S1) | batch normalization before hidden activations |
/// | `activation` (S2) | SELU, leaky ReLU, ReLU; for the output, the one that fits the task |
/// | `clip_gradient` (S3) | every value of the gradient to [-10, 10] |
/// | `initializer` (S4) | Glorot's (Xavier's) |
/// | `batch_size` (S5) | 32, then twice as many, up to 256 |
/// | `learning_rate` (S6) | 0.01 for SGD and 0.001 for others, then 10 times more or less |
/// | `optimizer` (S7) | against oscillation one with momentum (0.9), against slowness another one |
/// | `loss` (S8) | the one that fits the task |
/// | `normalize_data` (S9) | standardized features, without the samples that have outliers; missing values imputed |
///
/// Two differences: another optimizer is not drawn at random, and S2 re-initializes the weights of the
/// layers that it changes, without which SELU does not normalize.
pub fn autotrainer() -> Vec<Box<dyn Remedy>> {
    let published = |id, title| Box::new(Published { id, title }) as Box<dyn Remedy>;
    vec![
        published("batch_norm", "add batch normalization"),
        Box::new(SubstituteActivation),
        published("clip_gradient", "clip the gradient"),
        published("initializer", "replace initializers"),
        published("batch_size", "adjust the batch size"),
        published("learning_rate", "adjust the learning rate"),
        published("optimizer", "replace the optimizer"),
        Box::new(SubstituteLoss),
        published("normalize_data", "normalize the input data"),
    ]
}

/// A solution with its published values.
#[derive(Clone, Copy, Debug)]
struct Published {
    id: &'static str,
    title: &'static str,
}

/// Default learning rate of an optimizer.
fn default_rate(optimizer: &str) -> f64 {
    if optimizer == "sgd" { 0.01 } else { 0.001 }
}

impl Remedy for Published {
    fn id(&self) -> &'static str {
        self.id
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn propose(&self, context: &RemedyContext<'_>, variant: usize) -> Result<Vec<Action>, String> {
        let facts = context.facts;
        let given = facts.optimizer.as_deref().unwrap_or_default();
        if self.id == "normalize_data" && variant == 0 && facts.missing_inputs > 0 {
            let normalize = Action::NormalizeData { outliers: Outliers::Drop };
            return Ok(vec![Action::ImputeMissing, normalize]);
        }
        let action = match self.id {
            "batch_norm" => single(variant, Action::AddBatchNorm),
            "clip_gradient" => single(variant, Action::ClipGradientValues { limit: 10.0 }),
            "initializer" => single(variant, Action::Reinitialize(Initializers::Glorot)),
            "normalize_data" => single(variant, Action::NormalizeData { outliers: Outliers::Drop }),
            "batch_size" => {
                let given = facts.batch_size.ok_or("the batch size is unknown")?;
                let sizes = [32, 64, 128, 256].into_iter().filter(|size| *size > given);
                sizes.map(Action::SetBatchSize).nth(variant)
            }
            "learning_rate" => {
                let given_rate = facts.learning_rate.ok_or("the learning rate is unknown")?;
                let slow = context.finding.problem == Problem::SLOW_CONVERGENCE;
                let factor: f64 = if slow { 10.0 } else { 0.1 };
                let rate = |i| default_rate(given) * factor.powi(i);
                let rates = (0..4).map(rate).map(super::tidy).filter(|rate| *rate != given_rate);
                rates.take(3).map(Action::SetLearningRate).nth(variant)
            }
            "optimizer" => {
                let all = match context.finding.problem == Problem::OSCILLATING_LOSS {
                    true => [OptimizerKind::Momentum, OptimizerKind::Adam],
                    false => [OptimizerKind::Adam, OptimizerKind::Momentum],
                };
                let mut others = all.into_iter().filter(|other| !other.is_that_of(facts));
                others.nth(variant).map(|optimizer| Action::SwapOptimizer {
                    optimizer,
                    learning_rate: default_rate(optimizer.name()),
                })
            }
            _ => None,
        };
        Ok(vec![action.ok_or("all variants were tried")?])
    }
}

fn single(variant: usize, action: Action) -> Option<Action> {
    (variant == 0).then_some(action)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, propose};
    use super::*;
    use surefoot_diagnose::Facts;

    fn actions(id: &str, problem: Problem, facts: &Facts) -> Vec<Action> {
        let all = autotrainer();
        let remedy = all.iter().find(|remedy| remedy.id() == id).unwrap();
        propose(&**remedy, problem, facts).concat()
    }

    #[test]
    fn values_are_those_of_the_paper() {
        let of = |id, problem| actions(id, problem, &facts());
        assert_eq!(
            of("clip_gradient", Problem::EXPLODING_GRADIENT),
            [Action::ClipGradientValues { limit: 10.0 }]
        );
        assert_eq!(
            of("initializer", Problem::DYING_RELU),
            [Action::Reinitialize(Initializers::Glorot)]
        );
        assert_eq!(
            of("normalize_data", Problem::ABNORMAL_DATA),
            [Action::NormalizeData { outliers: Outliers::Drop }]
        );
    }

    #[test]
    fn batches_grow_to_256() {
        let facts = Facts { batch_size: Some(4), ..facts() };
        let sizes = actions("batch_size", Problem::OSCILLATING_LOSS, &facts);
        assert_eq!(sizes, [32, 64, 128, 256].map(Action::SetBatchSize));
    }

    #[test]
    fn rates_start_at_the_default_of_the_optimizer() {
        let sgd = Facts { optimizer: Some("sgd".to_owned()), learning_rate: Some(1.0), ..facts() };
        let unstable = actions("learning_rate", Problem::OSCILLATING_LOSS, &sgd);
        assert_eq!(unstable, [0.01, 0.001, 1e-4].map(Action::SetLearningRate));
        let adagrad =
            Facts { optimizer: Some("adagrad".to_owned()), learning_rate: Some(1e-6), ..facts() };
        let slow = actions("learning_rate", Problem::SLOW_CONVERGENCE, &adagrad);
        assert_eq!(slow, [0.001, 0.01, 0.1].map(Action::SetLearningRate));
    }

    #[test]
    fn momentum_comes_first_against_oscillation() {
        let first = |problem, momentum| {
            let optimizer = Some("sgd".to_owned());
            actions("optimizer", problem, &Facts { optimizer, momentum, ..facts() })[0].clone()
        };
        let momentum =
            Action::SwapOptimizer { optimizer: OptimizerKind::Momentum, learning_rate: 0.01 };
        let adam = Action::SwapOptimizer { optimizer: OptimizerKind::Adam, learning_rate: 0.001 };
        assert_eq!(first(Problem::OSCILLATING_LOSS, Some(0.0)), momentum);
        assert_eq!(first(Problem::OSCILLATING_LOSS, Some(0.9)), adam);
        assert_eq!(first(Problem::SLOW_CONVERGENCE, Some(0.0)), adam);
    }
}
