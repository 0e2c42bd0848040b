//! Value of each trial and the best value so far.

use maud::{Markup, html};

use super::plot::{Layers, Plot};
use super::status::{Status, legend};
use super::values::Values;
use super::{StudyPage, StudyTrial};
use crate::format::{self, capital, counted};
use crate::scale::Scale;
use crate::svg::{percent, short, x_axis};

/// Maximum number of improvements with a marker; the last ones are kept.
const STEPS: usize = 60;

/// Draws the section.
pub(super) fn section(page: &StudyPage<'_>, values: &Values) -> Markup {
    let scale = &values.spread.scale;
    let last = page.trials.last().map_or(0, StudyTrial::number);
    let x = Scale::linear(0.0, last as f64);
    let mut dots = Layers::new(600, 240);
    let mut strip = Layers::new(600, 1);
    for trial in &page.trials {
        let at = x.place(trial.number() as f64);
        match trial.reached() {
            Some(value) => dots.add(trial.status(), at, values.spread.place(value)),
            // Trials that have not started are not drawn.
            None if trial.trial.final_state().is_none() => {}
            None => strip.add(trial.status(), at, 0.5),
        }
    }
    let without = !strip.is_empty();
    let improvements = improvements(page);
    let place = |value: f64| values.spread.place(value);
    let plot = Plot {
        id: "history".to_owned(),
        title: format!("{} of each trial ({})", capital(page.objective_name()), page.better()),
        description: described(page, &improvements),
        legend: html! {
            (legend(page.trials.iter().map(StudyTrial::status)))
            @if !improvements.is_empty() { span.key.best { i.swatch {} "best so far" } }
        },
        height: 280,
        y: scale,
        marks: 5,
        x_axis: x_axis(&x, "trial"),
        strip,
        content: html! {
            (dots.draw())
            svg viewBox="0 0 1000 1000" preserveAspectRatio="none" width="100%" height="100%" {
                g.line.best { path d=(stairs(&improvements, &x, place)) {} }
            }
            g.points.best {
                @for (number, value) in improvements.iter().rev().take(STEPS) {
                    circle cx=(percent(x.place(*number as f64))) cy=(percent(1.0 - place(*value))) r="3.5" {
                        title { "Trial " (number) ": " (format::number(*value)) ", the best so far" }
                    }
                }
            }
        },
    };
    html! {
        section #history {
            h2 { "Optimization history" }
            (plot.draw())
            p.note {
                @if scale.is_log() { "The axis is logarithmic. " }
                @if values.spread.off > 0 {
                    (counted(values.spread.off as u64, "trial")) " far worse than the others "
                    @if values.spread.off == 1 { "is" } @else { "are" } " drawn at the edge. "
                }
                @if page.has(Status::Pruned) { "The value of a pruned trial is its last reported value. " }
                @if page.has(Status::Paused) { "The value of a paused trial is its best so far. " }
                @if without { "Trials at the top, next to “none”, have no finite value." }
            }
        }
    }
}

/// The trials that improved the best value.
fn improvements(page: &StudyPage<'_>) -> Vec<(u64, f64)> {
    let mut steps: Vec<(u64, f64)> = Vec::new();
    for trial in page.trials.iter().filter(|trial| trial.counts()) {
        let Some(value) = trial.reached() else {
            continue;
        };
        let cost = page.direction.cost(value);
        if steps.last().is_none_or(|(_, best)| cost < page.direction.cost(*best)) {
            steps.push((trial.number(), value));
        }
    }
    steps
}

/// Step line of the best value, up to the last trial.
fn stairs(steps: &[(u64, f64)], x: &Scale, place: impl Fn(f64) -> f64) -> String {
    let mut path = String::new();
    for (i, (number, value)) in steps.iter().enumerate() {
        let (across, down) =
            (short(1000.0 * x.place(*number as f64)), short(1000.0 * (1.0 - place(*value))));
        match i {
            0 => path.push_str(&format!("M{across} {down}")),
            _ => path.push_str(&format!("H{across}V{down}")),
        }
    }
    if !path.is_empty() {
        path.push_str("H1000");
    }
    path
}

fn described(page: &StudyPage<'_>, improvements: &[(u64, f64)]) -> String {
    match (improvements.first(), improvements.last()) {
        (Some(first), Some(last)) => format!(
            "{}. The first result, of trial {}, is {}; the best, of trial {}, is {}.",
            counted(page.trials.len() as u64, "trial"),
            first.0,
            format::number(first.1),
            last.0,
            format::number(last.1)
        ),
        _ => "No trial has produced a result.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::fixture::{Made, complete, stopped};
    use surefoot_tune::Direction;

    #[test]
    fn only_trials_with_a_result_improve_the_best_value() {
        let mut made = Made::of(vec![
            complete(0.5),
            stopped(Some(0.1), "median"),
            complete(f64::NAN),
            complete(0.3),
            complete(0.3),
            complete(0.4),
        ]);
        assert_eq!(improvements(&made.page()), [(0, 0.5), (3, 0.3)]);
        made.direction = Direction::Maximize;
        assert_eq!(improvements(&made.page()), [(0, 0.5)]);
    }

    #[test]
    fn the_best_value_is_a_step_line() {
        let x = Scale::linear(0.0, 10.0);
        let path = stairs(&[(0, 0.5), (5, 0.25)], &x, |value| value);
        assert_eq!(path, "M0 500H500V750H1000");
    }
}
