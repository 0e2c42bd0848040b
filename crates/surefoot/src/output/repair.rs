//! Findings and repair attempts of a run.

use super::Role;
use super::facts::wrapped;
use super::number::{self, grouped, short};
use surefoot_diagnose::{Finding, Severity};
use surefoot_record::{Attempt, AttemptOutcome, AttemptState};
use surefoot_train::{Proposal, RepairResult};

/// Maximum width of wrapped text.
const READABLE: usize = 96;

/// Indent below a numbered line.
const INDENT: &str = "       ";

/// A finding and its step out of `steps`: a paragraph of at most `width` columns, or one line without
/// a width.
pub(crate) fn finding(finding: &Finding, steps: u64, width: Option<usize>) -> String {
    let title = finding.problem.title();
    let title = match finding.severity {
        Severity::Problem => Role::Error.paint(format!("✗ {title}")),
        Severity::Warning => Role::Quiet.paint(format!("· warning: {title}")),
    };
    let when = match finding.step {
        0 => "before the first step".to_owned(),
        step => format!("at step {} of {}", grouped(step), grouped(steps)),
    };
    let Some(width) = width else {
        return format!("{title} {when}: {}", finding.message);
    };
    let mut lines = vec![format!("  {title} {}", Role::Quiet.paint(when))];
    let room = width.min(READABLE).saturating_sub(4);
    let mut add = |text: &str, quiet: bool| {
        lines.extend(wrapped(text, room).iter().map(|line| match quiet {
            true => format!("    {}", Role::Quiet.paint(line)),
            false => format!("    {line}"),
        }));
    };
    let warning = finding.severity == Severity::Warning;
    add(&finding.message, warning);
    if !warning {
        let beyond = finding.evidence.iter().filter_map(|evidence| {
            let (value, limit) = (short(evidence.value), short(evidence.limit?));
            let label = evidence.measure.label();
            Some(match evidence.relation() {
                Some(relation) => format!("{label} {value} {relation} {limit}"),
                None => format!("{label} {value} (limit {limit})"),
            })
        });
        let evidence: Vec<String> = beyond.collect();
        add(&evidence.join(", "), true);
    }
    lines.join("\n")
}

/// Phase of an attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase<'a> {
    /// On probation.
    Trying,
    /// The best of its round, trained further.
    Continuing,
    /// Ended.
    Ended(&'a AttemptOutcome),
}

/// An attempt as a line: its remedy, its phase and its change. `metric` is the name of the metric.
pub(crate) fn attempt(attempt: &Attempt, phase: Phase<'_>, metric: &str) -> Line {
    let (mark, role) = match phase {
        Phase::Trying => ("→", Role::Quiet),
        Phase::Continuing => ("→", Role::Good),
        Phase::Ended(outcome) => match outcome.state {
            AttemptState::Repaired => ("✓", Role::Good),
            AttemptState::Persists | AttemptState::NewProblem => ("✗", Role::Error),
            AttemptState::NoBetter | AttemptState::Outperformed => ("·", Role::Quiet),
        },
    };
    Line {
        number: attempt.number,
        mark,
        role,
        remedy: name(&attempt.remedies),
        result: result(phase, metric),
        change: attempt.change.clone(),
    }
}

/// The line of an attempt.
#[derive(Debug)]
pub(crate) struct Line {
    number: u32,
    mark: &'static str,
    role: Role,
    remedy: String,
    result: String,
    change: String,
}

impl Line {
    /// In colours. Below a `width`, what it changes has lines of its own.
    pub(crate) fn painted(&self, width: Option<usize>) -> String {
        let (number, remedy) = (self.number, &self.remedy);
        let (mark, result) = (self.role.paint(self.mark), self.role.paint(&self.result));
        let line = format!("{number:>4} {mark} {remedy:<28}   {result}");
        match width {
            None => format!("{line}   {}", Role::Quiet.paint(&self.change)),
            Some(width) => {
                let room = width.min(READABLE).saturating_sub(INDENT.len());
                let change = wrapped(&self.change, room).into_iter();
                let change = change.map(|text| format!("\n{INDENT}{}", Role::Quiet.paint(text)));
                line + &change.collect::<String>()
            }
        }
    }

    /// Without colours, for what is drawn.
    pub(crate) fn plain(&self, width: Option<usize>) -> String {
        anstream::adapter::strip_str(&self.painted(width)).to_string()
    }
}

fn result(phase: Phase<'_>, metric: &str) -> String {
    let outcome = match phase {
        Phase::Trying => return "trying".to_owned(),
        Phase::Continuing => return "continues".to_owned(),
        Phase::Ended(outcome) => outcome,
    };
    let title = outcome.state.title();
    match (outcome.state, &outcome.finding) {
        (AttemptState::Repaired, _) => {
            let value = number::metric(metric, outcome.metric);
            format!("{title}, {metric} {value}")
        }
        (AttemptState::NewProblem, Some(finding)) => format!("now {}", finding.problem.title()),
        _ => title.to_owned(),
    }
}

/// The message of a repair that delivers the plan as given.
pub(crate) fn no_repair(repair: &RepairResult) -> String {
    let reason = match repair.attempts {
        0 if repair.declined => "the repair was declined".to_owned(),
        0 => "no remedy was tried".to_owned(),
        1 => "the remedy did not help".to_owned(),
        tried => format!("none of {tried} remedies helped"),
    };
    match repair.dismissed {
        true => {
            let reason = Role::Good.paint(format!("✓ {reason}"));
            format!("     {reason}: the plan as given learns in spite of the finding")
        }
        false => {
            let reason = Role::Error.paint(format!("✗ {reason}"));
            format!("     {reason}: the plan as given is delivered")
        }
    }
}

/// Describes a proposal that needs approval.
pub(crate) fn proposal(proposal: &Proposal) -> String {
    let number = proposal.number;
    let heading = Role::Strong.paint(name(&proposal.remedies));
    let mut lines = vec![
        String::new(),
        format!("{number:>4} {} {heading}", Role::Help.paint("?")),
        format!("{INDENT}{}", proposal.message),
    ];
    let paint = |line: &str| {
        let role = match line.as_bytes().first() {
            Some(b'+') => Role::Good,
            Some(b'-') => Role::Error,
            _ => Role::Quiet,
        };
        format!("{INDENT}{}", role.paint(line))
    };
    for (hunk, count) in surefoot_report::hunks(&proposal.diff) {
        lines.extend(hunk.into_iter().map(paint));
        if count > 1 {
            lines.push(paint(&format!("  ({count} times)")));
        }
    }
    lines.join("\n")
}

/// The question that goes with it.
pub(crate) fn question(proposal: &Proposal) -> String {
    let question = format!("Try {}?", name(&proposal.remedies));
    let question = Role::Strong.paint(question);
    format!("{INDENT}{question} [y]es, [n]o, [q]uit repairing: ")
}

/// Remedies of an attempt, the new one last.
fn name(ids: &[String]) -> String {
    ids.join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;
    use surefoot_diagnose::Problem;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    fn vanishing() -> Finding {
        let sentence = "The gradient that reaches the first layer has a norm of 1.2e-9: it dies \
                        away on its way back through the layers.";
        Finding::new(Problem::VANISHING_GRADIENT, 96, sentence)
            .with("gradient norm", 1.2e-9, 1e-4)
            .with("skill", 0.01, None)
    }

    #[test]
    fn a_finding_is_a_paragraph_for_whoever_watches_and_a_line_otherwise() {
        assert_snapshot!(plain(&finding(&vanishing(), 1600, Some(60))), @r"
        ✗ vanishing gradient at step 96 of 1,600
          The gradient that reaches the first layer has a norm of
          1.2e-9: it dies away on its way back through the layers.
          gradient norm 1.20e-9 < 1.00e-4
        ");
        let sentence = vanishing().message;
        assert_eq!(
            plain(&finding(&vanishing(), 1600, None)),
            format!("✗ vanishing gradient at step 96 of 1,600: {sentence}")
        );
        let warning = vanishing().warning();
        assert_snapshot!(plain(&finding(&warning, 1600, Some(60))), @r"
        · warning: vanishing gradient at step 96 of 1,600
          The gradient that reaches the first layer has a norm of
          1.2e-9: it dies away on its way back through the layers.
        ");
    }

    #[test]
    fn an_attempt_says_how_it_stands_and_what_it_changes() {
        let tried = Attempt {
            step: 96,
            number: 2,
            parent: 0,
            problem: Problem::VANISHING_GRADIENT,
            remedies: vec!["batch_norm".to_owned(), "optimizer".to_owned()],
            change: "Trains with adam at its default rate of 0.001.".to_owned(),
            diff: String::new(),
            run: "attempts/attempt-002".to_owned(),
        };
        let outcome = AttemptOutcome {
            step: 96,
            number: 2,
            state: AttemptState::NewProblem,
            finding: Some(vanishing()),
            metric: Some(0.5),
            steps: 40,
        };
        let mut repaired = outcome.clone();
        repaired.state = AttemptState::Repaired;
        let lines = [
            attempt(&tried, Phase::Trying, "accuracy").plain(Some(50)),
            attempt(&tried, Phase::Continuing, "accuracy").plain(Some(50)),
            attempt(&tried, Phase::Ended(&outcome), "accuracy").plain(Some(50)),
            attempt(&tried, Phase::Ended(&repaired), "accuracy").plain(None),
        ];
        assert_snapshot!(lines.join("\n"), @r"
        2 → batch_norm + optimizer         trying
            Trains with adam at its default rate of
            0.001.
        2 → batch_norm + optimizer         continues
            Trains with adam at its default rate of
            0.001.
        2 ✗ batch_norm + optimizer         now vanishing gradient
            Trains with adam at its default rate of
            0.001.
        2 ✓ batch_norm + optimizer         repaired, accuracy 50.0%   Trains with adam at its default rate of 0.001.
        ");
    }
}
