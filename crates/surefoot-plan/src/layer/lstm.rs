//! Long short-term memory.

use super::recurrent::{Recurrent, RecurrentLayer};
use crate::language::{name, record};
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
}

record! { Lstm;
    maybe: name(name);
    required: units;
    optional: activation, recurrent_activation, use_bias, unit_forget_bias,
        kernel_initializer, recurrent_initializer, bias_initializer, kernel_regularizer,
        recurrent_regularizer, return_sequences, bidirectional;
}

impl RecurrentLayer for Lstm {
    fn of_one_unit() -> Self {
        Self::new(1)
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
