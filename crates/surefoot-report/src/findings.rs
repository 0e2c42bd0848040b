//! The findings, with the numbers that show them.

use maud::{Markup, html};
use surefoot_diagnose::{Evidence, Finding, Severity};

use crate::explain::explanation;
use crate::marks::Mark;
use crate::words::{self, capital, grouped};

/// A finding with its number on the page. What was found again is one of these.
#[derive(Debug)]
pub(crate) struct Numbered<'a> {
    pub(crate) number: usize,
    pub(crate) finding: &'a Finding,
    /// The steps at which it was found again.
    again: Vec<u64>,
    /// The attempt it was found in; `None` for the plan as given.
    pub(crate) attempt: Option<u32>,
}

/// Numbers findings, after `before` others.
pub(crate) fn numbered(
    findings: &[Finding],
    attempt: Option<u32>,
    before: usize,
) -> Vec<Numbered<'_>> {
    let mut list: Vec<Numbered<'_>> = Vec::new();
    // Problems first, each in the order of its finding.
    for severity in [Severity::Problem, Severity::Warning] {
        for finding in findings.iter().filter(|finding| finding.severity == severity) {
            let same = |other: &&mut Numbered<'_>| {
                let other = other.finding;
                (&other.problem, other.severity, &other.layers)
                    == (&finding.problem, finding.severity, &finding.layers)
            };
            match list.iter_mut().find(same) {
                Some(known) => known.again.push(finding.step),
                None => list.push(Numbered {
                    number: before + list.len() + 1,
                    finding,
                    again: Vec::new(),
                    attempt,
                }),
            }
        }
    }
    list
}

impl Numbered<'_> {
    /// The finding in a chart.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            number: self.number,
            since: self.finding.since as f64,
            at: self.finding.step as f64,
            title: self.finding.problem.title(),
            layers: self.finding.layers.clone(),
        }
    }

    fn card(&self) -> Markup {
        let finding = self.finding;
        html! {
            article.card.finding id={ "finding-" (self.number) } {
                h3 {
                    span.number { (self.number) }
                    (capital(&finding.problem.title()))
                    @if let Some(attempt) = self.attempt { span.tag { "in attempt " (attempt) } }
                }
                p { (finding.message) }
                @if let Some(explanation) = explanation(&finding.problem) {
                    p.quiet { (explanation.meaning) }
                }
                dl.facts {
                    dt { "When" }
                    dd {
                        @if finding.since < finding.step { "since step " (grouped(finding.since)) ", " }
                        "certain at step " (grouped(finding.step))
                        @if !self.again.is_empty() { (self.repeated()) }
                    }
                    @if !finding.layers.is_empty() {
                        dt { "Where" }
                        dd { (layers(&finding.layers)) }
                    }
                }
                @if !finding.evidence.is_empty() { (evidence(&finding.evidence)) }
            }
        }
    }

    fn repeated(&self) -> String {
        let last = self.again.last().copied().unwrap_or(self.finding.step);
        let times = words::counted(self.again.len() as u64, "more time");
        format!(", and {times} until step {}", grouped(last))
    }
}

/// Problems, then warnings.
pub(crate) fn sections(findings: &[Numbered<'_>]) -> Markup {
    let of = |severity| {
        let matching = findings.iter().filter(move |n| n.finding.severity == severity);
        matching.collect::<Vec<_>>()
    };
    let (problems, warnings) = (of(Severity::Problem), of(Severity::Warning));
    html! {
        section #findings {
            h2 { "What was found" }
            @if problems.is_empty() { p.quiet { "No problem was found." } }
            @for numbered in problems { (numbered.card()) }
        }
        @if !warnings.is_empty() {
            section #warnings {
                h2 { "Warnings" }
                p.quiet { "Not problems, but worth knowing." }
                @for numbered in warnings { (numbered.card()) }
            }
        }
    }
}

fn layers(names: &[String]) -> Markup {
    html! {
        @for (i, name) in names.iter().enumerate() {
            @if i > 0 { ", " }
            code { (name) }
        }
    }
}

fn evidence(evidence: &[Evidence]) -> Markup {
    html! {
        table {
            thead { tr { th scope="col" { "Measured" } th.figure scope="col" { "Value" } th.figure scope="col" { "Limit" } } }
            tbody {
                @for Evidence { name, value, limit } in evidence {
                    tr {
                        th scope="row" { (name) }
                        td.figure { (words::number(*value)) }
                        td.figure { @if let Some(limit) = limit { (words::number(*limit)) } @else { "–" } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use surefoot_diagnose::Problem;

    #[test]
    fn problems_come_first_and_what_is_found_again_is_counted() {
        let spike = |step| Finding::new(Problem::LOSS_SPIKE, step, "A jump.").warning();
        let problem = Finding::new(Problem::DYING_RELU, 12, "Dead.");
        let findings = [spike(3), spike(9), problem, spike(11)];
        let list = numbered(&findings, None, 0);
        let problems: Vec<_> = list.iter().map(|n| n.finding.problem.id()).collect();
        assert_eq!(problems, ["dying_relu", "loss_spike"]);
        assert_eq!(list[1].repeated(), ", and 2 more times until step 11");
    }

    #[test]
    fn evidence_that_is_no_number_is_shown() {
        let finding = Finding::new(Problem::EXPLODING_GRADIENT, 3, "Large.")
            .with("gradient norm", f64::INFINITY, 70.0)
            .with("ratio", f64::NAN, None);
        let findings = [finding];
        let page = sections(&numbered(&findings, None, 0)).into_string();
        assert!(page.contains("∞") && page.contains("NaN") && page.contains("70"), "{page}");
    }
}
