//! Status of a trial in charts.

use maud::{Markup, html};
use surefoot_tune::storage::{FrozenTrial, TrialState};

/// Status of a trial in charts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Status {
    Failed,
    Pruned,
    Paused,
    Unfinished,
    Complete,
}

impl Status {
    /// All values in drawing order, the most important on top.
    pub(super) const ALL: [Status; 5] =
        [Status::Failed, Status::Pruned, Status::Paused, Status::Unfinished, Status::Complete];

    /// Status of a trial.
    pub(super) fn of(trial: &FrozenTrial) -> Status {
        match &trial.state {
            TrialState::Complete { .. } => Status::Complete,
            TrialState::Pruned { .. } => Status::Pruned,
            TrialState::Failed { .. } => Status::Failed,
            TrialState::Paused => Status::Paused,
            TrialState::Waiting | TrialState::Running | TrialState::Lost => Status::Unfinished,
        }
    }

    /// CSS class with the color.
    pub(super) fn class(self) -> &'static str {
        match self {
            Status::Failed => "failed",
            Status::Pruned => "pruned",
            Status::Paused => "paused",
            Status::Unfinished => "unfinished",
            Status::Complete => "complete",
        }
    }
}

/// Legend of a chart.
pub(super) fn legend(statuses: impl IntoIterator<Item = Status>) -> Markup {
    let mut statuses: Vec<Status> = statuses.into_iter().collect();
    statuses.sort_unstable();
    statuses.dedup();
    html! {
        @for status in statuses.into_iter().rev() {
            span.key.(status.class()) { i.swatch {} (status.class()) }
        }
    }
}
