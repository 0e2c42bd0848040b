//! What became of a trial, as charts colour it.

use maud::{Markup, html};
use surefoot_tune::store::{End, State, Trial};

/// What became of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    Failed,
    Stopped,
    Open,
    Complete,
}

impl Outcome {
    /// All of them, in the order in which charts are drawn: what matters most comes on top.
    pub(super) const ALL: [Outcome; 4] =
        [Outcome::Failed, Outcome::Stopped, Outcome::Open, Outcome::Complete];

    /// That of a trial.
    pub(super) fn of(trial: &Trial) -> Outcome {
        match &trial.state {
            State::Over(End::Complete { .. }) => Outcome::Complete,
            State::Over(End::Stopped { .. }) => Outcome::Stopped,
            State::Over(End::Failed { .. }) => Outcome::Failed,
            State::Waiting | State::Running | State::Lost => Outcome::Open,
        }
    }

    /// The class that has its colour in the style sheet.
    pub(super) fn class(self) -> &'static str {
        match self {
            Outcome::Failed => "failed",
            Outcome::Stopped => "stopped",
            Outcome::Open => "open",
            Outcome::Complete => "complete",
        }
    }

    /// What it is called on the page.
    pub(super) fn label(self) -> &'static str {
        match self {
            Outcome::Open => "not over",
            other => other.class(),
        }
    }
}

/// The colours of some outcomes, as the legend of a chart.
pub(super) fn legend(outcomes: impl IntoIterator<Item = Outcome>) -> Markup {
    let mut outcomes: Vec<Outcome> = outcomes.into_iter().collect();
    outcomes.sort_unstable();
    outcomes.dedup();
    html! {
        @for outcome in outcomes.into_iter().rev() {
            span.key.(outcome.class()) { i.swatch {} (outcome.label()) }
        }
    }
}
