//! Stages of a training.

use super::limits::Limits;
use crate::detector::Context;

/// Part of the training in which an indicator applies (BTTackler, section 3.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Before [`Limits::late`].
    Early,
    /// From [`Limits::late`] on.
    Late,
    /// The whole training.
    Any,
}

impl Stage {
    /// Returns true if the run is in this stage and past its warm-up. A run of unknown length is never
    /// in the late stage.
    pub(super) fn is_now(self, context: &Context<'_>, limits: &Limits) -> bool {
        let late = context.has_run_for(limits.late);
        let horizon = context.curve.progress(context.facts).is_some();
        !context.warming_up()
            && match self {
                Stage::Early => !late,
                Stage::Late => late && horizon,
                Stage::Any => true,
            }
    }

    /// Name for people.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Early => "early",
            Stage::Late => "late",
            Stage::Any => "any",
        }
    }
}
