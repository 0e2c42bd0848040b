//! Accuracy that stays where it is.

use super::shape::{self, LEAST};
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;
use crate::number::rough;

/// The accuracy stays at one value from start to end, as if the model always gave the same answer,
/// whatever the loss does.
///
/// The accuracy of a regression stays where it is, too, and means nothing. So the loss has to fit
/// classes with that share `c`: about `-ln c` is the cross-entropy of a constant prediction; a loss
/// that starts near it is a cross-entropy; and a loss of nearly zero contradicts wrong predictions.
///
/// For curves without a known baseline; with one, a run that learned nothing is
/// [`SlowConvergence`](super::SlowConvergence).
#[derive(Clone, Copy, Debug, Default)]
pub struct MetricAtChance;

/// Accuracies between which a constant prediction is plausible.
const PLAUSIBLE: std::ops::Range<f64> = 0.05..0.9;
/// Range of the accuracy that still counts as one value; the second from `BALANCED` on.
const FLAT: (f64, f64) = (0.06, 0.005);
/// Change of its median from the first third to the last that is none.
const TREND: f64 = 0.015;
/// Accuracy above which a constant prediction can be good.
const BALANCED: f64 = 0.6;
/// Loss per wrong prediction below which loss and accuracy contradict each other.
const CONTRADICTION: f64 = 0.01;
/// Distance of the training accuracy above that of the validation from which on it has learned.
const LEARNED: f64 = 0.2;
/// Decrease of the loss that the accuracy should follow.
const FALLS: f64 = 0.2;

impl Detector for MetricAtChance {
    fn problem(&self) -> Problem {
        Problem::METRIC_AT_CHANCE
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Loss]
    }

    fn finish(&mut self, context: &Context<'_>) -> Option<Finding> {
        if context.facts.has_baseline() || !shape::has_accuracy(context) {
            return None;
        }
        let metrics = shape::metrics(context);
        let training = flat(&metrics, &shape::losses(context));
        let learned = shape::Shape::of(&metrics);
        // A level validation beside a training that learns is another problem, or over-fitting.
        let validation = || {
            let found =
                flat(&shape::validation_metrics(context), &shape::validation_losses(context));
            found
                .filter(|(share, _)| learned.is_none_or(|training| training.last < share + LEARNED))
        };
        let (share, loss, name) = training
            .map(|(share, loss)| (share, loss, "accuracy"))
            .or_else(|| validation().map(|(share, loss)| (share, loss, "validation accuracy")))?;
        let message = format!(
            "The {name} stays at {}% while the loss is {}: the model gives the same answer for \
             every sample, or loss and accuracy do not measure the same.",
            rough(100.0 * share),
            rough(loss)
        );
        Some(
            Finding::new(self.problem(), context.step(), message)
                .since(1)
                .with(Measure::Metric, share, None)
                .with(Measure::Loss, loss, None),
        )
    }
}

/// The constant accuracy and the last loss, if the accuracy is that of a constant prediction.
fn flat(metrics: &[f64], losses: &[f64]) -> Option<(f64, f64)> {
    // The first epoch starts from random predictions.
    let settled = metrics.get(metrics.len().div_ceil(10)..)?;
    if metrics.len() < LEAST || settled.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let share = crate::curve::median(settled.iter().copied())?;
    let (low, high) = (
        settled.iter().copied().fold(f64::INFINITY, f64::min),
        settled.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    );
    let room = if share < BALANCED { FLAT.0 } else { FLAT.1 };
    let third = settled.len().div_ceil(3);
    let early = crate::curve::median(settled[..third].iter().copied())?;
    let late = crate::curve::median(settled[settled.len() - third..].iter().copied())?;
    if !PLAUSIBLE.contains(&share) || high - low > room || (late - early).abs() > TREND {
        return None;
    }
    let shape = shape::Shape::of(losses)?;
    let guess = -share.ln();
    let constant = shape.last >= 0.9 * guess && shape.last <= 3.0 * guess + 1.0;
    let contradiction = shape.last < CONTRADICTION * (1.0 - share);
    let cross_entropy = shape.first >= 0.3 * guess && shape.first <= 3.0 * guess + 1.0;
    let falls = cross_entropy && shape.decrease() >= FALLS;
    (constant || contradiction || falls).then_some((share, shape.last))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::curve;
    use super::*;

    fn found(metric: f64, loss: impl Fn(f64) -> f64) -> Option<Finding> {
        let course = curve(20, |step, seen| {
            seen.loss = loss(step as f64);
            seen.metric = Some(metric);
        });
        course.run(MetricAtChance)
    }

    #[test]
    fn the_loss_of_a_constant_prediction_is_found() {
        assert!(found(0.1, |_| 2.303).is_some());
    }

    #[test]
    fn a_loss_of_zero_with_wrong_predictions_is_found() {
        assert!(found(0.0987, |step| 0.003 / step).is_some());
    }

    #[test]
    fn a_falling_cross_entropy_without_an_effect_on_the_accuracy_is_found() {
        assert!(found(0.5, |step| 0.3 + 0.4 / step).is_some());
    }

    #[test]
    fn the_accuracy_of_a_regression_means_nothing() {
        assert_eq!(found(0.1, |step| 0.06 + 150.0 / step), None);
        assert_eq!(found(0.0, |step| 1.0 / step), None);
    }

    #[test]
    fn a_level_validation_is_found_unless_the_training_learns() {
        let course = |gain: f64| {
            let course = curve(20, move |step, seen| {
                seen.loss = 9.0 / step as f64;
                seen.metric = Some(0.1 + gain * step as f64);
            });
            course.with_validation(|_| 2.303, |_| Some(0.1)).run(MetricAtChance)
        };
        assert!(course(0.002).is_some_and(|found| found.message.contains("validation accuracy")));
        assert_eq!(course(0.04), None);
    }

    #[test]
    fn an_accuracy_that_moves_is_left_alone() {
        let course = curve(20, |step, seen| {
            seen.loss = 2.3;
            seen.metric = Some(0.1 + 0.01 * step as f64);
        });
        assert_eq!(course.run(MetricAtChance), None);
    }
}
