//! Passive loss changes.

use super::learning;
use super::limits::Limits;
use super::stage::Stage;
use crate::curve::mean;
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;

/// The loss hardly moves: the steps have no effect.
///
/// BTTackler: the mean of the absolute changes of the training loss from epoch to epoch, by the first
/// loss, is below 0.1%. Early stage.
///
/// Changed:
/// - Changes are taken from one fiftieth of the training to the next. By the epoch, a run of a thousand
///   healthy epochs would be passive and one of three never.
/// - The run must not learn in any way: see the [module](super).
/// - Where it is seen how far steps move the weights, they have to be small. A run can wait at
///   chance with sound steps and then learn all at once.
#[derive(Clone, Copy, Debug)]
pub struct Plc {
    limits: Limits,
}

/// Number of intervals that the training is divided into.
const INTERVALS: u64 = 50;
/// A step that moves the weights by more than this part of them has an effect.
const SOUND_UPDATE: f64 = 1e-4;

impl Plc {
    /// The indicator with these limits.
    pub fn new(limits: &Limits) -> Plc {
        Plc { limits: *limits }
    }
}

impl Detector for Plc {
    fn problem(&self) -> Problem {
        Problem::PLC
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Loss]
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        let limits = &self.limits;
        let curve = context.curve;
        if !Stage::Early.is_now(context, limits)
            || !limits.published && curve.update_ratio().is_some_and(|ratio| ratio > SOUND_UPDATE)
            || learning::learns(context, limits)
        {
            return None;
        }
        let total = context.facts.total_steps()? / curve.block_steps();
        let intervals = match context.facts.epochs {
            Some(epochs) if limits.published => epochs.max(1),
            _ => INTERVALS,
        };
        let stretch = (total / intervals).max(1) as usize;
        let losses: Vec<f64> = curve
            .blocks()
            .chunks_exact(stretch)
            .filter_map(|blocks| mean(blocks.iter().map(|block| Some(block.loss))))
            .collect();
        let first = losses.first()?.abs();
        let changes = losses.windows(2).map(|pair| Some((pair[1] - pair[0]).abs()));
        let change = mean(changes)? / first;
        // Excludes a first loss of zero and NaN.
        let passive = change.is_finite() && change < limits.plc;
        passive.then(|| {
            Finding::new(
                self.problem(),
                context.step(),
                format!(
                    "The loss moves by {} of what it was in the beginning from one fiftieth of the \
                     training to the next: the steps have no effect.",
                    crate::number::rough(change)
                ),
            )
            .since(1)
            .with(Measure::LossChange, change, limits.plc)
            .with_skill(context)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detectors::fixture::{Course, facts};

    fn plc() -> Plc {
        Plc::new(&Limits::default())
    }

    fn course(update: f64, skill: impl Fn(f64) -> f64 + 'static) -> Course {
        let mut course = Course::new(facts()).skill(skill);
        course.change(move |_, seen| {
            for layer in &mut seen.layers {
                layer.update_ratio = Some(update);
            }
        });
        course
    }

    #[test]
    fn a_loss_that_stays_where_it_was_is_found_in_the_early_stage() {
        let found = course(1e-6, |p| 1e-4 * (500.0 * p).sin()).run(plc()).unwrap();
        assert!((30..100).contains(&found.step), "{}", found.step);
    }

    #[test]
    fn a_loss_that_falls_slowly_but_surely_goes_on() {
        assert_eq!(course(1e-6, |p| 0.2 * p).run(plc()), None);
    }

    #[test]
    fn the_published_rule_compares_epochs() {
        let found = course(1e-3, |_| 0.0).run(Plc::new(&Limits::bttackler())).unwrap();
        assert!((40..60).contains(&found.step), "after two epochs of twenty steps: {}", found.step);
    }

    #[test]
    fn waiting_with_sound_steps_is_no_reason() {
        assert_eq!(course(1e-3, |_| 0.0).run(plc()), None);
    }

    #[test]
    fn only_losses_are_enough_and_one_of_zero_is_none() {
        let mut course = Course::new(facts()).skill(|_| 0.0);
        course.change(|_, seen| seen.layers.clear());
        assert!(course.run(plc()).is_some());
        course.change(|_, seen| (seen.loss, seen.metric) = (0.0, None));
        assert_eq!(course.run(plc()), None);
    }
}
