//! Pooling over all positions.

use super::{LayerSpec, Role};
#[cfg(feature = "keras")]
use crate::keras::{self, LayerConfig};
use crate::language::{name, record};
use crate::shape::{Input, Mismatch, Output};

/// Maximum or average over all positions of a sequence or an image; the channels remain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GlobalPool {
    /// Name of the layer.
    pub name: Option<String>,
}

record! { GlobalPool; maybe: name(name); }

impl LayerSpec for GlobalPool {
    const ROLE: Role = Role::Other;

    fn template() -> Self {
        Self::default()
    }

    fn output(&self, input: Input<'_>) -> Result<Output, Mismatch> {
        match input.shape.len() {
            2 | 3 => Output::new(vec![input.last()], 0),
            _ => Err(Mismatch::new("it needs [steps, features] or [height, width, channels]")),
        }
    }

    #[cfg(feature = "keras")]
    fn from_keras(config: &LayerConfig<'_>) -> keras::Result<Self> {
        config.channels_last()?;
        config.only("keepdims", false)?;
        config.read(Self::template())
    }

    #[cfg(feature = "keras")]
    fn rank(&self, _: Option<usize>) -> Option<usize> {
        Some(1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layer, mismatch_of, output_of};
    use super::*;

    #[test]
    fn the_channels_remain() {
        let pool = Layer::GlobalAveragePool(GlobalPool::default());
        assert_eq!(output_of(pool.clone(), &[5, 7]).0, [7]);
        assert_eq!(output_of(pool.clone(), &[5, 6, 7]).0, [7]);
        assert!(mismatch_of(pool, &[5]).contains("[steps, features]"));
    }
}
