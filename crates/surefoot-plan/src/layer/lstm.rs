//! Long short-term memory.

use super::recurrent::Recurrent;
use super::{LayerSpec, Role};
#[cfg(feature = "keras")]
use crate::keras::{self, KerasArrays, LayerConfig};
use crate::language::{Fields, Record, any, name};
use crate::shape::{Input, Mismatch, Output};
use crate::{Activation, Initializer, Regularizer};

/// Long short-term memory.
///
/// Weights: `kernel` `[in, 4 units]`, `recurrent_kernel` `[units, 4 units]`, `bias` `[4 units]`. The
/// order of the gates is that of Keras: input, forget, cell, output.
///
/// A bidirectional layer has each array twice, with the prefixes `forward_` and `backward_`.
#[derive(Clone, Debug, PartialEq)]
pub struct Lstm {
    /// Name of the layer.
    pub name: Option<String>,
    /// Size of the state.
    pub units: usize,
    /// Applied to the candidate and the output.
    pub activation: Activation,
    /// Applied to the gates.
    pub recurrent_activation: Activation,
    /// Adds a bias.
    pub use_bias: bool,
    /// Starts the bias of the forget gate at one.
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
    /// Returns the state of every step instead of only the last.
    pub return_sequences: bool,
    /// Also reads the sequence backwards and concatenates both states.
    pub bidirectional: bool,
}

impl Lstm {
    /// An LSTM with the defaults of Keras.
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

    fn dimensions(&self) -> Recurrent {
        Recurrent {
            units: self.units,
            gates: 4,
            use_bias: self.use_bias,
            second_bias: false,
            return_sequences: self.return_sequences,
            bidirectional: self.bidirectional,
        }
    }
}

impl Record for Lstm {
    fn fields<'a, F: Fields<'a>>(&'a mut self, f: &mut F) {
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

impl LayerSpec for Lstm {
    const ROLE: Role = Role::Recurrent;

    fn template() -> Self {
        Self::new(1)
    }

    fn output(&self, input: Input<'_>) -> Result<Output, Mismatch> {
        self.dimensions().output(input)
    }

    #[cfg(feature = "keras")]
    fn from_keras(config: &LayerConfig<'_>) -> keras::Result<Self> {
        super::recurrent::check_keras(config)?;
        config.read(Self::template())
    }

    #[cfg(feature = "keras")]
    fn keras_arrays(&self) -> KerasArrays {
        self.dimensions().keras_arrays()
    }

    #[cfg(feature = "keras")]
    fn rank(&self, _: Option<usize>) -> Option<usize> {
        self.dimensions().rank()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layer, mismatch_of, output_of};
    use super::*;

    #[test]
    fn a_bidirectional_layer_concatenates_both_states() {
        let lstm = Lstm { return_sequences: true, bidirectional: true, ..Lstm::new(4) };
        assert_eq!(output_of(Layer::Lstm(lstm), &[7, 3]), (vec![7, 8], 256));
        assert_eq!(mismatch_of(Layer::Lstm(Lstm::new(4)), &[7]), "it needs [steps, features]");
    }
}
