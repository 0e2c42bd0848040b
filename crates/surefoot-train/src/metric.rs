//! Metrics: accuracy for classes, R² for numbers.

use crate::loss::TargetView;
use surefoot_plan::{Loss, Task};

/// What a metric needs of a batch; parts add up along any tree in the same order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    samples: u64,
    correct: u64,
    /// How often each class was predicted.
    predicted: Vec<u64>,
    /// Of numbers: count, sum, sum of squares, and of errors: the sum of squares.
    count: f64,
    sum: f64,
    squares: f64,
    squared_error: f64,
    /// The sum of losses.
    pub(crate) loss: f64,
}

impl Tally {
    /// Counts the rows of `outputs`, the outputs of samples `ids`.
    pub(crate) fn of(
        outputs: &[f32],
        width: usize,
        targets: TargetView<'_>,
        ids: &[usize],
        loss: Loss,
        total_loss: f64,
    ) -> Self {
        let mut tally = Self {
            loss: total_loss,
            ..Self::default()
        };
        for (row, &id) in outputs.chunks_exact(width).zip(ids) {
            tally.samples += 1;
            match targets.task() {
                Task::Regression => {
                    for (k, &p) in row.iter().enumerate() {
                        let y = targets.value(id, k, width);
                        let error = f64::from(p) - y;
                        tally.count += 1.0;
                        tally.sum += y;
                        tally.squares += y * y;
                        tally.squared_error += error * error;
                    }
                }
                Task::Binary | Task::MultiClass => {
                    let class = predicted_class(row, loss);
                    if let Some(class) = class {
                        if tally.predicted.len() <= class {
                            tally.predicted.resize(class + 1, 0);
                        }
                        tally.predicted[class] += 1;
                    }
                    tally.correct += u64::from(class.is_some() && class == targets.class(id));
                }
            }
        }
        tally
    }

    pub(crate) fn merge(mut self, other: &Self) -> Self {
        self.samples += other.samples;
        self.correct += other.correct;
        if self.predicted.len() < other.predicted.len() {
            self.predicted.resize(other.predicted.len(), 0);
        }
        for (a, b) in self.predicted.iter_mut().zip(&other.predicted) {
            *a += b;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
        self.squared_error += other.squared_error;
        self.loss += other.loss;
        self
    }

    /// The mean loss.
    pub(crate) fn mean_loss(&self) -> f64 {
        self.loss / self.samples as f64
    }

    /// The task's metric, in which more is better; absent where it is not defined (R² of constant
    /// targets).
    pub(crate) fn metric(&self, task: Task) -> Option<f64> {
        match task {
            Task::Regression => {
                let variation = self.squares - self.sum * self.sum / self.count;
                (variation > 0.0).then(|| 1.0 - self.squared_error / variation)
            }
            Task::Binary | Task::MultiClass => {
                (self.samples > 0).then(|| self.correct as f64 / self.samples as f64)
            }
        }
    }

    /// The share of samples predicted as the most predicted class.
    pub(crate) fn top_class_share(&self) -> Option<f64> {
        let top = self.predicted.iter().max()?;
        Some(*top as f64 / self.samples as f64)
    }
}

/// The name of a task's metric.
pub fn metric_name(task: Task) -> &'static str {
    match task {
        Task::Regression => "r2",
        Task::Binary | Task::MultiClass => "accuracy",
    }
}

/// The class a row of outputs means; none if it has a NaN.
fn predicted_class(row: &[f32], loss: Loss) -> Option<usize> {
    if row.iter().any(|v| v.is_nan()) {
        return None;
    }
    if let [output] = row {
        // Where a lone output turns from the first class to the second.
        let boundary = match loss {
            Loss::BinaryCrossentropy { from_logits: true } | Loss::Hinge => 0.0,
            _ => 0.5,
        };
        return Some(usize::from(*output > boundary));
    }
    row.iter()
        .enumerate()
        .max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)))
        .map(|(class, _)| class)
}

#[cfg(test)]
mod tests {
    use super::*;
    use surefoot_data::Targets;

    #[test]
    fn accuracy_counts_the_largest_output() {
        let targets = Targets::Classes(vec![0, 1, 1, 0]);
        let view = TargetView::new(&targets, Task::MultiClass);
        let outputs = [0.9, 0.1, 0.2, 0.8, 0.6, 0.4, f32::NAN, 0.0];
        let tally = Tally::of(&outputs, 2, view, &[0, 1, 2, 3], Loss::Mse, 0.0);
        assert_eq!(tally.metric(Task::MultiClass), Some(0.5));
        assert_eq!(tally.top_class_share(), Some(0.5));
    }

    #[test]
    fn r2_is_one_for_perfect_and_zero_for_mean_predictions() {
        let targets = Targets::Values(vec![1.0, 2.0, 3.0]);
        let view = TargetView::new(&targets, Task::Regression);
        let r2 = |outputs: &[f32]| {
            Tally::of(outputs, 1, view, &[0, 1, 2], Loss::Mse, 0.0).metric(Task::Regression)
        };
        assert_eq!(r2(&[1.0, 2.0, 3.0]), Some(1.0));
        assert_eq!(r2(&[2.0, 2.0, 2.0]), Some(0.0));
    }

    #[test]
    fn constant_targets_have_no_r2() {
        let targets = Targets::Values(vec![2.0, 2.0]);
        let view = TargetView::new(&targets, Task::Regression);
        let tally = Tally::of(&[2.0, 2.0], 1, view, &[0, 1], Loss::Mse, 0.0);
        assert_eq!(tally.metric(Task::Regression), None);
    }
}
