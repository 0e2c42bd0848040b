//! `residual`: residual connections.

use crate::action::Action;
use crate::remedy::{Remedy, RemedyContext};

/// `residual`: shortcuts around hidden dense layers, our own answer to depth (He and others, 2016).
///
/// The gradient reaches the first of thirty layers undiminished, which neither another activation nor
/// normalization achieves.
#[derive(Clone, Copy, Debug)]
pub struct ResidualConnections;

impl Remedy for ResidualConnections {
    fn id(&self) -> &'static str {
        "residual"
    }

    fn title(&self) -> &'static str {
        "add residual connections"
    }

    fn propose(&self, _: &RemedyContext<'_>, variant: usize) -> Result<Vec<Action>, String> {
        match variant {
            0 => Ok(vec![Action::AddResidual]),
            _ => Err("residual connections were tried".to_owned()),
        }
    }
}
