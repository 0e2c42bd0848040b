//! The page of a run.

use maud::{Markup, html};
use serde::Serialize;
use surefoot_record::{Record, RunSummary, Status};

use crate::curves::Curves;
use crate::document::document;
use crate::findings::{self, Numbered, numbered};
use crate::format::{self, capital, counted, grouped};
use crate::heatmap::{self, Heat};
use crate::history::History;
use crate::layer_map::LayerMap;
use crate::ledger::Ledger;
use crate::marks::Mark;
use crate::reading::Readings;
use crate::reproduction;
use crate::story::Story;

/// Contents of the page of a run.
#[derive(Debug)]
pub(crate) struct RunPage<'a> {
    pub(crate) run: &'a Record,
    pub(crate) summary: Option<RunSummary>,
    pub(crate) history: &'a History,
    pub(crate) readings: &'a Readings,
    /// True if the run is known to be training now.
    pub(crate) is_running: bool,
}

/// Parts of the report that the board shows as they are.
#[derive(Debug, Serialize)]
pub(crate) struct RunFragments {
    summary: String,
    findings: String,
    attempts: String,
    reproduction: String,
}

impl RunPage<'_> {
    /// Draws the page.
    pub(crate) fn page(&self) -> Markup {
        let name = self.name();
        let findings = self.findings();
        let main = html! {
            (self.header(&name))
            (self.curves(&findings))
            (self.gradients(&findings))
            (findings::sections(&findings))
            (self.ledger())
            (reproduction::section(self.run, self.summary.as_ref()))
        };
        document(&name, &heatmap::patterns(), &main)
    }

    /// Draws the parts of the page that are text.
    pub(crate) fn fragments(&self) -> RunFragments {
        let summary = html! { (self.story()) (self.figures()) };
        let reproduction = reproduction::section(self.run, self.summary.as_ref());
        RunFragments {
            summary: summary.into_string(),
            findings: findings::sections(&self.findings()).into_string(),
            attempts: self.ledger().into_string(),
            reproduction: reproduction.into_string(),
        }
    }

    /// Name of the run directory.
    pub(crate) fn name(&self) -> String {
        let dir = self.run.dir();
        // `.` has no file name.
        let whole = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        let name = whole.file_name().unwrap_or(dir.as_os_str());
        name.to_string_lossy().into_owned()
    }

    pub(crate) fn metric(&self) -> &str {
        let recorded = self.summary.as_ref().map(|summary| summary.metric.name.as_str());
        let planned = self.run.header().facts.metric.as_deref();
        recorded.or(planned).unwrap_or("metric")
    }

    /// The findings of the plan as given, then those of the delivered attempt.
    pub(crate) fn findings(&self) -> Vec<Numbered<'_>> {
        let mut findings = numbered(&self.history.findings, None, 0);
        if let Some((number, reading)) = self.readings.repaired() {
            let others = numbered(&reading.history.findings, Some(number), findings.len());
            findings.extend(others);
        }
        findings
    }

    /// CSS class and text of the status.
    pub(crate) fn status(&self) -> (&'static str, &'static str) {
        match self.summary.as_ref().map(|summary| summary.status) {
            Some(status) if status.is_success() => ("good", status.name()),
            Some(status) => ("bad", status.name()),
            None if self.history.pruned.is_some() => ("neutral", "pruned"),
            None if self.is_running => ("neutral", "running"),
            None => ("neutral", "unfinished"),
        }
    }

    fn header(&self, name: &str) -> Markup {
        let (class, status) = self.status();
        html! {
            header {
                p.eyebrow { "surefoot report" }
                h1 { (name) " " span.tag.(class) { (status) } }
                (self.story())
                (self.figures())
            }
        }
    }

    fn story(&self) -> Markup {
        let given = &self.readings.given;
        let story = Story {
            history: self.history,
            summary: self.summary.as_ref(),
            last_step: given.last_step,
            planned: given.planned,
            last_loss: given.loss.last(),
            metric: self.metric(),
            is_program: self.run.program().is_some(),
            is_running: self.is_running,
        };
        html! { p.story { @for sentence in story.sentences() { (sentence) " " } } }
    }

    /// Draws the key figures.
    fn figures(&self) -> Markup {
        let Some(summary) = &self.summary else {
            return html! {};
        };
        let name = self.metric();
        let (before, after) = (summary.metric.before, summary.metric.after);
        let (before, after) = (format::metric(name, before), format::metric(name, after));
        html! {
            dl.figures {
                @if !name.is_empty() {
                    div {
                        dt { (capital(&format::metric_name(name))) }
                        dd {
                            @if self.history.delivered_attempt().is_some() && before != after {
                                span.before { (before) } " → "
                            }
                            (after)
                        }
                    }
                }
                div { dt { "Steps" } dd { (grouped(summary.steps)) } }
                div { dt { "Time" } dd { (format::time(summary.seconds)) } }
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
                h2 { "Training curves" }
                (curves.draw())
                @if let Some(lost) = lost {
                    p.note {
                        "The record of attempt " (lost.number)
                        ", which was delivered, cannot be read, so its curves are missing."
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
        let maps: Vec<_> = maps
            .into_iter()
            .filter_map(|(attempt, title, reading)| Some((attempt, title, reading.gradients()?)))
            .collect();
        let ranges = maps.iter().filter_map(|(_, _, map)| map.range());
        // The scale spans at least four decades, so that noise is not mistaken for a difference.
        let range = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let range = range.map_or((-1.0, 1.0), |(low, high)| {
            let lacking = (4.0 - (high - low)).max(0.0) / 2.0;
            (low - lacking, high + lacking)
        });
        html! {
            section #gradients {
                h2 { "Gradients by layer" }
                @if maps.is_empty() {
                    p.quiet { "Layers were not observed in this run." }
                } @else {
                    p.quiet {
                        "The gradient tells a layer how to change. The first row is the input layer. "
                        "Rows of similar color are healthy. A much darker row hardly learns, "
                        "a much brighter row may be unstable."
                        @if !findings.is_empty() { " Numbers and frames mark the findings below." }
                    }
                    @for (attempt, title, map) in maps {
                        (self.heat(attempt, title, map, range, findings))
                    }
                    (heatmap::legend(range))
                }
            }
        }
    }

    fn heat(
        &self,
        attempt: Option<u32>,
        title: String,
        gradients: &LayerMap,
        range: (f64, f64),
        findings: &[Numbered<'_>],
    ) -> Markup {
        let width = counted(gradients.width(), "step");
        let id = attempt.map_or("heat-given", |_| "heat-delivered");
        let heat = Heat {
            id,
            title: format!("{title} (each column {width})"),
            gradients,
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
            has_plan: self.run.program().is_none(),
        };
        ledger.section()
    }
}

/// Marks of the findings of the plan as given (`None`) or of an attempt.
fn marks(findings: &[Numbered<'_>], attempt: Option<u32>) -> Vec<Mark> {
    let matching = findings.iter().filter(|numbered| numbered.attempt == attempt);
    matching.map(Numbered::mark).collect()
}
