//! Gated recurrent unit.

use super::recurrent::Recurrent;
use super::{LayerSpec, Role};
#[cfg(feature = "keras")]
use crate::keras::{self, KerasArrays, LayerConfig};
use crate::language::{Fields, Record, any, name};
use crate::shape::{Input, Mismatch, Output};
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
}

impl Record for Gru {
    fn fields<'a, F: Fields<'a>>(&'a mut self, f: &mut F) {
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

impl LayerSpec for Gru {
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
        // Keras files written before the option existed do not contain it.
        config.read(Self { reset_after: false, ..Self::template() })
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
    fn reset_after_needs_a_second_bias() {
        let gru = Gru::new(4);
        assert_eq!(output_of(Layer::Gru(gru.clone()), &[7, 3]), (vec![4], 108));
        let gru = Gru { reset_after: false, ..gru };
        assert_eq!(output_of(Layer::Gru(gru), &[7, 3]), (vec![4], 96));
    }
}
