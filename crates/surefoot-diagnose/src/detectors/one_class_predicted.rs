//! One class predicted only.

use super::conditions;
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;

/// The model predicts the same class for everything, for a twentieth of the training, and is no
/// better than that.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneClassPredicted;

/// Number of blocks that the symptom has to last.
const LASTING: usize = 10;

impl Detector for OneClassPredicted {
    fn problem(&self) -> Problem {
        Problem::ONE_CLASS_PREDICTED
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Metric, Quantity::Model]
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        let recent = context.curve.recent(LASTING);
        let one = |share: Option<f64>| share.is_some_and(|share| share >= 1.0);
        let lasting = recent.len() == LASTING && recent.iter().all(|b| one(b.top_class_share));
        if !lasting || !conditions::has_learned_nothing(context) {
            return None;
        }
        Some(
            Finding::new(
                self.problem(),
                context.step(),
                "The model predicts the same class for every sample.",
            )
            .warning()
            .since(recent.first()?.first)
            .with(Measure::TopClassShare, 1.0, 1.0)
            .with_skill(context),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, facts};
    use super::*;

    #[test]
    fn one_class_for_everything_is_found() {
        let mut course = Course::new(facts()).skill(|_| 0.0);
        assert_eq!(course.run(OneClassPredicted), None);
        course.change(|_, seen| seen.top_class_share = Some(1.0));
        assert!(course.run(OneClassPredicted).is_some());
    }
}
