//! Input scale.

use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::layer::LayerKind;
use crate::measure::Measure;

/// The input is large. That is worth knowing even where the run learns all the same; where it does
/// not, it is abnormal data.
#[derive(Clone, Copy, Debug, Default)]
pub struct InputScale;

impl Detector for InputScale {
    fn problem(&self) -> Problem {
        Problem::INPUT_SCALE
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Outputs]
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        let first = context.facts.layers.first();
        if first.is_some_and(|layer| layer.kind == LayerKind::Embedding) {
            return None;
        }
        let size = context.curve.initial().input?;
        let limit = context.thresholds.omega;
        (size >= limit).then(|| {
            Finding::new(
                self.problem(),
                context.step(),
                format!(
                    "The inputs are about {} in size; training is easier with inputs about 1.",
                    crate::number::rough(size)
                ),
            )
            .warning()
            .since(1)
            .with(Measure::InputSize, size, limit)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, facts};
    use super::*;

    #[test]
    fn large_inputs_are_remarked_on_even_where_they_are_learned_from() {
        let course = Course::new(facts()).input(0.0, 60.0).skill(|p| 20.0 * p);
        assert!(course.run(InputScale).is_some());
        let course = Course::new(facts()).skill(|p| 20.0 * p);
        assert_eq!(course.run(InputScale), None);
    }
}
