//! Saturated activations.

use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;

/// Nearly all outputs of a hidden layer with a bounded activation are at its bounds, where it has no
/// slope, for several blocks. The output layer is left out: a sure classifier is saturated there.
#[derive(Clone, Copy, Debug, Default)]
pub struct SaturatedActivation;

impl Detector for SaturatedActivation {
    fn problem(&self) -> Problem {
        Problem::SATURATED_ACTIVATION
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Model, Quantity::Outputs]
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        let needed = context.thresholds.alpha + 1;
        if context.curve.layers().len() < needed {
            return None;
        }
        let limit = context.thresholds.saturated;
        let hidden = context.facts.layers.len().saturating_sub(1);
        let share = |i: usize| {
            let shares = context.curve.layers().rev().take(needed);
            shares.map(|layers| layers[i].saturated).reduce(|a, b| Some(a?.min(b?)))?
        };
        let saturated: Vec<(usize, f64)> = (0..hidden)
            .filter_map(|i| Some((i, share(i)?)))
            .filter(|(_, share)| *share >= limit)
            .collect();
        let worst = saturated.iter().map(|(_, share)| *share).reduce(f64::max)?;
        let name = |(i, _): &(usize, f64)| context.facts.layers[*i].name.clone();
        Some(
            Finding::new(
                self.problem(),
                context.step(),
                format!(
                    "{:.0}% of the outputs are at the bounds of their activation, where its \
                     gradient is almost zero.",
                    100.0 * worst
                ),
            )
            .warning()
            .since(context.curve.recent(needed).first()?.first)
            .within(saturated.iter().map(name).collect())
            .with(Measure::SaturatedOutputs, worst, limit),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, facts};
    use super::*;

    #[test]
    fn a_saturated_hidden_layer_is_found_and_a_saturated_output_is_not() {
        let course = |layer: usize| {
            let mut course = Course::new(facts()).skill(|_| 0.5);
            course.change(move |_, seen| seen.layers[layer].saturated = Some(0.97));
            course
        };
        let found = course(1).run(SaturatedActivation).unwrap();
        assert_eq!(found.layers, ["dense_2"]);
        assert_eq!(course(3).run(SaturatedActivation), None);
    }
}
