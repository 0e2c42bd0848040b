//! Shape of a learning curve whose best constant prediction is unknown.
//!
//! Logs seldom contain the loss of a constant prediction, and their first loss is not one: it is an
//! average over an epoch, or that of a model that was trained before. These detectors compare a
//! curve with itself only.

use crate::detector::Context;
use crate::observation::{Evaluation, Split};

/// Smallest number of values that a shape is read from.
pub(super) const LEAST: usize = 5;

/// Multiple of the usual change of a metric above which it is no noise.
const NOISE: f64 = 1.5;

/// Start, end and best of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shape {
    /// First value.
    pub(super) first: f64,
    /// Median of the last tenth.
    pub(super) last: f64,
    /// Lower quartile of the last tenth; the smaller of the last two or three values of a short curve.
    pub(super) last_low: f64,
    /// Lowest median of a tenth.
    pub(super) lowest: f64,
    /// Highest median of a tenth.
    pub(super) highest: f64,
    /// Number of values.
    pub(super) count: usize,
}

impl Shape {
    /// The shape of the finite `values`; `None` if there are fewer than five, or if more than a tenth
    /// or the last is not finite.
    pub(super) fn of(values: &[f64]) -> Option<Shape> {
        let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        let count = finite.len();
        if count < LEAST || 10 * (values.len() - count) > values.len() {
            return None;
        }
        values.last().filter(|last| last.is_finite())?;
        let values = finite;
        let window = (count / 10).max(if count < 12 { 1 } else { 3 });
        let middle = |part: &[f64]| crate::curve::median(part.iter().copied());
        let medians = || values.windows(window).filter_map(middle);
        Some(Shape {
            first: values[0],
            last: middle(&values[count - window..])?,
            last_low: quartile(&values[count - window.max(2)..])?,
            lowest: medians().fold(f64::INFINITY, f64::min),
            highest: medians().fold(f64::NEG_INFINITY, f64::max),
            count,
        })
    }

    /// Decrease from the first value to the last, as a share of the first.
    pub(super) fn decrease(&self) -> f64 {
        1.0 - self.last / self.first
    }
}

/// The lower quartile; the smallest of fewer than five values.
fn quartile(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 4).copied()
}

/// Training losses, block by block, from [`Curve::first_loss`](crate::Curve::first_loss) on.
pub(super) fn losses(context: &Context<'_>) -> Vec<f64> {
    let rest = context.curve.blocks().iter().skip(1).map(|block| block.loss);
    context.curve.first_loss().into_iter().chain(rest).collect()
}

/// Training metrics, block by block.
pub(super) fn metrics(context: &Context<'_>) -> Vec<f64> {
    context.curve.blocks().iter().filter_map(|block| block.metric).collect()
}

/// Evaluations of the validation split.
pub(super) fn validations<'a>(
    context: &Context<'a>,
) -> impl Iterator<Item = &'a Evaluation> + use<'a> {
    context.curve.evaluations().iter().filter(|seen| seen.split == Split::Validation)
}

/// Losses of the validation split.
pub(super) fn validation_losses(context: &Context<'_>) -> Vec<f64> {
    validations(context).map(|seen| seen.loss).collect()
}

/// Metrics of the validation split.
pub(super) fn validation_metrics(context: &Context<'_>) -> Vec<f64> {
    validations(context).filter_map(|seen| seen.metric).collect()
}

/// Returns true if the metric is an accuracy.
pub(super) fn has_accuracy(context: &Context<'_>) -> bool {
    context.facts.metric.as_deref() == Some("accuracy")
}

/// Returns true if the metric of either split gained this share of what was missing to a perfect one,
/// and more than it usually changes from one value to the next, or is an accuracy above 90%.
pub(super) fn metric_has_gained(context: &Context<'_>, share: f64) -> bool {
    [metrics(context), validation_metrics(context)].iter().any(|values| {
        Shape::of(values).is_some_and(|shape| {
            let gain = shape.last - shape.first;
            let changes = values.windows(2).map(|pair| (pair[1] - pair[0]).abs());
            let usual = changes.sum::<f64>() / (values.len() - 1) as f64;
            gain >= share * (1.0 - shape.first).max(0.05) && gain >= NOISE * usual
                || has_accuracy(context) && shape.last >= 0.9
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_last_value_does_not_make_the_end() {
        let mut values = vec![10.0; 30];
        values[29] = 1.0;
        assert_eq!(Shape::of(&values).map(|shape| shape.last), Some(10.0));
    }

    #[test]
    fn a_dip_does_not_make_the_end_low() {
        let mut values = vec![10.0; 60];
        values[57] = 1.0;
        assert_eq!(Shape::of(&values).map(|shape| shape.last_low), Some(10.0));
        assert_eq!(Shape::of(&[9.0, 9.0, 9.0, 1.0, 9.0]).map(|shape| shape.last_low), Some(1.0));
    }

    #[test]
    fn the_noise_of_a_batch_is_no_gain() {
        let gained = |metric: fn(u64) -> f64| {
            let course = super::super::fixture::curve(40, |step, seen| {
                seen.loss = 0.69;
                seen.metric = Some(metric(step));
            });
            course.run(super::super::SlowConvergence).is_none()
        };
        assert!(!gained(|step| 0.66 + 0.12 * (((7 * step) % 11) as f64 / 11.0 - 0.5)));
        assert!(gained(|step| 0.5 + 0.01 * step as f64));
    }

    #[test]
    fn four_values_have_no_shape() {
        assert_eq!(Shape::of(&[1.0; 4]), None);
        assert_eq!(Shape::of(&[1.0, 1.0, f64::NAN, 1.0, 1.0]), None);
    }

    #[test]
    fn a_single_nan_does_not_hide_the_shape() {
        let mut values = vec![2.0; 20];
        values[7] = f64::NAN;
        assert_eq!(Shape::of(&values).map(|shape| shape.count), Some(19));
        values[19] = f64::NAN;
        assert_eq!(Shape::of(&values), None);
    }
}
