//! Gated recurrent unit.

use super::recurrent::{Recurrent, RecurrentLayer};
use crate::language::{name, record};
use crate::{Activation, Initializer, Regularizer};

/// Gated recurrent unit.
///
/// Weights: `kernel` `[in, 3 units]`, `recurrent_kernel` `[units, 3 units]`, `bias` `[2, 3 units]`
/// (`[3 units]` unless `reset_after`). The order of the gates is that of Keras: update, reset,
/// candidate.
///
/// A bidirectional layer has each array twice, with the prefixes `forward_` and `backward_`.
#[derive(Clone, Debug, PartialEq)]
pub struct Gru {
    /// Name of the layer.
    pub name: Option<String>,
    /// Size of the state.
    pub units: usize,
    /// Applied to the candidate.
    pub activation: Activation,
    /// Applied to the gates.
    pub recurrent_activation: Activation,
    /// Adds a bias.
    pub use_bias: bool,
    /// Applies the reset gate after the recurrent product, as cuDNN and PyTorch do.
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
    /// Returns the state of every step instead of only the last.
    pub return_sequences: bool,
    /// Also reads the sequence backwards and concatenates both states.
    pub bidirectional: bool,
}

impl Gru {
    /// A GRU with the defaults of Keras.
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

record! { Gru;
    maybe: name(name);
    required: units;
    optional: activation, recurrent_activation, use_bias, reset_after, kernel_initializer,
        recurrent_initializer, bias_initializer, kernel_regularizer, recurrent_regularizer,
        return_sequences, bidirectional;
}

impl RecurrentLayer for Gru {
    fn of_one_unit() -> Self {
        Self::new(1)
    }

    fn dimensions(&self) -> Recurrent {
        Recurrent {
            units: self.units,
            gates: 3,
            use_bias: self.use_bias,
            second_bias: self.use_bias && self.reset_after,
            return_sequences: self.return_sequences,
            bidirectional: self.bidirectional,
        }
    }

    #[cfg(feature = "keras")]
    fn keras_template() -> Self {
        // Keras files written before the option existed do not contain it.
        Self { reset_after: false, ..Self::new(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layer, output_of};
    use super::*;

    #[test]
    fn reset_after_needs_a_second_bias() {
        let gru = Gru::new(4);
        assert_eq!(output_of(Layer::Gru(gru.clone()), &[7, 3]), (vec![4], 108));
        let gru = Gru { reset_after: false, ..gru };
        assert_eq!(output_of(Layer::Gru(gru), &[7, 3]), (vec![4], 96));
    }
}
