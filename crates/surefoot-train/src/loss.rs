//! Losses and their gradients, on the outputs of a batch.
//!
//! Definitions are Keras's (`keras/src/losses`): the mean over the outputs of a sample, except
//! where a loss is a sum over classes, then the mean over the batch. Outputs are few next to
//! everything else, so this runs in memory, in double precision, on any device.

use surefoot_data::Targets;
use surefoot_plan::{Loss, Task};

// Keras's clipping limit of probabilities. It computes in single precision, in which `1 - 1e-7` is the
// second number below one.
const EPSILON: f64 = 1e-7;
const ALMOST_ONE: f64 = 1.0 - f32::EPSILON as f64;

/// The targets of some samples, as a loss sees them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TargetView<'a> {
    targets: &'a Targets,
    task: Task,
    /// Rows of outputs per sample, one for each position of a sequence.
    rows: usize,
}

impl<'a> TargetView<'a> {
    /// The targets of a part of the data.
    pub(crate) fn new(targets: &'a Targets, task: Task) -> Self {
        Self { targets, task, rows: 1 }
    }

    /// The same for sequences with a target at each of `positions` positions.
    #[must_use]
    pub(crate) fn at_positions(self, positions: usize) -> Self {
        Self { rows: positions.max(1), ..self }
    }

    /// Rows of outputs per sample.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The rows of samples, in the order of their outputs.
    pub(crate) fn rows_of(self, ids: &[usize]) -> impl Iterator<Item = usize> {
        ids.iter().flat_map(move |&id| (0..self.rows).map(move |row| id * self.rows + row))
    }

    /// The class of row `i`, if there are classes.
    pub(crate) fn class(&self, i: usize) -> Option<usize> {
        match self.targets {
            Targets::Classes(classes) => classes.get(i).map(|&c| c as usize),
            Targets::Values(_) => None,
        }
    }

    /// Output `k` of `width` that row `i` should have had: a column of the target, or one of a
    /// one-hot class (a lone output: the class itself).
    pub(crate) fn value(&self, i: usize, k: usize, width: usize) -> f64 {
        match self.targets {
            Targets::Values(values) => f64::from(values[i * width + k]),
            Targets::Classes(classes) if width == 1 => f64::from(classes[i]),
            Targets::Classes(classes) => f64::from(u8::from(classes[i] as usize == k)),
        }
    }

    /// The task.
    pub(crate) fn task(&self) -> Task {
        self.task
    }
}

/// The sum of `loss` over the samples `ids`, whose outputs are the rows of `outputs`, and the
/// gradient of that sum divided by `batch`.
pub(crate) fn evaluate(
    loss: Loss,
    outputs: &[f32],
    width: usize,
    targets: TargetView<'_>,
    ids: &[usize],
    batch: usize,
) -> (f64, Vec<f32>) {
    // The loss of a sample is the mean over its rows.
    let width = width / targets.rows();
    let batch = batch * targets.rows();
    let mut gradient = vec![0.0; outputs.len()];
    let mut total = 0.0;
    let mut row =
        Row { output: vec![0.0; width], target: vec![0.0; width], slope: vec![0.0; width] };
    for ((output, slope), id) in
        outputs.chunks_exact(width).zip(gradient.chunks_exact_mut(width)).zip(targets.rows_of(ids))
    {
        for (to, &p) in row.output.iter_mut().zip(output) {
            *to = f64::from(p);
        }
        let class = targets.class(id);
        match (loss, class) {
            (Loss::SparseCategoricalCrossentropy { .. }, Some(_)) => {
                row.target.fill(0.0);
                if let Some(one) = class.and_then(|c| row.target.get_mut(c)) {
                    *one = 1.0;
                }
            }
            _ => (0..width).for_each(|k| row.target[k] = targets.value(id, k, width)),
        }
        total += row.evaluate(loss);
        for (out, s) in slope.iter_mut().zip(&row.slope) {
            *out = (s / batch as f64) as f32;
        }
    }
    (total / targets.rows() as f64, gradient)
}

/// One sample's outputs, targets, and the slopes of its loss.
struct Row {
    output: Vec<f64>,
    target: Vec<f64>,
    slope: Vec<f64>,
}

impl Row {
    fn evaluate(&mut self, loss: Loss) -> f64 {
        let width = self.output.len() as f64;
        let mean = |pointwise: (f64, f64)| (pointwise.0 / width, pointwise.1 / width);
        match loss {
            Loss::BinaryCrossentropy { from_logits: true } => self.each(|p, y| {
                // max(p, 0) - p y + ln(1 + e^-|p|)
                let tail = libm::log1p(libm::exp(-p.abs()));
                mean((p.max(0.0) - p * y + tail, logistic(p) - y))
            }),
            Loss::BinaryCrossentropy { from_logits: false } => self.each(|p, y| {
                let (q, inside) = clip(p, EPSILON, ALMOST_ONE);
                let value = -(y * libm::log(q) + (1.0 - y) * libm::log(1.0 - q));
                mean((value, inside * ((1.0 - y) / (1.0 - q) - y / q)))
            }),
            Loss::CategoricalCrossentropy { from_logits: true }
            | Loss::SparseCategoricalCrossentropy { from_logits: true } => {
                self.crossentropy_of_logits()
            }
            Loss::CategoricalCrossentropy { from_logits: false }
            | Loss::SparseCategoricalCrossentropy { from_logits: false } => {
                self.crossentropy_of_probabilities()
            }
            Loss::Mse => self.each(|p, y| mean(((p - y) * (p - y), 2.0 * (p - y)))),
            Loss::Mae => self.each(|p, y| mean(((p - y).abs(), sign(p - y)))),
            Loss::Huber { delta } => self.each(|p, y| {
                let error = p - y;
                mean(if error.abs() <= delta {
                    (0.5 * error * error, error)
                } else {
                    (delta * error.abs() - 0.5 * delta * delta, delta * sign(error))
                })
            }),
            Loss::Hinge => {
                // Keras turns targets of 0 and 1 into -1 and 1, and leaves others alone.
                let binary = self.target.iter().all(|&y| y == 0.0 || y == 1.0);
                self.each(|p, y| {
                    let y = if binary { 2.0 * y - 1.0 } else { y };
                    let margin = 1.0 - y * p;
                    mean(if margin > 0.0 {
                        (margin, -y)
                    } else if margin.is_nan() {
                        (f64::NAN, f64::NAN)
                    } else {
                        (0.0, 0.0)
                    })
                })
            }
            Loss::KlDivergence => self.each(|p, y| {
                let (q, inside) = clip(p, EPSILON, 1.0);
                let (y, _) = clip(y, EPSILON, 1.0);
                (y * libm::log(y / q), inside * -y / q)
            }),
            Loss::Poisson => {
                self.each(|p, y| mean((p - y * libm::log(p + EPSILON), 1.0 - y / (p + EPSILON))))
            }
        }
    }

    /// Sums `pointwise`, which returns value and slope, over the outputs.
    fn each(&mut self, pointwise: impl Fn(f64, f64) -> (f64, f64)) -> f64 {
        let mut total = 0.0;
        for ((&p, &y), slope) in self.output.iter().zip(&self.target).zip(&mut self.slope) {
            let (value, s) = pointwise(p, y);
            total += value;
            *slope = s;
        }
        total
    }

    fn crossentropy_of_logits(&mut self) -> f64 {
        let peak = self.output.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = self.output.iter().map(|&p| libm::exp(p - peak)).sum();
        let log_sum = peak + libm::log(sum);
        let weight: f64 = self.target.iter().sum();
        self.each(|p, y| {
            let log_p = p - log_sum;
            // 0 * -inf must not turn an impossible class into NaN.
            let value = if y == 0.0 && !log_p.is_nan() { 0.0 } else { -y * log_p };
            (value, weight * libm::exp(log_p) - y)
        })
    }

    fn crossentropy_of_probabilities(&mut self) -> f64 {
        let sum: f64 = self.output.iter().sum();
        let mut total = 0.0;
        let mut pull = 0.0; // sum of slope * share, for the normalisation's gradient
        for ((&p, &y), slope) in self.output.iter().zip(&self.target).zip(&mut self.slope) {
            let share = p / sum;
            let (q, inside) = clip(share, EPSILON, ALMOST_ONE);
            let value = -y * libm::log(q);
            total += if y == 0.0 && !value.is_nan() { 0.0 } else { value };
            *slope = inside * -y / q;
            pull += *slope * share;
        }
        self.slope.iter_mut().for_each(|s| *s = (*s - pull) / sum);
        total
    }
}

/// `value` between the bounds, and the slope of that: 1 inside, 0 outside and at the bounds.
fn clip(value: f64, low: f64, high: f64) -> (f64, f64) {
    if value <= low {
        (low, 0.0)
    } else if value >= high {
        (high, 0.0)
    } else {
        (value, 1.0)
    }
}

fn logistic(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + libm::exp(-x))
    } else {
        let e = libm::exp(x);
        e / (1.0 + e)
    }
}

fn sign(x: f64) -> f64 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        x // 0 for 0, NaN for NaN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_of_a_sequence_is_the_mean_over_its_steps() {
        let loss = Loss::SparseCategoricalCrossentropy { from_logits: true };
        let targets = Targets::Classes(vec![0, 1, 1, 0]);
        let flat = TargetView::new(&targets, Task::Binary);
        let outputs = [0.3, -0.2, 0.5, 0.1, -0.4, 0.2, 0.7, 0.6];
        let (of_rows, by_row) = evaluate(loss, &outputs, 2, flat, &[0, 1, 2, 3], 4);
        let (of_samples, by_sample) = evaluate(loss, &outputs, 4, flat.at_positions(2), &[0, 1], 2);
        assert!((of_samples - of_rows / 2.0).abs() < 1e-12);
        assert_eq!(by_row, by_sample);
    }

    const LOSSES: [Loss; 12] = [
        Loss::BinaryCrossentropy { from_logits: true },
        Loss::BinaryCrossentropy { from_logits: false },
        Loss::CategoricalCrossentropy { from_logits: true },
        Loss::CategoricalCrossentropy { from_logits: false },
        Loss::SparseCategoricalCrossentropy { from_logits: true },
        Loss::SparseCategoricalCrossentropy { from_logits: false },
        Loss::Mse,
        Loss::Mae,
        Loss::Huber { delta: 0.3 },
        Loss::Hinge,
        Loss::KlDivergence,
        Loss::Poisson,
    ];

    fn run(loss: Loss, outputs: &[f32]) -> (f64, Vec<f32>) {
        let targets = Targets::Classes(vec![2, 0]);
        let view = TargetView::new(&targets, Task::MultiClass);
        evaluate(loss, outputs, 3, view, &[0, 1], 2)
    }

    #[test]
    fn gradients_are_the_slopes_of_the_losses() {
        let outputs = [0.21, 0.34, 0.42, 0.63, 0.11, 0.28];
        for loss in LOSSES {
            let (_, gradient) = run(loss, &outputs);
            for i in 0..outputs.len() {
                let shifted = |by: f32| {
                    let mut moved = outputs;
                    moved[i] += by;
                    run(loss, &moved).0 / 2.0
                };
                let slope = (shifted(1e-3) - shifted(-1e-3)) / 2e-3;
                assert!(
                    (slope - f64::from(gradient[i])).abs() < 2e-3,
                    "{loss:?}, output {i}: {} instead of {slope}",
                    gradient[i]
                );
            }
        }
    }

    #[test]
    fn a_nan_output_gives_a_nan_loss() {
        for loss in LOSSES {
            let (value, _) = run(loss, &[f32::NAN, 0.2, 0.3, 0.4, 0.5, 0.6]);
            assert!(value.is_nan(), "{loss:?}");
        }
    }

    #[test]
    fn certain_probabilities_give_finite_losses() {
        for loss in LOSSES {
            let (value, gradient) = run(loss, &[1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
            assert!(value.is_finite(), "{loss:?}");
            assert!(gradient.iter().all(|g| g.is_finite()), "{loss:?}");
        }
    }
}
