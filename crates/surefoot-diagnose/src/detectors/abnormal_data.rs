//! Abnormal data.

use super::conditions;
use crate::advice::Advice;
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::layer::LayerKind;
use crate::measure::Measure;
use crate::observation::Observation;

/// The training data are not prepared: values are too large, NaN or infinite.
///
/// AutoTrainer: some layer's output has an L∞ norm of at least ω = 10, or is NaN, and
/// `max(Acc) ≤ Θ`.
///
/// Changed: the *input* is looked at, not the output of any layer. Outputs beyond 10 are common in
/// sound networks (a linear output that predicts house prices, any layer before a normalisation),
/// and where they come from bad data the data show it themselves. Its size is the root mean square
/// over the features with the widest spread, not the largest value: one value of 12 in standardised
/// data is not abnormal.
#[derive(Clone, Copy, Debug, Default)]
pub struct AbnormalData {
    /// First step with a non-finite loss or gradient.
    broken: Option<u64>,
}

/// Returns true if the input is so large that it explains the symptoms.
pub(super) fn is_suspect(context: &Context<'_>) -> bool {
    size(context).is_some_and(|size| size >= context.thresholds.omega)
}

fn size(context: &Context<'_>) -> Option<f64> {
    let seen = context.curve.initial().input;
    let spread = context.facts.input_spread;
    match (seen, spread) {
        // Symbols are numbered, not measured, and padding may have any value.
        _ if has_no_size(context) => None,
        (Some(seen), Some(spread)) => Some(seen.max(spread)),
        (seen, spread) => seen.or(spread),
    }
}

fn has_no_size(context: &Context<'_>) -> bool {
    let first = context.facts.layers.first();
    let kinds = [LayerKind::Embedding, LayerKind::Masking];
    first.is_some_and(|layer| kinds.contains(&layer.kind))
}

impl Detector for AbnormalData {
    fn problem(&self) -> Problem {
        Problem::ABNORMAL_DATA
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Outputs]
    }

    fn start(&mut self, context: &Context<'_>) -> Option<Finding> {
        let count = context.facts.missing_inputs;
        (count > 0).then(|| {
            let values = if count == 1 { "value is" } else { "values are" };
            let message = format!(
                "{count} input {values} NaN, infinite or missing, which spreads to everything \
                 computed from them."
            );
            Finding::new(self.problem(), context.step(), message).certain().with(
                Measure::NonFiniteInputs,
                count as f64,
                0.0,
            )
        })
    }

    fn observe(&mut self, seen: &Observation, context: &Context<'_>) -> Option<Finding> {
        let input = seen.input.as_ref();
        if let Some(input) = input.filter(|input| input.nan + input.inf > 0) {
            let count = (input.nan + input.inf) as f64;
            return Some(
                Finding::new(
                    self.problem(),
                    seen.step,
                    "The input has NaN or infinite values, which spread to everything computed \
                     from them.",
                )
                .certain()
                .with_advice(Advice {
                    pytorch: "x = torch.nan_to_num(x)  # or drop these samples; find them with x.isfinite()"
                        .into(),
                    keras: "x = np.nan_to_num(x)  # or drop these samples; find them with np.isfinite(x)"
                        .into(),
                })
                .with(Measure::NonFiniteInputs, count, 0.0),
            );
        }
        if !seen.loss.is_finite() && self.broken.is_none() {
            self.broken = Some(seen.step);
        }
        (self.broken.is_some() && is_suspect(context)).then(|| finding(context))
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        (is_suspect(context) && conditions::is_behind(context)).then(|| finding(context))
    }
}

fn finding(context: &Context<'_>) -> Finding {
    let size = size(context).unwrap_or(f64::NAN);
    Finding::new(
        Problem::ABNORMAL_DATA,
        context.step(),
        format!(
            "The inputs are about {} in size where a network expects about 1, and the run does \
             not learn.",
            crate::number::rough(size)
        ),
    )
    .since(1)
    .with(Measure::InputSize, size, context.thresholds.omega)
    .with_skill(context)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, facts};
    use super::*;
    use crate::facts::Facts;
    use surefoot_stats::Summary;

    #[test]
    fn missing_values_are_found_before_the_first_step() {
        let facts = Facts { missing_inputs: 12, ..facts() };
        let found = Course::new(facts).skill(|_| 0.9).run(AbnormalData::default()).unwrap();
        assert_eq!((found.step, found.value(&Measure::NonFiniteInputs)), (0, Some(12.0)));
    }

    #[test]
    fn unscaled_inputs_that_are_not_learned_from_are_found() {
        let course = Course::new(facts()).input(200.0, 80.0).skill(|_| 0.0);
        let found = course.run(AbnormalData::default()).unwrap();
        assert_eq!(found.problem, Problem::ABNORMAL_DATA);
        assert!(found.step < 20, "{found:?}");
    }

    #[test]
    fn unscaled_inputs_that_are_learned_from_are_left_alone() {
        let course = Course::new(facts()).input(200.0, 80.0).skill(|p| 40.0 * p);
        assert_eq!(course.run(AbnormalData::default()), None);
    }

    #[test]
    fn an_input_that_is_no_number_is_found_at_once() {
        let nan = Summary { nan: 1, ..Summary::default() };
        let mut course = Course::new(facts()).skill(|_| 0.9);
        course.change(|step, seen| {
            if step == 7 {
                seen.input = Some(nan);
            }
        });
        let found = course.run(AbnormalData::default()).unwrap();
        assert_eq!(found.step, 7);
    }
}
