//! `loss` (S8): substitute the loss.

use crate::remedy::{Change, Remedy, RemedyContext};
use surefoot_diagnose::TaskKind;
use surefoot_plan::{Activation, Layer, Loss, Plan, output_activation, output_position};

/// `loss` (S8): the loss that the task asks for: cross-entropy for classes, the mean square for numbers.
#[derive(Clone, Copy, Debug)]
pub struct SubstituteLoss;

impl Remedy for SubstituteLoss {
    fn id(&self) -> &'static str {
        "loss"
    }

    fn title(&self) -> &'static str {
        "replace the loss"
    }

    fn apply(
        &self,
        plan: &Plan,
        context: &RemedyContext<'_>,
        variant: usize,
    ) -> Result<Change, String> {
        if variant > 0 {
            return Err("there is one loss that suits the task".to_owned());
        }
        let task = context.facts.task.ok_or("the task is not known")?;
        let position = output_position(&plan.model).ok_or("the model has no output layer")?;
        let one = matches!(&plan.model[position], Layer::Dense(dense) if dense.units == 1);
        let from_logits = output_activation(&plan.model) == Activation::Linear;
        let loss = match task {
            TaskKind::Regression => Loss::Mse,
            TaskKind::Binary if one => Loss::BinaryCrossentropy { from_logits },
            TaskKind::Binary | TaskKind::MultiClass => {
                Loss::SparseCategoricalCrossentropy { from_logits }
            }
        };
        let mut changed = plan.clone();
        changed.training.loss = loss;
        let message =
            format!("Replaces the loss {1} with {0}.", loss.name(), plan.training.loss.name());
        Change::new(plan, changed, message)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, finding, plan};
    use super::*;
    use surefoot_diagnose::Problem;

    #[test]
    fn classes_get_cross_entropy() {
        let (facts, finding) = (facts(), finding(Problem::IMPROPER_LOSS));
        let context = RemedyContext { finding: &finding, facts: &facts };
        let mut wrong = plan();
        wrong.training.loss = Loss::Poisson;
        let change = SubstituteLoss.apply(&wrong, &context, 0).unwrap();
        assert_eq!(change.plan, plan());
        assert!(SubstituteLoss.apply(&plan(), &context, 0).is_err());
    }
}
