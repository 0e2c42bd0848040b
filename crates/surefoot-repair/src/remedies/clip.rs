//! `clip_gradient` (S3): clip the gradient.

use crate::action::Action;
use crate::remedy::{Remedy, RemedyContext};

/// `clip_gradient` (S3): clips the gradient.
///
/// AutoTrainer clips every value to [-10, 10], which changes the direction of the step. Here the
/// gradient as a whole is scaled down to a norm of 1 (Pascanu, Mikolov and Bengio).
#[derive(Clone, Copy, Debug)]
pub struct GradientClipping;

impl Remedy for GradientClipping {
    fn id(&self) -> &'static str {
        "clip_gradient"
    }

    fn title(&self) -> &'static str {
        "clip the gradient"
    }

    fn propose(&self, _: &RemedyContext<'_>, variant: usize) -> Result<Vec<Action>, String> {
        match variant {
            0 => Ok(vec![Action::ClipGradient { norm: 1.0 }]),
            _ => Err("clipping was tried".to_owned()),
        }
    }
}
