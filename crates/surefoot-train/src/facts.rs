//! Facts about a run for its diagnosis.

use surefoot_data::{Dataset, Part, Targets};
use surefoot_diagnose::{Facts, LayerInfo, TaskKind};
use surefoot_plan::{Algorithm, Loss, Plan, Task};

/// The facts of `plan` with `data` and its layers.
pub(crate) fn of(plan: &Plan, data: &Dataset, layers: Vec<LayerInfo>, steps: u64) -> Facts {
    let training = &plan.training;
    let (chance, baseline_loss) =
        constant_guess(&data.train, data.task, data.classes, training.loss);
    let (constant_inputs, input_spread) = spread(&data.train, &data.input_shape);
    Facts {
        layers,
        task: Some(match data.task {
            Task::Binary => TaskKind::Binary,
            Task::MultiClass => TaskKind::MultiClass,
            Task::MultiLabel => TaskKind::MultiLabel,
            Task::Regression => TaskKind::Regression,
        }),
        loss: Some(training.loss.name().to_owned()),
        from_logits: matches!(
            training.loss,
            Loss::BinaryCrossentropy { from_logits: true }
                | Loss::CategoricalCrossentropy { from_logits: true }
                | Loss::SparseCategoricalCrossentropy { from_logits: true }
        ),
        optimizer: Some(training.optimizer.algorithm.name().to_owned()),
        momentum: match training.optimizer.algorithm {
            Algorithm::Sgd { momentum, .. } => Some(momentum),
            _ => None,
        },
        learning_rate: Some(training.optimizer.learning_rate),
        decay: Some(training.schedule.decay.name().to_owned()),
        metric: Some(crate::metric_name(data.task).to_owned()),
        classes: Some(data.classes).filter(|&classes| classes > 0),
        batch_size: Some(training.batch_size),
        steps_per_epoch: Some(steps),
        epochs: Some(training.epochs),
        warmup_steps: training.schedule.warmup_steps,
        chance,
        baseline_loss,
        target_range: range(&data.train.targets).filter(|_| data.task == Task::Regression),
        constant_inputs,
        missing_inputs: [&data.train, &data.validation, &data.test]
            .map(|part| part.features.iter().filter(|value| value.is_nan()).count() as u64)
            .iter()
            .sum(),
        input_spread,
    }
}

/// The metric and the loss of the best prediction that does not look at the input.
fn constant_guess(
    train: &Part,
    task: Task,
    classes: usize,
    loss: Loss,
) -> (Option<f64>, Option<f64>) {
    match &train.targets {
        Targets::Classes(ids) if !ids.is_empty() => {
            let mut counts = vec![0.0_f64; classes.max(2)];
            ids.iter().for_each(|&id| counts[id as usize] += 1.0);
            let total = ids.len() as f64;
            let shares: Vec<f64> = counts.iter().map(|count| count / total).collect();
            let top = shares.iter().copied().fold(0.0, f64::max);
            let squares: f64 = shares.iter().map(|share| share * share).sum();
            let entropy: f64 =
                shares.iter().filter(|&&share| share > 0.0).map(|share| -share * share.ln()).sum();
            let baseline = match loss {
                Loss::BinaryCrossentropy { .. }
                | Loss::CategoricalCrossentropy { .. }
                | Loss::SparseCategoricalCrossentropy { .. } => Some(entropy),
                // Predicting the shares, by one output or one for each class.
                Loss::Mse if classes <= 2 => Some(shares[0] * shares[1]),
                Loss::Mse => Some((1.0 - squares) / classes as f64),
                _ => None,
            };
            (Some(top), baseline.filter(|loss| *loss > 0.0))
        }
        Targets::Values(values) if !values.is_empty() => {
            let width = (values.len() / train.len.max(1)).max(1);
            let column = |k: usize| values.iter().skip(k).step_by(width).map(|&v| f64::from(v));
            let n = train.len as f64;
            let mean = |k: usize| column(k).sum::<f64>() / n;
            let each = |k: usize| -> Option<f64> {
                let mean = mean(k);
                match loss {
                    Loss::Mse => Some(column(k).map(|v| (v - mean).powi(2)).sum::<f64>() / n),
                    Loss::Huber { delta } => {
                        let each = column(k).map(|v| match (v - mean).abs() {
                            d if d <= delta => 0.5 * d * d,
                            d => delta * (d - 0.5 * delta),
                        });
                        Some(each.sum::<f64>() / n)
                    }
                    Loss::BinaryCrossentropy { .. } if task == Task::MultiLabel => {
                        let entropy = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
                        Some(entropy(mean) + entropy(1.0 - mean))
                    }
                    // About the mean: a little more than about the median.
                    Loss::Mae => Some(column(k).map(|v| (v - mean).abs()).sum::<f64>() / n),
                    _ => None,
                }
            };
            let sum: Option<f64> = (0..width).map(each).sum();
            let baseline = sum.map(|sum| sum / width as f64);
            let chance = match task {
                // The more frequent value of each label.
                Task::MultiLabel => {
                    (0..width).map(|k| mean(k).max(1.0 - mean(k))).sum::<f64>() / width as f64
                }
                _ => 0.0,
            };
            (Some(chance), baseline.filter(|loss| *loss > 0.0))
        }
        _ => (None, None),
    }
}

fn range(targets: &Targets) -> Option<[f64; 2]> {
    let Targets::Values(values) = targets else {
        return None;
    };
    let values = || values.iter().map(|&v| f64::from(v));
    let (low, high) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
    Some([low, high])
}

/// The share of features that are constant, and the largest standard deviation of any feature. The
/// channels of an image count as features, not its pixels.
fn spread(train: &Part, shape: &[usize]) -> (Option<f64>, Option<f64>) {
    let width: usize = match shape {
        [_, _, channels] => *channels,
        _ => shape.iter().product(),
    };
    if width == 0 || train.features.is_empty() {
        return (None, None);
    }
    let rows = (train.features.len() / width) as f64;
    let mut sums = vec![(0.0_f64, 0.0_f64); width];
    let mut firsts = vec![(f32::NAN, true); width];
    for row in train.features.chunks_exact(width) {
        for ((sum, first), &value) in sums.iter_mut().zip(&mut firsts).zip(row) {
            if value.is_nan() {
                continue;
            }
            if first.0.is_nan() {
                first.0 = value;
            }
            first.1 &= value == first.0;
            // About the first value, so that a large mean does not cancel.
            let distance = f64::from(value) - f64::from(first.0);
            sum.0 += distance;
            sum.1 += distance * distance;
        }
    }
    let constant = firsts.iter().filter(|(_, constant)| *constant).count();
    let largest = sums
        .iter()
        .map(|(sum, squares)| (squares / rows - (sum / rows).powi(2)).max(0.0).sqrt())
        .fold(0.0, f64::max);
    (Some(constant as f64 / width as f64), Some(largest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(features: Vec<f32>, targets: Targets, len: usize) -> Part {
        Part { features, targets, len, ids: (0..len as u64).collect() }
    }

    #[test]
    fn a_blind_prediction_of_classes_is_the_most_frequent_one() {
        let part = part(Vec::new(), Targets::Classes(vec![0, 0, 0, 1]), 4);
        let loss = Loss::BinaryCrossentropy { from_logits: false };
        let (chance, baseline) = constant_guess(&part, Task::Binary, 2, loss);
        assert_eq!(chance, Some(0.75));
        let entropy = -(0.75_f64 * 0.75_f64.ln() + 0.25 * 0.25_f64.ln());
        assert!((baseline.unwrap() - entropy).abs() < 1e-12);
        assert_eq!(constant_guess(&part, Task::Binary, 2, Loss::Hinge).1, None);
    }

    #[test]
    fn a_blind_prediction_of_labels_is_the_more_frequent_value_of_each() {
        let labels = vec![1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0];
        let part = part(Vec::new(), Targets::Values(labels), 4);
        let loss = Loss::BinaryCrossentropy { from_logits: false };
        let (chance, baseline) = constant_guess(&part, Task::MultiLabel, 2, loss);
        assert_eq!(chance, Some(0.75));
        let entropy = -(0.75_f64 * 0.75_f64.ln() + 0.25 * 0.25_f64.ln());
        assert!((baseline.unwrap() - entropy).abs() < 1e-12);
    }

    #[test]
    fn a_blind_prediction_of_numbers_is_their_mean() {
        let part = part(Vec::new(), Targets::Values(vec![1.0, 3.0]), 2);
        assert_eq!(constant_guess(&part, Task::Regression, 0, Loss::Mse), (Some(0.0), Some(1.0)));
        assert_eq!(range(&part.targets), Some([1.0, 3.0]));
    }

    #[test]
    fn constant_features_are_counted_and_the_widest_is_measured() {
        let features = vec![1.0, 5.0, 1.0, 9.0];
        let part = part(features, Targets::Classes(vec![0, 1]), 2);
        assert_eq!(spread(&part, &[2]), (Some(0.5), Some(2.0)));
    }
}
