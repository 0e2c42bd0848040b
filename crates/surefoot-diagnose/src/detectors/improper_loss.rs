//! Improper loss.

use super::conditions;
use crate::detector::{Context, Detector, Quantity};
use crate::facts::{Facts, TaskKind};
use crate::finding::{Finding, Problem};
use crate::layer::Activation;
use crate::observation::Observation;

/// The loss does not suit the task: `L ∉ LossSet(T)`, and `max(Acc) ≤ Θ`.
///
/// Changed: a loss that is unusual but works is left alone, whatever the accuracy: how low it has to
/// be is asked of the skill, and only after a while. A loss of NaN is proof enough at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImproperLoss {}

/// Returns true if the loss does not fit the task.
pub(super) fn is_suspect(facts: &Facts) -> bool {
    expected(facts).is_some()
}

/// Suitable loss for the task, if the given one does not fit.
pub(super) fn expected(facts: &Facts) -> Option<&'static str> {
    let loss = facts.loss.as_deref()?;
    let activation = facts.output_activation();
    let width = facts.output_layer().and_then(|layer| layer.output_shape.last().copied());
    let positive = facts.target_range.is_none_or(|[low, _]| low >= 0.0);
    match facts.task? {
        task @ (TaskKind::Binary | TaskKind::MultiLabel)
            if task == TaskKind::MultiLabel || width.is_none_or(|width| width == 1) =>
        {
            match loss {
                "binary_crossentropy" => None,
                "hinge" if matches!(activation, Some(Activation::Linear | Activation::Tanh)) => {
                    None
                }
                _ => Some("`binary_crossentropy`"),
            }
        }
        TaskKind::Binary | TaskKind::MultiClass | TaskKind::MultiLabel => match loss {
            "categorical_crossentropy" | "sparse_categorical_crossentropy" => None,
            // Equal to the cross-entropy for one-hot targets.
            "kl_divergence" => None,
            "binary_crossentropy" if activation == Some(Activation::Sigmoid) => None,
            _ => Some("`sparse_categorical_crossentropy`"),
        },
        TaskKind::Regression => match loss {
            "mse" | "mae" | "huber" => None,
            "poisson"
                if positive
                    && matches!(activation, Some(Activation::Softplus | Activation::Relu)) =>
            {
                None
            }
            _ => Some("`mse`"),
        },
    }
}

impl Detector for ImproperLoss {
    fn problem(&self) -> Problem {
        Problem::IMPROPER_LOSS
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Model]
    }

    fn observe(&mut self, seen: &Observation, context: &Context<'_>) -> Option<Finding> {
        let unexplained = !seen.loss.is_finite() && !conditions::has_broken_input(context);
        if unexplained { self.finding(context) } else { None }
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        if conditions::is_behind(context) { self.finding(context) } else { None }
    }
}

impl ImproperLoss {
    fn finding(self, context: &Context<'_>) -> Option<Finding> {
        let expected = expected(context.facts)?;
        let loss = context.facts.loss.as_deref()?;
        let task = match context.facts.task? {
            TaskKind::Binary => "two classes",
            TaskKind::MultiClass => "several classes",
            TaskKind::MultiLabel => "several labels, each 0 or 1",
            TaskKind::Regression => "numbers",
        };
        Some(
            Finding::new(
                self.problem(),
                context.step(),
                format!(
                    "The loss is `{loss}`, but the targets are {task}: lowering it does not \
                     improve the predictions. Use {expected}."
                ),
            )
            .since(1)
            .with_skill(context),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, facts};
    use super::*;

    fn with_loss(loss: &str) -> Facts {
        Facts { loss: Some(loss.to_owned()), ..facts() }
    }

    #[test]
    fn a_foreign_loss_that_does_not_learn_is_found() {
        let found = Course::new(with_loss("poisson")).skill(|_| 0.2).run(ImproperLoss::default());
        assert!(found.is_some_and(|f| f.message.contains("binary_crossentropy")));
        let learns = Course::new(with_loss("mse")).skill(|p| 30.0 * p);
        assert_eq!(learns.run(ImproperLoss::default()), None);
    }

    #[test]
    fn labels_need_the_binary_cross_entropy() {
        let labels = |loss| Facts { task: Some(TaskKind::MultiLabel), ..with_loss(loss) };
        assert_eq!(expected(&labels("binary_crossentropy")), None);
        for loss in ["categorical_crossentropy", "mse", "kl_divergence"] {
            assert_eq!(expected(&labels(loss)), Some("`binary_crossentropy`"));
        }
    }

    #[test]
    fn the_usual_losses_are_usual() {
        assert_eq!(expected(&with_loss("binary_crossentropy")), None);
        let regression = Facts { task: Some(TaskKind::Regression), ..with_loss("huber") };
        assert_eq!(expected(&regression), None);
    }
}
