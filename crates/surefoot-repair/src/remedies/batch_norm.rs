//! `batch_norm` (S1): batch normalisation.

use crate::remedy::{Change, Remedy, RemedyContext};
use surefoot_plan::{Activation, ActivationLayer, BatchNorm, Layer, Plan, output_position};

/// `batch_norm` (S1): adds batch normalisation before the activations of hidden layers (Ioffe and Szegedy).
///
/// The moving statistics follow with a momentum of 0.9 instead of Keras's 0.99: runs that need a
/// remedy are often short, and with 0.99 the statistics of the first hundreds of steps are still in
/// what validation sees.
#[derive(Clone, Copy, Debug)]
pub struct BatchNormalisation;

impl Remedy for BatchNormalisation {
    fn id(&self) -> &'static str {
        "batch_norm"
    }

    fn title(&self) -> &'static str {
        "add batch normalization"
    }

    fn apply(&self, plan: &Plan, _: &RemedyContext<'_>, variant: usize) -> Result<Change, String> {
        if variant > 0 {
            return Err("it is added once".to_owned());
        }
        let mut changed = plan.clone();
        let (layers, count) = normalised(std::mem::take(&mut changed.model), true);
        changed.model = layers;
        if count == 0 {
            return Err("no hidden layer has an activation that could be normalised".to_owned());
        }
        // Over a handful of samples, statistics are noise.
        changed.training.batch_size = changed.training.batch_size.max(16);
        let message = format!("Adds batch normalization before {count} hidden activations.");
        Change::new(plan, changed, message)
    }
}

/// The layers with normalisation before every hidden activation that has none, and how many.
pub(super) fn normalised(layers: Vec<Layer>, ends_model: bool) -> (Vec<Layer>, usize) {
    let output = ends_model.then(|| output_position(&layers)).flatten();
    let mut result: Vec<Layer> = Vec::with_capacity(layers.len() * 3);
    let mut count = 0;
    let norm = || Layer::BatchNorm(BatchNorm { momentum: 0.9, ..BatchNorm::default() });
    for (i, mut layer) in layers.into_iter().enumerate() {
        let hidden = output.is_none_or(|output| i < output);
        match &mut layer {
            Layer::Residual(residual) => {
                let (inner, more) = normalised(std::mem::take(&mut residual.layers), false);
                residual.layers = inner;
                count += more;
                result.push(layer);
            }
            Layer::Dense(_) | Layer::Conv1d(_) | Layer::Conv2d(_) if hidden => {
                let activation = layer.activation().unwrap_or_default();
                if activation == Activation::Linear {
                    result.push(layer);
                    continue;
                }
                if let Some(place) = layer.activation_mut() {
                    *place = Activation::Linear;
                }
                result.extend([layer, norm()]);
                result.push(Layer::Activation(ActivationLayer::new(activation)));
                count += 1;
            }
            Layer::Activation(_) if hidden && !result.last().is_some_and(Layer::is_norm) => {
                result.extend([norm(), layer]);
                count += 1;
            }
            _ => result.push(layer),
        }
    }
    (result, count)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, finding, plan};
    use super::*;
    use surefoot_diagnose::Problem;

    #[test]
    fn hidden_activations_are_normalised_once_and_the_output_is_not() {
        let (facts, finding) = (facts(), finding(Problem::VANISHING_GRADIENT));
        let context = RemedyContext { finding: &finding, facts: &facts };
        let change = BatchNormalisation.apply(&plan(), &context, 0).unwrap();
        let kinds: Vec<&str> = change.plan.model.iter().map(Layer::kind).collect();
        let block = ["dense", "batch_norm", "activation"];
        assert_eq!(kinds, [&block[..], &block[..], &["dense"]].concat());
        change.plan.validate().unwrap();
        assert!(BatchNormalisation.apply(&change.plan, &context, 0).is_err());
    }
}
