//! Convolutions.

use crate::language::{Choice, Fields, Record, Variant, any, name, variant};
use crate::{Activation, Initializer, Regularizer};

/// Convolution along the steps of a `[steps, features]` input.
#[derive(Clone, Debug, PartialEq)]
pub struct Conv1d {
    /// A name for people and for weights.
    pub name: Option<String>,
    /// Output channels.
    pub filters: usize,
    /// Width of the window.
    pub kernel_size: usize,
    /// Distance between windows.
    pub strides: usize,
    /// What to do at the edges.
    pub padding: Padding,
    /// Distance between the window's taps.
    pub dilation_rate: usize,
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

/// Convolution over a `[height, width, channels]` input. Sizes are `[height, width]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Conv2d {
    /// A name for people and for weights.
    pub name: Option<String>,
    /// Output channels.
    pub filters: usize,
    /// Size of the window; one number means a square.
    pub kernel_size: [usize; 2],
    /// Distance between windows.
    pub strides: [usize; 2],
    /// What to do at the edges.
    pub padding: Padding,
    /// Distance between the window's taps.
    pub dilation_rate: [usize; 2],
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

/// What a window does at the edges of its input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// Windows stay inside.
    #[default]
    Valid,
    /// The output has `ceil(input / stride)` positions; missing input counts as nothing.
    Same,
}

impl Conv1d {
    /// A convolution with Keras's defaults.
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

impl Record for Conv1d {
    fn fields<F: Fields>(&mut self, f: &mut F) {
        f.maybe("name", &mut self.name, name);
        f.required("filters", &mut self.filters, any);
        f.required("kernel_size", &mut self.kernel_size, any);
        f.optional("strides", &mut self.strides, any);
        f.optional("padding", &mut self.padding, any);
        f.optional("dilation_rate", &mut self.dilation_rate, any);
        f.optional("activation", &mut self.activation, any);
        f.optional("use_bias", &mut self.use_bias, any);
        f.optional("kernel_initializer", &mut self.kernel_initializer, any);
        f.optional("bias_initializer", &mut self.bias_initializer, any);
        f.optional("kernel_regularizer", &mut self.kernel_regularizer, any);
        f.optional("bias_regularizer", &mut self.bias_regularizer, any);
    }
}

impl Conv2d {
    /// A convolution with Keras's defaults.
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

impl Record for Conv2d {
    fn fields<F: Fields>(&mut self, f: &mut F) {
        f.maybe("name", &mut self.name, name);
        f.required("filters", &mut self.filters, any);
        f.required("kernel_size", &mut self.kernel_size, any);
        f.optional("strides", &mut self.strides, any);
        f.optional("padding", &mut self.padding, any);
        f.optional("dilation_rate", &mut self.dilation_rate, any);
        f.optional("activation", &mut self.activation, any);
        f.optional("use_bias", &mut self.use_bias, any);
        f.optional("kernel_initializer", &mut self.kernel_initializer, any);
        f.optional("bias_initializer", &mut self.bias_initializer, any);
        f.optional("kernel_regularizer", &mut self.kernel_regularizer, any);
        f.optional("bias_regularizer", &mut self.bias_regularizer, any);
    }
}

impl Record for Padding {
    fn fields<F: Fields>(&mut self, _: &mut F) {}
}

impl Choice for Padding {
    const TAG: &'static str = "name";
    const NOUN: &'static str = "a padding";
    const VARIANTS: &'static [Variant<Self>] =
        &[variant("valid", || Self::Valid), variant("same", || Self::Same)];

    fn variant(&self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Same => "same",
        }
    }
}
