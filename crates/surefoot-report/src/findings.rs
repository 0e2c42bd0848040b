//! The sections of findings and warnings.

use maud::{Markup, html};
use surefoot_diagnose::{Evidence, Finding, Severity};

use crate::explain::meaning;
use crate::format::{self, capital, grouped};
use crate::marks::Mark;

/// A finding with its number on the page. Repeated findings are one entry.
#[derive(Debug)]
pub(crate) struct Numbered<'a> {
    pub(crate) number: usize,
    pub(crate) finding: &'a Finding,
    /// Steps of the repetitions.
    again: Vec<u64>,
    /// Attempt of the finding; `None` for the plan as given.
    pub(crate) attempt: Option<u32>,
}

/// Numbers findings, starting after `before`.
pub(crate) fn numbered(
    findings: &[Finding],
    attempt: Option<u32>,
    before: usize,
) -> Vec<Numbered<'_>> {
    let mut list: Vec<Numbered<'_>> = Vec::new();
    // Problems come first.
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
    /// The mark of the finding in charts.
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
                @if let Some(meaning) = meaning(&finding.problem) { p.quiet { (meaning) } }
                dl.facts {
                    dt { "When" }
                    dd {
                        @if finding.since < finding.step { "since step " (grouped(finding.since)) ", " }
                        "confirmed at step " (grouped(finding.step))
                        @if !self.again.is_empty() { (self.repeated()) }
                    }
                    @if !finding.layers.is_empty() {
                        dt { "Where" }
                        dd { (layers(&finding.layers)) }
                    }
                }
                @if !finding.evidence.is_empty() { (evidence(&finding.evidence)) }
                @if let Some(advice) = &finding.advice {
                    details {
                        summary { "Usual change as code" }
                        dl.facts {
                            dt { "PyTorch" } dd { code { (advice.pytorch) } }
                            dt { "Keras" } dd { code { (advice.keras) } }
                        }
                    }
                }
            }
        }
    }

    fn repeated(&self) -> String {
        let last = self.again.last().copied().unwrap_or(self.finding.step);
        let times = format::counted(self.again.len() as u64, "repetition");
        format!("; {times} until step {}", grouped(last))
    }
}

/// Draws the problems, then the warnings.
pub(crate) fn sections(findings: &[Numbered<'_>]) -> Markup {
    let of = |severity| {
        let matching = findings.iter().filter(move |n| n.finding.severity == severity);
        matching.collect::<Vec<_>>()
    };
    let (problems, warnings) = (of(Severity::Problem), of(Severity::Warning));
    html! {
        section #findings {
            h2 { "Findings" }
            @if problems.is_empty() { p.quiet { "No problem was found." } }
            @for numbered in problems { (numbered.card()) }
        }
        @if !warnings.is_empty() {
            section #warnings {
                h2 { "Warnings" }
                p.quiet { "Observations that did not harm this training but may be worth a look." }
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
            thead { tr { th scope="col" { "Measured" } th.figure scope="col" { "Value" } th.figure scope="col" { "Threshold" } } }
            tbody {
                @for entry in evidence {
                    tr {
                        th scope="row" { (entry.measure.label()) }
                        td.figure { (format::number(entry.value)) }
                        td.figure {
                            @if let Some(limit) = entry.limit {
                                @if let Some(relation) = entry.relation() { (relation) " " }
                                (format::number(limit))
                            } @else { "–" }
                        }
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
    fn problems_come_first_and_repetitions_are_counted() {
        let spike = |step| Finding::new(Problem::LOSS_SPIKE, step, "A jump.").warning();
        let problem = Finding::new(Problem::DYING_RELU, 12, "Dead.");
        let findings = [spike(3), spike(9), problem, spike(11)];
        let list = numbered(&findings, None, 0);
        let problems: Vec<_> = list.iter().map(|n| n.finding.problem.id()).collect();
        assert_eq!(problems, ["dying_relu", "loss_spike"]);
        assert_eq!(list[1].repeated(), "; 2 repetitions until step 11");
    }

    #[test]
    fn non_finite_evidence_is_shown() {
        let finding = Finding::new(Problem::EXPLODING_GRADIENT, 3, "Large.")
            .with("gradient norm", f64::INFINITY, 70.0)
            .with("ratio", f64::NAN, None);
        let findings = [finding];
        let page = sections(&numbered(&findings, None, 0)).into_string();
        assert!(page.contains("∞") && page.contains("NaN"), "{page}");
        // The direction of the limit.
        assert!(page.contains("&gt; 70"), "{page}");
    }
}
