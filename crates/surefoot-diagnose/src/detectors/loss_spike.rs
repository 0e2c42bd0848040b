//! Loss spike.

use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;
use crate::observation::Observation;

/// The loss of a step is far above those before it: six standard deviations above the mean of the
/// last 128, as OLMo-core and Levanter have it, twice that mean, and half of what the run began with:
/// near zero the losses of batches differ many times over. Losses that are no numbers are left out of
/// mean and deviation, so one of them does not blind it to all that follows.
#[derive(Clone, Debug, Default)]
pub struct LossSpike {
    recent: std::collections::VecDeque<f64>,
    sum: f64,
    squares: f64,
    /// Mean of the first losses.
    start: Option<f64>,
}

/// Number of recent losses that a spike is compared with.
const WINDOW: usize = 128;
/// Minimal number of recent losses.
const LEAST: usize = 32;

impl Detector for LossSpike {
    fn problem(&self) -> Problem {
        Problem::LOSS_SPIKE
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Loss]
    }

    fn observe(&mut self, seen: &Observation, context: &Context<'_>) -> Option<Finding> {
        let loss = seen.loss;
        if !loss.is_finite() {
            return None;
        }
        let count = self.recent.len() as f64;
        let mean = self.sum / count;
        let deviation = (self.squares / count - mean * mean).max(0.0).sqrt();
        if self.recent.len() == LEAST {
            self.start.get_or_insert(mean);
        }
        let limit = (mean + context.thresholds.spike * deviation)
            .max(2.0 * mean)
            .max(0.5 * self.start.unwrap_or(f64::INFINITY));
        if self.recent.len() >= LEAST && deviation > 0.0 && mean > 0.0 && loss > limit {
            return Some(
                Finding::new(
                    self.problem(),
                    seen.step,
                    format!(
                        "The loss jumped to {} from about {}.",
                        crate::number::rough(loss),
                        crate::number::rough(mean)
                    ),
                )
                .warning()
                .with(Measure::Loss, loss, limit)
                .with(Measure::MeanLossBefore, mean, None),
            );
        }
        if self.recent.len() == WINDOW
            && let Some(oldest) = self.recent.pop_front()
        {
            self.sum -= oldest;
            self.squares -= oldest * oldest;
        }
        self.recent.push_back(loss);
        self.sum += loss;
        self.squares += loss * loss;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, facts};
    use super::*;

    fn course(at: u64, loss: f64) -> Course {
        let mut course = Course::new(facts()).skill(|_| 0.5);
        course.change(move |step, seen| {
            seen.loss += 0.01 * (step % 7) as f64;
            if step == 50 {
                seen.loss = f64::NAN;
            }
            if step == at {
                seen.loss = loss;
            }
        });
        course
    }

    #[test]
    fn a_jump_is_found_even_after_a_nan() {
        assert_eq!(course(100, 3.0).run(LossSpike::default()).map(|f| f.step), Some(100));
    }

    #[test]
    fn small_ones_and_early_ones_are_not() {
        assert_eq!(course(100, 0.5).run(LossSpike::default()), None);
        assert_eq!(course(10, 3.0).run(LossSpike::default()), None);
    }
}
