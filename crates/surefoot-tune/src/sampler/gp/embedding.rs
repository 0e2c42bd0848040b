//! Euclidean embedding of points.

use crate::sampler::frame::{Axis, Frame, Row};
use std::f64::consts::FRAC_1_SQRT_2;

/// Position of each parameter among the coordinates.
///
/// A number has one coordinate. A choice has one per value, so that any two are at distance 1. A missing
/// value is in the middle.
pub(crate) struct Embedding {
    /// First coordinate and number of choices (0 for a number) of each parameter.
    parts: Vec<(usize, usize)>,
    dimensions: usize,
}

impl Embedding {
    pub(crate) fn new(frame: &Frame<'_>) -> Embedding {
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

    /// Number of coordinates.
    pub(crate) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// First coordinate of a parameter.
    pub(crate) fn first(&self, parameter: usize) -> usize {
        self.parts[parameter].0
    }

    /// Coordinates of a row.
    pub(crate) fn of(&self, row: &Row) -> Vec<f64> {
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
    fn missing_values_are_in_the_middle() {
        let space = fixture::conditional();
        let embedding = Embedding::new(&Frame::new(&space));
        assert_eq!(embedding.of(&vec![0.0, f64::NAN, 0.2]), [FRAC_1_SQRT_2, 0.0, 0.5, 0.2]);
    }
}
