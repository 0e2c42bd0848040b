//! Loss spike.

use super::running_scale::RunningScale;
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;
use crate::observation::Observation;

/// The loss jumps far above those before it and stays there for several steps.
///
/// OLMo-core and Levanter compare a loss with the mean and deviation of the last 128. This detector
/// uses their median and median absolute deviation, which neither NaN nor an earlier spike changes.
/// A loss is high if it is six deviations above the median, twice the median, and half of the first
/// losses: near zero, the losses of batches differ by large factors. Three high losses in a row are
/// a spike. A single one is a hard batch: after a bad step, the weights take some steps to recover.
#[derive(Clone, Debug, Default)]
pub struct LossSpike {
    recent: RunningScale,
    /// Median of the first losses.
    start: Option<f64>,
    /// High losses in a row.
    high: Vec<f64>,
    since: u64,
}

/// Minimal number of recent losses.
const LEAST: usize = 32;
/// Number of high losses in a row.
const LASTING: usize = 3;

impl Detector for LossSpike {
    fn problem(&self) -> Problem {
        Problem::LOSS_SPIKE
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Loss]
    }

    fn observe(&mut self, seen: &Observation, context: &Context<'_>) -> Option<Finding> {
        let loss = seen.loss;
        let median = self.recent.median();
        if self.recent.len() == LEAST {
            self.start.get_or_insert(median);
        }
        let start = self.start.filter(|start| *start > 0.0 && median > 0.0);
        let least = start.map_or(f64::INFINITY, |start| (2.0 * median).max(0.5 * start));
        // The deviation is computed only for losses that may be high.
        if loss.is_nan()
            || loss <= least
            || loss <= median + context.thresholds.spike * self.recent.deviation()
        {
            self.high.drain(..).for_each(|high| self.recent.push(high));
            self.recent.push(loss);
            return None;
        }
        if self.high.is_empty() {
            self.since = seen.step;
        }
        self.high.push(loss);
        if self.high.len() < LASTING {
            return None;
        }
        let lowest = self.high.iter().copied().fold(f64::INFINITY, f64::min);
        let (about, before) = (crate::number::rough(lowest), crate::number::rough(median));
        let message =
            format!("The loss jumped from about {before} to {about} or more for {LASTING} steps.");
        Some(
            Finding::new(self.problem(), seen.step, message)
                .warning()
                .since(self.since)
                .with(Measure::Loss, lowest, least)
                .with(Measure::MedianLossBefore, median, None),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, facts};
    use super::*;

    fn course(high: &'static [u64], loss: f64) -> Course {
        let mut course = Course::new(facts()).skill(|_| 0.5);
        course.change(move |step, seen| {
            seen.loss += 0.01 * (step % 7) as f64;
            if step == 50 {
                seen.loss = f64::NAN;
            }
            if high.contains(&step) {
                seen.loss = loss;
            }
        });
        course
    }

    #[test]
    fn a_jump_that_lasts_is_found_even_after_a_nan() {
        let found = course(&[100, 101, 102], 3.0).run(LossSpike::default()).unwrap();
        assert_eq!((found.since, found.step), (100, 102));
    }

    #[test]
    fn single_hard_batches_are_not_spikes() {
        assert_eq!(course(&[100, 102, 110, 111, 113], 3.0).run(LossSpike::default()), None);
    }

    #[test]
    fn small_ones_and_early_ones_are_not() {
        assert_eq!(course(&[100, 101, 102], 0.5).run(LossSpike::default()), None);
        assert_eq!(course(&[10, 11, 12], 3.0).run(LossSpike::default()), None);
    }

    #[test]
    fn an_earlier_spike_does_not_hide_a_later_one() {
        let found = course(&[60, 61, 80, 81, 100, 101, 102], 3.0).run(LossSpike::default());
        assert_eq!(found.map(|it| it.since), Some(100));
    }

    #[test]
    fn losses_around_zero_have_no_scale() {
        let mut course = course(&[100, 101, 102], 3.0);
        course.change(|_, seen| seen.loss -= 0.4);
        assert_eq!(course.run(LossSpike::default()), None);
    }
}
