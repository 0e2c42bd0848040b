//! Simple recurrent layer.

use super::recurrent::Recurrent;
use super::{LayerSpec, Role};
#[cfg(feature = "keras")]
use crate::keras::{self, KerasArrays, LayerConfig};
use crate::language::{Fields, Record, any, name};
use crate::shape::{Input, Mismatch, Output};
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

impl Record for SimpleRnn {
    fn fields<'a, F: Fields<'a>>(&'a mut self, f: &mut F) {
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

impl LayerSpec for SimpleRnn {
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
    use super::super::{Layer, output_of};
    use super::*;

    #[test]
    fn the_last_state_is_the_output() {
        assert_eq!(output_of(Layer::SimpleRnn(SimpleRnn::new(4)), &[7, 3]), (vec![4], 32));
    }
}
