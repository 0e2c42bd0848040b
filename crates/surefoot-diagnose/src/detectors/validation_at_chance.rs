//! Validation accuracy that does not follow the training.

use super::shape::{self, Shape};
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;
use crate::number::rough;

/// The training accuracy is nearly perfect, and the validation accuracy never rose: the splits differ,
/// or are processed differently.
///
/// For curves without a known baseline, such as logs.
#[derive(Clone, Copy, Debug, Default)]
pub struct ValidationAtChance;

/// Training accuracy that is nearly perfect.
const PERFECT: f64 = 0.9;
/// Gain of the validation accuracy since its start that is no gain.
const GAIN: f64 = 0.1;
/// Distance above the first training accuracy that the validation accuracy never reaches. A model that
/// over-fits had learned something for both before.
const NEVER_ABOVE: f64 = 0.05;
/// Distance of the two accuracies that is too large.
const GAP: f64 = 0.35;

impl Detector for ValidationAtChance {
    fn problem(&self) -> Problem {
        Problem::VALIDATION_AT_CHANCE
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Metric, Quantity::Validation]
    }

    fn finish(&mut self, context: &Context<'_>) -> Option<Finding> {
        if context.facts.has_baseline() || !shape::has_accuracy(context) {
            return None;
        }
        let training = Shape::of(&shape::metrics(context))?;
        let validation = Shape::of(&shape::validation_metrics(context))?;
        let loss = Shape::of(&shape::validation_losses(context));
        if training.last < PERFECT
            || validation.highest - validation.first > GAIN
            || validation.highest > training.first + NEVER_ABOVE
            || training.last - validation.last < GAP
            || loss.is_some_and(|loss| loss.last < loss.first)
        {
            return None;
        }
        let message = format!(
            "The training accuracy reaches {}%, and the validation accuracy stays at {}%: the \
             model does not see comparable data in both.",
            rough(100.0 * training.last),
            rough(100.0 * validation.last)
        );
        let limit = training.last - GAP;
        Some(
            Finding::new(self.problem(), context.step(), message)
                .since(1)
                .with(Measure::ValidationMetric, validation.last, limit)
                .with(Measure::Metric, training.last, None),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::curve;
    use super::*;

    fn found(validation: fn(u64) -> Option<f64>) -> Option<Finding> {
        let course = curve(20, |step, seen| {
            seen.loss = 1.0 / step as f64;
            seen.metric = Some((0.5 + 0.1 * step as f64).min(0.99));
        });
        course.with_validation(|step| 0.7 + 0.1 * step as f64, validation).run(ValidationAtChance)
    }

    #[test]
    fn a_validation_accuracy_at_chance_beside_a_perfect_one_is_found() {
        assert!(found(|step| Some(if step % 2 == 0 { 0.5 } else { 0.52 })).is_some());
    }

    #[test]
    fn over_fitting_after_learning_is_not() {
        assert_eq!(found(|step| Some((0.3 + 0.05 * step as f64).min(0.55))), None);
        assert_eq!(found(|_| None), None);
    }
}
