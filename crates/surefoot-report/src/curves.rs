//! Loss and metric of the plan as given and of the delivered attempt.

use maud::{Markup, html};
use surefoot_diagnose::{Facts, Split};

use crate::chart::{Chart, Line};
use crate::format::{self, capital};
use crate::marks::Mark;
use crate::reading::{Reading, Readings};
use crate::scale::Scale;
use crate::series::Point;

/// Lower end of the axis of R², which is unbounded below.
const LEAST_R2: f64 = -1.0;

/// The training curves of a run.
#[derive(Debug)]
pub(crate) struct Curves<'a> {
    pub(crate) readings: &'a Readings,
    pub(crate) facts: &'a Facts,
    pub(crate) metric: &'a str,
    /// Findings of the plan as given, positioned by step.
    pub(crate) marks: &'a [Mark],
}

impl Curves<'_> {
    /// Draws both charts.
    pub(crate) fn draw(&self) -> Markup {
        html! {
            (self.loss())
            (self.metric())
        }
    }

    /// The plan as given and the delivered attempt, each with its CSS class and label.
    fn runs(&self) -> Vec<(&'static str, String, &Reading)> {
        let mut runs = vec![("given", "plan as given".to_owned(), &self.readings.given)];
        if let Some((number, reading)) = self.readings.repaired() {
            runs.push(("delivered", format!("delivered: attempt {number}"), reading));
        }
        runs
    }

    fn loss(&self) -> Markup {
        let lines = self.runs().into_iter().map(|(class, label, reading)| Line {
            class,
            label,
            points: reading.loss.lines(),
            trend: reading.loss.trend(),
            dots: false,
            broken: reading.loss.broken().iter().map(|step| *step as f64).collect(),
        });
        let lines: Vec<Line> = lines.collect();
        let last = self.runs().iter().map(|(_, _, reading)| reading.last_step).max();
        if last.unwrap_or(0) == 0 {
            return html! { p.quiet { "No steps have been recorded yet." } };
        }
        let y = Scale::fit(values(&lines));
        let trend = lines.iter().any(|line| line.trend.is_some());
        let log = y.is_log();
        let chart = Chart {
            id: "loss",
            title: "Loss of each training batch (lower is better)".to_owned(),
            description: describe(&lines, format::number),
            x: Scale::linear(0.0, last.unwrap_or(1) as f64),
            y,
            x_name: "step",
            lines,
            marks: self.marks,
            reference: None,
            percent: false,
        };
        html! {
            (chart.draw())
            p.note {
                @if trend { "The faint line is the loss of single batches, the strong line its running median. " }
                @if log { "The axis is logarithmic. " }
                @if !self.marks.is_empty() { "Numbers mark the findings below." }
            }
        }
    }

    fn metric_lines(&self) -> Vec<Line> {
        let lines = self.runs().into_iter().map(|(class, label, reading)| {
            let (points, broken): (Vec<Point>, Vec<Point>) =
                metric_points(reading).partition(|point| point.1.is_finite());
            Line {
                class,
                label,
                trend: None,
                // Many dots would hide the line.
                dots: points.len() <= 60,
                points: vec![points],
                broken: broken.into_iter().map(|point| point.0).collect(),
            }
        });
        let mut lines: Vec<Line> = lines.collect();
        lines.retain(|line| !line.points[0].is_empty() || !line.broken.is_empty());
        lines
    }

    fn metric(&self) -> Markup {
        let lines = self.metric_lines();
        let name = capital(&format::metric_name(self.metric));
        if lines.is_empty() {
            return html! { p.quiet { (name) " was not evaluated." } };
        }
        if values(&lines).next().is_none() {
            return html! { p.quiet { (name) " was never a finite number." } };
        }
        let runs = self.runs();
        let epochs = runs.iter().flat_map(|(_, _, reading)| metric_points(reading));
        let last = epochs.map(|point| point.0).fold(1.0, f64::max);
        let marks: Vec<Mark> = match self.facts.steps_per_epoch {
            Some(steps) if steps > 0 => self.marks.iter().map(|m| m.per(steps as f64)).collect(),
            _ => Vec::new(),
        };
        let split = match self.readings.given.history.selection_split() {
            Some(Split::Train) => "training",
            _ => "validation",
        };
        let cut = self.metric == "r2" && values(&lines).any(|value| value < LEAST_R2);
        let chart = Chart {
            id: "metric",
            title: format!("{name} on the {split} split (higher is better)"),
            description: describe(&lines, |value| format::metric(self.metric, Some(value))),
            x: Scale::linear(0.0, last),
            y: self.metric_scale(&lines),
            x_name: "epoch",
            lines,
            marks: &marks,
            reference: self.facts.chance.map(|chance| {
                (chance, format!("guessing: {}", format::metric(self.metric, Some(chance))))
            }),
            percent: self.metric == "accuracy",
        };
        html! {
            (chart.draw())
            @if cut { p.note { "Values below −1 are off the chart." } }
        }
    }

    fn metric_scale(&self, lines: &[Line]) -> Scale {
        let all = values(lines).chain(self.facts.chance);
        let low = all.clone().fold(f64::INFINITY, f64::min);
        let high = all.fold(f64::NEG_INFINITY, f64::max);
        match self.metric {
            "accuracy" => Scale::linear((low * 10.0 - 0.2).floor().max(0.0) / 10.0, 1.0),
            "r2" => Scale::linear(low.clamp(LEAST_R2, 0.0), 1.0),
            _ => {
                let margin = (high - low).max(1e-9) * 0.06;
                Scale::linear(low - margin, high + margin)
            }
        }
    }
}

/// The metric after each epoch; NaN if undefined.
fn metric_points(reading: &Reading) -> impl Iterator<Item = Point> {
    let evaluations = reading.history.selection_evaluations();
    evaluations.map(|e| (e.epoch as f64, e.metric.unwrap_or(f64::NAN)))
}

fn values(lines: &[Line]) -> impl Iterator<Item = f64> + Clone {
    lines.iter().flat_map(|line| &line.points).flatten().map(|point| point.1)
}

/// Text alternative: first and last value of each curve.
fn describe(lines: &[Line], shown: impl Fn(f64) -> String) -> String {
    let parts = lines.iter().map(|line| {
        let points = line.trend.as_ref().unwrap_or(&line.points);
        let (first, last) = (points.iter().flatten().next(), points.iter().flatten().last());
        match (first, last) {
            (Some(first), Some(last)) => {
                format!("{}: from {} to {}.", capital(&line.label), shown(first.1), shown(last.1))
            }
            _ => format!("{}: no finite value.", capital(&line.label)),
        }
    });
    parts.collect::<Vec<_>>().join(" ")
}
