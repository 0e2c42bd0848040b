//! One-dimensional pooling.

use super::{LayerSpec, Padding, Role};
#[cfg(feature = "keras")]
use crate::keras::{self, LayerConfig};
use crate::language::{name, record};
use crate::shape::{Input, Mismatch, Output, window};

/// Maximum or average over windows along the steps of a `[steps, features]` input.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool1d {
    /// Name of the layer.
    pub name: Option<String>,
    /// Width of the window.
    pub pool_size: usize,
    /// Distance between windows; `pool_size` if absent.
    pub strides: Option<usize>,
    /// Padding at the edges.
    pub padding: Padding,
}

impl Default for Pool1d {
    fn default() -> Self {
        Self { name: None, pool_size: 2, strides: None, padding: Padding::Valid }
    }
}

record! { Pool1d;
    maybe: name(name);
    optional: pool_size;
    maybe: strides;
    optional: padding;
}

impl LayerSpec for Pool1d {
    const ROLE: Role = Role::Other;

    fn template() -> Self {
        Self::default()
    }

    fn output(&self, input: Input<'_>) -> Result<Output, Mismatch> {
        let [steps, channels] = input.sequence()?;
        let strides = self.strides.unwrap_or(self.pool_size);
        let [steps] = window([steps], [self.pool_size], [strides], [1], self.padding)?;
        Output::new(vec![steps, channels], 0)
    }

    #[cfg(feature = "keras")]
    fn from_keras(config: &LayerConfig<'_>) -> keras::Result<Self> {
        config.channels_last()?;
        config.read(Self::template())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layer, output_of};
    use super::*;

    #[test]
    fn strides_may_differ_from_the_size() {
        let pool = Pool1d { strides: Some(1), ..Pool1d::default() };
        assert_eq!(output_of(Layer::AveragePool1d(pool), &[5, 7]), (vec![4, 7], 0));
    }
}
