//! Rules shared by the recurrent layers.

use super::{LayerSpec, Role};
#[cfg(feature = "keras")]
use crate::keras::{self, KerasArrays, LayerConfig};
use crate::language::Record;
use crate::shape::{Input, Mismatch, Output, affine};

/// A recurrent layer. Its shape rule and its Keras translation follow from its dimensions.
pub(crate) trait RecurrentLayer: Record + Clone {
    /// A layer of one unit with the defaults of Keras.
    fn of_one_unit() -> Self;

    fn dimensions(&self) -> Recurrent;

    /// The layer that a Keras file changes with its keys.
    #[cfg(feature = "keras")]
    fn keras_template() -> Self {
        Self::of_one_unit()
    }
}

impl<T: RecurrentLayer> LayerSpec for T {
    const ROLE: Role = Role::Recurrent;

    fn template() -> Self {
        Self::of_one_unit()
    }

    fn output(&self, input: Input<'_>) -> Result<Output, Mismatch> {
        self.dimensions().output(input)
    }

    #[cfg(feature = "keras")]
    fn from_keras(config: &LayerConfig<'_>) -> keras::Result<Self> {
        check_keras(config)?;
        config.read(Self::keras_template())
    }

    #[cfg(feature = "keras")]
    fn keras_arrays(&self) -> KerasArrays {
        self.dimensions().keras_arrays()
    }

    #[cfg(feature = "keras")]
    fn rank(&self, _: Option<usize>) -> Option<usize> {
        Some(if self.dimensions().return_sequences { 2 } else { 1 })
    }
}

/// Dimensions of a recurrent layer.
pub(crate) struct Recurrent {
    pub(super) units: usize,
    /// Number of gates, each with weights of its own.
    pub(super) gates: usize,
    pub(super) use_bias: bool,
    /// The recurrent product has a second bias.
    pub(super) second_bias: bool,
    pub(super) return_sequences: bool,
    pub(super) bidirectional: bool,
}

impl Recurrent {
    fn output(&self, input: Input<'_>) -> Result<Output, Mismatch> {
        let [steps, features] = input.sequence()?;
        let second_bias = if self.second_bias { self.units } else { 0 };
        let parameters = affine(features.saturating_add(self.units), self.units, self.use_bias)
            .saturating_add(second_bias)
            .saturating_mul(self.gates);
        let directions = if self.bidirectional { 2 } else { 1 };
        let units = self.units.saturating_mul(directions);
        let shape = match self.return_sequences {
            true => vec![steps, units],
            false => vec![units],
        };
        Output::new(shape, parameters.saturating_mul(directions))
    }

    #[cfg(feature = "keras")]
    fn keras_arrays(&self) -> KerasArrays {
        let gates = self.units.checked_mul(self.gates);
        KerasArrays::recurrent(self.bidirectional)
            .with("kernel", &[None, gates])
            .with("recurrent_kernel", &[Some(self.units), gates])
            .with_if(self.use_bias && self.second_bias, "bias", &[Some(2), gates])
            .with_if(self.use_bias && !self.second_bias, "bias", &[gates])
    }
}

/// Rejects Keras options that change what a recurrent layer computes, and warns about options that
/// only matter in training.
#[cfg(feature = "keras")]
fn check_keras(config: &LayerConfig<'_>) -> keras::Result<()> {
    for key in ["go_backwards", "stateful", "return_state", "time_major"] {
        config.only(key, false)?;
    }
    for key in ["dropout", "recurrent_dropout"] {
        if config.number(key)?.is_some_and(|rate| rate != 0.0) {
            config.ignore(&[key]);
        }
    }
    config.ignore(&["bias_regularizer"]);
    Ok(())
}
