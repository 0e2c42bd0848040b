//! Slices: value of the trials by each parameter.

use maud::{Markup, html};
use surefoot_tune::Parameter;

use super::axis::Axis;
use super::importance::Importance;
use super::parallel::anchor;
use super::plot::{Layers, Plot};
use super::status::legend;
use super::values::Values;
use super::{StudyPage, StudyTrial};
use crate::format::counted;
use crate::svg::percent;

/// Maximum number of slices.
const SLICES: usize = 24;

/// Minimum distance between ticks.
const GAP: f64 = 0.3;

/// Label of trials without the parameter; there is no room for a word.
const ABSENT: &str = "–";

/// Draws the section.
pub(super) fn section(
    page: &StudyPage<'_>,
    values: &Values,
    importance: &Importance<'_>,
) -> Markup {
    let parameters = importance.most(SLICES);
    let has_points = page.trials.iter().any(|trial| trial.trial.point.is_some());
    if parameters.is_empty() || !has_points {
        return html! {};
    }
    let left_out = page.space.parameters().len() - parameters.len();
    html! {
        section #slices {
            h2 { "Slices" }
            p.quiet {
                "Each dot is a trial: parameter value against " (page.objective_name()) " (" (page.better()) ")."
            }
            p.legend.below { (legend(page.trials.iter().map(StudyTrial::status))) }
            div.slices {
                @for (index, parameter) in parameters.iter().enumerate() {
                    (slice(page, values, index, parameter))
                }
            }
            p.note {
                @if left_out > 0 {
                    "The " (SLICES) " most important parameters are shown; " (left_out) " are not. "
                }
                "Trials with equal values are jittered. Trials above the plot have no finite value. "
                @if parameters.iter().any(|parameter| Axis::of(parameter).absent().is_some()) {
                    "Trials at “" (ABSENT) "” do not have the parameter."
                }
            }
        }
    }
}

fn slice(page: &StudyPage<'_>, values: &Values, index: usize, parameter: &Parameter) -> Markup {
    let axis = Axis::of(parameter);
    let mut dots = Layers::new(130, 70);
    let mut strip = Layers::new(130, 1);
    let mut count = 0;
    for trial in &page.trials {
        let Some(point) = &trial.trial.point else {
            continue;
        };
        count += 1;
        let at = axis.place(point, trial.number());
        match trial.reached() {
            Some(value) => dots.add(trial.status(), at, values.spread.place(value)),
            None if trial.trial.final_state().is_none() => {}
            None => strip.add(trial.status(), at, 0.5),
        }
    }
    let x_axis = html! {
        @for tick in axis.ticks(GAP) {
            @let x = percent(tick.place);
            line.tick x1=(x) x2=(x) y1="0" y2="100%" {}
            // Keeps the label of the first tick clear of trials without the parameter.
            @let anchor = if tick.place == axis.start() { "start" } else { anchor(tick.place) };
            text x=(x) y="100%" dy="18" text-anchor=(anchor) { (super::axis::cut(&tick.label, 12)) }
        }
        @if let Some(place) = axis.absent() {
            text x=(percent(place)) y="100%" dy="18" text-anchor="middle" { (ABSENT) }
        }
    };
    let plot = Plot {
        id: format!("slice-{index}"),
        title: axis.name(),
        description: format!(
            "{} by the value of this parameter{}.",
            counted(count, "trial"),
            if axis.is_log() { ", on a logarithmic axis" } else { "" }
        ),
        legend: html! {},
        height: 150,
        y: &values.spread.scale,
        marks: 3,
        x_axis,
        strip,
        content: dots.draw(),
    };
    plot.draw()
}
