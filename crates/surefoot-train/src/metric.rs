//! Metrics: accuracy for classes and labels, R² for numbers.

use crate::loss::TargetView;
use surefoot_plan::{Loss, Task};

/// Sums of a batch that a metric is computed from. Parts are merged in a fixed order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    samples: u64,
    /// Predicted classes or labels: one per sample, or one per label and sample.
    decisions: u64,
    correct: u64,
    /// Predictions per class.
    predicted: Vec<u64>,
    /// One per predicted value.
    columns: Vec<Column>,
    /// The sum of losses.
    pub(crate) loss: f64,
}

/// The targets of one output of a regression, and how far off the predictions are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Column {
    count: f64,
    mean: f64,
    /// The sum of squared deviations from the mean.
    variation: f64,
    squared_error: f64,
    absolute_error: f64,
}

impl Column {
    fn add(&mut self, target: f64, prediction: f64) {
        let error = prediction - target;
        let one = Self {
            count: 1.0,
            mean: target,
            variation: 0.0,
            squared_error: error * error,
            absolute_error: error.abs(),
        };
        *self = self.merge(&one);
    }

    /// Chan, Golub and LeVeque's pairwise update, which does not cancel.
    fn merge(&self, other: &Self) -> Self {
        let count = self.count + other.count;
        let delta = other.mean - self.mean;
        let share = other.count / count.max(1.0);
        Self {
            count,
            mean: self.mean + delta * share,
            variation: self.variation + other.variation + delta * delta * self.count * share,
            squared_error: self.squared_error + other.squared_error,
            absolute_error: self.absolute_error + other.absolute_error,
        }
    }

    /// Absent for constant targets: what is left of them is rounding.
    fn r2(&self) -> Option<f64> {
        let rounding = self.count * (self.mean * f64::from(f32::EPSILON)).powi(2);
        (self.variation > rounding).then(|| 1.0 - self.squared_error / self.variation)
    }
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
        let samples = ids.len() as u64;
        let mut tally = Self { loss: total_loss, samples, ..Self::default() };
        let width = width / targets.rows();
        for (row, id) in outputs.chunks_exact(width).zip(targets.rows_of(ids)) {
            match targets.task() {
                Task::Regression => {
                    tally.columns.resize(width, Column::default());
                    for (k, (column, &p)) in tally.columns.iter_mut().zip(row).enumerate() {
                        column.add(targets.value(id, k, width), f64::from(p));
                    }
                }
                Task::MultiLabel => {
                    for (k, &p) in row.iter().enumerate() {
                        let label = predicted_label(p, loss);
                        let target = targets.value(id, k, width) == 1.0;
                        tally.decisions += 1;
                        tally.correct += u64::from(label == Some(target));
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
                    tally.decisions += 1;
                    tally.correct += u64::from(class.is_some() && class == targets.class(id));
                }
            }
        }
        tally
    }

    pub(crate) fn merge(mut self, other: &Self) -> Self {
        self.samples += other.samples;
        self.decisions += other.decisions;
        self.correct += other.correct;
        if self.predicted.len() < other.predicted.len() {
            self.predicted.resize(other.predicted.len(), 0);
        }
        for (a, b) in self.predicted.iter_mut().zip(&other.predicted) {
            *a += b;
        }
        self.columns = match (&self.columns[..], &other.columns[..]) {
            (mine, []) => mine.to_vec(),
            ([], theirs) => theirs.to_vec(),
            (mine, theirs) => mine.iter().zip(theirs).map(|(a, b)| a.merge(b)).collect(),
        };
        self.loss += other.loss;
        self
    }

    /// The mean loss.
    pub(crate) fn mean_loss(&self) -> f64 {
        self.loss / self.samples as f64
    }

    /// The task's metric, in which more is better; absent where it is not defined: R² of constant
    /// targets, or of predictions that are not numbers. That of several outputs is their mean.
    pub(crate) fn metric(&self, task: Task) -> Option<f64> {
        match task {
            Task::Regression => {
                let each: Option<Vec<f64>> = self.columns.iter().map(Column::r2).collect();
                let each = each.filter(|each| !each.is_empty())?;
                let mean = each.iter().sum::<f64>() / each.len() as f64;
                (!mean.is_nan()).then_some(mean)
            }
            Task::Binary | Task::MultiClass | Task::MultiLabel => {
                (self.decisions > 0).then(|| self.correct as f64 / self.decisions as f64)
            }
        }
    }

    /// The mean absolute error of a regression.
    pub(crate) fn mae(&self) -> Option<f64> {
        let count: f64 = self.columns.iter().map(|c| c.count).sum();
        let total: f64 = self.columns.iter().map(|c| c.absolute_error).sum();
        (count > 0.0).then(|| total / count)
    }

    /// The share of samples predicted as the most predicted class.
    pub(crate) fn top_class_share(&self) -> Option<f64> {
        let top = self.predicted.iter().max()?;
        Some(*top as f64 / self.decisions as f64)
    }
}

/// The name of a task's metric.
pub fn metric_name(task: Task) -> &'static str {
    match task {
        Task::Regression => "r2",
        Task::Binary | Task::MultiClass | Task::MultiLabel => "accuracy",
    }
}

/// The predicted class of a row of outputs; `None` if it has a NaN.
pub(crate) fn predicted_class(row: &[f32], loss: Loss) -> Option<usize> {
    if row.iter().any(|v| v.is_nan()) {
        return None;
    }
    if let [output] = row {
        return predicted_label(*output, loss).map(usize::from);
    }
    row.iter()
        .enumerate()
        .max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)))
        .map(|(class, _)| class)
}

/// Decision of an output that stands for one label; `None` if it is NaN.
pub(crate) fn predicted_label(output: f32, loss: Loss) -> Option<bool> {
    let boundary = match loss {
        Loss::BinaryCrossentropy { from_logits: true } | Loss::Hinge => 0.0,
        _ => 0.5,
    };
    (!output.is_nan()).then_some(output > boundary)
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
    fn the_accuracy_of_labels_counts_each_label() {
        let targets = Targets::Values(vec![1.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
        let view = TargetView::new(&targets, Task::MultiLabel);
        let of = |outputs: &[f32], loss| {
            let tally = Tally::of(outputs, 3, view, &[0, 1], loss, 0.0);
            tally.clone().merge(&tally).metric(Task::MultiLabel)
        };
        let outputs = [0.9, 0.1, 0.2, 0.4, f32::NAN, 0.3];
        assert_eq!(of(&outputs, Loss::Mse), Some(4.0 / 6.0));
        let logits = Loss::BinaryCrossentropy { from_logits: true };
        assert_eq!(of(&[0.9, -0.1, 0.2, 0.4, -1.0, -0.3], logits), Some(5.0 / 6.0));
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

    fn regression(targets: Vec<f32>, outputs: &[f32], width: usize) -> Tally {
        let ids: Vec<usize> = (0..targets.len() / width).collect();
        let targets = Targets::Values(targets);
        let view = TargetView::new(&targets, Task::Regression);
        Tally::of(outputs, width, view, &ids, Loss::Mse, 0.0)
    }

    #[test]
    fn constant_targets_have_no_r2() {
        for value in [2.0, 72.154, 1e-3] {
            let tally = regression(vec![value; 50], &[value; 50], 1);
            assert_eq!(tally.metric(Task::Regression), None, "{value}");
        }
    }

    #[test]
    fn each_output_has_an_r2_of_its_own() {
        // Two outputs far apart, each predicted by its mean: nothing is explained.
        let targets = vec![-1.0, 999.0, 1.0, 1001.0];
        let tally = regression(targets, &[0.0, 1000.0, 0.0, 1000.0], 2);
        assert_eq!(tally.metric(Task::Regression), Some(0.0));
        assert_eq!(tally.mae(), Some(1.0));
    }

    #[test]
    fn a_large_mean_does_not_cancel_the_variation() {
        let targets: Vec<f32> = (0..2560).map(|i| 1e8 + 16.0 * (i % 3) as f32).collect();
        let mean = vec![1e8 + 16.0; 2560];
        let r2 = regression(targets, &mean, 1).metric(Task::Regression).unwrap();
        assert!(r2.abs() < 1e-3, "{r2}");
    }

    #[test]
    fn a_prediction_that_is_no_number_has_no_r2() {
        let tally = regression(vec![1.0, 2.0], &[1.0, f32::NAN], 1);
        assert_eq!(tally.metric(Task::Regression), None);
    }
}
