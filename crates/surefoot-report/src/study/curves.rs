//! Learning curves, colored by the state of their trials.

use std::cmp::Reverse;

use maud::{Markup, html};
use surefoot_tune::storage::{TrialReport, TrialState};

use super::axis::cut;
use super::plot::{Layers, Plot};
use super::selection::Selection;
use super::status::{Status, legend};
use super::values::Spread;
use super::{StudyPage, StudyTrial};
use crate::format::{self, capital, counted};
use crate::scale::Scale;
use crate::svg::{short, x_axis};

/// Maximum number of points of a curve.
const POINTS: usize = 100;

/// Draws the section.
pub(super) fn section(
    page: &StudyPage<'_>,
    ranking: &[(StudyTrial<'_>, f64)],
    chosen: &Selection,
) -> Markup {
    let best = ranking.first().map(|(trial, _)| trial.number());
    let mut shown: Vec<&StudyTrial<'_>> = page.trials.iter().collect();
    shown.retain(|trial| chosen.has(trial.number()) && !trial.reports.is_empty());
    // Pruned trials are short and are drawn on top.
    shown.sort_by_key(|trial| (Some(trial.number()) == best, Reverse(trial.status())));
    let longest = shown.iter().map(|trial| trial.reports.len()).max();
    let Some(longest) = longest else {
        return html! {
            section #curves {
                h2 { "Learning curves" }
                p.quiet { "No trial has reported intermediate values." }
            }
        };
    };
    let reports = shown.iter().flat_map(|trial| trial.reports);
    let spread = Spread::of(reports.map(|r| r.value).collect(), page.direction);
    let x = Scale::linear(if longest > 1 { 1.0 } else { 0.0 }, longest as f64);
    let mut strip = Layers::new(300, 1);
    for trial in &shown {
        let broken = trial.reports.iter().find(|r| !r.value.is_finite());
        if let Some(report) = broken {
            strip.add(trial.status(), x.place(f64::from(report.step)), 0.5);
        }
    }
    let without = !strip.is_empty();
    let mut statuses: Vec<Status> = shown.iter().map(|trial| trial.status()).collect();
    let crowd = if statuses.len() > 60 { "many" } else { "few" };
    let plot = Plot {
        id: "curves".to_owned(),
        title: format!("{} after each epoch ({})", capital(page.objective_name()), page.better()),
        description: described(&shown),
        legend: html! {
            (legend(statuses.drain(..)))
            @if best.is_some() { span.key.best { i.swatch {} "best trial" } }
        },
        height: 320,
        y: &spread.scale,
        marks: 5,
        x_axis: x_axis(&x, "epoch"),
        strip,
        content: html! {
            svg viewBox="0 0 1000 1000" preserveAspectRatio="none" width="100%" height="100%" {
                g.curves.(crowd) {
                    @for trial in &shown {
                        @let class = if Some(trial.number()) == best { "best" } else { trial.status().class() };
                        path.(class) d=(path(trial.reports, &x, &spread)) { title { (tooltip(trial)) } }
                    }
                }
            }
        },
    };
    html! {
        section #curves {
            h2 { "Learning curves" }
            (plot.draw())
            p.note {
                @if let Some(note) = chosen.note() { (note) " " }
                @if spread.scale.is_log() { "The axis is logarithmic. " }
                @if spread.off > 0 { "Values that are far worse than the rest are drawn at the edge. " }
                @if without { "Dots at the top, next to “none”, mark the first NaN or infinite value of a curve. " }
                "Hover over a curve to see its trial and why it ended."
            }
        }
    }
}

/// Path of a curve, interrupted where values are NaN or infinite.
fn path(reports: &[TrialReport], x: &Scale, spread: &Spread) -> String {
    let every = reports.len().div_ceil(POINTS).max(1);
    let mut path = String::new();
    let mut begun = None;
    for (i, report) in reports.iter().enumerate() {
        if i % every != 0 && i + 1 != reports.len() {
            continue;
        }
        if !report.value.is_finite() {
            begun = None;
            continue;
        }
        let across = short((1000.0 * x.place(f64::from(report.step))).round());
        let down = short((1000.0 * (1.0 - spread.place(report.value))).round());
        path.push(if begun.is_none() { 'M' } else { 'L' });
        path.push_str(&format!("{across} {down}"));
        // A single point needs a length of zero to be drawn.
        let next = reports.get(i + every).is_some_and(|r| r.value.is_finite());
        if begun.is_none() && !next {
            path.push_str("h0");
        }
        begun = Some(());
    }
    path
}

/// Tooltip of a trial.
pub(super) fn tooltip(trial: &StudyTrial<'_>) -> String {
    let mut text = format!("Trial {}", trial.number());
    let done = trial.reports.len() as u64;
    let after = match trial.trial.planned {
        Some(planned) => format!("after {done} of {}", counted(planned.into(), "epoch")),
        None => format!("after {}", counted(done, "epoch")),
    };
    match &trial.trial.state {
        TrialState::Complete { value } => {
            text.push_str(&format!(", complete: {}", format::number(*value)));
        }
        TrialState::Pruned { reason, .. } => {
            let (by, message) = (cut(&reason.by, 40), cut(&reason.message, 160));
            text.push_str(&format!(", pruned by {by} {after}: {message}"));
        }
        TrialState::Failed { message } => {
            text.push_str(&format!(", failed {after}: {}", cut(message, 160)));
        }
        open => text.push_str(&format!(", {} {after}", open.name())),
    }
    text
}

fn described(shown: &[&StudyTrial<'_>]) -> String {
    let counts = Status::ALL.into_iter().rev().filter_map(|status| {
        let count = shown.iter().filter(|t| t.status() == status).count();
        (count > 0).then(|| format!("{count} {}", status.class()))
    });
    let counts: Vec<String> = counts.collect();
    format!("Curves of trials: {}.", format::listed(&counts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::fixture::reports;

    fn drawn(values: &[f64]) -> String {
        let reports = reports(values);
        let x = Scale::linear(1.0, values.len() as f64);
        let spread = Spread { scale: Scale::linear(0.0, 1.0), off: 0 };
        path(&reports, &x, &spread)
    }

    #[test]
    fn non_finite_values_interrupt_a_curve() {
        assert_eq!(drawn(&[0.0, 0.5, f64::NAN, 1.0, f64::INFINITY]), "M0 1000L250 500M750 0h0");
        assert_eq!(drawn(&[f64::NAN; 3]), "");
    }

    #[test]
    fn a_long_curve_is_downsampled_and_keeps_its_end() {
        let path = drawn(&vec![0.25; 10_001]);
        assert!(path.matches('L').count() <= POINTS + 1);
        assert!(path.ends_with("L1000 750"));
    }
}
