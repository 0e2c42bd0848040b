//! Padding of windows at the edges of their input.

#[cfg(feature = "keras")]
use crate::keras::{self, LayerConfig};
use crate::language::{Choice, Record, Variant, variant};

/// Padding of a window at the edges of its input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// Windows stay inside the input.
    #[default]
    Valid,
    /// The output has `ceil(input / stride)` positions; positions outside the input are ignored.
    Same,
}

impl Record for Padding {}

impl Choice for Padding {
    const TAG: &'static str = "name";
    const NOUN: &'static str = "a padding";
    const VARIANTS: &'static [Variant<Self>] =
        &[variant("valid", || Self::Valid), variant("same", || Self::Same)];

    #[cfg(feature = "keras")]
    fn read_keras(config: &LayerConfig<'_>, key: &str) -> keras::Result<Option<Self>> {
        match config.text(key)? {
            None => Ok(None),
            Some("valid") => Ok(Some(Self::Valid)),
            Some("same") => Ok(Some(Self::Same)),
            Some(_) => Err(config.unsupported(key, "\"valid\" or \"same\"")),
        }
    }
}
