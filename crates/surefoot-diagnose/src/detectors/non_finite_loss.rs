//! NaN or infinite loss.

use super::{conditions, shape};
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;
use crate::observation::{Evaluation, Observation, Split};

/// The loss of a step or of an evaluation is NaN or infinite. Names the first layer with such an
/// output, if outputs were observed at that step. If it follows from the data, only
/// [`AbnormalData`](super::AbnormalData) is found.
///
/// Some programs log a loss of NaN as 0. In a curve without a known baseline, a loss that is exactly 0
/// from the start, or from one value to the next without having fallen before, is such a loss.
#[derive(Clone, Copy, Debug, Default)]
pub struct NonFiniteLoss;

impl Detector for NonFiniteLoss {
    fn problem(&self) -> Problem {
        Problem::NON_FINITE_LOSS
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Loss]
    }

    fn observe(&mut self, seen: &Observation, context: &Context<'_>) -> Option<Finding> {
        if seen.loss.is_finite() || conditions::has_broken_input(context) {
            return None;
        }
        let broken = |output: &crate::Summary| output.nan + output.inf > 0;
        let input = seen.input.as_ref().is_some_and(broken);
        let layers = context.facts.layers.iter().zip(&seen.layers);
        let first = layers
            .filter(|(_, layer)| layer.output.as_ref().is_some_and(broken))
            .map(|(info, _)| info.name.clone())
            .next();
        let message = match &first {
            _ if input => "The loss is NaN or infinite, and so are some of the inputs.".to_owned(),
            Some(name) => {
                format!("The loss is NaN or infinite; the first such output is that of `{name}`.")
            }
            None => "The loss is NaN or infinite.".to_owned(),
        };
        let finding = Finding::new(self.problem(), seen.step, message)
            .certain()
            .within(first.into_iter().collect())
            .with(Measure::Loss, seen.loss, None)
            .with_known(Measure::LearningRate, seen.learning_rate, None)
            .with_known(Measure::LargestUpdateRatio, conditions::largest_update(context), None)
            .with_known(Measure::InitialGain, conditions::gain(context), None);
        Some(finding)
    }

    fn evaluate(&mut self, evaluation: &Evaluation, context: &Context<'_>) -> Option<Finding> {
        if evaluation.loss.is_finite() || conditions::has_broken_input(context) {
            return None;
        }
        let message = format!("The {} loss is NaN or infinite.", evaluation.split);
        let measure = match evaluation.split {
            Split::Validation => Measure::ValidationLoss,
            Split::Train | Split::Test => Measure::Loss,
        };
        Some(Finding::new(self.problem(), context.step(), message).certain().with(
            measure,
            evaluation.loss,
            None,
        ))
    }

    fn finish(&mut self, context: &Context<'_>) -> Option<Finding> {
        if context.facts.has_baseline() { None } else { self.zeros(context) }
    }
}

/// Number of zeros at the end that are no accident.
const ZEROS: usize = 3;
/// Loss relative to the first from which on nothing was learned that would explain a loss of 0.
const NOT_FALLEN: f64 = 0.2;
/// Share of the missing metric that a sound run gains.
const GAINED: f64 = 0.2;

impl NonFiniteLoss {
    /// Finds a loss that is 0 where it cannot be.
    fn zeros(self, context: &Context<'_>) -> Option<Finding> {
        let losses = shape::losses(context);
        let zeros = losses.iter().rev().take_while(|loss| **loss == 0.0).count();
        let before = &losses[..losses.len() - zeros];
        let fallen = before.last().zip(before.first()).is_some_and(|(l, f)| *l < NOT_FALLEN * f);
        if zeros < ZEROS || fallen || shape::metric_has_gained(context, GAINED) {
            return None;
        }
        let message = match before.last() {
            Some(last) => format!(
                "The loss is {} and exactly 0 from then on: some programs log NaN as 0.",
                crate::number::rough(*last)
            ),
            None => "The loss is always exactly 0: some programs log NaN as 0.".to_owned(),
        };
        let finding = Finding::new(self.problem(), context.step(), message);
        Some(finding.since(1).with(Measure::Loss, 0.0, None))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, facts};
    use super::*;
    use crate::diagnosis::Diagnosis;
    use crate::finding::{Confidence, Severity};

    #[test]
    fn a_nan_loss_is_a_certain_problem_at_its_step() {
        let mut course = Course::new(facts()).skill(|_| 0.5);
        course.change(|step, seen| {
            if step >= 30 {
                seen.loss = f64::NAN;
            }
        });
        let found = course.run(NonFiniteLoss).unwrap();
        assert_eq!((found.step, found.severity), (30, Severity::Problem));
        assert_eq!(found.confidence, Confidence::Certain);
    }

    #[test]
    fn a_loss_that_jumps_to_zero_is_found() {
        let found = |loss: fn(u64) -> f64| {
            super::super::fixture::curve(9, |step, seen| seen.loss = loss(step)).run(NonFiniteLoss)
        };
        let jumps = found(|step| if step < 3 { 1.9 } else { 0.0 });
        assert!(jumps.is_some_and(|found| found.message.contains("is 1.9 and exactly 0")));
        assert!(found(|_| 0.0).is_some_and(|found| found.message.contains("always")));
        let falls = |step: u64| if step < 7 { 0.1_f64.powi(step as i32) } else { 0.0 };
        assert_eq!(found(falls), None);
        assert_eq!(found(|step| if step == 8 { 0.0 } else { 1.0 }), None);
    }

    #[test]
    fn a_nan_validation_loss_is_found() {
        let mut diagnosis = Diagnosis::builder().detectors(vec![Box::new(NonFiniteLoss)]).build();
        diagnosis.observe(&Observation::new(1, 0.5));
        let found = diagnosis.evaluate(&Evaluation {
            epoch: 1,
            step: 1,
            split: Split::Validation,
            loss: f64::NAN,
            metric: None,
        });
        assert_eq!(found[0].message, "The validation loss is NaN or infinite.");
    }
}
