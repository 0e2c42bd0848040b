//! Points of a space as points of a Euclidean one.

use crate::sampler::frame::{Axis, Frame, Row};
use std::f64::consts::FRAC_1_SQRT_2;

/// Where each parameter lies among the coordinates.
///
/// A number is its place. A choice has a coordinate for each of its values, so that two different ones
/// are at a distance of 1, whichever they are. What is not there is in the middle.
pub(super) struct Embedding {
    /// Each parameter's first coordinate, and how many choices it has, or 0 for a number.
    parts: Vec<(usize, usize)>,
    dimensions: usize,
}

impl Embedding {
    pub(super) fn new(frame: &Frame<'_>) -> Embedding {
        let mut dimensions = 0;
        let parts = frame.axes().iter().map(|axis| {
            let first = dimensions;
            let choices = match *axis {
                Axis::Choice(n) => n,
                Axis::Real | Axis::Whole => 0,
            };
            dimensions += choices.max(1);
            (first, choices)
        });
        Embedding { parts: parts.collect(), dimensions }
    }

    /// The first coordinate of a parameter.
    pub(super) fn first(&self, parameter: usize) -> usize {
        self.parts[parameter].0
    }

    /// The point that a row is.
    pub(super) fn of(&self, row: &Row) -> Vec<f64> {
        let mut point = vec![0.0; self.dimensions];
        for (&(first, choices), &at) in self.parts.iter().zip(row) {
            match choices {
                0 => point[first] = if at.is_nan() { 0.5 } else { at },
                _ if at.is_nan() => {}
                _ => point[first + at as usize] = FRAC_1_SQRT_2,
            }
        }
        point
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::fixture;

    #[test]
    fn different_choices_are_one_apart() {
        let space = fixture::space([("c", fixture::words(["a", "b", "c"]))]);
        let embedding = Embedding::new(&Frame::new(&space));
        let [a, b, c] = [0.0, 1.0, 2.0].map(|choice| embedding.of(&vec![choice]));
        let distance =
            |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum() };
        assert!((distance(&a, &b) - 1.0).abs() < 1e-12);
        assert!((distance(&b, &c) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_not_there_is_in_the_middle() {
        let space = fixture::conditional();
        let embedding = Embedding::new(&Frame::new(&space));
        assert_eq!(embedding.of(&vec![0.0, f64::NAN, 0.2]), [FRAC_1_SQRT_2, 0.0, 0.5, 0.2]);
    }
}
