//! Improper number of output units.

use crate::detector::{Context, Detector, Quantity};
use crate::facts::TaskKind;
use crate::finding::{Finding, Problem};
use crate::measure::Measure;

/// The output layer has fewer units than there are classes, so some classes cannot be predicted.
///
/// Two classes need one unit, more classes one unit each. Found before the first step, from the
/// facts alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImproperOutputUnits;

impl Detector for ImproperOutputUnits {
    fn problem(&self) -> Problem {
        Problem::IMPROPER_OUTPUT_UNITS
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Model]
    }

    fn start(&mut self, context: &Context<'_>) -> Option<Finding> {
        let facts = context.facts;
        let output = facts.output_layer()?;
        let (&units, classes) = (output.output_shape.last()?, facts.classes?);
        if facts.task != Some(TaskKind::MultiClass) || units >= classes {
            return None;
        }
        let message = format!(
            "The output layer has {units} unit{} for {classes} classes and cannot represent them. \
             Use {classes} units.",
            if units == 1 { "" } else { "s" }
        );
        Some(
            Finding::new(self.problem(), context.step(), message)
                .certain()
                .within(vec![output.name.clone()])
                .with(Measure::OutputUnits, units as f64, classes as f64),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, facts};
    use super::*;
    use crate::facts::Facts;
    use crate::finding::Confidence;

    fn multi_class(classes: usize) -> Facts {
        Facts { task: Some(TaskKind::MultiClass), classes: Some(classes), ..facts() }
    }

    #[test]
    fn one_unit_for_three_classes_is_found_before_the_first_step() {
        let found = Course::new(multi_class(3)).run(ImproperOutputUnits).unwrap();
        assert_eq!((found.step, found.confidence), (0, Confidence::Certain));
        assert_eq!(found.layers, ["dense_4"]);
    }

    #[test]
    fn one_unit_for_two_classes_or_a_number_is_enough() {
        assert_eq!(Course::new(facts()).run(ImproperOutputUnits), None);
        let regression = Facts { task: Some(TaskKind::Regression), classes: None, ..facts() };
        assert_eq!(Course::new(regression).run(ImproperOutputUnits), None);
    }
}
