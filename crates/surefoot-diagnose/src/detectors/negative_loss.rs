//! Negative cross-entropy.

use super::shape;
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;
use crate::observation::Observation;

/// The loss of a classification is negative, which no cross-entropy is unless targets lie outside of 0
/// to 1.
///
/// A run counts as a classification if it has an accuracy or its loss is called a cross-entropy. Other
/// losses, such as those of policies and likelihoods, may be negative; but one that started positive and
/// ends at ten times its negative has no lower bound.
#[derive(Clone, Copy, Debug, Default)]
pub struct NegativeLoss;

/// Loss below which rounding is no explanation.
const LIMIT: f64 = -1e-3;
/// Multiple of the first loss that is far below zero.
const UNBOUNDED: f64 = 10.0;

impl Detector for NegativeLoss {
    fn problem(&self) -> Problem {
        Problem::NEGATIVE_LOSS
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Loss]
    }

    fn observe(&mut self, seen: &Observation, context: &Context<'_>) -> Option<Finding> {
        let loss = context.facts.loss.as_deref();
        let classification = match loss {
            Some(loss) => loss.contains("crossentropy"),
            None => shape::has_accuracy(context),
        };
        (classification && seen.loss < LIMIT).then(|| {
            let message = "The cross-entropy is negative: targets lie outside of 0 to 1, such as \
                           class numbers given to a binary cross-entropy.";
            Finding::new(self.problem(), seen.step, message).with(Measure::Loss, seen.loss, 0.0)
        })
    }

    fn finish(&mut self, context: &Context<'_>) -> Option<Finding> {
        let loss = shape::Shape::of(&shape::losses(context))?;
        let limit = -UNBOUNDED * loss.first.max(1.0);
        (!context.facts.has_baseline() && loss.first > 0.0 && loss.last <= limit).then(|| {
            let message = format!(
                "The loss falls without a bound, to {}: check that targets lie between 0 and 1.",
                crate::number::rough(loss.last)
            );
            Finding::new(self.problem(), context.step(), message).since(1).with(
                Measure::Loss,
                loss.last,
                limit,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::curve;
    use super::*;

    #[test]
    fn a_negative_loss_beside_an_accuracy_is_found() {
        let mut course = curve(9, |step, seen| seen.loss = 1.0 - step as f64);
        let found = course.run(NegativeLoss);
        assert_eq!(found.map(|found| found.step), Some(2));
        course.facts_mut().metric = None;
        assert_eq!(course.run(NegativeLoss), None);
    }

    #[test]
    fn a_loss_without_a_bound_is_found_at_the_end() {
        let mut course = curve(20, |step, seen| seen.loss = 2.0 - (step * step) as f64);
        course.facts_mut().metric = None;
        assert!(course.run(NegativeLoss).is_some_and(|found| found.message.contains("bound")));
    }
}
