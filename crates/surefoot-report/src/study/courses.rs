//! The learning curves, coloured by what became of their trials.

use std::cmp::Reverse;

use maud::{Markup, html};
use surefoot_tune::store::{End, Report, State};

use super::axis::cut;
use super::outcome::{Outcome, legend};
use super::plot::{Layers, Plot};
use super::selection::Selection;
use super::values::Spread;
use super::{StudyPage, StudyTrial};
use crate::scale::Scale;
use crate::svg::{short, x_axis};
use crate::words::{self, capital, counted};

/// How many points a curve has at most.
const POINTS: usize = 100;

/// The section.
pub(super) fn section(
    page: &StudyPage<'_>,
    ranking: &[(StudyTrial<'_>, f64)],
    chosen: &Selection,
) -> Markup {
    let best = ranking.first().map(|(trial, _)| trial.number());
    let mut shown: Vec<&StudyTrial<'_>> = page.trials.iter().collect();
    shown.retain(|trial| chosen.has(trial.number()) && !trial.reports.is_empty());
    // Those that were stopped are short, and would be hidden below the others.
    shown.sort_by_key(|trial| (Some(trial.number()) == best, Reverse(trial.outcome())));
    let longest = shown.iter().map(|trial| trial.reports.len()).max();
    let Some(longest) = longest else {
        return html! {
            section #courses {
                h2 { "How trials learned" }
                p.quiet { "No trial has reported anything on its way, so there are no curves." }
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
            strip.add(trial.outcome(), x.place(f64::from(report.step)), 0.5);
        }
    }
    let without = !strip.is_empty();
    let mut outcomes: Vec<Outcome> = shown.iter().map(|trial| trial.outcome()).collect();
    let crowd = if outcomes.len() > 60 { "many" } else { "few" };
    let plot = Plot {
        id: "courses".to_owned(),
        title: format!("{} after each epoch ({})", capital(page.objective_name()), page.better()),
        description: described(&shown),
        legend: html! {
            (legend(outcomes.drain(..)))
            @if best.is_some() { span.key.best { i.swatch {} "best trial" } }
        },
        height: 320,
        y: &spread.scale,
        marks: 5,
        x_axis: x_axis(&x, "epoch"),
        strip,
        content: html! {
            svg viewBox="0 0 1000 1000" preserveAspectRatio="none" width="100%" height="100%" {
                g.courses.(crowd) {
                    @for trial in &shown {
                        @let class = if Some(trial.number()) == best { "best" } else { trial.outcome().class() };
                        path.(class) d=(path(trial.reports, &x, &spread)) { title { (told(trial)) } }
                    }
                }
            }
        },
    };
    html! {
        section #courses {
            h2 { "How trials learned" }
            (plot.draw())
            p.note {
                @if let Some(note) = chosen.note() { (note) " " }
                @if spread.scale.is_log() { "The axis goes by powers of ten. " }
                @if spread.off > 0 { "What is far worse than the rest is drawn at the edge. " }
                @if without { "Dots at the top, beside “none”, mark where a curve is no number for the first time. " }
                "A curve tells its trial and why it was ended when pointed at."
            }
        }
    }
}

/// A curve: the pen is lifted where there is no number.
fn path(reports: &[Report], x: &Scale, spread: &Spread) -> String {
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
        // A point on its own is a dot.
        let next = reports.get(i + every).is_some_and(|r| r.value.is_finite());
        if begun.is_none() && !next {
            path.push_str("h0");
        }
        begun = Some(());
    }
    path
}

/// A trial in a sentence or two, for those who point at it.
pub(super) fn told(trial: &StudyTrial<'_>) -> String {
    let mut text = format!("Trial {}", trial.number());
    let done = trial.reports.len() as u64;
    let after = match trial.trial.planned {
        Some(planned) => format!("after {done} of {}", counted(planned.into(), "epoch")),
        None => format!("after {}", counted(done, "epoch")),
    };
    match &trial.trial.state {
        State::Over(End::Complete { value }) => {
            text.push_str(&format!(", complete: {}", words::number(*value)));
        }
        State::Over(End::Stopped { reason, .. }) => {
            let (by, sentence) = (cut(&reason.by, 40), cut(&reason.message, 160));
            text.push_str(&format!(", stopped by {by} {after}: {sentence}"));
        }
        State::Over(End::Failed { message }) => {
            text.push_str(&format!(", failed {after}: {}", cut(message, 160)));
        }
        open => text.push_str(&format!(", {} {after}", open.word())),
    }
    text
}

fn described(shown: &[&StudyTrial<'_>]) -> String {
    let counts = Outcome::ALL.into_iter().rev().filter_map(|outcome| {
        let count = shown.iter().filter(|t| t.outcome() == outcome).count();
        (count > 0).then(|| format!("{count} {}", outcome.label()))
    });
    let counts: Vec<String> = counts.collect();
    format!("Curves of trials: {}.", words::listed(&counts))
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
    fn the_pen_is_lifted_where_there_is_no_number() {
        assert_eq!(drawn(&[0.0, 0.5, f64::NAN, 1.0, f64::INFINITY]), "M0 1000L250 500M750 0h0");
        assert_eq!(drawn(&[f64::NAN; 3]), "");
    }

    #[test]
    fn a_long_curve_is_thinned_and_keeps_its_end() {
        let path = drawn(&vec![0.25; 10_001]);
        assert!(path.matches('L').count() <= POINTS + 1);
        assert!(path.ends_with("L1000 750"));
    }
}
