//! Parzen estimators: a density over a space, made from some of its points.

use super::draws::Draws;
use super::frame::{Axis, Frame, Row};
use libm::{erf, exp, log, sqrt};
use std::f64::consts::{PI, SQRT_2};

/// A mixture with a kernel for each of some points, and one that is spread evenly.
///
/// A kernel is a product over the parameters: a normal distribution on the way from 0 to 1 for a
/// number, its share for a whole number, and a probability for each choice. A point that lacks a
/// parameter says nothing about it, so its kernel is even there. The even kernel is that of a
/// point which lacks all. Like this, conditional parameters need no treatment of their own: a
/// candidate is drawn parameter after parameter from one kernel, and its density is the sum over kernels of
/// the product over those parameters that the candidate has.
///
/// Densities are relative to the even one.
pub(super) struct Parzen<'a> {
    frame: &'a Frame<'a>,
    /// The points, with the even kernel's at the end; one row after the other.
    centres: Vec<f64>,
    /// One by the deviation, beside each centre that is a number.
    sharpness: Vec<f64>,
    /// The logarithm of the density at the centre, beside each that is a number.
    heights: Vec<f64>,
    /// For each parameter that is a choice, the logarithms of the density at the centre's choice and at others.
    choices: Vec<(f64, f64)>,
    /// The logarithm of each kernel's weight.
    weights: Vec<f64>,
    /// The sums of the weights up to each kernel, for drawing.
    reached: Vec<f64>,
}

/// No deviation is below this share of the way, however many points there are.
const LEAST_DEVIATION: f64 = 0.01;

/// What a choice that is not the centre's has beside the centre's 1, for a kernel alone; it falls with
/// the number of kernels. Found by trying, as were the settings of the sampler.
const STRAY: f64 = 6.0;

impl<'a> Parzen<'a> {
    /// The density that these points and their weights give.
    pub(super) fn new(frame: &'a Frame<'a>, points: &[Row], weights: &[f64]) -> Parzen<'a> {
        let axes = frame.axes();
        let kernels = points.len() + 1;
        let mut centres = Vec::with_capacity(kernels * axes.len());
        points.iter().for_each(|row| centres.extend_from_slice(row));
        centres.resize(kernels * axes.len(), f64::NAN);
        let mut sharpness = vec![0.0; centres.len()];
        let mut heights = vec![0.0; centres.len()];
        let mut choices = vec![(0.0, 0.0); axes.len()];
        for (index, axis) in axes.iter().enumerate() {
            if let &Axis::Choice(n) = axis {
                choices[index] = choice_densities(n, points.len());
                continue;
            }
            for (kernel, deviation) in deviations(points, index) {
                let at = kernel * axes.len() + index;
                sharpness[at] = 1.0 / deviation;
                heights[at] =
                    -log(deviation * sqrt(2.0 * PI) * mass(centres[at], deviation, 0.0, 1.0));
            }
        }
        let even = 1.0;
        let total: f64 = weights.iter().sum::<f64>() + even;
        let shares = || weights.iter().chain([&even]).map(|weight| weight / total);
        let reached = shares().scan(0.0, |sum, share| {
            *sum += share;
            Some(*sum)
        });
        Parzen {
            frame,
            centres,
            sharpness,
            heights,
            choices,
            weights: shares().map(log).collect(),
            reached: reached.collect(),
        }
    }

    /// Draws a point.
    pub(super) fn draw(&self, draws: &mut Draws) -> Row {
        let axes = self.frame.axes();
        let place = draws.uniform();
        let kernel = self.reached.partition_point(|&reached| reached <= place);
        let first = kernel.min(self.weights.len() - 1) * axes.len();
        self.frame.build(|index, _| {
            let centre = self.centres[first + index];
            match axes[index] {
                _ if centre.is_nan() => self.frame.at(index, draws.uniform()),
                Axis::Choice(n) => {
                    let (_, other) = self.choices[index];
                    // Even over all with the weight that the others have, else the centre's.
                    let stray = exp(other);
                    if draws.uniform() < stray { draws.below(n) as f64 } else { centre }
                }
                _ => draws.truncated(centre, 1.0 / self.sharpness[first + index]),
            }
        })
    }

    /// The logarithm of the density at a point.
    pub(super) fn log_density(&self, row: &Row, terms: &mut Vec<f64>) -> f64 {
        let axes = self.frame.axes();
        terms.clear();
        terms.extend_from_slice(&self.weights);
        for (index, axis) in axes.iter().enumerate() {
            let at = row[index];
            if at.is_nan() {
                continue;
            }
            let kernels = (index..).step_by(axes.len());
            match axis {
                Axis::Choice(_) => {
                    let (same, other) = self.choices[index];
                    for (term, i) in terms.iter_mut().zip(kernels) {
                        let centre = self.centres[i];
                        *term += if centre == at {
                            same
                        } else if centre.is_nan() {
                            0.0
                        } else {
                            other
                        };
                    }
                }
                Axis::Real => {
                    for (term, i) in terms.iter_mut().zip(kernels) {
                        if !self.centres[i].is_nan() {
                            *term += self.bell(i, at);
                        }
                    }
                }
                Axis::Whole => {
                    let (low, high) = self.frame.share(index, at);
                    for (term, i) in terms.iter_mut().zip(kernels) {
                        if !self.centres[i].is_nan() {
                            *term += self.portion(i, at, low, high);
                        }
                    }
                }
            }
        }
        let most = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // What is that far below the largest adds nothing a double can hold.
        let sum: f64 = terms.iter().filter(|&&t| t > most - 40.0).map(|&t| exp(t - most)).sum();
        most + log(sum)
    }

    /// The logarithm of a kernel's density in one parameter.
    fn bell(&self, i: usize, at: f64) -> f64 {
        let distance = (at - self.centres[i]) * self.sharpness[i];
        self.heights[i] - 0.5 * distance * distance
    }

    /// The logarithm of a kernel's mean density over the share of a whole number.
    fn portion(&self, i: usize, at: f64, low: f64, high: f64) -> f64 {
        // Over a share this narrow the density hardly changes, and an error function costs as much as
        // ten of the above.
        if (high - low) * self.sharpness[i] < 0.5 {
            return self.bell(i, at);
        }
        let deviation = 1.0 / self.sharpness[i];
        let share = mass(self.centres[i], deviation, low, high) / (high - low);
        self.heights[i] + log(share * deviation * sqrt(2.0 * PI))
    }
}

/// How much of a normal distribution lies from `low` to `high`.
fn mass(centre: f64, deviation: f64, low: f64, high: f64) -> f64 {
    let scale = 1.0 / (deviation * SQRT_2);
    0.5 * (erf((high - centre) * scale) - erf((low - centre) * scale))
}

/// The logarithms of the density at the centre's choice and at others.
fn choice_densities(n: usize, points: usize) -> (f64, f64) {
    let other = STRAY / (points as f64 + 1.0);
    let total = 1.0 + n as f64 * other;
    let (other, same) = (other / total, (1.0 + other) / total);
    (log(same * n as f64), log(other * n as f64))
}

/// The deviations of the kernels in one parameter, for those that have it: the distance to the
/// further of the two neighbours, within limits.
fn deviations(points: &[Row], index: usize) -> Vec<(usize, f64)> {
    let mut sorted: Vec<(f64, usize)> = points
        .iter()
        .enumerate()
        .filter(|(_, row)| !row[index].is_nan())
        .map(|(kernel, row)| (row[index], kernel))
        .collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let floor = (1.0 / (sorted.len() as f64 + 2.0)).max(LEAST_DEVIATION);
    let place = |at: usize| sorted.get(at).map(|&(place, _)| place);
    let alone = sorted.len() == 1;
    let of = |(at, &(centre, kernel)): (usize, &(f64, usize))| {
        let before = at.checked_sub(1).and_then(place).map(|place| centre - place);
        let after = place(at + 1).map(|place| place - centre);
        let gap = match (before, after) {
            _ if alone => centre.max(1.0 - centre),
            (before, after) => before.unwrap_or(0.0).max(after.unwrap_or(0.0)),
        };
        (kernel, gap.clamp(floor, 1.0))
    };
    sorted.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::fixture;
    use crate::space::Domain;
    use surefoot_random::{Key, Purpose};

    /// Draws from the density fall into intervals as often as it says.
    #[test]
    fn draws_have_the_density() {
        let space = fixture::space([
            ("x", Domain::Uniform(0.0, 1.0)),
            ("n", Domain::LogInt(1, 4)),
            ("c", fixture::words(["a", "b", "c"])),
        ]);
        let frame = Frame::new(&space);
        let point = |x: f64, n: f64, c: usize| {
            vec![x, Domain::LogInt(1, 4).place(&Domain::LogInt(1, 4).at(n)), c as f64]
        };
        let points = [point(0.2, 0.1, 0), point(0.9, 0.9, 2), point(0.8, 0.5, 2)];
        let parzen = Parzen::new(&frame, &points, &[1.0, 0.5, 2.0]);
        let mut draws = Draws::new(Key::new(3, Purpose::Sample));
        let (mut terms, draw_count, even_count) = (Vec::new(), 4000, 20_000);
        // The mean density over even points of a box, times its size, is its probability.
        let in_box = |row: &Row| row[0] > 0.6 && row[1] > 0.4 && row[2] == 2.0;
        let drawn = (0..draw_count).filter(|_| in_box(&parzen.draw(&mut draws))).count();
        let mut expected = 0.0;
        for _ in 0..even_count {
            let row = frame.random(&mut draws);
            if in_box(&row) {
                expected += exp(parzen.log_density(&row, &mut terms));
            }
        }
        let (drawn, expected) = (drawn as f64 / 4000.0, expected / 20_000.0);
        assert!((drawn - expected).abs() < 0.03, "{drawn} against {expected}");
    }

    #[test]
    fn no_points_give_the_even_density() {
        let space = fixture::conditional();
        let frame = Frame::new(&space);
        let parzen = Parzen::new(&frame, &[], &[]);
        let mut draws = Draws::new(Key::new(3, Purpose::Sample));
        for _ in 0..20 {
            let row = parzen.draw(&mut draws);
            assert_eq!(parzen.log_density(&row, &mut Vec::new()), 0.0);
        }
    }
}
