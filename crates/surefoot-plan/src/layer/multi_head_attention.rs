//! Self-attention.

use super::{LayerSpec, Role};
use crate::Initializer;
use crate::language::{name, record, share};
use crate::shape::{Input, Mismatch, Output, affine, divide_into_heads};

/// Self-attention over the steps of a `[steps, features]` input.
///
/// Weights: `query_kernel`, `key_kernel`, `value_kernel` `[features, heads * key_dim]` with biases
/// `[heads * key_dim]`; `output_kernel` `[heads * key_dim, features]`, `output_bias` `[features]`.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiHeadAttention {
    /// Name of the layer.
    pub name: Option<String>,
    /// Number of heads.
    pub num_heads: usize,
    /// Size of each head; the features divided by the heads if absent.
    pub key_dim: Option<usize>,
    /// Fraction of attention weights dropped in training.
    pub dropout: f64,
    /// Adds biases to the four products.
    pub use_bias: bool,
    /// Initial weights.
    pub kernel_initializer: Initializer,
    /// Initial biases.
    pub bias_initializer: Initializer,
}

impl MultiHeadAttention {
    /// Self-attention with the defaults of Keras.
    pub fn new(num_heads: usize) -> Self {
        Self {
            name: None,
            num_heads,
            key_dim: None,
            dropout: 0.0,
            use_bias: true,
            kernel_initializer: Initializer::GlorotUniform,
            bias_initializer: Initializer::Zeros,
        }
    }
}

record! { MultiHeadAttention;
    maybe: name(name);
    required: num_heads;
    maybe: key_dim;
    optional: dropout(share), use_bias, kernel_initializer, bias_initializer;
}

impl LayerSpec for MultiHeadAttention {
    const ROLE: Role = Role::Compute;

    fn template() -> Self {
        Self::new(1)
    }

    fn output(&self, input: Input<'_>) -> Result<Output, Mismatch> {
        let [_, features] = input.sequence()?;
        let width = match self.key_dim {
            Some(key_dim) => self.num_heads.saturating_mul(key_dim),
            None => divide_into_heads(features, self.num_heads)
                .map_err(|mismatch| mismatch.help("or set `key_dim`, the size of a head"))?,
        };
        let inputs = affine(features, width, self.use_bias).saturating_mul(3);
        let outputs = affine(width, features, self.use_bias);
        Output::new(input.shape.to_vec(), inputs.saturating_add(outputs))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layer, mismatch_of, output_of};
    use super::*;

    #[test]
    fn features_are_divided_among_the_heads() {
        let attention = MultiHeadAttention::new(2);
        let layer = Layer::MultiHeadAttention(attention.clone());
        assert_eq!(output_of(layer.clone(), &[7, 8]), (vec![7, 8], 288));
        assert!(mismatch_of(layer, &[7, 9]).contains("2 heads"));
        let wide = MultiHeadAttention { key_dim: Some(5), ..attention };
        assert_eq!(output_of(Layer::MultiHeadAttention(wide), &[7, 9]), (vec![7, 9], 399));
    }
}
