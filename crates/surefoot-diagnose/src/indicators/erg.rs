//! Exponentially reduced gradients.

use super::limits::Limits;
use super::stage::Stage;
use super::{adjacent, learning};
use crate::detector::{Context, Detector, Quantity};
use crate::detectors::weighted;
use crate::finding::{Finding, Problem};
use crate::measure::Measure;

/// The gradient dies away from layer to layer on its way back: an early sign that it vanishes.
///
/// BTTackler: the median of the amplifications between adjacent layers is below an empirical bound. Early
/// stage.
///
/// Changed:
/// - It has to last, and the run must not learn, as for [`Eag`](super::Eag).
/// - The ratio must not grow: a deep network can start in that state and recover.
/// - The bound is for up to seven layers. A deeper network reaches the same total reduction with a larger ratio: eleven
///   sigmoid layers with the default initialization of PyTorch have 0.13, 1e-9 in total, and never learn.
#[derive(Clone, Copy, Debug)]
pub struct Erg {
    limits: Limits,
}

/// Latest blocks with layers over which the ratio must not have grown.
const BLOCKS: usize = 8;
/// Growth that counts as recovery.
const GROWTH: f64 = 1.3;
/// Pairs of layers for which the bound is meant.
const PAIRS: usize = 6;

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
        let (blocks, pairs) = match limits.published {
            true => (limits.lasting, PAIRS),
            false => {
                (BLOCKS.max(limits.lasting), weighted(context).len().saturating_sub(1).max(PAIRS))
            }
        };
        let middles = adjacent::amplifications(context, blocks)?;
        let largest = middles.iter().copied().reduce(f64::max)?;
        let (newest, oldest) = (middles.first()?, middles.last()?);
        let recovers = *newest > GROWTH * oldest && !limits.published;
        let total = (largest.powi(pairs as i32), limits.erg.powi(PAIRS as i32));
        if total.0 >= total.1 || recovers || learning::learns(context, limits) {
            return None;
        }
        Some(
            Finding::new(
                self.problem(),
                context.step(),
                format!(
                    "The gradient shrinks to {} from each layer to the one before, and the run does not learn.",
                    crate::number::rough(largest)
                ),
            )
            .since(context.curve.recent(middles.len()).first()?.first)
            .with(Measure::GradientAmplification, largest, total.1.powf(1.0 / pairs as f64))
            .with_skill(context),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LayerInfo;
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

    /// A network of eleven layers.
    fn deep(factor: f64, rise: f64) -> Course {
        let mut deep = facts();
        let layer = deep.layers[0].clone();
        deep.layers =
            (0..11).map(|i| LayerInfo { name: format!("{i}"), ..layer.clone() }).collect();
        let mut course = Course::new(deep).skill(move |p| rise * p);
        course.change(move |_, seen| {
            seen.layers.resize(11, seen.layers[0]);
            for (i, layer) in seen.layers.iter_mut().enumerate() {
                layer.gradient = Some(gradient(factor.powi(10 - i as i32)));
            }
        });
        course
    }

    #[test]
    fn a_deep_network_vanishes_with_a_larger_ratio() {
        assert!(deep(0.13, 0.0).run(erg()).is_some());
        assert_eq!(deep(0.5, 0.0).run(erg()), None);
        assert_eq!(deep(0.13, 0.9).run(erg()), None);
        assert_eq!(course(|_| 0.13, 0.0).run(erg()), None, "few layers");
    }

    #[test]
    fn the_published_rule_has_no_other_conditions() {
        let published = || Erg::new(&Limits::bttackler());
        assert!(course(|_| 0.05, 0.9).run(published()).is_some_and(|found| found.step < 5));
        assert_eq!(course(|_| 0.13, 0.0).run(published()), None);
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
