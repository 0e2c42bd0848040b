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
/// losses, such as those of policies and likelihoods, may be negative.
#[derive(Clone, Copy, Debug, Default)]
pub struct NegativeLoss;

/// Loss below which rounding is no explanation.
const LIMIT: f64 = -1e-3;

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
}
