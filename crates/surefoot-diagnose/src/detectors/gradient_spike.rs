//! Gradient spike.

use super::running_scale::RunningScale;
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;
use crate::observation::Observation;

/// The norm of the whole gradient jumps far above those before it and stays there.
///
/// It is compared with the median and the median absolute deviation of the last 128 observed norms, as
/// the loss is for a loss spike. A norm is high if it is also ten times the median and ten times that of
/// the first observations: norms of batches that are nearly fitted differ by orders of magnitude, but
/// stay below those of the untrained model. The loss has to be high too: if it falls, the gradient
/// grows because the model has left a plateau. Three high norms in a row are a spike.
#[derive(Clone, Debug, Default)]
pub struct GradientSpike {
    recent: RunningScale,
    losses: RunningScale,
    /// Median of the first norms.
    start: Option<f64>,
    /// Lowest of the high norms in a row, and their number.
    high: (f64, usize),
    since: u64,
}

/// Minimal number of recent norms.
const LEAST: usize = 16;
/// Number of high norms in a row.
const LASTING: usize = 3;
/// Rise of the loss above its median, relative to the median, from which on it is high.
const HIGH_LOSS: f64 = 0.5;
/// Multiple of the usual and of the first norms above which a norm is high.
const LARGE: f64 = 10.0;

impl Detector for GradientSpike {
    fn problem(&self) -> Problem {
        Problem::GRADIENT_SPIKE
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Gradients]
    }

    fn observe(&mut self, seen: &Observation, context: &Context<'_>) -> Option<Finding> {
        let norm = norm(seen).filter(|norm| norm.is_finite())?;
        let median = self.recent.median();
        if self.recent.len() == LEAST {
            self.start.get_or_insert(median);
        }
        let usual_loss = self.losses.median();
        self.losses.push(seen.loss);
        let least = self.start.map_or(f64::INFINITY, |start| LARGE * start.max(median));
        let is_usual = norm <= least
            || norm <= median + context.thresholds.spike * self.recent.deviation()
            || seen.loss <= usual_loss + HIGH_LOSS * usual_loss.abs();
        if is_usual {
            self.high = (f64::INFINITY, 0);
            self.recent.push(norm);
            return None;
        }
        if self.high.1 == 0 {
            self.since = seen.step;
        }
        self.high = (self.high.0.min(norm), self.high.1 + 1);
        if self.high.1 < LASTING {
            return None;
        }
        let message = format!(
            "The norm of the gradient jumped from about {} to {} or more.",
            crate::number::rough(median),
            crate::number::rough(self.high.0)
        );
        Some(Finding::new(self.problem(), seen.step, message).warning().since(self.since).with(
            Measure::GradientNorm,
            self.high.0,
            least,
        ))
    }
}

/// Norm of the gradient of all layers, if it was observed.
fn norm(seen: &Observation) -> Option<f64> {
    if seen.gradient_norm.is_some() {
        return seen.gradient_norm;
    }
    let norms = seen.layers.iter().filter_map(|layer| layer.gradient.as_ref());
    norms.map(|gradient| gradient.l2 * gradient.l2).reduce(|a, b| a + b).map(f64::sqrt)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, facts, gradient};
    use super::*;

    /// The finding in a run whose loss rises with the norm.
    fn found(norm: impl Fn(u64) -> f64 + 'static) -> Option<Finding> {
        let mut course = Course::new(facts()).skill(|_| 0.5);
        course.change(move |step, seen| {
            seen.loss += 0.1 * norm(step);
            seen.layers[0].gradient = Some(gradient(norm(step)));
        });
        course.run(GradientSpike::default())
    }

    #[test]
    fn a_jump_that_lasts_is_found() {
        let spike = found(|step| if (90..95).contains(&step) { 40.0 } else { 0.5 }).unwrap();
        assert_eq!((spike.since, spike.step), (90, 92));
    }

    #[test]
    fn the_end_of_a_plateau_is_not() {
        let mut course = Course::new(facts()).skill(|p| p);
        course.change(|step, seen| {
            seen.layers[0].gradient = Some(gradient(if step < 90 { 0.01 } else { 40.0 }));
        });
        assert_eq!(course.run(GradientSpike::default()), None);
    }

    #[test]
    fn hard_batches_and_a_fall_from_a_high_start_are_not() {
        assert_eq!(found(|step| if step % 9 == 0 { 40.0 } else { 0.5 }), None);
        assert_eq!(found(|step| if step > 20 && step % 50 > 5 { 1e-3 } else { 1.0 }), None);
    }
}
