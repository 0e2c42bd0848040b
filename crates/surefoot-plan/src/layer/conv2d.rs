//! Two-dimensional convolution.

use super::{LayerSpec, Padding, Role};
#[cfg(feature = "keras")]
use crate::keras::{self, KerasArrays, LayerConfig};
use crate::language::{name, record};
use crate::shape::{Input, Mismatch, Output, affine, window};
use crate::{Activation, Initializer, Regularizer};

/// Convolution over a `[height, width, channels]` input. Sizes are `[height, width]`.
///
/// Weights: `kernel` `[filters, in, height, width]`, `bias` `[filters]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Conv2d {
    /// Name of the layer.
    pub name: Option<String>,
    /// Number of output channels.
    pub filters: usize,
    /// Size of the window; one number means a square.
    pub kernel_size: [usize; 2],
    /// Distance between windows.
    pub strides: [usize; 2],
    /// Padding at the edges.
    pub padding: Padding,
    /// Distance between the positions of a window.
    pub dilation_rate: [usize; 2],
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

impl Conv2d {
    /// A convolution with the defaults of Keras.
    pub fn new(filters: usize, kernel_size: [usize; 2]) -> Self {
        Self {
            name: None,
            filters,
            kernel_size,
            strides: [1, 1],
            padding: Padding::Valid,
            dilation_rate: [1, 1],
            activation: Activation::Linear,
            use_bias: true,
            kernel_initializer: Initializer::GlorotUniform,
            bias_initializer: Initializer::Zeros,
            kernel_regularizer: Regularizer::default(),
            bias_regularizer: Regularizer::default(),
        }
    }
}

record! { Conv2d;
    maybe: name(name);
    required: filters, kernel_size;
    optional: strides, padding, dilation_rate, activation, use_bias, kernel_initializer,
        bias_initializer, kernel_regularizer, bias_regularizer;
}

impl LayerSpec for Conv2d {
    const ROLE: Role = Role::Compute;

    fn template() -> Self {
        Self::new(1, [1, 1])
    }

    fn output(&self, input: Input<'_>) -> Result<Output, Mismatch> {
        let [height, width, channels] = input.image()?;
        let [height, width] = window(
            [height, width],
            self.kernel_size,
            self.strides,
            self.dilation_rate,
            self.padding,
        )?;
        let [rows, columns] = self.kernel_size;
        let inputs = rows.saturating_mul(columns).saturating_mul(channels);
        let parameters = affine(inputs, self.filters, self.use_bias);
        Output::new(vec![height, width, self.filters], parameters)
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
        let [height, width] = self.kernel_size.map(Some);
        KerasArrays::default()
            .with("kernel", &[height, width, None, filters])
            .transposed(&[3, 2, 0, 1])
            .with_if(self.use_bias, "bias", &[filters])
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layer, output_of};
    use super::*;

    #[test]
    fn valid_windows_stay_inside() {
        let conv = Conv2d::new(6, [5, 3]);
        assert_eq!(output_of(Layer::Conv2d(conv.clone()), &[28, 28, 2]), (vec![24, 26, 6], 186));
        let strided = Conv2d { strides: [2, 3], dilation_rate: [2, 1], ..conv };
        assert_eq!(output_of(Layer::Conv2d(strided), &[28, 28, 2]), (vec![10, 9, 6], 186));
    }
}
