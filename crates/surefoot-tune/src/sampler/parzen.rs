//! Parzen estimators: a density over a space, fitted to points.

use super::draws::Draws;
use super::frame::{Axis, Frame, Row};
use libm::{erf, exp, log, sqrt};
use std::f64::consts::{PI, SQRT_2};

/// A mixture of one kernel per point and a uniform kernel.
///
/// A kernel is a product over the parameters: a normal density on [0, 1] for a number, its mean over
/// the share of an integer, and a probability for each choice. A kernel is uniform in a parameter that
/// its point lacks, so conditional parameters need no special case: a candidate is drawn parameter by
/// parameter from one kernel, and its density sums the kernels over the parameters that it has.
///
/// Densities are relative to the uniform density.
pub(super) struct Parzen<'a> {
    frame: &'a Frame<'a>,
    /// Centers of the kernels, row by row; the uniform kernel is last.
    centers: Vec<f64>,
    /// Inverse deviation of each numeric center.
    sharpness: Vec<f64>,
    /// Log density at each numeric center.
    heights: Vec<f64>,
    /// For each choice parameter, the log densities of the center's choice and of the others.
    choices: Vec<(f64, f64)>,
    /// Log weight of each kernel.
    weights: Vec<f64>,
    /// Cumulative weights, for drawing.
    reached: Vec<f64>,
}

/// Least deviation of a kernel, as a fraction of the range.
const LEAST_DEVIATION: f64 = 0.01;

/// Weight of a choice other than the center's (which has 1) for a single kernel; it falls with the
/// number of kernels. Tuned together with the sampler.
const STRAY: f64 = 6.0;

impl<'a> Parzen<'a> {
    /// Fits the density to weighted points.
    pub(super) fn new(frame: &'a Frame<'a>, points: &[Row], weights: &[f64]) -> Parzen<'a> {
        let axes = frame.axes();
        let kernels = points.len() + 1;
        let mut centers = Vec::with_capacity(kernels * axes.len());
        points.iter().for_each(|row| centers.extend_from_slice(row));
        centers.resize(kernels * axes.len(), f64::NAN);
        let mut sharpness = vec![0.0; centers.len()];
        let mut heights = vec![0.0; centers.len()];
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
                    -log(deviation * sqrt(2.0 * PI) * mass(centers[at], deviation, 0.0, 1.0));
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
            centers,
            sharpness,
            heights,
            choices,
            weights: shares().map(log).collect(),
            reached: reached.collect(),
        }
    }

    pub(super) fn draw(&self, draws: &mut Draws) -> Row {
        let axes = self.frame.axes();
        let place = draws.uniform();
        let kernel = self.reached.partition_point(|&reached| reached <= place);
        let first = kernel.min(self.weights.len() - 1) * axes.len();
        self.frame.build(|index, _| {
            let center = self.centers[first + index];
            match axes[index] {
                _ if center.is_nan() => self.frame.at(index, draws.uniform()),
                Axis::Choice(n) => {
                    let (_, other) = self.choices[index];
                    // Uniform over all choices with the weight of the others, else the center's.
                    let stray = exp(other);
                    if draws.uniform() < stray { draws.below(n) as f64 } else { center }
                }
                _ => draws.truncated(center, 1.0 / self.sharpness[first + index]),
            }
        })
    }

    /// Log density at a point.
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
                        let center = self.centers[i];
                        *term += if center == at {
                            same
                        } else if center.is_nan() {
                            0.0
                        } else {
                            other
                        };
                    }
                }
                Axis::Real => {
                    for (term, i) in terms.iter_mut().zip(kernels) {
                        if !self.centers[i].is_nan() {
                            *term += self.bell(i, at);
                        }
                    }
                }
                Axis::Whole => {
                    let (low, high) = self.frame.share(index, at);
                    for (term, i) in terms.iter_mut().zip(kernels) {
                        if !self.centers[i].is_nan() {
                            *term += self.portion(i, at, low, high);
                        }
                    }
                }
            }
        }
        let most = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Terms this far below the largest vanish in double precision.
        let sum: f64 = terms.iter().filter(|&&t| t > most - 40.0).map(|&t| exp(t - most)).sum();
        most + log(sum)
    }

    /// Log density of a kernel in one parameter.
    fn bell(&self, i: usize, at: f64) -> f64 {
        let distance = (at - self.centers[i]) * self.sharpness[i];
        self.heights[i] - 0.5 * distance * distance
    }

    /// Log of the mean density of a kernel over the share of an integer.
    fn portion(&self, i: usize, at: f64, low: f64, high: f64) -> f64 {
        // The density is nearly constant over a narrow share, and the error function is expensive.
        if (high - low) * self.sharpness[i] < 0.5 {
            return self.bell(i, at);
        }
        let deviation = 1.0 / self.sharpness[i];
        let share = mass(self.centers[i], deviation, low, high) / (high - low);
        self.heights[i] + log(share * deviation * sqrt(2.0 * PI))
    }
}

/// Probability mass of a normal distribution between `low` and `high`.
fn mass(center: f64, deviation: f64, low: f64, high: f64) -> f64 {
    let scale = 1.0 / (deviation * SQRT_2);
    0.5 * (erf((high - center) * scale) - erf((low - center) * scale))
}

/// Log densities of the center's choice and of the others.
fn choice_densities(n: usize, points: usize) -> (f64, f64) {
    let other = STRAY / (points as f64 + 1.0);
    let total = 1.0 + n as f64 * other;
    let (other, same) = (other / total, (1.0 + other) / total);
    (log(same * n as f64), log(other * n as f64))
}

/// Deviations of the kernels in one parameter: the distance to the further of two neighbors, clamped.
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
    let of = |(at, &(center, kernel)): (usize, &(f64, usize))| {
        let before = at.checked_sub(1).and_then(place).map(|place| center - place);
        let after = place(at + 1).map(|place| place - center);
        let gap = match (before, after) {
            _ if alone => center.max(1.0 - center),
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

    /// The frequency of draws in an interval matches the density.
    #[test]
    fn draws_follow_the_density() {
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
        // Mean density over a grid in a box, times its size, is its probability.
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
    fn no_points_give_the_uniform_density() {
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
