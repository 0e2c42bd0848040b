//! Improper output activation.

use super::conditions;
use crate::detector::{Context, Detector, Quantity};
use crate::facts::{Facts, TaskKind};
use crate::finding::{Finding, Problem};
use crate::layer::Activation;
use crate::observation::Observation;

/// The activation of the last layer does not suit the task: `σ_n ∉ ActSet(T)`, and `max(Acc) ≤ Θ`.
///
/// Changed: what suits depends on the loss as well (logits are right where the loss expects them),
/// and for a regression on the targets: a sigmoid is right for shares and hopeless for prices. How
/// low an accuracy has to be is asked of the skill. A softmax over a single unit is always 1: that is
/// found before the first step. A loss of NaN is proof enough, too.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImproperOutputActivation {}

/// Returns true if the output activation does not fit the task.
pub(super) fn is_suspect(facts: &Facts) -> bool {
    mismatch(facts).is_some()
}

/// Reason why the output activation does not fit the task.
pub(super) fn mismatch(facts: &Facts) -> Option<String> {
    let activation = facts.output_activation()?;
    let loss = facts.loss.as_deref()?;
    let width = facts.output_layer().and_then(|layer| layer.output_shape.last().copied());
    let why = |expected: &str| Some(format!("`{activation}` where {expected} is expected"));
    let within = |low: f64, high: f64| {
        let range = facts.target_range.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]);
        range[0] >= low && range[1] <= high
    };
    match facts.task? {
        TaskKind::Binary | TaskKind::MultiLabel if loss == "hinge" => match activation {
            // With a sigmoid, the loss is the problem.
            Activation::Linear | Activation::Tanh | Activation::Sigmoid => None,
            _ => why("`linear` or `tanh`"),
        },
        TaskKind::Binary | TaskKind::MultiClass | TaskKind::MultiLabel if facts.from_logits => {
            match activation {
                Activation::Linear => None,
                _ => Some(format!("`{activation}`, but the loss takes logits")),
            }
        }
        // Each label is independent of the others.
        TaskKind::MultiLabel => match activation {
            Activation::Sigmoid | Activation::HardSigmoid => None,
            _ => why("one `sigmoid` per label"),
        },
        TaskKind::Binary if width.is_none_or(|width| width == 1) => match activation {
            Activation::Sigmoid | Activation::HardSigmoid => None,
            _ => why("`sigmoid`"),
        },
        TaskKind::Binary | TaskKind::MultiClass => match activation {
            Activation::Softmax => None,
            Activation::Sigmoid if loss == "binary_crossentropy" => None,
            _ => why("`softmax`"),
        },
        TaskKind::Regression => match activation {
            Activation::Sigmoid | Activation::HardSigmoid | Activation::Softmax
                if !within(0.0, 1.0) =>
            {
                why("an output that reaches all targets")
            }
            Activation::Tanh if !within(-1.0, 1.0) => why("an output that reaches all targets"),
            Activation::Relu | Activation::Softplus if !within(0.0, f64::INFINITY) => {
                why("an output that reaches all targets")
            }
            // A ReLU that is zero for every sample never recovers.
            Activation::Relu => why("`linear`"),
            _ => None,
        },
    }
}

impl Detector for ImproperOutputActivation {
    fn problem(&self) -> Problem {
        Problem::IMPROPER_OUTPUT_ACTIVATION
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Model]
    }

    fn start(&mut self, context: &Context<'_>) -> Option<Finding> {
        let output = context.facts.output_layer()?;
        let softmax = context.facts.output_activation() == Some(Activation::Softmax);
        (softmax && output.output_shape.last() == Some(&1)).then(|| {
            let message = "The output layer applies softmax to a single unit, so its output is \
                           always 1.";
            Finding::new(self.problem(), context.step(), message)
                .certain()
                .within(vec![output.name.clone()])
        })
    }

    fn observe(&mut self, seen: &Observation, context: &Context<'_>) -> Option<Finding> {
        let unexplained = !seen.loss.is_finite() && !conditions::has_broken_input(context);
        if unexplained { self.finding(context) } else { None }
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        if conditions::is_behind(context) { self.finding(context) } else { None }
    }
}

impl ImproperOutputActivation {
    fn finding(self, context: &Context<'_>) -> Option<Finding> {
        let why = mismatch(context.facts)?;
        let output = context.facts.output_layer().map(|layer| layer.name.clone());
        let task = match context.facts.task? {
            TaskKind::Binary => "two classes",
            TaskKind::MultiClass => "several classes",
            TaskKind::MultiLabel => "several labels",
            TaskKind::Regression => "a regression",
        };
        Some(
            Finding::new(
                self.problem(),
                context.step(),
                format!("For {task}, the model ends with {why}."),
            )
            .since(1)
            .within(output.into_iter().collect())
            .with_skill(context),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, facts, with_output};
    use super::*;
    use crate::finding::Confidence;

    #[test]
    fn a_relu_for_a_probability_is_found_when_it_does_not_learn() {
        let facts = with_output(facts(), Activation::Relu);
        let found =
            Course::new(facts.clone()).skill(|_| 0.1).run(ImproperOutputActivation::default());
        assert!(found.is_some_and(|f| f.message.contains("`sigmoid`")));
        let learns = Course::new(facts).skill(|p| 30.0 * p);
        assert_eq!(learns.run(ImproperOutputActivation::default()), None);
    }

    #[test]
    fn a_softmax_over_one_unit_is_certain_before_the_first_step() {
        let facts = with_output(facts(), Activation::Softmax);
        let found = Course::new(facts).skill(|_| 0.9).run(ImproperOutputActivation::default());
        let found = found.unwrap();
        assert_eq!((found.step, found.confidence), (0, Confidence::Certain));
    }

    #[test]
    fn an_improper_output_is_named_as_the_cause_of_a_nan_loss() {
        let mut course = Course::new(with_output(facts(), Activation::Relu)).skill(|_| 0.9);
        course.change(|step, seen| {
            if step == 3 {
                seen.loss = f64::NAN;
            }
        });
        let found = course.run(ImproperOutputActivation::default());
        assert_eq!(found.map(|found| found.step), Some(3));
    }

    #[test]
    fn logits_are_right_where_the_loss_takes_them() {
        let facts = Facts { from_logits: true, ..with_output(facts(), Activation::Linear) };
        assert_eq!(mismatch(&facts), None);
    }

    #[test]
    fn labels_need_a_sigmoid_each() {
        let labels = |activation| Facts {
            task: Some(TaskKind::MultiLabel),
            ..with_output(facts(), activation)
        };
        assert_eq!(mismatch(&labels(Activation::Sigmoid)), None);
        for activation in [Activation::Softmax, Activation::Linear, Activation::Relu] {
            let why = mismatch(&labels(activation));
            assert!(why.is_some_and(|why| why.contains("one `sigmoid` per label")));
        }
        let logits = Facts { from_logits: true, ..labels(Activation::Linear) };
        assert_eq!(mismatch(&logits), None);
    }

    #[test]
    fn a_bounded_output_is_right_for_bounded_targets_only() {
        let regression = |range| Facts {
            task: Some(TaskKind::Regression),
            loss: Some("mse".to_owned()),
            target_range: Some(range),
            ..with_output(facts(), Activation::Sigmoid)
        };
        assert_eq!(mismatch(&regression([0.0, 1.0])), None);
        assert!(mismatch(&regression([0.0, 25.0])).is_some());
    }
}
