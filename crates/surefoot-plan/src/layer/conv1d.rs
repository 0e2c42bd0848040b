//! One-dimensional convolution.

use super::{LayerSpec, Padding, Role};
#[cfg(feature = "keras")]
use crate::keras::{self, KerasArrays, LayerConfig};
use crate::language::{name, record};
use crate::shape::{Input, Mismatch, Output, affine, window};
use crate::{Activation, Initializer, Regularizer};

/// Convolution along the steps of a `[steps, features]` input.
///
/// Weights: `kernel` `[filters, in, width]`, `bias` `[filters]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Conv1d {
    /// Name of the layer.
    pub name: Option<String>,
    /// Number of output channels.
    pub filters: usize,
    /// Width of the window.
    pub kernel_size: usize,
    /// Distance between windows.
    pub strides: usize,
    /// Padding at the edges.
    pub padding: Padding,
    /// Distance between the positions of a window.
    pub dilation_rate: usize,
    /// Applied to the outputs.
    pub activation: Activation,
    /// Adds a bias.
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

impl Conv1d {
    /// A convolution with the defaults of Keras.
    pub fn new(filters: usize, kernel_size: usize) -> Self {
        Self {
            name: None,
            filters,
            kernel_size,
            strides: 1,
            padding: Padding::Valid,
            dilation_rate: 1,
            activation: Activation::Linear,
            use_bias: true,
            kernel_initializer: Initializer::GlorotUniform,
            bias_initializer: Initializer::Zeros,
            kernel_regularizer: Regularizer::default(),
            bias_regularizer: Regularizer::default(),
        }
    }
}

record! { Conv1d;
    maybe: name(name);
    required: filters, kernel_size;
    optional: strides, padding, dilation_rate, activation, use_bias, kernel_initializer,
        bias_initializer, kernel_regularizer, bias_regularizer;
}

impl LayerSpec for Conv1d {
    const ROLE: Role = Role::Compute;

    fn template() -> Self {
        Self::new(1, 1)
    }

    fn output(&self, input: Input<'_>) -> Result<Output, Mismatch> {
        let [steps, channels] = input.sequence()?;
        let [steps] = window(
            [steps],
            [self.kernel_size],
            [self.strides],
            [self.dilation_rate],
            self.padding,
        )?;
        let inputs = self.kernel_size.saturating_mul(channels);
        Output::new(vec![steps, self.filters], affine(inputs, self.filters, self.use_bias))
    }

    #[cfg(feature = "keras")]
    fn from_keras(config: &LayerConfig<'_>) -> keras::Result<Self> {
        config.channels_last()?;
        config.only("groups", 1)?;
        config.read(Self::template())
    }

    #[cfg(feature = "keras")]
    fn keras_arrays(&self) -> KerasArrays {
        let filters = Some(self.filters);
        KerasArrays::default()
            .with("kernel", &[Some(self.kernel_size), None, filters])
            .transposed(&[2, 1, 0])
            .with_if(self.use_bias, "bias", &[filters])
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layer, mismatch_of, output_of};
    use super::*;

    #[test]
    fn padding_decides_the_number_of_steps() {
        let conv = Conv1d::new(4, 3);
        assert_eq!(output_of(Layer::Conv1d(conv), &[10, 2]), (vec![8, 4], 28));
        let conv = Conv1d { strides: 3, padding: Padding::Same, ..Conv1d::new(4, 50) };
        assert_eq!(output_of(Layer::Conv1d(conv), &[10, 2]).0, [4, 4]);
    }

    #[test]
    fn a_window_larger_than_its_input_is_an_error() {
        let conv = Conv1d { dilation_rate: 5, ..Conv1d::new(4, 3) };
        assert_eq!(
            mismatch_of(Layer::Conv1d(conv.clone()), &[10, 2]),
            "its window covers 11, more than the input has"
        );
        assert_eq!(output_of(Layer::Conv1d(conv), &[11, 2]).0, [1, 4]);
    }
}
