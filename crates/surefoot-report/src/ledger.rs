//! The section of repair attempts.

use std::path::Path;

use maud::{Markup, html};
use surefoot_record::{AttemptOutcome, AttemptState};

use crate::explain::because;
use crate::format::{self, argument, capital, counted};
use crate::history::{Entry, History};

/// The repair attempts of a run.
#[derive(Debug)]
pub(crate) struct Ledger<'a> {
    pub(crate) history: &'a History,
    /// The run directory.
    pub(crate) dir: &'a Path,
    pub(crate) metric: &'a str,
    /// True if there was a problem to repair.
    pub(crate) needed: bool,
    /// True if the run has a plan, so that its attempts can be trained again by a command.
    pub(crate) has_plan: bool,
}

impl Ledger<'_> {
    /// Draws the attempts in order.
    pub(crate) fn section(&self) -> Markup {
        let attempts = &self.history.attempts;
        html! {
            section #ledger {
                h2 { "Repair attempts" }
                @match (attempts.is_empty(), self.needed) {
                    (true, true) => p.quiet { "No remedy was tried." },
                    (true, false) => p.quiet { "No repair was needed." },
                    (false, _) => {
                        p.quiet {
                            "Each attempt is a separate run. The lines show how it differs from what it starts from."
                        }
                        ol.attempts { @for entry in attempts { li { (self.card(entry)) } } }
                        @if self.has_plan { (self.undo()) }
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
                    dt { "Problem" }
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
                @if self.has_plan {
                    p.command {
                        span { "Train this attempt again:" }
                        code { "surefoot train " (self.plan_of(&attempt.run)) }
                    }
                }
            }
        }
    }

    fn outcome(&self, outcome: &AttemptOutcome) -> Markup {
        html! {
            dt { (capital(&format::metric_name(self.metric))) }
            dd { (format::metric(self.metric, outcome.metric)) }
            dt { "Trained for" }
            dd { (counted(outcome.steps, "step")) }
            @if let Some(finding) = &outcome.finding {
                dt { "Stopped" }
                dd { "at step " (format::grouped(finding.step)) " " (because(&finding.problem)) }
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
                span { "Train the plan as given:" }
                code { "surefoot train " (self.plan_of("")) " --no-repair" }
            }
        }
    }
}

fn state(outcome: Option<&AttemptOutcome>) -> Markup {
    let (class, title) = match outcome.map(|outcome| outcome.state) {
        Some(AttemptState::Repaired) => ("good", AttemptState::Repaired.title()),
        Some(state @ (AttemptState::Persists | AttemptState::NewProblem)) => ("bad", state.title()),
        Some(state) => ("neutral", state.title()),
        None => ("neutral", "running"),
    };
    html! { span.tag.(class) { (title) } }
}

/// Draws the changed lines of a plan. A change that is made to many layers is drawn once.
fn diff(lines: &str) -> Markup {
    html! {
        @if !lines.trim().is_empty() {
            pre.diff aria-label="Changes of the plan" {
                @for (hunk, count) in hunks(lines) {
                    @for line in hunk {
                        @match line.chars().next() {
                            Some('+') => ins { (line) "\n" },
                            Some('-') => del { (line) "\n" },
                            _ => span { (line) "\n" },
                        }
                    }
                    @if count > 1 { span { "  (" (count) " times)\n" } }
                }
            }
        }
    }
}

/// Hunks of a plan diff, each with its context before the change, and how often the same change occurs.
pub fn hunks(diff: &str) -> Vec<(Vec<&str>, usize)> {
    let is_change = |line: &str| line.starts_with(['+', '-']);
    let mut hunks: Vec<(Vec<&str>, usize)> = Vec::new();
    let mut rest = diff.lines().peekable();
    while rest.peek().is_some() {
        let mut hunk = Vec::new();
        while let Some(line) = rest.next_if(|line| !is_change(line)) {
            hunk.push(line);
        }
        while let Some(line) = rest.next_if(|line| is_change(line)) {
            hunk.push(line);
        }
        let change = |hunk: &[&str]| -> Vec<String> {
            hunk.iter().filter(|line| is_change(line)).map(|&line| line.to_owned()).collect()
        };
        let new = change(&hunk);
        match hunks.iter_mut().find(|(known, _)| !new.is_empty() && change(known) == new) {
            Some((_, count)) => *count += 1,
            None => hunks.push((hunk, 1)),
        }
    }
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{attempt, outcome};

    #[test]
    fn a_change_of_many_layers_is_drawn_once() {
        let change = " units = 8\n-activation = \"sigmoid\"\n+activation = \"selu\"\n";
        let text = format!("{}-epochs = 3\n", change.repeat(12));
        let hunks = hunks(&text);
        let counts: Vec<usize> = hunks.iter().map(|(_, count)| *count).collect();
        // The last repetition is followed by another change, so it is a hunk of its own.
        assert_eq!(counts, [11, 1]);
        let page = diff(&text).into_string();
        assert_eq!(page.matches("(11 times)").count(), 1, "{page}");
        assert!(page.contains("-epochs = 3"), "{page}");
    }

    #[test]
    fn an_attempt_shows_its_change_and_its_command() {
        let history = History::of(&[
            attempt(1, 0, &["activation"], "Use leaky ReLU."),
            outcome(1, AttemptState::Repaired, Some(0.971)),
        ]);
        let ledger = Ledger {
            history: &history,
            dir: Path::new("runs/circles-001"),
            metric: "accuracy",
            needed: true,
            has_plan: true,
        };
        let page = ledger.section().into_string();
        for part in [
            "Use leaky ReLU.",
            "97.1%",
            "400 steps",
            "<del>-activation = &quot;relu&quot;\n</del>",
            "<ins>+activation = &quot;leaky_relu&quot;\n</ins>",
            "surefoot train runs/circles-001/attempts/01/plan.toml",
            "surefoot train runs/circles-001/plan.toml --no-repair",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }
}
