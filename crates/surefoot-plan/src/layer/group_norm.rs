//! Group normalization.

use super::{LayerSpec, Role};
#[cfg(feature = "keras")]
use crate::keras::{self, KerasArrays, LayerConfig};
use crate::language::{name, positive, record};
use crate::shape::{Input, Mismatch, Output, per_channel};

/// Normalizes each sample over groups of channels and all positions.
///
/// Weights: `gamma`, `beta`, `[channels]`.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupNorm {
    /// Name of the layer.
    pub name: Option<String>,
    /// Number of groups; must divide the number of channels.
    pub groups: usize,
    /// Added to the variance.
    pub epsilon: f64,
    /// Learns an offset, `beta`.
    pub center: bool,
    /// Learns a factor, `gamma`.
    pub scale: bool,
}

impl Default for GroupNorm {
    fn default() -> Self {
        Self { name: None, groups: 32, epsilon: 1e-3, center: true, scale: true }
    }
}

record! { GroupNorm; maybe: name(name); optional: groups, epsilon(positive), center, scale; }

impl LayerSpec for GroupNorm {
    const ROLE: Role = Role::Norm;

    fn template() -> Self {
        Self::default()
    }

    fn output(&self, input: Input<'_>) -> Result<Output, Mismatch> {
        let channels = input.last();
        if !channels.is_multiple_of(self.groups) {
            return Err(Mismatch::new(format!(
                "it needs channels (here {channels}) that divide into {} groups",
                self.groups
            ))
            .help(format!("set `groups` to a divisor of {channels}")));
        }
        per_channel(input, usize::from(self.center) + usize::from(self.scale))
    }

    #[cfg(feature = "keras")]
    fn from_keras(config: &LayerConfig<'_>) -> keras::Result<Self> {
        if config.number("groups")?.is_some_and(|groups| groups < 1.0) {
            return Err(config.unsupported("groups", "a number above zero"));
        }
        config.read_norm(Self::template())
    }

    #[cfg(feature = "keras")]
    fn keras_arrays(&self) -> KerasArrays {
        KerasArrays::default().with_if(self.scale, "gamma", &[None]).with_if(
            self.center,
            "beta",
            &[None],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layer, mismatch_of, output_of};
    use super::*;

    #[test]
    fn groups_divide_the_channels() {
        let four = GroupNorm { groups: 4, center: false, ..GroupNorm::default() };
        assert_eq!(output_of(Layer::GroupNorm(four), &[5, 8]), (vec![5, 8], 8));
        assert_eq!(
            mismatch_of(Layer::GroupNorm(GroupNorm::default()), &[8]),
            "it needs channels (here 8) that divide into 32 groups"
        );
    }
}
