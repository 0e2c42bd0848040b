//! The ledger of a repair: what was tried, and how to undo it.

use std::path::Path;

use maud::{Markup, html};
use surefoot_record::{AttemptOutcome, AttemptState};

use crate::explain::because;
use crate::history::{Entry, History};
use crate::words::{self, argument, capital, counted};

/// The ledger of a run.
#[derive(Debug)]
pub(crate) struct Ledger<'a> {
    pub(crate) history: &'a History,
    /// The run directory.
    pub(crate) dir: &'a Path,
    pub(crate) metric: &'a str,
    /// Whether there was something to repair.
    pub(crate) needed: bool,
}

impl Ledger<'_> {
    /// Every attempt in order.
    pub(crate) fn section(&self) -> Markup {
        let attempts = &self.history.attempts;
        html! {
            section #ledger {
                h2 { "What was done about it" }
                @match (attempts.is_empty(), self.needed) {
                    (true, true) => p.quiet { "No remedy was tried." },
                    (true, false) => p.quiet { "There was nothing to repair." },
                    (false, _) => {
                        p.quiet {
                            "Each attempt is a run of its own, with a plan that differs from the one it starts from in the lines shown."
                        }
                        ol.attempts { @for entry in attempts { li { (self.card(entry)) } } }
                        (self.undo())
                    }
                }
            }
        }
    }

    fn card(&self, entry: &Entry) -> Markup {
        let attempt = &entry.attempt;
        let delivered = self.history.delivered == Some(attempt.number);
        html! {
            article.card.attempt id={ "attempt-" (attempt.number) } {
                h3 {
                    "Attempt " (attempt.number)
                    @for remedy in &attempt.remedies { span.tag { (remedy) } }
                    (state(entry.outcome.as_ref()))
                    @if delivered { span.tag.delivered { "delivered" } }
                }
                p { (attempt.change) }
                dl.facts {
                    dt { "Answers" }
                    dd { (attempt.problem.title()) }
                    dt { "Starts from" }
                    dd {
                        @match attempt.parent {
                            0 => "the plan as given",
                            parent => a href={ "#attempt-" (parent) } { "attempt " (parent) },
                        }
                    }
                    @if let Some(outcome) = &entry.outcome { (self.outcome(outcome)) }
                }
                (diff(&attempt.diff))
                p.command {
                    span { "Train it again:" }
                    code { "surefoot train " (self.plan_of(&attempt.run)) }
                }
            }
        }
    }

    fn outcome(&self, outcome: &AttemptOutcome) -> Markup {
        html! {
            dt { (capital(&words::metric_name(self.metric))) }
            dd { (words::metric(self.metric, outcome.metric)) }
            dt { "Cost" }
            dd { (counted(outcome.steps, "step")) }
            @if let Some(finding) = &outcome.finding {
                dt { "Ended" }
                dd { "at step " (words::grouped(finding.step)) " " (because(&finding.problem)) }
            }
        }
    }

    fn plan_of(&self, run: &str) -> String {
        let plan = self.dir.join(run).join("plan.toml");
        argument(&plan.display().to_string())
    }

    fn undo(&self) -> Markup {
        html! {
            p.command {
                span { "To undo it all, train the plan as it was given:" }
                code { "surefoot train " (self.plan_of("")) }
            }
        }
    }
}

fn state(outcome: Option<&AttemptOutcome>) -> Markup {
    let (class, title) = match outcome.map(|outcome| outcome.state) {
        Some(AttemptState::Repaired) => ("good", AttemptState::Repaired.title()),
        Some(state @ (AttemptState::Persists | AttemptState::NewProblem)) => ("bad", state.title()),
        Some(state) => ("neutral", state.title()),
        None => ("neutral", "still open"),
    };
    html! { span.tag.(class) { (title) } }
}

/// The lines of a change, coloured by their sign.
fn diff(lines: &str) -> Markup {
    html! {
        @if !lines.trim().is_empty() {
            pre.diff aria-label="Changes of the plan" {
                @for line in lines.lines() {
                    @match line.chars().next() {
                        Some('+') => ins { (line) "\n" },
                        Some('-') => del { (line) "\n" },
                        _ => span { (line) "\n" },
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{attempt, outcome};

    #[test]
    fn an_attempt_says_what_it_changed_and_how_to_train_it() {
        let history = History::of(&[
            attempt(1, 0, &["activation"], "Use leaky ReLU."),
            outcome(1, AttemptState::Repaired, Some(0.971)),
        ]);
        let ledger = Ledger {
            history: &history,
            dir: Path::new("runs/circles-001"),
            metric: "accuracy",
            needed: true,
        };
        let page = ledger.section().into_string();
        for part in [
            "Use leaky ReLU.",
            "97.1%",
            "400 steps",
            "<del>-activation = &quot;relu&quot;\n</del>",
            "<ins>+activation = &quot;leaky_relu&quot;\n</ins>",
            "surefoot train runs/circles-001/attempts/01/plan.toml",
            "surefoot train runs/circles-001/plan.toml",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }
}
