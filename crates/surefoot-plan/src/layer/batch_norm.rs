//! Batch normalization.

use super::{LayerSpec, Role};
#[cfg(feature = "keras")]
use crate::keras::{self, KerasArrays, LayerConfig};
use crate::language::{name, positive, record, unit_interval};
use crate::shape::{Input, Mismatch, Output, per_channel};

/// Normalizes each channel over the batch.
///
/// Weights: `gamma`, `beta`, `moving_mean`, `moving_variance`, all `[channels]`.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchNorm {
    /// Name of the layer.
    pub name: Option<String>,
    /// Fraction of the moving statistics kept at each step.
    pub momentum: f64,
    /// Added to the variance.
    pub epsilon: f64,
    /// Learns an offset, `beta`.
    pub center: bool,
    /// Learns a factor, `gamma`.
    pub scale: bool,
}

impl Default for BatchNorm {
    fn default() -> Self {
        Self { name: None, momentum: 0.99, epsilon: 1e-3, center: true, scale: true }
    }
}

record! { BatchNorm;
    maybe: name(name);
    optional: momentum(unit_interval), epsilon(positive), center, scale;
}

impl LayerSpec for BatchNorm {
    const ROLE: Role = Role::Norm;

    fn template() -> Self {
        Self::default()
    }

    fn output(&self, input: Input<'_>) -> Result<Output, Mismatch> {
        per_channel(input, usize::from(self.center) + usize::from(self.scale))
    }

    #[cfg(feature = "keras")]
    fn from_keras(config: &LayerConfig<'_>) -> keras::Result<Self> {
        config.only("renorm", false)?;
        config.read_norm(Self::template())
    }

    #[cfg(feature = "keras")]
    fn keras_arrays(&self) -> KerasArrays {
        KerasArrays::default()
            .with_if(self.scale, "gamma", &[None])
            .with_if(self.center, "beta", &[None])
            .with("moving_mean", &[None])
            .with("moving_variance", &[None])
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layer, output_of};
    use super::*;

    #[test]
    fn offset_and_factor_are_trained() {
        let norm = Layer::BatchNorm(BatchNorm::default());
        assert_eq!(output_of(norm, &[5, 8]), (vec![5, 8], 16));
    }
}
