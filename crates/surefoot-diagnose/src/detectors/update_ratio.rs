//! Update ratio out of range.

use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;

/// The steps move the weights by too much of themselves, for several blocks; too little is slow
/// convergence, and only if the run is not done. A thousandth is usual, up to a tenth is seen in
/// sound runs with small weights.
#[derive(Clone, Copy, Debug, Default)]
pub struct UpdateRatio;

impl Detector for UpdateRatio {
    fn problem(&self) -> Problem {
        Problem::UPDATE_RATIO
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Weights]
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        let limit = context.thresholds.largest_update;
        let needed = context.thresholds.alpha + 1;
        if context.curve.layers().len() < needed {
            return None;
        }
        let mut least = f64::INFINITY;
        for layers in context.curve.layers().rev().take(needed) {
            let ratios = layers.iter().filter_map(|layer| layer.update_ratio);
            least = least.min(crate::curve::median(ratios)?);
        }
        if least < limit {
            return None;
        }
        Some(
            Finding::new(
                self.problem(),
                context.step(),
                format!(
                    "Each step replaces {:.0}% of the weights: the learning rate is too high.",
                    100.0 * least.min(1.0)
                ),
            )
            .warning()
            .since(context.curve.recent(needed).first()?.first)
            .with(Measure::UpdateRatio, least, limit),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, facts};
    use super::*;

    #[test]
    fn steps_that_replace_the_weights_are_found() {
        let course = |ratio: f64| {
            let mut course = Course::new(facts()).skill(|_| 0.5);
            course.change(move |_, seen| {
                seen.layers.iter_mut().for_each(|l| l.update_ratio = Some(ratio));
            });
            course
        };
        assert!(course(0.5).run(UpdateRatio).is_some());
        assert_eq!(course(0.05).run(UpdateRatio), None);
    }
}
