//! What each trial reached, and the best so far.

use maud::{Markup, html};

use super::outcome::{Outcome, legend};
use super::plot::{Layers, Plot};
use super::values::Values;
use super::{StudyPage, StudyTrial};
use crate::scale::Scale;
use crate::svg::{percent, short, x_axis};
use crate::words::{self, capital, counted};

/// How many of the steps by which the study got better have a mark of their own: the last ones.
const STEPS: usize = 60;

/// The section.
pub(super) fn section(page: &StudyPage<'_>, values: &Values) -> Markup {
    let scale = &values.spread.scale;
    let last = page.trials.last().map_or(0, StudyTrial::number);
    let x = Scale::linear(0.0, last as f64);
    let mut dots = Layers::new(600, 240);
    let mut strip = Layers::new(600, 1);
    for trial in &page.trials {
        let at = x.place(trial.number() as f64);
        match trial.reached() {
            Some(value) => dots.add(trial.outcome(), at, values.spread.place(value)),
            // What has not begun has not come to nothing.
            None if trial.trial.end().is_none() => {}
            None => strip.add(trial.outcome(), at, 0.5),
        }
    }
    let without = !strip.is_empty();
    let has_stopped = page.has(Outcome::Stopped);
    let improvements = improvements(page);
    let place = |value: f64| values.spread.place(value);
    let plot = Plot {
        id: "history".to_owned(),
        title: format!("{} of each trial ({})", capital(page.objective_name()), page.better()),
        description: described(page, &improvements),
        legend: html! {
            (legend(page.trials.iter().map(StudyTrial::outcome)))
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
                        title { "Trial " (number) ": " (words::number(*value)) ", the best until then" }
                    }
                }
            }
        },
    };
    html! {
        section #history {
            h2 { "How the search went" }
            (plot.draw())
            p.note {
                @if scale.is_log() { "The axis goes by powers of ten. " }
                @if values.spread.off > 0 {
                    (counted(values.spread.off as u64, "trial")) " far worse than the others "
                    @if values.spread.off == 1 { "is" } @else { "are" } " drawn at the edge. "
                }
                @if has_stopped { "A trial that was stopped has what it had reached by then. " }
                @if without { "Trials at the top, beside “none”, came to no number." }
            }
        }
    }
}

/// The trials that were better than all that count before them.
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

/// A line that is level until it gets better, up to the last trial.
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
            "Of {} the first that counts, trial {}, reached {}, and the best, trial {}, {}.",
            counted(page.trials.len() as u64, "trial"),
            first.0,
            words::number(first.1),
            last.0,
            words::number(last.1)
        ),
        _ => "No trial came to a result.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::fixture::{Made, complete, stopped};
    use surefoot_tune::Direction;

    #[test]
    fn the_best_so_far_is_of_trials_that_count() {
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
    fn the_line_of_the_best_is_made_of_stairs() {
        let x = Scale::linear(0.0, 10.0);
        let path = stairs(&[(0, 0.5), (5, 0.25)], &x, |value| value);
        assert_eq!(path, "M0 500H500V750H1000");
    }
}
