//! `loss` (S8): replace the loss.

use super::activation::output_units;
use crate::action::{Action, LossKind};
use crate::remedy::{Remedy, RemedyContext};
use surefoot_diagnose::{Activation, TaskKind};

/// `loss` (S8): takes the loss that fits the task: cross-entropy for classes, the mean squared error for
/// numbers.
#[derive(Clone, Copy, Debug)]
pub struct SubstituteLoss;

impl Remedy for SubstituteLoss {
    fn id(&self) -> &'static str {
        "loss"
    }

    fn title(&self) -> &'static str {
        "replace the loss"
    }

    fn propose(&self, context: &RemedyContext<'_>, variant: usize) -> Result<Vec<Action>, String> {
        if variant > 0 {
            return Err("the loss that fits the task was tried".to_owned());
        }
        let facts = context.facts;
        let one_unit = output_units(facts) == Some(1);
        let loss = match facts.task.ok_or("the task is unknown")? {
            TaskKind::Regression => LossKind::MeanSquaredError,
            TaskKind::MultiLabel => LossKind::BinaryCrossentropy,
            TaskKind::Binary if one_unit => LossKind::BinaryCrossentropy,
            TaskKind::Binary | TaskKind::MultiClass => LossKind::CategoricalCrossentropy,
        };
        let from_logits = loss != LossKind::MeanSquaredError
            && facts.output_activation() == Some(Activation::Linear);
        Ok(vec![Action::SwapLoss { loss, from_logits }])
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, propose, wide};
    use super::*;
    use surefoot_diagnose::{Facts, Problem};

    #[test]
    fn classes_get_cross_entropy() {
        let loss = Action::SwapLoss { loss: LossKind::BinaryCrossentropy, from_logits: false };
        assert_eq!(propose(&SubstituteLoss, Problem::IMPROPER_LOSS, &facts()), [[loss.clone()]]);
        let labels = Facts { task: Some(TaskKind::MultiLabel), ..wide(8) };
        assert_eq!(propose(&SubstituteLoss, Problem::IMPROPER_LOSS, &labels), [[loss]]);
    }
}
