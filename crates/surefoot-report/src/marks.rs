//! Marks of findings in charts.

use maud::{Markup, html};

use crate::scale::Scale;
use crate::svg::{apart, percent};

/// Minimum distance between flags.
const NEAR: f64 = 0.04;

/// Mark of a finding in a chart.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    /// The number of the finding on the page.
    pub(crate) number: usize,
    /// Start on the horizontal axis.
    pub(crate) since: f64,
    /// Confirmation on the horizontal axis.
    pub(crate) at: f64,
    pub(crate) title: String,
    /// Affected layers; empty if the finding is not about layers.
    pub(crate) layers: Vec<String>,
}

impl Mark {
    /// The mark on an axis with a unit that is `by` times as long.
    pub(crate) fn per(&self, by: f64) -> Mark {
        Mark { since: self.since / by, at: self.at / by, ..self.clone() }
    }
}

/// Draws bands from the start of findings to their confirmation.
pub(crate) fn bands(x: &Scale, marks: &[Mark]) -> Markup {
    html! {
        @for mark in marks {
            @let (from, to) = (x.place(mark.since).max(0.0), x.place(mark.at).min(1.0));
            @if to > from {
                rect.band x=(percent(from)) y="0" width=(percent(to - from)) height="100%" {}
            }
        }
    }
}

/// Draws a line at each finding, with its number as a link.
pub(crate) fn flags(x: &Scale, marks: &[Mark]) -> Markup {
    let mut places: Vec<(f64, &Mark)> = marks.iter().map(|m| (x.place(m.at), m)).collect();
    places.retain(|(place, _)| (0.0..=1.0).contains(place));
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    html! {
        g.marks {
            @for (place, _) in &places {
                line x1=(percent(*place)) x2=(percent(*place)) y1="0" y2="100%" {}
            }
            @for (place, mark) in apart(places.iter().copied(), NEAR) {
                a href={ "#finding-" (mark.number) } {
                    title { "Finding " (mark.number) ": " (mark.title) }
                    circle cx=(percent(place)) cy="-11" r="9" {}
                    text x=(percent(place)) y="-11" dy="0.35em" text-anchor="middle" { (mark.number) }
                }
            }
        }
    }
}
