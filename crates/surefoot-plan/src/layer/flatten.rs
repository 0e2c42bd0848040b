//! Flattening.

use super::{LayerSpec, Role};
#[cfg(feature = "keras")]
use crate::keras::{self, LayerConfig};
use crate::language::{name, record};
use crate::shape::{Input, Mismatch, Output, size};

/// Flattens all dimensions into one, in row-major order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flatten {
    /// Name of the layer.
    pub name: Option<String>,
}

record! { Flatten; maybe: name(name); }

impl LayerSpec for Flatten {
    const ROLE: Role = Role::Reshape;

    fn template() -> Self {
        Self::default()
    }

    fn output(&self, input: Input<'_>) -> Result<Output, Mismatch> {
        Output::new(vec![size(input.shape)], 0)
    }

    #[cfg(feature = "keras")]
    fn from_keras(config: &LayerConfig<'_>) -> keras::Result<Self> {
        config.channels_last()?;
        config.read(Self::template())
    }

    #[cfg(feature = "keras")]
    fn rank(&self, _: Option<usize>) -> Option<usize> {
        Some(1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layer, output_of};
    use super::*;

    #[test]
    fn all_dimensions_become_one() {
        assert_eq!(output_of(Layer::Flatten(Flatten::default()), &[3, 4]), (vec![12], 0));
    }
}
