//! Exponentially amplified gradients.

use super::limits::Limits;
use super::stage::Stage;
use super::{adjacent, learning};
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;

/// The gradient grows from layer to layer on its way back: an early sign that it will explode.
///
/// BTTackler: the median of the amplifications between adjacent layers is above an empirical bound. Early
/// stage.
///
/// Changed: it has to last, there have to be layers enough for a median, and the run must not
/// learn. Many that start like this settle.
#[derive(Clone, Copy, Debug)]
pub struct Eag {
    limits: Limits,
}

impl Eag {
    /// The indicator with these limits.
    pub fn new(limits: &Limits) -> Eag {
        Eag { limits: *limits }
    }
}

impl Detector for Eag {
    fn problem(&self) -> Problem {
        Problem::EAG
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Model, Quantity::Gradients]
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        let limits = &self.limits;
        if !Stage::Early.is_now(context, limits) {
            return None;
        }
        let middles = adjacent::amplifications(context, limits.lasting)?;
        let least = middles.into_iter().reduce(f64::min)?;
        if least <= limits.eag || learning::learns(context, limits) {
            return None;
        }
        Some(
            Finding::new(
                self.problem(),
                context.step(),
                format!(
                    "The gradient grows {} times from a layer to the one before, and the run does \
                     not learn.",
                    crate::number::rough(least)
                ),
            )
            .since(context.curve.recent(limits.lasting).first()?.first)
            .with(Measure::GradientAmplification, least, limits.eag)
            .with_skill(context),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detectors::fixture::{Course, facts, gradient};

    /// A run whose gradient changes by `factor` from each layer to the one before.
    fn course(factor: f64, rise: f64) -> Course {
        let mut course = Course::new(facts()).skill(move |p| rise * p);
        course.change(move |_, seen| {
            let last = seen.layers.len() - 1;
            for (i, layer) in seen.layers.iter_mut().enumerate() {
                layer.gradient = Some(gradient(factor.powi((last - i) as i32)));
            }
        });
        course
    }

    fn eag() -> Eag {
        Eag::new(&Limits::default())
    }

    #[test]
    fn gradients_that_grow_backwards_in_a_run_that_learns_nothing_are_found_early() {
        let found = course(20.0, 0.0).run(eag()).unwrap();
        assert!(found.step < 40, "{}", found.step);
    }

    #[test]
    fn a_run_that_learns_or_has_even_gradients_goes_on() {
        assert_eq!(course(20.0, 0.9).run(eag()), None);
        assert_eq!(course(2.0, 0.0).run(eag()), None);
        assert_eq!(course(0.05, 0.0).run(eag()), None);
    }

    #[test]
    fn two_layers_have_no_median() {
        let mut few = facts();
        few.layers.truncate(3);
        let mut course = Course::new(few).skill(|_| 0.0);
        course.change(|_, seen| seen.layers[0].gradient = Some(gradient(1e6)));
        assert_eq!(course.run(eag()), None);
    }

    #[test]
    fn a_single_batch_is_no_reason() {
        let mut course = course(1.0, 0.0);
        course.change(|step, seen| {
            if step % 3 == 0 {
                for (i, layer) in seen.layers.iter_mut().enumerate() {
                    layer.gradient = Some(gradient(20.0_f64.powi(-(i as i32))));
                }
            }
        });
        assert_eq!(course.run(eag()), None);
    }
}
