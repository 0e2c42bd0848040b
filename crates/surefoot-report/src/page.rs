//! The page as a whole.

use maud::{Markup, html};
use surefoot_record::{Record, RunSummary, Status};

use crate::curves::Curves;
use crate::document::document;
use crate::findings::{self, Numbered, numbered};
use crate::heat::{self, Heat};
use crate::history::History;
use crate::ledger::Ledger;
use crate::marks::Mark;
use crate::reading::{Reading, Readings};
use crate::small_print;
use crate::story::Story;
use crate::words::{self, capital, counted, grouped};

/// Everything the page is made from.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    pub(crate) run: &'a Record,
    pub(crate) summary: Option<RunSummary>,
    pub(crate) history: &'a History,
    pub(crate) readings: &'a Readings,
}

impl Report<'_> {
    /// The whole page.
    pub(crate) fn page(&self) -> Markup {
        let name = self.name();
        let findings = self.findings();
        let main = html! {
            (self.header(&name))
            (self.curves(&findings))
            (self.gradients(&findings))
            (findings::sections(&findings))
            (self.ledger())
            (small_print::section(self.run, self.summary.as_ref()))
        };
        document(&name, &heat::patterns(), &main)
    }

    /// What the run is called: its directory.
    fn name(&self) -> String {
        let dir = self.run.dir();
        // `.` has no name of its own.
        let whole = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        let name = whole.file_name().unwrap_or(dir.as_os_str());
        name.to_string_lossy().into_owned()
    }

    fn metric(&self) -> &str {
        let told = self.summary.as_ref().map(|summary| summary.metric.name.as_str());
        let planned = self.run.header().facts.metric.as_deref();
        told.or(planned).unwrap_or("metric")
    }

    /// The findings of the plan as given, then those of the delivered attempt.
    fn findings(&self) -> Vec<Numbered<'_>> {
        let mut findings = numbered(&self.history.findings, None, 0);
        if let Some((number, reading)) = self.readings.repaired() {
            let others = numbered(&reading.history.findings, Some(number), findings.len());
            findings.extend(others);
        }
        findings
    }

    fn header(&self, name: &str) -> Markup {
        let given = &self.readings.given;
        let story = Story {
            history: self.history,
            summary: self.summary.as_ref(),
            last_step: given.last_step,
            planned: given.planned,
            last_loss: given.loss.last(),
            metric: self.metric(),
        };
        let (class, status) = match self.summary.as_ref().map(|summary| summary.status) {
            Some(Status::Normal) => ("good", "normal"),
            Some(Status::Repaired) => ("good", "repaired"),
            Some(Status::Failed) => ("bad", "failed"),
            None if self.history.ended.is_some() => ("neutral", "stopped"),
            None => ("neutral", "not finished"),
        };
        html! {
            header {
                p.eyebrow { "surefoot report" }
                h1 { (name) " " span.tag.(class) { (status) } }
                p.story { @for sentence in story.sentences() { (sentence) " " } }
                (self.figures())
            }
        }
    }

    /// The few numbers that matter most.
    fn figures(&self) -> Markup {
        let Some(summary) = &self.summary else {
            return html! {};
        };
        let name = self.metric();
        let (before, after) = (summary.metric.before, summary.metric.after);
        let (before, after) = (words::metric(name, before), words::metric(name, after));
        html! {
            dl.figures {
                div {
                    dt { (capital(&words::metric_name(name))) }
                    dd {
                        @if self.history.delivered_attempt().is_some() && before != after {
                            span.before { (before) } " → "
                        }
                        (after)
                    }
                }
                div { dt { "Steps" } dd { (grouped(summary.steps)) } }
                div { dt { "Time" } dd { (words::time(summary.seconds)) } }
                @if !self.history.attempts.is_empty() {
                    div { dt { "Attempts" } dd { (self.history.attempts.len()) } }
                }
            }
        }
    }

    fn curves(&self, findings: &[Numbered<'_>]) -> Markup {
        let marks = marks(findings, None);
        let curves = Curves {
            readings: self.readings,
            facts: &self.run.header().facts,
            metric: self.metric(),
            marks: &marks,
        };
        let delivered = self.readings.delivered.as_ref();
        let lost = delivered.filter(|delivered| delivered.reading.is_none());
        html! {
            section #curves {
                h2 { "How it went" }
                (curves.draw())
                @if let Some(lost) = lost {
                    p.note {
                        "The record of attempt " (lost.number)
                        ", which is delivered, cannot be read any more, so its curves are not shown."
                    }
                }
            }
        }
    }

    fn gradients(&self, findings: &[Numbered<'_>]) -> Markup {
        let mut maps = vec![(None, "Plan as given".to_owned(), &self.readings.given)];
        if let Some((number, reading)) = self.readings.repaired() {
            maps.push((Some(number), format!("Delivered: attempt {number}"), reading));
        }
        maps.retain(|(_, _, reading)| reading.gradients.columns() > 0);
        let ranges = maps.iter().filter_map(|(_, _, reading)| reading.gradients.range());
        // A scale of at least four decades, so that noise does not look like a difference.
        let range = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let range = range.map_or((-1.0, 1.0), |(low, high)| {
            let lacking = (4.0 - (high - low)).max(0.0) / 2.0;
            (low - lacking, high + lacking)
        });
        html! {
            section #gradients {
                h2 { "How each layer learned" }
                @if maps.is_empty() {
                    p.quiet { "The layers of this run were not observed." }
                } @else {
                    p.quiet {
                        "The gradient tells a layer how to change. The first row is the layer next to the input. "
                        "Rows of much the same colour are healthy; a row that is far darker than the others hardly learns, "
                        "one that is far brighter may be thrown about."
                        @if !findings.is_empty() { " Numbers and frames mark the findings below." }
                    }
                    @for (attempt, title, reading) in maps {
                        (self.heat(attempt, title, reading, range, findings))
                    }
                    (heat::legend(range))
                }
            }
        }
    }

    fn heat(
        &self,
        attempt: Option<u32>,
        title: String,
        reading: &Reading,
        range: (f64, f64),
        findings: &[Numbered<'_>],
    ) -> Markup {
        let width = counted(reading.gradients.width(), "step");
        let id = attempt.map_or("heat-given", |_| "heat-delivered");
        let heat = Heat {
            id,
            title: format!("{title} (each column {width})"),
            gradients: &reading.gradients,
            marks: &marks(findings, attempt),
            range,
        };
        heat.draw()
    }

    fn ledger(&self) -> Markup {
        let failed = self.summary.as_ref().is_some_and(|s| s.status != Status::Normal);
        let ledger = Ledger {
            history: self.history,
            dir: self.run.dir(),
            metric: self.metric(),
            needed: failed || self.history.main_problem().is_some(),
        };
        ledger.section()
    }
}

/// The findings of the plan as given or of an attempt, for charts.
fn marks(findings: &[Numbered<'_>], attempt: Option<u32>) -> Vec<Mark> {
    let matching = findings.iter().filter(|numbered| numbered.attempt == attempt);
    matching.map(Numbered::mark).collect()
}
