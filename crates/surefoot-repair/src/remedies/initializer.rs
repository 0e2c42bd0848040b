//! `initializer` (S4): replace initializers.

use crate::action::Action;
use crate::remedy::{Remedy, RemedyContext};

/// `initializer` (S4): draws the initial weights to fit the activation that they feed: He's for ReLU
/// and its relatives, LeCun's for SELU, Glorot's for the others; recurrent ones orthogonal, biases
/// zero.
#[derive(Clone, Copy, Debug)]
pub struct SubstituteInitializer;

impl Remedy for SubstituteInitializer {
    fn id(&self) -> &'static str {
        "initializer"
    }

    fn title(&self) -> &'static str {
        "replace initializers"
    }

    fn propose(&self, _: &RemedyContext<'_>, variant: usize) -> Result<Vec<Action>, String> {
        match variant {
            0 => Ok(vec![Action::Reinitialize]),
            _ => Err("the initializers that fit were tried".to_owned()),
        }
    }
}
