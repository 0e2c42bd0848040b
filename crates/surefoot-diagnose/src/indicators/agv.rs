//! Abnormal gradient values.

use super::learning;
use super::limits::Limits;
use super::stage::Stage;
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;
use crate::observation::Observation;
use surefoot_stats::Summary;

/// Gradients, the loss or weights are NaN or infinite, or gradients are larger than any plausible size.
///
/// BTTackler: no gradient is NaN or infinite, and none is larger in size than an empirical bound. Any
/// stage.
///
/// Changed:
/// - Non-finite weights never recover; one observation is enough. Gradients may be infinite
///   once and their step skipped, as mixed precision does, so that has to last for some observations.
/// - A loss may be infinite while all gradients are sound, as that of a certain but wrong prediction is. It
///   counts only where layers are not seen. Of the losses of whole epochs one is enough.
/// - A gradient beyond the bound has to last as well, in a run that does not learn: the size of a
///   gradient depends on the units of the targets.
#[derive(Clone, Copy, Debug)]
pub struct Agv {
    limits: Limits,
    /// True once layers were observed.
    sees_layers: bool,
    /// Consecutive observations with a non-finite value, and the first step.
    broken: (usize, u64),
    /// The same for gradients that are too large.
    large: (usize, u64),
}

impl Agv {
    /// The indicator with these limits.
    pub fn new(limits: &Limits) -> Agv {
        Agv { limits: *limits, sees_layers: false, broken: (0, 0), large: (0, 0) }
    }
}

impl Detector for Agv {
    fn problem(&self) -> Problem {
        Problem::AGV
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Loss]
    }

    fn observe(&mut self, seen: &Observation, context: &Context<'_>) -> Option<Finding> {
        let layers = || seen.layers.iter();
        let is_broken = |summary: &Option<Summary>| summary.is_some_and(|s| s.nan + s.inf > 0);
        let gradients = layers().any(|layer| is_broken(&layer.gradient));
        let weights = layers().any(|layer| is_broken(&layer.weight));
        let sizes = layers().filter_map(|layer| layer.gradient.map(|gradient| gradient.linf));
        let largest = sizes.fold(0.0, f64::max);

        self.sees_layers |= !seen.layers.is_empty();
        if self.sees_layers {
            if !seen.layers.is_empty() {
                count(&mut self.broken, gradients, seen.step);
                count(&mut self.large, largest > self.limits.agv, seen.step);
            }
        } else {
            count(&mut self.broken, !seen.loss.is_finite(), seen.step);
        }
        let by_epoch = context.facts.steps_per_epoch == Some(1) && context.facts.layers.is_empty();
        let lasting = if by_epoch { 1 } else { self.limits.lasting };
        let what = if weights {
            "Weights are NaN or infinite."
        } else if self.broken.0 >= lasting && self.sees_layers {
            "Gradients are NaN or infinite."
        } else if self.broken.0 >= lasting {
            "The loss is NaN or infinite."
        } else {
            let large = self.large.0 >= self.limits.lasting
                && Stage::Any.is_now(context, &self.limits)
                && !learning::learns(context, &self.limits);
            return large.then(|| {
                Finding::new(
                    self.problem(),
                    seen.step,
                    "Gradients are implausibly large, and the run does not learn.",
                )
                .since(self.large.1)
                .with(Measure::LargestGradient, largest, self.limits.agv)
            });
        };
        let since = if self.broken.0 > 0 { self.broken.1 } else { seen.step };
        Some(Finding::new(self.problem(), seen.step, what).since(since).with(
            Measure::Loss,
            seen.loss,
            None,
        ))
    }
}

/// Counts how often in a row something is so, and notes when that began.
fn count(run: &mut (usize, u64), is_so: bool, step: u64) {
    *run = match (is_so, run.0) {
        (false, _) => (0, 0),
        (true, 0) => (1, step),
        (true, n) => (n + 1, run.1),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detectors::fixture::{Course, facts};
    use crate::facts::Facts;

    fn agv() -> Agv {
        Agv::new(&Limits::default())
    }

    /// Twenty thousand steps, so that a block has a hundred.
    fn long() -> Facts {
        Facts { steps_per_epoch: Some(2000), ..facts() }
    }

    #[test]
    fn a_loss_that_stays_no_number_is_found_soon() {
        let mut course = Course::new(long()).skill(|_| 0.5);
        course.change(|step, seen| {
            seen.layers.clear();
            if step >= 30 {
                seen.loss = f64::NAN;
            }
        });
        let found = course.run(agv()).unwrap();
        assert_eq!((found.since, found.step), (30, 33));
    }

    #[test]
    fn the_only_loss_of_an_epoch_is_enough() {
        let losses_only = Facts { steps_per_epoch: Some(1), epochs: Some(50), ..Facts::default() };
        let mut course = Course::new(losses_only).skill(|_| 0.5);
        course.change(|step, seen| {
            if step >= 30 {
                seen.loss = f64::INFINITY;
            }
        });
        assert_eq!(course.run(agv()).map(|found| found.step), Some(30));
    }

    #[test]
    fn an_infinite_loss_with_sound_gradients_is_no_reason_and_broken_ones_are() {
        let mut course = Course::new(facts()).skill(|p| p);
        course.change(|step, seen| {
            if step < 40 {
                seen.loss = f64::INFINITY;
            }
        });
        assert_eq!(course.run(agv()), None);
        course.change(|step, seen| {
            if step >= 40 {
                seen.layers[0].gradient = Some(Summary { nan: 1, ..Summary::default() });
            }
        });
        assert_eq!(course.run(agv()).map(|found| found.step), Some(43));
    }

    #[test]
    fn a_step_that_was_skipped_is_no_reason() {
        let mut course = Course::new(long()).skill(|p| p);
        course.change(|step, seen| {
            if step % 50 == 0 {
                seen.layers[1].gradient = Some(Summary { inf: 3, ..Summary::default() });
            }
        });
        assert_eq!(course.run(agv()), None);
    }

    #[test]
    fn weights_that_are_no_numbers_are_enough_at_once() {
        let mut course = Course::new(long()).skill(|p| p);
        course.change(|step, seen| {
            if step >= 7 {
                seen.layers[2].weight = Some(Summary { nan: 1, ..Summary::default() });
            }
        });
        assert_eq!(course.run(agv()).map(|found| found.step), Some(7));
    }

    #[test]
    fn huge_gradients_end_a_run_only_if_it_does_not_learn() {
        let course = |rise: f64| {
            let mut course = Course::new(long()).skill(move |p| rise * p);
            course.change(|_, seen| {
                seen.layers[0].gradient =
                    Some(Summary { count: 64, linf: 1e8, ..Summary::default() });
            });
            course
        };
        assert!(course(0.0).run(agv()).is_some());
        assert_eq!(course(0.9).run(agv()), None);
    }
}
