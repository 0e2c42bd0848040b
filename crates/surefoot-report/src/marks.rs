//! Findings as marks in charts.

use maud::{Markup, html};

use crate::scale::Scale;
use crate::svg::{apart, percent};

/// Flags that are nearer than this would cover each other.
const NEAR: f64 = 0.04;

/// A finding in a chart.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    /// The number of the finding on the page.
    pub(crate) number: usize,
    /// Since when it is so, on the level axis.
    pub(crate) since: f64,
    /// When it was certain.
    pub(crate) at: f64,
    pub(crate) title: String,
    /// Where it is; empty if it is nowhere in particular.
    pub(crate) layers: Vec<String>,
}

impl Mark {
    /// The same on an axis whose unit is `by` times as long.
    pub(crate) fn per(&self, by: f64) -> Mark {
        Mark { since: self.since / by, at: self.at / by, ..self.clone() }
    }
}

/// The times from which findings are so until they were certain.
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

/// A line at each finding, with its number above as a link to it.
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
