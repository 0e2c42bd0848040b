//! Gaussian process over configurations and epochs.

use crate::sampler::descent::descend;
use crate::sampler::gp::cholesky::{Lower, dot};
use libm::{exp, log, sqrt};

/// Share of the variance that neighbors in the space explain. The rest belongs to a configuration alone.
const SHARED: f64 = 0.9;

/// Share of the variance along a curve that grows in proportion to its time. The rest is a random walk.
const LINEAR: f64 = 0.95;

/// Noise variance of an observed cost.
const NOISE: f64 = 0.0025;

/// Length scale before the first fit, where a parameter has length 1.
const LENGTH: f64 = 0.6;

/// Standard deviation of the prior of the logarithm of an inverse squared length scale.
const LENGTH_DEVIATION: f64 = 1.5;

/// Bounds of that logarithm.
const BOUNDS: (f64, f64) = (-8.0, 8.0);

/// Steps of a fit.
const STEPS: usize = 25;

/// A Gaussian process whose covariance is the product of one over configurations and one over time.
///
/// The factor of the covariance does not depend on the costs, so it grows by a row for each observation
/// and is not recomputed when the scale of the costs changes. Time is the logarithm of the epoch from 0 to 1.
pub(super) struct Process {
    /// Inverse squared length scale of each coordinate.
    weights: Vec<f64>,
    /// Trial, coordinates and time of each observation.
    rows: Vec<(usize, Vec<f64>, f64)>,
    factor: Vec<Vec<f64>>,
}

/// A configuration whose final cost is predicted: its coordinates and the solution of the factor for its covariances.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// Number of the trial; `usize::MAX` if it was not started.
    trial: usize,
    /// Coordinates.
    pub(super) at: Vec<f64>,
    solution: Vec<f64>,
}

impl Target {
    pub(super) fn new(trial: usize, at: Vec<f64>) -> Target {
        Target { trial, at, solution: Vec::new() }
    }

    /// Forgets its solution for all observations after the first `length`, which have changed.
    pub(super) fn truncate(&mut self, length: usize) {
        self.solution.truncate(length);
    }
}

/// Predicted final cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prediction {
    pub(super) mean: f64,
    pub(super) deviation: f64,
}

impl Process {
    /// A process without observations.
    pub(super) fn new(dimensions: usize) -> Process {
        let weights = vec![1.0 / (LENGTH * LENGTH); dimensions];
        Process { weights, rows: Vec::new(), factor: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Adds an observation.
    pub(super) fn push(&mut self, target: &Target, time: f64) {
        let mut row = Vec::with_capacity(self.rows.len() + 1);
        for (i, (trial, other, then)) in self.rows.iter().enumerate() {
            let covariance = self.configurations(target, *trial, other) * times(time, *then);
            let above = &self.factor[i];
            row.push((covariance - dot(&above[..i], &row)) / above[i]);
        }
        let square = times(time, time) + NOISE - dot(&row, &row);
        row.push(sqrt(square.max(NOISE * 0.01)));
        self.factor.push(row);
        self.rows.push((target.trial, target.at.clone(), time));
    }

    /// Removes all observations after the first `length`.
    pub(super) fn truncate(&mut self, length: usize) {
        self.rows.truncate(length);
        self.factor.truncate(length);
    }

    /// Updates a target for all observations.
    pub(super) fn solve(&self, target: &mut Target) {
        for i in target.solution.len()..self.rows.len() {
            let (trial, other, time) = &self.rows[i];
            let covariance = self.configurations(target, *trial, other) * times(1.0, *time);
            let row = &self.factor[i];
            target.solution.push((covariance - dot(&row[..i], &target.solution)) / row[i]);
        }
    }

    /// Solves the factor for the values of the observations.
    pub(super) fn whiten(&self, values: &[f64]) -> Vec<f64> {
        let mut white: Vec<f64> = Vec::with_capacity(values.len());
        for (i, value) in values.iter().enumerate() {
            let row = &self.factor[i];
            white.push((value - dot(&row[..i], &white)) / row[i]);
        }
        white
    }

    /// Predicts the final cost of a solved target. An observation without a value has the expected one.
    pub(super) fn predict(&self, target: &Target, white: &[f64]) -> Prediction {
        let solution = &target.solution;
        let mean = dot(white, solution);
        let variance = times(1.0, 1.0) - dot(solution, solution);
        Prediction { mean, deviation: sqrt(variance.max(1e-8)) }
    }

    /// Covariance of two configurations.
    fn configurations(&self, target: &Target, trial: usize, at: &[f64]) -> f64 {
        if target.trial == trial && trial != usize::MAX {
            return 1.0;
        }
        // Without a space nothing is known about neighbors.
        if self.weights.is_empty() {
            return 0.0;
        }
        let mut square = 0.0;
        for ((a, b), weight) in target.at.iter().zip(at).zip(&self.weights) {
            square += weight * (a - b) * (a - b);
        }
        SHARED * matern(square).0
    }

    /// Covariance of two configurations.
    pub(super) fn covariance(&self, a: &Target, b: &Target) -> f64 {
        self.configurations(a, b.trial, &b.at)
    }

    /// A process without observations whose length scales fit these: maximum a posteriori, from the current ones.
    pub(super) fn fitted(&self, rows: &[(Vec<f64>, f64)], values: &[f64]) -> Process {
        let start: Vec<f64> = self.weights.iter().map(|&weight| log(weight)).collect();
        let fit =
            descend(&start, BOUNDS, STEPS, |at, gradient| unlikelihood(at, gradient, rows, values));
        let weights = fit.at.into_iter().map(exp).collect();
        Process { weights, rows: Vec::new(), factor: Vec::new() }
    }
}

/// Covariance of two times: the growth of a curve, and a random walk.
fn times(a: f64, b: f64) -> f64 {
    LINEAR * a * b + (1.0 - LINEAR) * a.min(b)
}

/// Matérn 5/2 covariance of a squared distance, and its derivative by it.
fn matern(square: f64) -> (f64, f64) {
    let root = sqrt(5.0 * square);
    let fall = exp(-root);
    ((1.0 + root + root * root / 3.0) * fall, -5.0 / 6.0 * (1.0 + root) * fall)
}

/// Negative log posterior of the logarithms of the weights, and its gradient.
fn unlikelihood(at: &[f64], gradient: &mut [f64], rows: &[(Vec<f64>, f64)], values: &[f64]) -> f64 {
    let weights: Vec<f64> = at.iter().map(|&at| exp(at)).collect();
    let n = rows.len();
    let mut kernels = Vec::with_capacity(n * n / 2);
    for (i, (a, t)) in rows.iter().enumerate() {
        for (b, s) in &rows[..i] {
            let gaps = a.iter().zip(b).zip(&weights);
            let square: f64 = gaps.map(|((a, b), weight)| weight * (a - b) * (a - b)).sum();
            let scale = times(*t, *s);
            let (value, slope) = matern(square);
            kernels.push((SHARED * scale * value, SHARED * scale * slope));
        }
    }
    let kernel = |i: usize, j: usize| kernels[i * (i - 1) / 2 + j];
    let covariance = Lower::new(n, |i, j| match i == j {
        true => times(rows[i].1, rows[i].1) + NOISE,
        false => kernel(i, j).0,
    });
    gradient.fill(0.0);
    let Some(factor) = covariance.factor() else {
        return f64::INFINITY;
    };
    let pull = factor.backward(&factor.forward(values));
    let inverse = factor.inverse();
    let mut value = 0.5 * dot(values, &pull);
    for i in 0..n {
        value += log(factor.at(i, i));
        for j in 0..i {
            let both = (pull[i] * pull[j] - inverse.at(i, j)) * kernel(i, j).1;
            let gaps = rows[i].0.iter().zip(&rows[j].0);
            for (k, (a, b)) in gaps.enumerate() {
                gradient[k] -= both * weights[k] * (a - b) * (a - b);
            }
        }
    }
    let mean = -2.0 * log(LENGTH);
    for (at, gradient) in at.iter().zip(gradient) {
        let z = (at - mean) / LENGTH_DEVIATION;
        value += 0.5 * z * z;
        *gradient += z / LENGTH_DEVIATION;
    }
    value
}
