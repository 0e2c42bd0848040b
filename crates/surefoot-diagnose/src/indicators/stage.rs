//! Stages of a training.

use super::limits::Limits;
use crate::detector::Context;

/// The part of the training in which an indicator means something (BTTackler, section 3.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Before [`Limits::late`].
    Early,
    /// From there on.
    Late,
    /// All of it.
    Any,
}

impl Stage {
    /// Whether the run is in this stage now, and not in its warm-up.
    pub(super) fn is_now(self, context: &Context<'_>, limits: &Limits) -> bool {
        let late = context.curve.progress(context.facts) >= limits.late;
        !context.warming_up()
            && match self {
                Stage::Early => !late,
                Stage::Late => late,
                Stage::Any => true,
            }
    }

    /// What a person calls it.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Early => "early",
            Stage::Late => "late",
            Stage::Any => "any",
        }
    }
}
