//! A learning rate that does not fit its warm-up.

use super::conditions;
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;
use crate::observation::Observation;

/// The learning rate is too high for its warm-up, or the warm-up too long for the training.
///
/// - The rate has its full value from the first step on, the steps change the weights by 5% or more,
///   and in the first tenth of the training the loss rises to one and a half times its start.
/// - The rate still rises after 60% of the planned steps. In a one-cycle schedule it falls after 30%.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImproperWarmup {
    /// First learning rate.
    first_rate: Option<f64>,
    last_rate: f64,
    /// Last step at which the rate rose; 0 if it never did.
    last_rise: u64,
    has_fallen: bool,
}

/// Loss relative to the first ones above which it is too high.
const RISEN: f64 = 1.5;
/// Update ratio from which on a step can have raised the loss.
const LARGE_UPDATE: f64 = 0.05;
/// Share of the training in which a missing warm-up is reported.
const EARLY: f64 = 0.1;
/// Share of the training after which a rate should no longer rise.
const LATE: f64 = 0.6;

impl Detector for ImproperWarmup {
    fn problem(&self) -> Problem {
        Problem::IMPROPER_WARMUP
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Loss]
    }

    fn observe(&mut self, seen: &Observation, _: &Context<'_>) -> Option<Finding> {
        let rate = seen.learning_rate.filter(|rate| rate.is_finite())?;
        if self.first_rate.is_none() {
            self.first_rate = Some(rate);
        } else if rate > self.last_rate {
            self.last_rise = seen.step;
        } else if rate < self.last_rate {
            self.has_fallen = true;
        }
        self.last_rate = rate;
        None
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        let first = self.first_rate?;
        let progress = context.curve.progress(context.facts);
        let still_rises = self.last_rise + context.curve.block_steps() >= context.step();
        if progress.is_some_and(|progress| progress >= LATE)
            && !self.has_fallen
            && still_rises
            && self.last_rate >= 2.0 * first
        {
            let share = 100.0 * progress?;
            let message = format!(
                "The learning rate still rises after {share:.0}% of the steps: the warm-up is too \
                 long for this training."
            );
            return Some(
                Finding::new(self.problem(), context.step(), message).warning().since(1).with(
                    Measure::LearningRate,
                    self.last_rate,
                    None,
                ),
            );
        }
        let needed = context.thresholds.alpha + 1;
        let start = context.curve.start_loss()?;
        let recent = context.curve.recent(needed);
        let update = conditions::largest_update(context)?;
        let has_risen = start > 0.0
            && recent.len() == needed
            && recent.iter().all(|block| block.loss > RISEN * start);
        if context.has_run_for(EARLY)
            || self.last_rise > 0
            || update < LARGE_UPDATE
            || !has_risen
            || conditions::has_plain_cause(context)
        {
            return None;
        }
        let loss = recent.last()?.loss;
        let message = format!(
            "The loss has risen from {} to {} in the first steps, at the full learning rate of {first}: \
             start with a lower rate or a warm-up.",
            crate::number::rough(start),
            crate::number::rough(loss)
        );
        Some(
            Finding::new(self.problem(), context.step(), message)
                .warning()
                .since(1)
                .with(Measure::Loss, loss, RISEN * start)
                .with(Measure::LargestUpdateRatio, update, LARGE_UPDATE),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, facts};
    use super::*;

    fn found(
        rate: impl Fn(f64) -> f64 + 'static,
        loss: impl Fn(f64) -> f64 + 'static,
    ) -> Option<Finding> {
        let mut course = Course::new(facts()).skill(|_| 0.5);
        course.change(move |step, seen| {
            let progress = step as f64 / 200.0;
            (seen.learning_rate, seen.loss) = (Some(rate(progress)), loss(progress));
            seen.layers.iter_mut().for_each(|layer| layer.update_ratio = Some(0.2));
        });
        course.run(ImproperWarmup::default())
    }

    #[test]
    fn a_warm_up_that_never_ends_is_found() {
        let finding = found(|p| 1e-3 * p, |_| 0.5).unwrap();
        assert!(finding.message.contains("still rises"), "{}", finding.message);
        assert_eq!(found(|p| 1e-3 * if p < 0.3 { p } else { 1.0 - p }, |_| 0.5), None);
        assert_eq!(found(|p| 1e-3 * p.min(0.1), |_| 0.5), None);
    }

    #[test]
    fn a_loss_that_rises_without_a_warm_up_is_found() {
        let rises = |p: f64| if p < 0.02 { 1.0 } else { 4.0 - p };
        let finding = found(|_| 1e-2, rises).unwrap();
        assert!(finding.message.contains("warm-up"), "{}", finding.message);
        assert_eq!(found(|p| 1e-2 * p.min(0.2), rises), None);
        assert_eq!(found(|_| 1e-2, |p| 1.0 - 0.5 * p), None);
    }
}
