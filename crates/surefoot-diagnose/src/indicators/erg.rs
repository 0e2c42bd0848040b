//! Exponentially reduced gradients.

use super::limits::Limits;
use super::stage::Stage;
use super::{adjacent, learning};
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;

/// The gradient dies away from layer to layer on its way back: an early sign that it vanishes.
///
/// BTTackler: the median of the amplifications between adjacent layers is below an empirical bound. Early
/// stage.
///
/// Changed as [`Eag`](super::Eag) is. And a deep network can start in that state and work itself out of
/// it; its ratio then grows, and that must not be so.
#[derive(Clone, Copy, Debug)]
pub struct Erg {
    limits: Limits,
}

/// Over how many of the newest blocks with layers the ratio must not have grown.
const LOOKED_AT: usize = 8;
/// By how much it must not have grown.
const GROWTH: f64 = 1.3;

impl Erg {
    /// The indicator with these limits.
    pub fn new(limits: &Limits) -> Erg {
        Erg { limits: *limits }
    }
}

impl Detector for Erg {
    fn problem(&self) -> Problem {
        Problem::ERG
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Model, Quantity::Gradients]
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        let limits = &self.limits;
        if !Stage::Early.is_now(context, limits) {
            return None;
        }
        let middles = adjacent::amplifications(context, LOOKED_AT.max(limits.lasting))?;
        let largest = middles.iter().copied().reduce(f64::max)?;
        let (newest, oldest) = (middles.first()?, middles.last()?);
        let recovers = *newest > GROWTH * oldest;
        if largest >= limits.erg || recovers || learning::learns(context, limits) {
            return None;
        }
        Some(
            Finding::new(
                self.problem(),
                context.step(),
                format!(
                    "The gradient falls to {} of itself from a layer to the one before, and the run \
                     does not learn.",
                    crate::number::rough(largest)
                ),
            )
            .since(context.curve.recent(middles.len()).first()?.first)
            .with(Measure::GradientAmplification, largest, limits.erg)
            .with_skill(context),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detectors::fixture::{Course, facts, gradient};

    /// A run whose gradient changes by a factor from each layer to the one before.
    fn course(factor: impl Fn(u64) -> f64 + 'static, rise: f64) -> Course {
        let mut course = Course::new(facts()).skill(move |p| rise * p);
        course.change(move |step, seen| {
            let last = seen.layers.len() - 1;
            for (i, layer) in seen.layers.iter_mut().enumerate() {
                layer.gradient = Some(gradient(factor(step).powi((last - i) as i32)));
            }
        });
        course
    }

    fn erg() -> Erg {
        Erg::new(&Limits::default())
    }

    #[test]
    fn gradients_that_die_away_in_a_run_that_learns_nothing_are_found_early() {
        let found = course(|_| 0.05, 0.0).run(erg()).unwrap();
        assert!(found.step < 40, "{}", found.step);
    }

    #[test]
    fn a_run_that_learns_or_has_even_gradients_goes_on() {
        assert_eq!(course(|_| 0.05, 0.9).run(erg()), None);
        assert_eq!(course(|_| 0.5, 0.0).run(erg()), None);
        assert_eq!(course(|_| 20.0, 0.0).run(erg()), None);
    }

    #[test]
    fn a_gradient_that_works_itself_out_is_left_alone() {
        let growing = course(|step| 0.01 * 1.06_f64.powi(step as i32), 0.0);
        assert_eq!(growing.run(erg()), None);
    }

    #[test]
    fn what_begins_in_the_late_stage_is_not_its_business() {
        let late = course(|step| if step > 110 { 0.05 } else { 0.9 }, 0.0);
        assert_eq!(late.run(erg()), None);
    }
}
