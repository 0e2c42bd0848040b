//! `initializer` (S4): substitute initializers.

use crate::remedy::{Change, Remedy, RemedyContext};
use surefoot_plan::{Activation, Initializer, Layer, Plan, walk_mut};

/// `initializer` (S4): draws the initial weights as suits the activation they feed: He's for ReLU and its kin,
/// LeCun's for SELU, Glorot's for the others; recurrent ones orthogonal, biases zero.
#[derive(Clone, Copy, Debug)]
pub struct SubstituteInitializer;

/// The initializer made for an activation.
pub(super) fn suited(activation: Activation) -> Initializer {
    match activation {
        Activation::Relu
        | Activation::LeakyRelu { .. }
        | Activation::Elu { .. }
        | Activation::Gelu { .. }
        | Activation::Silu
        | Activation::Softplus => Initializer::HeNormal,
        Activation::Selu => Initializer::LecunNormal,
        _ => Initializer::GlorotUniform,
    }
}

impl Remedy for SubstituteInitializer {
    fn id(&self) -> &'static str {
        "initializer"
    }

    fn title(&self) -> &'static str {
        "replace initializers"
    }

    fn reinitializes(&self) -> bool {
        true
    }

    fn apply(&self, plan: &Plan, _: &RemedyContext<'_>, variant: usize) -> Result<Change, String> {
        if variant > 0 {
            return Err("there is one initializer that suits each activation".to_owned());
        }
        let mut changed = plan.clone();
        reinitialize(&mut changed);
        Change::new(
            plan,
            changed,
            "Re-initializes the weights of every layer to fit its activation.",
        )
    }
}

/// Gives every layer the initializers that suit it.
pub(super) fn reinitialize(plan: &mut Plan) {
    // A layer without an activation of its own feeds the next one that is.
    let mut next = Vec::new();
    walk_mut(&mut plan.model, &mut |layer, _| next.push(layer.activation()));
    let feeds = |i: usize| {
        let mut following = next[i..].iter().flatten();
        let own = next[i].unwrap_or_default();
        match own {
            Activation::Linear => following
                .find(|activation| **activation != Activation::Linear)
                .copied()
                .unwrap_or_default(),
            own => own,
        }
    };
    let mut i = 0;
    walk_mut(&mut plan.model, &mut |layer, output| {
        let activation = if output { layer.activation().unwrap_or_default() } else { feeds(i) };
        i += 1;
        if matches!(layer, Layer::Transformer(_) | Layer::MultiHeadAttention(_))
            || layer.is_recurrent()
        {
            if let Some(initializer) = layer.kernel_initializer_mut() {
                *initializer = Initializer::GlorotUniform;
            }
        } else if let Some(initializer) = layer.kernel_initializer_mut() {
            *initializer = suited(activation);
        }
        if let Some(initializer) = layer.recurrent_initializer_mut() {
            *initializer = Initializer::orthogonal();
        }
        if let Some(initializer) = layer.bias_initializer_mut() {
            *initializer = Initializer::Zeros;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, finding, plan};
    use super::*;
    use surefoot_diagnose::Problem;

    #[test]
    fn weights_are_drawn_to_suit_what_they_feed() {
        let (facts, finding) = (facts(), finding(Problem::DYING_RELU));
        let context = RemedyContext { finding: &finding, facts: &facts };
        let mut wrong = plan();
        walk_mut(&mut wrong.model, &mut |layer, output| {
            if let Layer::Dense(dense) = layer {
                dense.bias_initializer = Initializer::Constant { value: -5.0 };
                if !output {
                    dense.activation = Activation::Relu;
                }
            }
        });
        let change = SubstituteInitializer.apply(&wrong, &context, 0).unwrap();
        let Layer::Dense(first) = &change.plan.model[0] else { panic!("a dense layer") };
        assert_eq!(first.kernel_initializer, Initializer::HeNormal);
        assert_eq!(first.bias_initializer, Initializer::Zeros);
        assert!(SubstituteInitializer.apply(&plan(), &context, 0).is_err());
    }
}
