//! `activation` (S2): replace activations.

use crate::action::Action;
use crate::remedy::{Remedy, RemedyContext};
use surefoot_diagnose::{Activation, Facts, Problem, TaskKind};

/// `activation` (S2): replaces the activations of hidden layers with relatives of ReLU, or that of the output
/// with the one that fits the task.
///
/// Weights are re-initialized to fit: SELU needs LeCun's initializer, ReLU He's.
#[derive(Clone, Copy, Debug)]
pub struct SubstituteActivation;

impl Remedy for SubstituteActivation {
    fn id(&self) -> &'static str {
        "activation"
    }

    fn title(&self) -> &'static str {
        "replace activations"
    }

    fn propose(&self, context: &RemedyContext<'_>, variant: usize) -> Result<Vec<Action>, String> {
        if context.finding.problem == Problem::IMPROPER_OUTPUT_ACTIVATION {
            return match variant {
                0 => Ok(vec![Action::SetOutputActivation(output(context.facts)?)]),
                _ => Err("one output activation fits the task".to_owned()),
            };
        }
        let candidates = if context.finding.problem == Problem::DYING_RELU {
            [Activation::LeakyRelu, Activation::Selu, Activation::Elu]
        } else {
            [Activation::Selu, Activation::LeakyRelu, Activation::Relu]
        };
        let activation = candidates.into_iter().nth(variant);
        Ok(vec![Action::SwapActivation(activation.ok_or("all activations were tried")?)])
    }
}

/// The output activation that fits the task and the loss.
fn output(facts: &Facts) -> Result<Activation, String> {
    let one_unit = output_units(facts).is_none_or(|units| units == 1);
    Ok(match facts.task.ok_or("the task is unknown")? {
        TaskKind::Regression => Activation::Linear,
        _ if facts.from_logits => Activation::Linear,
        TaskKind::Binary | TaskKind::MultiLabel if facts.loss.as_deref() == Some("hinge") => {
            Activation::Tanh
        }
        TaskKind::MultiLabel => Activation::Sigmoid,
        TaskKind::Binary if one_unit => Activation::Sigmoid,
        TaskKind::Binary | TaskKind::MultiClass => Activation::Softmax,
    })
}

/// Number of units of the output layer, if known.
pub(super) fn output_units(facts: &Facts) -> Option<usize> {
    facts.layers.iter().rev().find_map(|layer| layer.units)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, propose, wide};
    use super::*;

    #[test]
    fn hidden_activations_have_three_variants() {
        let actions = propose(&SubstituteActivation, Problem::VANISHING_GRADIENT, &facts());
        let all = [Activation::Selu, Activation::LeakyRelu, Activation::Relu];
        assert_eq!(actions, all.map(|activation| vec![Action::SwapActivation(activation)]));
    }

    #[test]
    fn the_output_activation_fits_the_task() {
        let of = |facts: &Facts| {
            propose(&SubstituteActivation, Problem::IMPROPER_OUTPUT_ACTIVATION, facts)
        };
        let sigmoid = vec![Action::SetOutputActivation(Activation::Sigmoid)];
        assert_eq!(of(&facts()), [sigmoid]);
        let labels = Facts { task: Some(TaskKind::MultiLabel), ..wide(8) };
        assert_eq!(of(&labels), [[Action::SetOutputActivation(Activation::Sigmoid)]]);
        let logits = Facts { from_logits: true, ..facts() };
        assert_eq!(of(&logits), [[Action::SetOutputActivation(Activation::Linear)]]);
    }
}
