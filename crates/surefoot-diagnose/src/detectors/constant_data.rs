//! Constant data.

use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;
use crate::observation::Observation;

/// All labels, or many input features, are the same in every sample.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConstantData;

impl Detector for ConstantData {
    fn problem(&self) -> Problem {
        Problem::CONSTANT_DATA
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Model]
    }

    fn observe(&mut self, seen: &Observation, context: &Context<'_>) -> Option<Finding> {
        let finding = |message: String| Finding::new(self.problem(), seen.step, message).warning();
        let constant_targets = context.facts.target_range.is_some_and(|[low, high]| low == high);
        if context.facts.chance == Some(1.0) || constant_targets {
            let message = "All targets are the same: there is nothing to learn.".to_owned();
            return Some(finding(message));
        }
        let share = context.facts.constant_inputs?;
        // Border pixels of images are constant, so only a large share is reported.
        (share >= 0.5).then(|| {
            let message = format!(
                "{:.0}% of the input features are the same in every sample.",
                100.0 * share
            );
            finding(message).with(Measure::ConstantFeatures, share, 0.5)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, facts};
    use super::*;
    use crate::facts::Facts;

    #[test]
    fn constant_targets_and_features_are_found() {
        let labels = Facts { chance: Some(1.0), ..facts() };
        let features = Facts { constant_inputs: Some(0.75), ..facts() };
        for facts in [labels, features] {
            assert!(Course::new(facts).run(ConstantData).is_some());
        }
        assert_eq!(Course::new(facts()).run(ConstantData), None);
    }
}
