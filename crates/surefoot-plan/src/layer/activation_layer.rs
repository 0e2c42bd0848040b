//! Activation as a separate layer.

use super::{LayerSpec, Role};
use crate::Activation;
#[cfg(feature = "keras")]
use crate::keras::{self, LayerConfig};
use crate::language::{name, record};
use crate::shape::{Input, Mismatch, Output};

/// An activation as a separate layer.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivationLayer {
    /// Name of the layer.
    pub name: Option<String>,
    /// Applied to the input.
    pub activation: Activation,
}

impl ActivationLayer {
    /// A layer that applies `activation`.
    pub fn new(activation: Activation) -> Self {
        Self { name: None, activation }
    }
}

record! { ActivationLayer; maybe: name(name); required: activation; }

impl LayerSpec for ActivationLayer {
    const ROLE: Role = Role::Other;

    fn template() -> Self {
        Self::new(Activation::Linear)
    }

    fn output(&self, input: Input<'_>) -> Result<Output, Mismatch> {
        Output::new(input.shape.to_vec(), 0)
    }

    #[cfg(feature = "keras")]
    fn from_keras(config: &LayerConfig<'_>) -> keras::Result<Self> {
        let name = Some(config.layer.to_owned());
        let activation = config.activation_layer()?.unwrap_or_default();
        Ok(Self { name, activation })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layer, output_of};
    use super::*;

    #[test]
    fn the_shape_is_kept() {
        let layer = Layer::Activation(ActivationLayer::new(Activation::Relu));
        assert_eq!(output_of(layer, &[5, 8]), (vec![5, 8], 0));
    }
}
