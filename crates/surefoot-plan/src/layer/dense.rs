//! Dense layer.

use super::{LayerSpec, Role};
#[cfg(feature = "keras")]
use crate::keras::KerasArrays;
use crate::language::{name, record};
use crate::shape::{Input, Mismatch, Output, affine};
use crate::{Activation, Initializer, Regularizer};

/// `activation(x W + b)`, on the last dimension of the input.
///
/// Weights: `kernel` `[in, units]`, `bias` `[units]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    /// Name of the layer; made from the kind and position if absent.
    pub name: Option<String>,
    /// Number of outputs.
    pub units: usize,
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

impl Dense {
    /// A dense layer with the defaults of Keras.
    pub fn new(units: usize) -> Self {
        Self {
            name: None,
            units,
            activation: Activation::Linear,
            use_bias: true,
            kernel_initializer: Initializer::GlorotUniform,
            bias_initializer: Initializer::Zeros,
            kernel_regularizer: Regularizer::default(),
            bias_regularizer: Regularizer::default(),
        }
    }
}

record! { Dense;
    maybe: name(name);
    required: units;
    optional: activation, use_bias, kernel_initializer, bias_initializer,
        kernel_regularizer, bias_regularizer;
}

impl LayerSpec for Dense {
    const ROLE: Role = Role::Compute;

    fn template() -> Self {
        Self::new(1)
    }

    fn output(&self, input: Input<'_>) -> Result<Output, Mismatch> {
        let mut shape = input.shape.to_vec();
        shape.pop();
        shape.push(self.units);
        Output::new(shape, affine(input.last(), self.units, self.use_bias))
    }

    #[cfg(feature = "keras")]
    fn keras_arrays(&self) -> KerasArrays {
        KerasArrays::default().with("kernel", &[None, Some(self.units)]).with_if(
            self.use_bias,
            "bias",
            &[Some(self.units)],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layer, output_of};
    use super::*;

    #[test]
    fn dense_works_on_the_last_dimension() {
        let dense = Layer::Dense(Dense::new(8));
        assert_eq!(output_of(dense.clone(), &[3]), (vec![8], 32));
        assert_eq!(output_of(dense, &[5, 4, 3]), (vec![5, 4, 8], 32));
        let plain = Dense { use_bias: false, ..Dense::new(8) };
        assert_eq!(output_of(Layer::Dense(plain), &[3]), (vec![8], 24));
    }

    #[test]
    fn huge_sizes_do_not_overflow() {
        let huge = Layer::Dense(Dense::new(usize::MAX));
        assert_eq!(output_of(huge, &[usize::MAX]).1, usize::MAX);
        assert!(crate::infer(&[Layer::Dense(Dense::new(1))], &[], false).is_err());
    }
}
