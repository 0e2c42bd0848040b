//! Embedding of positions.

use super::{LayerSpec, Role};
use crate::Initializer;
use crate::language::{name, record};
use crate::shape::{Input, Mismatch, Output};

/// Adds a learned vector for each position of a sequence.
///
/// Weights: `embeddings` `[steps, features]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PositionEmbedding {
    /// Name of the layer.
    pub name: Option<String>,
    /// Initial vectors.
    pub initializer: Initializer,
}

record! { PositionEmbedding; maybe: name(name); optional: initializer; }

impl LayerSpec for PositionEmbedding {
    const ROLE: Role = Role::Other;

    fn template() -> Self {
        Self::default()
    }

    fn output(&self, input: Input<'_>) -> Result<Output, Mismatch> {
        let [steps, features] = input.sequence()?;
        Output::new(input.shape.to_vec(), steps.saturating_mul(features))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layer, output_of};
    use super::*;

    #[test]
    fn every_position_has_a_vector() {
        let layer = Layer::PositionEmbedding(PositionEmbedding::default());
        assert_eq!(output_of(layer, &[5, 8]), (vec![5, 8], 40));
    }
}
