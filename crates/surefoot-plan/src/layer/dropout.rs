//! Dropout.

use super::{LayerSpec, Role};
#[cfg(feature = "keras")]
use crate::keras::{self, LayerConfig};
use crate::language::{name, record, share};
use crate::shape::{Input, Mismatch, Output};

/// Sets values to zero at random in training and scales up the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Dropout {
    /// Name of the layer.
    pub name: Option<String>,
    /// Fraction of values set to zero, in `[0, 1)`.
    pub rate: f64,
}

impl Dropout {
    /// A dropout of `rate`.
    pub fn new(rate: f64) -> Self {
        Self { name: None, rate }
    }
}

record! { Dropout; maybe: name(name); required: rate(share); }

impl LayerSpec for Dropout {
    const ROLE: Role = Role::Other;

    fn template() -> Self {
        Self::new(0.0)
    }

    fn output(&self, input: Input<'_>) -> Result<Output, Mismatch> {
        Output::new(input.shape.to_vec(), 0)
    }

    #[cfg(feature = "keras")]
    fn from_keras(config: &LayerConfig<'_>) -> keras::Result<Self> {
        config.absent("noise_shape")?;
        config.read(Self::template())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layer, output_of};
    use super::*;

    #[test]
    fn the_shape_is_kept() {
        assert_eq!(output_of(Layer::Dropout(Dropout::new(0.5)), &[5, 8]), (vec![5, 8], 0));
    }
}
