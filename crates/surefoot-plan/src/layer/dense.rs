//! The dense layer.

use crate::language::{Fields, Record, any, name};
use crate::{Activation, Initializer, Regularizer};

/// `activation(x W + b)`, on the last dimension of its input.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    /// A name for people and for weights; made from the kind and position if absent.
    pub name: Option<String>,
    /// Outputs.
    pub units: usize,
    /// Applied to the outputs.
    pub activation: Activation,
    /// Whether to add a bias.
    pub use_bias: bool,
    /// Initial weights.
    pub kernel_initializer: Initializer,
    /// Initial biases.
    pub bias_initializer: Initializer,
    /// Penalty on the weights.
    pub kernel_regularizer: Regularizer,
    /// Penalty on the biases.
    pub bias_regularizer: Regularizer,
}

impl Dense {
    /// A dense layer with Keras's defaults.
    pub fn new(units: usize) -> Self {
        Self {
            name: None,
            units,
            activation: Activation::Linear,
            use_bias: true,
            kernel_initializer: Initializer::GlorotUniform,
            bias_initializer: Initializer::Zeros,
            kernel_regularizer: Regularizer::default(),
            bias_regularizer: Regularizer::default(),
        }
    }
}

impl Record for Dense {
    fn fields<F: Fields>(&mut self, f: &mut F) {
        f.maybe("name", &mut self.name, name);
        f.required("units", &mut self.units, any);
        f.optional("activation", &mut self.activation, any);
        f.optional("use_bias", &mut self.use_bias, any);
        f.optional("kernel_initializer", &mut self.kernel_initializer, any);
        f.optional("bias_initializer", &mut self.bias_initializer, any);
        f.optional("kernel_regularizer", &mut self.kernel_regularizer, any);
        f.optional("bias_regularizer", &mut self.bias_regularizer, any);
    }
}
