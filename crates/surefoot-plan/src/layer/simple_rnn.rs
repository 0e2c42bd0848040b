//! Simple recurrent layer.

use super::recurrent::{Recurrent, RecurrentLayer};
use crate::language::{name, record};
use crate::{Activation, Initializer, Regularizer};

/// Recurrent layer: `h = activation(x W + h U + b)`.
///
/// Weights: `kernel` `[in, units]`, `recurrent_kernel` `[units, units]`, `bias` `[units]`.
///
/// A bidirectional layer has each array twice, with the prefixes `forward_` and `backward_`.
#[derive(Clone, Debug, PartialEq)]
pub struct SimpleRnn {
    /// Name of the layer.
    pub name: Option<String>,
    /// Size of the state.
    pub units: usize,
    /// Applied to the state.
    pub activation: Activation,
    /// Adds a bias.
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
    /// Returns the state of every step instead of only the last.
    pub return_sequences: bool,
    /// Also reads the sequence backwards and concatenates both states.
    pub bidirectional: bool,
}

impl SimpleRnn {
    /// A recurrent layer with the defaults of Keras.
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

record! { SimpleRnn;
    maybe: name(name);
    required: units;
    optional: activation, use_bias, kernel_initializer, recurrent_initializer,
        bias_initializer, kernel_regularizer, recurrent_regularizer, return_sequences,
        bidirectional;
}

impl RecurrentLayer for SimpleRnn {
    fn of_one_unit() -> Self {
        Self::new(1)
    }

    fn dimensions(&self) -> Recurrent {
        Recurrent {
            units: self.units,
            gates: 1,
            use_bias: self.use_bias,
            second_bias: false,
            return_sequences: self.return_sequences,
            bidirectional: self.bidirectional,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layer, output_of};
    use super::*;

    #[test]
    fn the_last_state_is_the_output() {
        assert_eq!(output_of(Layer::SimpleRnn(SimpleRnn::new(4)), &[7, 3]), (vec![4], 32));
    }
}
