//! Gaussian process regression.

use super::cholesky::{Lower, dot};
use crate::sampler::descent::descend;
use libm::{exp, log, sqrt};

/// Kernel parameters.
#[derive(Clone, Debug)]
struct Scales {
    /// Inverse squared length scale of each coordinate.
    weights: Vec<f64>,
    /// Signal variance.
    variance: f64,
    /// Noise variance.
    noise: f64,
}

/// Normal prior of a logarithm.
struct Prior {
    mean: f64,
    deviation: f64,
}

impl Prior {
    /// Negative log density up to a constant, and its derivative.
    fn penalty(&self, at: f64) -> (f64, f64) {
        let z = (at - self.mean) / self.deviation;
        (0.5 * z * z, z / self.deviation)
    }
}

/// Costs are standardized.
const VARIANCE: Prior = Prior { mean: 0.0, deviation: 1.0 };

/// Most trainings are nearly noise-free; a few dozen noisy costs outweigh this prior.
const NOISE: Prior = Prior { mean: -12.0, deviation: 2.0 };

/// Length scales grow with the root of the number of parameters, as distances do
/// (Hvarfner et al., *Vanilla Bayesian Optimization Performs Great in High Dimensions*, 2024).
fn weight(parameters: usize) -> Prior {
    Prior { mean: -log(parameters as f64), deviation: 2.0 }
}

/// Bounds of all logarithms.
const BOUNDS: (f64, f64) = (-16.0, 12.0);

/// Steps of each fit of the kernel parameters.
const STEPS: usize = 40;

/// Added to the diagonal to tolerate duplicate points.
const JITTER: f64 = 1e-8;

/// Costs to fit.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    pub(super) values: Vec<f64>,
    /// Extra error variance of each cost.
    pub(super) doubts: Vec<f64>,
}

/// A Gaussian process with a Matérn 5/2 kernel and a length scale per coordinate.
pub(super) struct Process {
    points: Vec<Vec<f64>>,
    costs: Costs,
    scales: Scales,
    factor: Lower,
    /// K⁻¹ times the costs.
    pull: Vec<f64>,
}

/// Posterior at a point.
pub(super) struct Belief {
    pub(super) mean: f64,
    pub(super) deviation: f64,
}

impl Process {
    /// Fits the kernel parameters to points with Euclidean distances; `None` on numerical failure.
    pub(super) fn fit(points: Vec<Vec<f64>>, costs: Costs, parameters: usize) -> Option<Process> {
        let dimensions = points.first()?.len();
        let gaps = Gaps::new(&points, dimensions);
        let prior = weight(parameters);
        let starts = [prior.mean, prior.mean + 3.0].map(|weight| {
            let mut start = vec![weight; dimensions];
            start.extend([VARIANCE.mean, NOISE.mean]);
            start
        });
        let ends = starts.map(|start| {
            descend(&start, BOUNDS, STEPS, |at, gradient| {
                unlikelihood(at, gradient, &gaps, &costs, &prior)
            })
        });
        let best = ends.into_iter().reduce(|a, b| if b.value < a.value { b } else { a })?;
        Process::with(points, costs, Scales::from_logs(&best.at))
    }

    fn with(points: Vec<Vec<f64>>, costs: Costs, scales: Scales) -> Option<Process> {
        let factor = Lower::new(points.len(), |i, j| match i == j {
            true => scales.variance + (scales.noise + costs.doubts[i] + JITTER),
            false => scales.variance * matern(scales.distance(&points[i], &points[j])).0,
        })
        .factor()?;
        let pull = factor.backward(&factor.forward(&costs.values));
        Some(Process { points, costs, scales, factor, pull })
    }

    /// Conditions the process on its own prediction at pending points.
    pub(super) fn believing(self, pending: Vec<Vec<f64>>) -> Option<Process> {
        if pending.is_empty() {
            return Some(self);
        }
        let mut costs = self.costs.clone();
        let expected = pending.iter().map(|point| self.believe(point).mean);
        costs.values.extend(expected);
        costs.doubts.resize(costs.values.len(), 0.0);
        let mut points = self.points.clone();
        points.extend(pending);
        Process::with(points, costs, self.scales.clone())
    }

    /// Posterior at a point.
    pub(super) fn believe(&self, point: &[f64]) -> Belief {
        let kernel: Vec<f64> = self.points.iter().map(|p| self.kernel(p, point).0).collect();
        let v = self.factor.forward(&kernel);
        Belief { mean: dot(&kernel, &self.pull), deviation: self.deviation(&v) }
    }

    /// Posterior with the derivatives of mean and deviation by the coordinates.
    pub(super) fn slopes(&self, point: &[f64]) -> (Belief, Vec<f64>, Vec<f64>) {
        let kernels: Vec<(f64, f64)> = self.points.iter().map(|p| self.kernel(p, point)).collect();
        let kernel: Vec<f64> = kernels.iter().map(|k| k.0).collect();
        let v = self.factor.forward(&kernel);
        let deviation = self.deviation(&v);
        let spread = self.factor.backward(&v);
        let (mut by_mean, mut by_deviation) = (vec![0.0; point.len()], vec![0.0; point.len()]);
        for (i, other) in self.points.iter().enumerate() {
            let slope = 2.0 * kernels[i].1;
            for (j, (&x, &y)) in point.iter().zip(other).enumerate() {
                let by = slope * self.scales.weights[j] * (x - y);
                by_mean[j] += self.pull[i] * by;
                by_deviation[j] -= spread[i] * by / deviation;
            }
        }
        let mean = dot(&kernel, &self.pull);
        (Belief { mean, deviation }, by_mean, by_deviation)
    }

    fn deviation(&self, v: &[f64]) -> f64 {
        sqrt((self.scales.variance - dot(v, v)).max(JITTER))
    }

    /// Covariance of two points and its derivative by their squared distance.
    fn kernel(&self, a: &[f64], b: &[f64]) -> (f64, f64) {
        let (value, slope) = matern(self.scales.distance(a, b));
        let variance = self.scales.variance;
        (variance * value, variance * slope)
    }
}

impl Scales {
    /// Reads the logarithms of weights, variance and noise.
    fn from_logs(logs: &[f64]) -> Scales {
        let mut weights: Vec<f64> = logs.iter().map(|&log| exp(log)).collect();
        let noise = weights.pop().unwrap_or(0.0);
        let variance = weights.pop().unwrap_or(1.0);
        Scales { weights, variance, noise }
    }

    /// Weighted squared distance.
    fn distance(&self, a: &[f64], b: &[f64]) -> f64 {
        let gaps = self.weights.iter().zip(a.iter().zip(b));
        gaps.map(|(weight, (a, b))| weight * (a - b) * (a - b)).sum()
    }
}

/// Matérn 5/2 kernel of a squared distance, and its derivative.
fn matern(square: f64) -> (f64, f64) {
    let root = sqrt(5.0 * square);
    let fall = exp(-root);
    ((1.0 + root + root * root / 3.0) * fall, -5.0 / 6.0 * (1.0 + root) * fall)
}

/// Squared differences of all pairs of points by coordinate.
struct Gaps {
    points: usize,
    dimensions: usize,
    squares: Vec<f64>,
}

impl Gaps {
    fn new(points: &[Vec<f64>], dimensions: usize) -> Gaps {
        let mut squares = Vec::with_capacity(points.len() * points.len() / 2 * dimensions);
        for (i, a) in points.iter().enumerate() {
            for b in &points[..i] {
                squares.extend(a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)));
            }
        }
        Gaps { points: points.len(), dimensions, squares }
    }

    /// Squared differences of one pair, with `i > j`.
    fn of(&self, i: usize, j: usize) -> &[f64] {
        let first = (i * (i - 1) / 2 + j) * self.dimensions;
        &self.squares[first..first + self.dimensions]
    }
}

/// Negative log posterior of kernel parameters, and its gradient.
fn unlikelihood(
    at: &[f64],
    gradient: &mut [f64],
    gaps: &Gaps,
    costs: &Costs,
    prior: &Prior,
) -> f64 {
    let (n, d) = (gaps.points, gaps.dimensions);
    let Scales { weights, variance, noise } = Scales::from_logs(at);
    let pairs = |i: usize| (0..i).map(move |j| (i, j));
    let kernels = (0..n).flat_map(pairs);
    let kernels = kernels.map(|(i, j)| matern(dot(&weights, gaps.of(i, j))));
    let kernels: Vec<(f64, f64)> = kernels.collect();
    let kernel_of = |i: usize, j: usize| kernels[i * (i - 1) / 2 + j];
    let kernel = Lower::new(n, |i, j| match i == j {
        true => variance + noise + costs.doubts[i] + JITTER,
        false => variance * kernel_of(i, j).0,
    });
    gradient.fill(0.0);
    let Some(factor) = kernel.factor() else {
        return f64::INFINITY;
    };
    let pull = factor.backward(&factor.forward(&costs.values));
    let inverse = factor.inverse();
    let mut value = 0.5 * dot(&costs.values, &pull);
    for i in 0..n {
        value += log(factor.at(i, i));
        let own = pull[i] * pull[i] - inverse.at(i, i);
        gradient[d] -= 0.5 * own * variance;
        gradient[d + 1] -= 0.5 * own * noise;
        for j in 0..i {
            // Each pair occurs in both orders.
            let both = variance * (pull[i] * pull[j] - inverse.at(i, j));
            let (value, slope) = kernel_of(i, j);
            gradient[d] -= both * value;
            for (k, gap) in gaps.of(i, j).iter().enumerate() {
                gradient[k] -= both * slope * weights[k] * gap;
            }
        }
    }
    for (k, &at) in at.iter().enumerate() {
        let prior = match k {
            _ if k < d => prior,
            _ if k == d => &VARIANCE,
            _ => &NOISE,
        };
        let (penalty, slope) = prior.penalty(at);
        value += penalty;
        gradient[k] += slope;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sure(values: Vec<f64>) -> Costs {
        Costs { doubts: vec![0.0; values.len()], values }
    }

    fn example() -> (Vec<Vec<f64>>, Costs) {
        let points: Vec<Vec<f64>> =
            (0..12).map(|i| vec![(i as f64 * 0.37).fract(), (i as f64 * 0.61).fract()]).collect();
        let costs = points.iter().map(|p| (5.0 * p[0]).sin() + 0.1 * p[1]).collect();
        (points, sure(costs))
    }

    #[test]
    fn the_gradient_matches_finite_differences() {
        let (points, mut costs) = example();
        costs.doubts[3] = 0.2;
        let gaps = Gaps::new(&points, 2);
        let prior = weight(2);
        let at = [0.3, -0.5, 0.2, -4.0];
        let mut gradient = [0.0; 4];
        unlikelihood(&at, &mut gradient, &gaps, &costs, &prior);
        for k in 0..4 {
            let shifted = |by: f64| {
                let mut at = at;
                at[k] += by;
                unlikelihood(&at, &mut [0.0; 4], &gaps, &costs, &prior)
            };
            let slope = (shifted(1e-5) - shifted(-1e-5)) / 2e-5;
            assert!((slope - gradient[k]).abs() < 1e-4, "{k}: {slope} {}", gradient[k]);
        }
    }

    #[test]
    fn the_posterior_is_certain_at_data_and_uncertain_elsewhere() {
        let (points, costs) = example();
        let process = Process::fit(points.clone(), costs.clone(), 2).expect("a process");
        for (point, cost) in points.iter().zip(&costs.values) {
            let belief = process.believe(point);
            assert!((belief.mean - cost).abs() < 0.05);
            assert!(belief.deviation < 0.1);
        }
        let far = process.believe(&[3.0, 3.0]);
        assert!(far.deviation > 0.3);
    }

    #[test]
    fn noise_is_estimated_from_the_costs() {
        let points: Vec<Vec<f64>> = (0..40).map(|i| vec![f64::from(i) / 40.0]).collect();
        let noisy = |i: usize| 2.0 * points[i][0] + if i.is_multiple_of(2) { 0.4 } else { -0.4 };
        let costs = sure((0..40).map(noisy).collect());
        let process = Process::fit(points.clone(), costs, 1).expect("a process");
        for point in &points[5..35] {
            assert!((process.believe(point).mean - 2.0 * point[0]).abs() < 0.2);
        }
    }

    #[test]
    fn uncertain_costs_have_less_influence() {
        let (points, mut costs) = example();
        let truth = costs.values[5];
        costs.values[5] += 1.0;
        let error = |costs: &Costs| {
            let process = Process::fit(points.clone(), costs.clone(), 2).expect("a process");
            (process.believe(&points[5]).mean - truth).abs()
        };
        let believed = error(&costs);
        costs.doubts[5] = 1.0;
        assert!(error(&costs) < 0.5 * believed);
    }

    #[test]
    fn slopes_match_finite_differences() {
        let (points, costs) = example();
        let process = Process::fit(points, costs, 2).expect("a process");
        let at = [0.42, 0.77];
        let (_, by_mean, by_deviation) = process.slopes(&at);
        for k in 0..2 {
            let shifted = |by: f64| {
                let mut at = at;
                at[k] += by;
                process.believe(&at)
            };
            let (up, down) = (shifted(1e-5), shifted(-1e-5));
            assert!(((up.mean - down.mean) / 2e-5 - by_mean[k]).abs() < 1e-4);
            assert!(((up.deviation - down.deviation) / 2e-5 - by_deviation[k]).abs() < 1e-3);
        }
    }

    #[test]
    fn pending_points_reduce_uncertainty() {
        let (points, costs) = example();
        let process = Process::fit(points, costs, 2).expect("a process");
        let pending = vec![0.5, 0.05];
        let before = process.believe(&pending);
        let process = process.believing(vec![pending.clone()]).expect("a process");
        let after = process.believe(&pending);
        assert!((after.mean - before.mean).abs() < 1e-2);
        assert!(after.deviation < 0.5 * before.deviation);
    }
}
