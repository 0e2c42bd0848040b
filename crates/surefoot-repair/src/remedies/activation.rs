//! `activation` (S2): substitute activations.

use super::initializer::suited;
use crate::remedy::{Change, Remedy, RemedyContext};
use surefoot_diagnose::{Problem, TaskKind};
use surefoot_plan::{Activation, Layer, Loss, Plan, output_position, walk_mut};

/// `activation` (S2): substitutes activations, those of hidden layers by ReLU and its kin, that of the output by
/// what the task asks for.
///
/// Weights are drawn anew by what suits the activation: SELU keeps its promise only with LeCun's
/// initializer, ReLU with He's. The activation of a recurrent layer is part of what it is and stays.
#[derive(Clone, Copy, Debug)]
pub struct SubstituteActivation;

impl Remedy for SubstituteActivation {
    fn id(&self) -> &'static str {
        "activation"
    }

    fn title(&self) -> &'static str {
        "replace activations"
    }

    fn reinitializes(&self) -> bool {
        true
    }

    fn apply(
        &self,
        plan: &Plan,
        context: &RemedyContext<'_>,
        variant: usize,
    ) -> Result<Change, String> {
        if context.finding.problem == Problem::IMPROPER_OUTPUT_ACTIVATION {
            return if variant == 0 {
                output(plan, context)
            } else {
                Err("there is one output that suits the task".to_owned())
            };
        }
        let candidates: [Activation; 3] = if context.finding.problem == Problem::DYING_RELU {
            [Activation::leaky_relu(), Activation::Selu, Activation::elu()]
        } else {
            [Activation::Selu, Activation::leaky_relu(), Activation::Relu]
        };
        let Some(activation) = candidates.get(variant) else {
            return Err("all substitutes were tried".to_owned());
        };
        hidden(plan, *activation)
    }
}

fn hidden(plan: &Plan, activation: Activation) -> Result<Change, String> {
    let mut changed = plan.clone();
    let mut count = 0;
    walk_mut(&mut changed.model, &mut |layer, is_output| {
        if is_output || layer.is_recurrent() {
            return;
        }
        let Some(place) = layer.activation_mut().filter(|a| **a != Activation::Linear) else {
            return;
        };
        if *place == Activation::Softmax || *place == activation {
            return;
        }
        *place = activation;
        count += 1;
        if let Some(initializer) = layer.kernel_initializer_mut() {
            *initializer = suited(activation);
        }
        if let Some(initializer) = layer.bias_initializer_mut() {
            *initializer = surefoot_plan::Initializer::Zeros;
        }
    });
    // An activation of its own follows the layer whose weights it is fed by.
    if count > 0 {
        suit_fed(&mut changed.model, activation);
    }
    let message = format!(
        "Replaces {count} hidden activations with {} and re-initializes their weights.",
        activation.name()
    );
    if count == 0 {
        return Err("there is no hidden activation to substitute".to_owned());
    }
    Change::new(plan, changed, message)
}

/// Draws the weights of hidden layers without an activation of their own to suit `activation`.
fn suit_fed(layers: &mut [Layer], activation: Activation) {
    walk_mut(layers, &mut |layer, output| {
        let linear = matches!(layer, Layer::Dense(_) | Layer::Conv1d(_) | Layer::Conv2d(_))
            && layer.activation() == Some(Activation::Linear);
        if linear
            && !output
            && let Some(initializer) = layer.kernel_initializer_mut()
        {
            *initializer = suited(activation);
        }
    });
}

fn output(plan: &Plan, context: &RemedyContext<'_>) -> Result<Change, String> {
    let mut changed = plan.clone();
    let position = output_position(&changed.model).ok_or("the model has no output layer")?;
    let units = match &changed.model[position] {
        Layer::Dense(dense) => Some(dense.units),
        _ => None,
    };
    let from_logits = matches!(
        plan.training.loss,
        Loss::BinaryCrossentropy { from_logits: true }
            | Loss::CategoricalCrossentropy { from_logits: true }
            | Loss::SparseCategoricalCrossentropy { from_logits: true }
    );
    let activation = match context.facts.task.ok_or("the task is not known")? {
        TaskKind::Regression => Activation::Linear,
        _ if from_logits => Activation::Linear,
        TaskKind::Binary if plan.training.loss == Loss::Hinge => Activation::Tanh,
        TaskKind::Binary if units.is_none_or(|units| units == 1) => Activation::Sigmoid,
        TaskKind::Binary | TaskKind::MultiClass => Activation::Softmax,
    };
    // Whatever stood behind the layer as an activation of its own goes.
    changed.model.truncate(position + 1);
    let place = changed.model[position]
        .activation_mut()
        .ok_or("the output layer has no activation of its own")?;
    *place = activation;
    let message =
        format!("Sets the output activation to {}, which fits the task.", activation.name());
    Change::new(plan, changed, message)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, finding, plan};
    use super::*;
    use surefoot_plan::{Initializer, output_activation};

    #[test]
    fn hidden_activations_change_and_the_output_stays() {
        let (facts, finding) = (facts(), finding(Problem::VANISHING_GRADIENT));
        let context = RemedyContext { finding: &finding, facts: &facts };
        let change = SubstituteActivation.apply(&plan(), &context, 0).unwrap();
        let Layer::Dense(first) = &change.plan.model[0] else { panic!("a dense layer") };
        assert_eq!(first.activation, Activation::Selu);
        assert_eq!(first.kernel_initializer, Initializer::LecunNormal);
        assert_eq!(output_activation(&change.plan.model), Activation::Sigmoid);
        assert!(SubstituteActivation.apply(&plan(), &context, 3).is_err());
    }

    #[test]
    fn an_improper_output_gets_what_the_task_asks_for() {
        let (facts, finding) = (facts(), finding(Problem::IMPROPER_OUTPUT_ACTIVATION));
        let context = RemedyContext { finding: &finding, facts: &facts };
        let mut wrong = plan();
        if let Some(place) = wrong.model[2].activation_mut() {
            *place = Activation::Relu;
        }
        let change = SubstituteActivation.apply(&wrong, &context, 0).unwrap();
        assert_eq!(change.plan, plan());
    }
}
