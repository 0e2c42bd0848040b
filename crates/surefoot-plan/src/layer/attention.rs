//! Attention over the steps of a sequence.

use crate::language::{Fields, Record, any, name, positive, share};
use crate::{Activation, Initializer};

/// Self-attention over the steps of a `[steps, features]` input.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiHeadAttention {
    /// A name for people and for weights.
    pub name: Option<String>,
    /// Number of heads.
    pub num_heads: usize,
    /// Size of each head; the features divided by the heads if absent.
    pub key_dim: Option<usize>,
    /// Share of attention weights dropped while training.
    pub dropout: f64,
    /// Whether the four products have biases.
    pub use_bias: bool,
    /// Initial weights.
    pub kernel_initializer: Initializer,
    /// Initial biases.
    pub bias_initializer: Initializer,
}

/// A transformer's encoder block: attention, then two dense layers, each with a residual
/// connection, dropout and layer normalisation.
#[derive(Clone, Debug, PartialEq)]
pub struct Transformer {
    /// A name for people and for weights.
    pub name: Option<String>,
    /// Number of heads.
    pub num_heads: usize,
    /// Units of the block's inner dense layer.
    pub feed_forward: usize,
    /// Applied to the inner dense layer.
    pub activation: Activation,
    /// Share of values dropped on both branches while training.
    pub dropout: f64,
    /// Whether to normalise before each branch instead of after its sum.
    pub norm_first: bool,
    /// Added to the variance.
    pub epsilon: f64,
    /// Initial weights.
    pub kernel_initializer: Initializer,
}

impl MultiHeadAttention {
    /// Self-attention with Keras's defaults.
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

impl Transformer {
    /// An encoder block with the defaults of KerasHub's `TransformerEncoder`, but for `epsilon`,
    /// which is that of every other normalisation.
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

impl Record for MultiHeadAttention {
    fn fields<F: Fields>(&mut self, f: &mut F) {
        f.maybe("name", &mut self.name, name);
        f.required("num_heads", &mut self.num_heads, any);
        f.maybe("key_dim", &mut self.key_dim, any);
        f.optional("dropout", &mut self.dropout, share);
        f.optional("use_bias", &mut self.use_bias, any);
        f.optional("kernel_initializer", &mut self.kernel_initializer, any);
        f.optional("bias_initializer", &mut self.bias_initializer, any);
    }
}

impl Record for Transformer {
    fn fields<F: Fields>(&mut self, f: &mut F) {
        f.maybe("name", &mut self.name, name);
        f.required("num_heads", &mut self.num_heads, any);
        f.required("feed_forward", &mut self.feed_forward, any);
        f.optional("activation", &mut self.activation, any);
        f.optional("dropout", &mut self.dropout, share);
        f.optional("norm_first", &mut self.norm_first, any);
        f.optional("epsilon", &mut self.epsilon, positive);
        f.optional("kernel_initializer", &mut self.kernel_initializer, any);
    }
}
