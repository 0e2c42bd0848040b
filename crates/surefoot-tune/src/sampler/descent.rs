//! Bounded minimization: L-BFGS (Liu and Nocedal, 1989) with steps projected onto the bounds.
//!
//! The two problems of the Gaussian process are small and smooth. A fixed number of steps gives the same
//! bits on every machine; a solver crate would be larger than the rest of the sampler.

use std::collections::VecDeque;

/// Number of past steps in the curvature estimate.
const MEMORY: usize = 8;

/// Step halvings before the search stops.
const HALVINGS: usize = 12;

/// The minimum found.
pub(crate) struct Lowest {
    pub(crate) at: Vec<f64>,
    pub(crate) value: f64,
}

/// Minimizes from `start` for a number of steps. `function` returns the value at a point and writes its
/// gradient. All coordinates stay within `bounds`.
pub(crate) fn descend(
    start: &[f64],
    bounds: (f64, f64),
    steps: usize,
    mut function: impl FnMut(&[f64], &mut [f64]) -> f64,
) -> Lowest {
    let within = |x: f64| x.clamp(bounds.0, bounds.1);
    let mut at: Vec<f64> = start.iter().map(|&x| within(x)).collect();
    let mut gradient = vec![0.0; at.len()];
    let mut value = function(&at, &mut gradient);
    let mut curvature = Curvature::default();
    for _ in 0..steps {
        let free = free(&at, &gradient, bounds);
        let mut direction = curvature.direction(&gradient, &free);
        if dot(&direction, &gradient) >= 0.0 {
            curvature = Curvature::default();
            direction = curvature.direction(&gradient, &free);
        }
        let slope = dot(&direction, &gradient);
        if slope > -1e-12 {
            break;
        }
        let Some(next) = halved(value, slope, |length| {
            let there = at.iter().zip(&direction).map(|(x, d)| within(x + length * d));
            let there: Vec<f64> = there.collect();
            let mut gradient = vec![0.0; there.len()];
            let value = function(&there, &mut gradient);
            (value, there, gradient)
        }) else {
            break;
        };
        let gained = value - next.0;
        curvature.learn(&at, &gradient, &next.1, &next.2);
        (value, at, gradient) = next;
        if gained < 1e-9 * value.abs().max(1.0) {
            break;
        }
    }
    Lowest { at, value }
}

type Tried = (f64, Vec<f64>, Vec<f64>);

/// Backtracking line search with the Armijo condition.
fn halved(value: f64, slope: f64, mut tried: impl FnMut(f64) -> Tried) -> Option<Tried> {
    let lengths = (0..HALVINGS).map(|i| 0.5_f64.powi(i as i32));
    lengths
        .map(|length| (length, tried(length)))
        .find(|(length, next)| next.0 <= value + 1e-4 * length * slope)
        .map(|(_, next)| next)
}

/// Coordinates that are not pressed against a bound.
fn free(at: &[f64], gradient: &[f64], (low, high): (f64, f64)) -> Vec<bool> {
    let free = |(&x, &g): (&f64, &f64)| !(x <= low && g > 0.0 || x >= high && g < 0.0);
    at.iter().zip(gradient).map(free).collect()
}

/// The last steps and the changes of the gradient.
#[derive(Default)]
struct Curvature {
    steps: VecDeque<(Vec<f64>, Vec<f64>)>,
}

impl Curvature {
    fn learn(&mut self, at: &[f64], gradient: &[f64], next: &[f64], next_gradient: &[f64]) {
        let step = difference(next, at);
        let change = difference(next_gradient, gradient);
        // Only steps with positive curvature keep the direction a descent direction.
        if dot(&step, &change) > 1e-12 * dot(&change, &change) {
            self.steps.push_back((step, change));
            if self.steps.len() > MEMORY {
                self.steps.pop_front();
            }
        }
    }

    /// The quasi-Newton descent direction in the free coordinates.
    fn direction(&self, gradient: &[f64], free: &[bool]) -> Vec<f64> {
        let masked = gradient.iter().zip(free);
        let mut q: Vec<f64> = masked.map(|(&g, &free)| if free { g } else { 0.0 }).collect();
        let mut shares = Vec::with_capacity(self.steps.len());
        for (step, change) in self.steps.iter().rev() {
            let share = dot(step, &q) / dot(step, change);
            add(&mut q, -share, change);
            shares.push(share);
        }
        let scale = match self.steps.back() {
            Some((step, change)) => dot(step, change) / dot(change, change),
            // The first step has length 1 at most.
            None => 1.0 / dot(&q, &q).sqrt().max(1.0),
        };
        q.iter_mut().for_each(|x| *x *= scale);
        for ((step, change), share) in self.steps.iter().zip(shares.iter().rev()) {
            let back = dot(change, &q) / dot(step, change);
            add(&mut q, share - back, step);
        }
        let downwards = q.iter().zip(free);
        downwards.map(|(&x, &free)| if free { -x } else { 0.0 }).collect()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

fn add(to: &mut [f64], factor: f64, what: &[f64]) {
    to.iter_mut().zip(what).for_each(|(to, what)| *to += factor * what);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_valley_is_minimized() {
        let rosenbrock = |x: &[f64], g: &mut [f64]| {
            let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
            g[0] = -2.0 * a - 400.0 * x[0] * b;
            g[1] = 200.0 * b;
            a * a + 100.0 * b * b
        };
        let lowest = descend(&[-1.2, 1.0], (-5.0, 5.0), 200, rosenbrock);
        assert!(lowest.value < 1e-6, "{}", lowest.value);
    }

    #[test]
    fn a_minimum_beyond_the_bounds_is_clamped() {
        let bowl = |x: &[f64], g: &mut [f64]| {
            g[0] = 2.0 * (x[0] - 3.0);
            g[1] = 2.0 * (x[1] - 0.5);
            (x[0] - 3.0).powi(2) + (x[1] - 0.5).powi(2)
        };
        let lowest = descend(&[0.2, 0.9], (0.0, 1.0), 50, bowl);
        assert_eq!(lowest.at[0], 1.0);
        assert!((lowest.at[1] - 0.5).abs() < 1e-6);
    }
}
