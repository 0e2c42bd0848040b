//! Transformer encoder block.

use super::{LayerSpec, Role};
use crate::language::{name, positive, record, share};
use crate::shape::{Input, Mismatch, Output, affine, divide_into_heads};
use crate::{Activation, Initializer};

/// Encoder block of a transformer: attention, then two dense layers, each with a residual
/// connection, dropout and layer normalization.
#[derive(Clone, Debug, PartialEq)]
pub struct Transformer {
    /// Name of the layer.
    pub name: Option<String>,
    /// Number of heads.
    pub num_heads: usize,
    /// Units of the inner dense layer.
    pub feed_forward: usize,
    /// Applied to the inner dense layer.
    pub activation: Activation,
    /// Fraction of values dropped on both branches in training.
    pub dropout: f64,
    /// Normalizes before each branch instead of after its sum.
    pub norm_first: bool,
    /// Added to the variance.
    pub epsilon: f64,
    /// Initial weights.
    pub kernel_initializer: Initializer,
}

impl Transformer {
    /// An encoder block with the defaults of KerasHub's `TransformerEncoder`, except `epsilon`,
    /// which is that of the normalization layers.
    pub fn new(num_heads: usize, feed_forward: usize) -> Self {
        Self {
            name: None,
            num_heads,
            feed_forward,
            activation: Activation::Relu,
            dropout: 0.0,
            norm_first: false,
            epsilon: 1e-3,
            kernel_initializer: Initializer::GlorotUniform,
        }
    }
}

record! { Transformer;
    maybe: name(name);
    required: num_heads, feed_forward;
    optional: activation, dropout(share), norm_first, epsilon(positive), kernel_initializer;
}

impl LayerSpec for Transformer {
    const ROLE: Role = Role::Compute;

    fn template() -> Self {
        Self::new(1, 1)
    }

    fn output(&self, input: Input<'_>) -> Result<Output, Mismatch> {
        let [_, features] = input.sequence()?;
        divide_into_heads(features, self.num_heads)?;
        let attention = affine(features, features, true).saturating_mul(4);
        let inner = affine(features, self.feed_forward, true);
        let outer = affine(self.feed_forward, features, true);
        let norms = features.saturating_mul(4);
        let parameters = attention.saturating_add(inner).saturating_add(outer);
        Output::new(input.shape.to_vec(), parameters.saturating_add(norms))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layer, output_of};
    use super::*;

    #[test]
    fn parameters_include_attention_norms_and_dense_layers() {
        let block = Layer::Transformer(Transformer::new(2, 16));
        assert_eq!(output_of(block, &[7, 8]), (vec![7, 8], 288 + 32 + 280));
    }
}
