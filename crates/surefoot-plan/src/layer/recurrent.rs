//! Layers with a state that runs along a sequence.

use crate::language::{Fields, Record, any, name};
use crate::{Activation, Initializer, Regularizer};

/// Recurrent layer: `h = activation(x W + h U + b)`.
#[derive(Clone, Debug, PartialEq)]
pub struct SimpleRnn {
    /// A name for people and for weights.
    pub name: Option<String>,
    /// Size of the state.
    pub units: usize,
    /// Applied to the state.
    pub activation: Activation,
    /// Whether to add a bias.
    pub use_bias: bool,
    /// Initial input weights.
    pub kernel_initializer: Initializer,
    /// Initial recurrent weights.
    pub recurrent_initializer: Initializer,
    /// Initial biases.
    pub bias_initializer: Initializer,
    /// Penalty on the input weights.
    pub kernel_regularizer: Regularizer,
    /// Penalty on the recurrent weights.
    pub recurrent_regularizer: Regularizer,
    /// Whether to give the state of every step, or only the last.
    pub return_sequences: bool,
    /// Whether to read the sequence backwards too and concatenate.
    pub bidirectional: bool,
}

/// Long short-term memory; gates in Keras's order (input, forget, cell, output).
#[derive(Clone, Debug, PartialEq)]
pub struct Lstm {
    /// A name for people and for weights.
    pub name: Option<String>,
    /// Size of the state.
    pub units: usize,
    /// Applied to the candidate and the output.
    pub activation: Activation,
    /// Applied to the gates.
    pub recurrent_activation: Activation,
    /// Whether to add a bias.
    pub use_bias: bool,
    /// Whether the forget gate's bias starts at one.
    pub unit_forget_bias: bool,
    /// Initial input weights.
    pub kernel_initializer: Initializer,
    /// Initial recurrent weights.
    pub recurrent_initializer: Initializer,
    /// Initial biases.
    pub bias_initializer: Initializer,
    /// Penalty on the input weights.
    pub kernel_regularizer: Regularizer,
    /// Penalty on the recurrent weights.
    pub recurrent_regularizer: Regularizer,
    /// Whether to give the state of every step, or only the last.
    pub return_sequences: bool,
    /// Whether to read the sequence backwards too and concatenate.
    pub bidirectional: bool,
}

/// Gated recurrent unit; gates in Keras's order (update, reset, candidate).
#[derive(Clone, Debug, PartialEq)]
pub struct Gru {
    /// A name for people and for weights.
    pub name: Option<String>,
    /// Size of the state.
    pub units: usize,
    /// Applied to the candidate.
    pub activation: Activation,
    /// Applied to the gates.
    pub recurrent_activation: Activation,
    /// Whether to add a bias.
    pub use_bias: bool,
    /// Whether the reset gate is applied after the recurrent product (as cuDNN and PyTorch do).
    pub reset_after: bool,
    /// Initial input weights.
    pub kernel_initializer: Initializer,
    /// Initial recurrent weights.
    pub recurrent_initializer: Initializer,
    /// Initial biases.
    pub bias_initializer: Initializer,
    /// Penalty on the input weights.
    pub kernel_regularizer: Regularizer,
    /// Penalty on the recurrent weights.
    pub recurrent_regularizer: Regularizer,
    /// Whether to give the state of every step, or only the last.
    pub return_sequences: bool,
    /// Whether to read the sequence backwards too and concatenate.
    pub bidirectional: bool,
}

impl SimpleRnn {
    /// A recurrent layer with Keras's defaults.
    pub fn new(units: usize) -> Self {
        Self {
            name: None,
            units,
            activation: Activation::Tanh,
            use_bias: true,
            kernel_initializer: Initializer::GlorotUniform,
            recurrent_initializer: Initializer::orthogonal(),
            bias_initializer: Initializer::Zeros,
            kernel_regularizer: Regularizer::default(),
            recurrent_regularizer: Regularizer::default(),
            return_sequences: false,
            bidirectional: false,
        }
    }
}

impl Record for SimpleRnn {
    fn fields<F: Fields>(&mut self, f: &mut F) {
        f.maybe("name", &mut self.name, name);
        f.required("units", &mut self.units, any);
        f.optional("activation", &mut self.activation, any);
        f.optional("use_bias", &mut self.use_bias, any);
        f.optional("kernel_initializer", &mut self.kernel_initializer, any);
        f.optional("recurrent_initializer", &mut self.recurrent_initializer, any);
        f.optional("bias_initializer", &mut self.bias_initializer, any);
        f.optional("kernel_regularizer", &mut self.kernel_regularizer, any);
        f.optional("recurrent_regularizer", &mut self.recurrent_regularizer, any);
        f.optional("return_sequences", &mut self.return_sequences, any);
        f.optional("bidirectional", &mut self.bidirectional, any);
    }
}

impl Lstm {
    /// An LSTM with Keras's defaults.
    pub fn new(units: usize) -> Self {
        Self {
            name: None,
            units,
            activation: Activation::Tanh,
            recurrent_activation: Activation::Sigmoid,
            use_bias: true,
            unit_forget_bias: true,
            kernel_initializer: Initializer::GlorotUniform,
            recurrent_initializer: Initializer::orthogonal(),
            bias_initializer: Initializer::Zeros,
            kernel_regularizer: Regularizer::default(),
            recurrent_regularizer: Regularizer::default(),
            return_sequences: false,
            bidirectional: false,
        }
    }
}

impl Record for Lstm {
    fn fields<F: Fields>(&mut self, f: &mut F) {
        f.maybe("name", &mut self.name, name);
        f.required("units", &mut self.units, any);
        f.optional("activation", &mut self.activation, any);
        f.optional("recurrent_activation", &mut self.recurrent_activation, any);
        f.optional("use_bias", &mut self.use_bias, any);
        f.optional("unit_forget_bias", &mut self.unit_forget_bias, any);
        f.optional("kernel_initializer", &mut self.kernel_initializer, any);
        f.optional("recurrent_initializer", &mut self.recurrent_initializer, any);
        f.optional("bias_initializer", &mut self.bias_initializer, any);
        f.optional("kernel_regularizer", &mut self.kernel_regularizer, any);
        f.optional("recurrent_regularizer", &mut self.recurrent_regularizer, any);
        f.optional("return_sequences", &mut self.return_sequences, any);
        f.optional("bidirectional", &mut self.bidirectional, any);
    }
}

impl Gru {
    /// A GRU with Keras's defaults.
    pub fn new(units: usize) -> Self {
        Self {
            name: None,
            units,
            activation: Activation::Tanh,
            recurrent_activation: Activation::Sigmoid,
            use_bias: true,
            reset_after: true,
            kernel_initializer: Initializer::GlorotUniform,
            recurrent_initializer: Initializer::orthogonal(),
            bias_initializer: Initializer::Zeros,
            kernel_regularizer: Regularizer::default(),
            recurrent_regularizer: Regularizer::default(),
            return_sequences: false,
            bidirectional: false,
        }
    }
}

impl Record for Gru {
    fn fields<F: Fields>(&mut self, f: &mut F) {
        f.maybe("name", &mut self.name, name);
        f.required("units", &mut self.units, any);
        f.optional("activation", &mut self.activation, any);
        f.optional("recurrent_activation", &mut self.recurrent_activation, any);
        f.optional("use_bias", &mut self.use_bias, any);
        f.optional("reset_after", &mut self.reset_after, any);
        f.optional("kernel_initializer", &mut self.kernel_initializer, any);
        f.optional("recurrent_initializer", &mut self.recurrent_initializer, any);
        f.optional("bias_initializer", &mut self.bias_initializer, any);
        f.optional("kernel_regularizer", &mut self.kernel_regularizer, any);
        f.optional("recurrent_regularizer", &mut self.recurrent_regularizer, any);
        f.optional("return_sequences", &mut self.return_sequences, any);
        f.optional("bidirectional", &mut self.bidirectional, any);
    }
}
