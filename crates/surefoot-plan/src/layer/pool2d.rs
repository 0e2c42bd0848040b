//! Two-dimensional pooling.

use super::{LayerSpec, Padding, Role};
#[cfg(feature = "keras")]
use crate::keras::{self, LayerConfig};
use crate::language::{name, record};
use crate::shape::{Input, Mismatch, Output, window};

/// Maximum or average over windows of a `[height, width, channels]` input.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool2d {
    /// Name of the layer.
    pub name: Option<String>,
    /// Size of the window; one number means a square.
    pub pool_size: [usize; 2],
    /// Distance between windows; `pool_size` if absent.
    pub strides: Option<[usize; 2]>,
    /// Padding at the edges.
    pub padding: Padding,
}

impl Default for Pool2d {
    fn default() -> Self {
        Self { name: None, pool_size: [2, 2], strides: None, padding: Padding::Valid }
    }
}

record! { Pool2d;
    maybe: name(name);
    optional: pool_size;
    maybe: strides;
    optional: padding;
}

impl LayerSpec for Pool2d {
    const ROLE: Role = Role::Other;

    fn template() -> Self {
        Self::default()
    }

    fn output(&self, input: Input<'_>) -> Result<Output, Mismatch> {
        let [height, width, channels] = input.image()?;
        let strides = self.strides.unwrap_or(self.pool_size);
        let [height, width] =
            window([height, width], self.pool_size, strides, [1, 1], self.padding)?;
        Output::new(vec![height, width, channels], 0)
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
    fn strides_default_to_the_size() {
        let pool = Pool2d::default();
        assert_eq!(output_of(Layer::MaxPool2d(pool), &[5, 4, 7]), (vec![2, 2, 7], 0));
    }
}
