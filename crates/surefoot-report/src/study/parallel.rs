//! Parallel coordinates: one axis per parameter, one line per trial, colored by rank.
//!
//! The axes are horizontal, which leaves room for names on a phone.

use maud::{Markup, html};
use surefoot_tune::Parameter;

use super::axis::{Axis, Tick};
use super::importance::Importance;
use super::selection::Selection;
use super::values::{COLORS, Values};
use super::{StudyPage, StudyTrial};
use crate::format::capital;
use crate::svg::{percent, short};

/// Maximum number of axes.
const AXES: usize = 16;

/// Distance between axes in pixels.
const ROW: f64 = 74.0;

/// Margins in pixels.
const TOP: f64 = 26.0;
const BOTTOM: f64 = 26.0;

/// Minimum distance between ticks.
const GAP: f64 = 0.2;

/// Draws the section.
pub(super) fn section(
    page: &StudyPage<'_>,
    values: &Values,
    chosen: &Selection,
    importance: &Importance<'_>,
) -> Markup {
    let parameters = importance.most(AXES);
    let mut lines: Vec<(f64, usize, &StudyTrial<'_>)> = Vec::new();
    for trial in page.trials.iter().filter(|t| chosen.has(t.number())) {
        if let (Some(value), Some(_)) = (trial.reached(), &trial.trial.point) {
            lines.push((value, values.color(value), trial));
        }
    }
    if lines.is_empty() || parameters.is_empty() {
        return html! {};
    }
    let axes: Vec<Axis<'_>> = parameters.iter().map(|p| Axis::of(p)).collect();
    let height = TOP + BOTTOM + ROW * axes.len() as f64;
    let left_out = page.space.parameters().len() - parameters.len();
    html! {
        section #parallel {
            h2 { "Parallel coordinates" }
            p.quiet {
                "Each line is a trial. It crosses each axis at the value of the parameter, and the last axis at the value of the objective. "
                "Good parameter values are where lines in the color of the best trials meet."
            }
            figure.chart.parallel {
                figcaption {
                    span.figure-title { "Parameters and " (page.objective_name()) }
                    span.legend {
                        span.key { "worst" }
                        @for color in 0..COLORS { i class={ "swatch r" (color) } {} }
                        span.key { "best" }
                    }
                }
                svg.plot role="img" height=(short(height)) aria-labelledby="parallel-title parallel-description" {
                    title id="parallel-title" { "Parameters and " (page.objective_name()) " of trials" }
                    desc id="parallel-description" { (described(&parameters, lines.len())) }
                    svg viewBox={ "0 0 1000 " (short(height)) } preserveAspectRatio="none" width="100%" height="100%" {
                        @for color in 0..COLORS {
                            @let path = path(&axes, values, lines.iter().filter(|line| line.1 == color));
                            @if !path.is_empty() { path class={ "thread r" (color) } d=(path) {} }
                        }
                    }
                    @for (row, axis) in axes.iter().enumerate() {
                        (ruler(row, &axis.name(), axis.start(), &axis.ticks(GAP), axis.absent()))
                    }
                    (ruler(axes.len(), &capital(page.objective_name()), 0.0, &value_ticks(values), None))
                }
            }
            p.note {
                @if let Some(note) = chosen.note() { (note) " " }
                "Colors show the rank. Trials without a finite value are not shown. "
                @if left_out > 0 {
                    "The " (AXES) " most important parameters are shown; " (left_out) " are not. "
                }
                @if axes.iter().any(|axis| axis.absent().is_some()) {
                    "“Absent” is the position of trials without the parameter."
                }
            }
        }
    }
}

fn path<'a>(
    axes: &[Axis<'_>],
    values: &Values,
    lines: impl Iterator<Item = &'a (f64, usize, &'a StudyTrial<'a>)>,
) -> String {
    let mut path = String::new();
    for (value, _, trial) in lines {
        let Some(point) = &trial.trial.point else {
            continue;
        };
        let places = axes.iter().map(|axis| axis.place(point, trial.number()));
        let places = places.chain([values.spread.place(*value)]);
        for (row, place) in places.enumerate() {
            path.push(if row == 0 { 'M' } else { 'L' });
            let across = (1000.0 * place).round();
            path.push_str(&format!("{} {}", short(across), short(depth(row))));
        }
    }
    path
}

/// Vertical position of an axis in pixels.
fn depth(row: usize) -> f64 {
    TOP + ROW * row as f64
}

fn ruler(row: usize, name: &str, start: f64, ticks: &[Tick], absent: Option<f64>) -> Markup {
    let y = depth(row);
    html! {
        g.ruler {
            line x1=(percent(start)) x2="100%" y1=(short(y)) y2=(short(y)) {}
            text.name x="0" y=(short(y - 9.0)) { (name) }
            @if let Some(place) = absent {
                line.absent x1="0" x2=(percent(2.0 * place)) y1=(short(y)) y2=(short(y)) {}
                text x="0" y=(short(y + 17.0)) { "absent" }
            }
            @for tick in ticks {
                @let x = percent(tick.place);
                line x1=(x) x2=(x) y1=(short(y - 3.0)) y2=(short(y + 3.0)) {}
                text x=(x) y=(short(y + 17.0)) text-anchor=(anchor(tick.place)) { (tick.label) }
            }
        }
    }
}

/// Text anchor that keeps labels inside the plot.
pub(super) fn anchor(place: f64) -> &'static str {
    match place {
        place if place < 0.06 => "start",
        place if place > 0.94 => "end",
        _ => "middle",
    }
}

fn value_ticks(values: &Values) -> Vec<Tick> {
    let scale = &values.spread.scale;
    let ticks = scale
        .ticks(4)
        .into_iter()
        .map(|tick| Tick { place: tick.place, label: scale.label(&tick) });
    ticks.filter(|t| (0.0..=1.0).contains(&t.place)).collect()
}

fn described(parameters: &[&Parameter], lines: usize) -> String {
    let names: Vec<String> = parameters.iter().map(|p| Axis::of(p).name()).collect();
    format!("{lines} trials over {}.", names.join(", "))
}
