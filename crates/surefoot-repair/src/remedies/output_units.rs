//! `output_units`: one output unit per class.

use crate::action::{Action, LossKind};
use crate::remedy::{Remedy, RemedyContext};
use surefoot_diagnose::{Activation, TaskKind};

/// `output_units`: gives the output layer one unit per class, with the activation and the loss that
/// several classes need. Our own: AutoTrainer takes the number of units as given.
#[derive(Clone, Copy, Debug)]
pub struct OutputUnits;

impl Remedy for OutputUnits {
    fn id(&self) -> &'static str {
        "output_units"
    }

    fn title(&self) -> &'static str {
        "use one output unit per class"
    }

    fn propose(&self, context: &RemedyContext<'_>, variant: usize) -> Result<Vec<Action>, String> {
        let facts = context.facts;
        let classes = match (variant, facts.task) {
            (0, Some(TaskKind::MultiClass)) => facts.classes,
            (0, _) => return Err("the task does not have several classes".to_owned()),
            _ => return Err("one number of units fits the classes".to_owned()),
        };
        let classes = classes.ok_or("the number of classes is unknown")?;
        let from_logits = facts.from_logits;
        let activation = if from_logits { Activation::Linear } else { Activation::Softmax };
        let mut actions =
            vec![Action::SetOutputUnits(classes), Action::SetOutputActivation(activation)];
        // The cross-entropy of classes takes any number of outputs.
        let is_categorical = matches!(
            facts.loss.as_deref(),
            Some("categorical_crossentropy" | "sparse_categorical_crossentropy")
        );
        if !is_categorical {
            let loss = LossKind::CategoricalCrossentropy;
            actions.push(Action::SwapLoss { loss, from_logits });
        }
        Ok(actions)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, propose};
    use super::*;
    use surefoot_diagnose::{Facts, Problem};

    fn of(facts: &Facts) -> Vec<Vec<Action>> {
        propose(&OutputUnits, Problem::IMPROPER_OUTPUT_UNITS, facts)
    }

    #[test]
    fn several_classes_get_a_unit_each() {
        let task = Some(TaskKind::MultiClass);
        let wrong = Facts { task, classes: Some(3), loss: Some("mse".to_owned()), ..facts() };
        let units =
            [Action::SetOutputUnits(3), Action::SetOutputActivation(Activation::Softmax)].to_vec();
        let loss = Action::SwapLoss { loss: LossKind::CategoricalCrossentropy, from_logits: false };
        assert_eq!(of(&wrong), [[&units[..], &[loss]].concat()]);
        let loss = Some("categorical_crossentropy".to_owned());
        assert_eq!(of(&Facts { loss, ..wrong }), [units]);
    }

    #[test]
    fn two_classes_and_numbers_keep_their_units() {
        assert!(of(&facts()).is_empty());
        assert!(of(&Facts { task: Some(TaskKind::Regression), ..facts() }).is_empty());
    }
}
