//! Dots of a chart, with overlapping dots drawn once.

use std::collections::BTreeSet;

use maud::{Markup, html};

/// Dots on a grid with the resolution of a chart.
#[derive(Clone, Debug)]
pub(super) struct Dots {
    columns: u16,
    rows: u16,
    spots: BTreeSet<(u16, u16)>,
}

impl Dots {
    /// An empty grid.
    pub(super) fn new(columns: u16, rows: u16) -> Dots {
        Dots { columns, rows, spots: BTreeSet::new() }
    }

    /// Adds a dot. Both positions are from 0 to 1, the second one upwards; positions outside are moved
    /// to the edge.
    pub(super) fn add(&mut self, x: f64, y: f64) {
        let spot =
            |place: f64, count: u16| (place.clamp(0.0, 1.0) * f64::from(count)).round() as u16;
        self.spots.insert((spot(x, self.columns), spot(1.0 - y, self.rows)));
    }

    /// Returns true if there are no dots.
    pub(super) fn is_empty(&self) -> bool {
        self.spots.is_empty()
    }

    /// Draws all dots in the color of a class.
    pub(super) fn draw(&self, class: &str) -> Markup {
        let mut path = String::with_capacity(self.spots.len() * 9);
        for (x, y) in &self.spots {
            // A line of length zero with round ends is a dot.
            path.push_str(&format!("M{x} {y}h0"));
        }
        html! {
            svg.dots.(class) viewBox={ "0 0 " (self.columns) " " (self.rows) }
                preserveAspectRatio="none" width="100%" height="100%" {
                path d=(path) {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_dots_are_drawn_once_inside_the_plot() {
        let mut dots = Dots::new(100, 100);
        for (x, y) in [(0.5, 0.5), (0.501, 0.499), (2.0, -1.0)] {
            dots.add(x, y);
        }
        let drawn = dots.draw("complete").into_string();
        assert!(drawn.contains(r#"d="M50 50h0M100 100h0""#), "{drawn}");
    }
}
