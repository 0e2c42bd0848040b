//! Low activation ratio.

use super::learning;
use super::limits::Limits;
use super::stage::Stage;
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::layer::Activation;
use crate::measure::Measure;
use crate::observation::Observation;

/// Hardly a unit of some layer is active.
///
/// BTTackler: the share of zero neurons of a layer is above an empirical threshold. Any stage.
///
/// Counts the zeros among the outputs of a layer, as the paper says and its code does not: zero
/// gradients are common where outputs are healthy.
///
/// Changed: only hidden layers that end in an activation count, because dropout and padding put out
/// zeros that mean nothing. It has to last, and the run must not learn.
#[derive(Clone, Debug)]
pub struct Lar {
    limits: Limits,
    /// For each layer the least share of zeros since the last block.
    least: Vec<f64>,
    /// For how many blocks in a row each layer has been silent.
    silent: Vec<usize>,
}

impl Lar {
    /// The indicator with these limits.
    pub fn new(limits: &Limits) -> Lar {
        Lar { limits: *limits, least: Vec::new(), silent: Vec::new() }
    }
}

impl Detector for Lar {
    fn problem(&self) -> Problem {
        Problem::LAR
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Model, Quantity::Outputs]
    }

    fn observe(&mut self, seen: &Observation, context: &Context<'_>) -> Option<Finding> {
        let hidden = seen.layers.len().saturating_sub(1);
        self.least.resize(hidden.max(self.least.len()), f64::NAN);
        let layers = seen.layers[..hidden].iter().zip(&context.facts.layers);
        for (least, (layer, info)) in self.least.iter_mut().zip(layers) {
            let activated = self.limits.published
                || info.activation.as_ref().is_some_and(|a| *a != Activation::Linear);
            let output = layer.output.filter(|output| activated && output.count > 0);
            if let Some(output) = output {
                // The least of NaN and a number is the number.
                *least = least.min(output.zeros as f64 / output.count as f64);
            }
        }
        None
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        let limits = &self.limits;
        self.silent.resize(self.least.len(), 0);
        for (silent, least) in self.silent.iter_mut().zip(&self.least) {
            // A block in which outputs were not observed says nothing either way.
            if !least.is_nan() {
                *silent = if *least > limits.lar { *silent + 1 } else { 0 };
            }
        }
        let shares = std::mem::take(&mut self.least);
        let layers = self.silent.iter().zip(&shares).zip(&context.facts.layers);
        let lasting: Vec<_> = layers
            .filter(|((silent, share), _)| **silent >= limits.lasting && !share.is_nan())
            .collect();
        let worst = lasting.iter().map(|((_, share), _)| **share).reduce(f64::max)?;
        if !Stage::Any.is_now(context, limits) || learning::learns(context, limits) {
            return None;
        }
        let names = lasting.iter().map(|(_, info)| info.name.clone()).collect();
        Some(
            Finding::new(
                self.problem(),
                context.step(),
                format!(
                    "{:.0}% of a layer's outputs are zero, and the run does not learn.",
                    100.0 * worst
                ),
            )
            .since(context.curve.recent(limits.lasting).first()?.first)
            .within(names)
            .with(Measure::ZeroOutputs, worst, limits.lar)
            .with_skill(context),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detectors::fixture::{Course, facts};
    use surefoot_stats::Summary;

    fn lar() -> Lar {
        Lar::new(&Limits::default())
    }

    fn course(zeros: impl Fn(u64) -> u64 + 'static, rise: f64) -> Course {
        let mut course = Course::new(facts()).skill(move |p| rise * p);
        course.change(move |step, seen| {
            seen.layers[1].output =
                Some(Summary { count: 1000, zeros: zeros(step), ..Summary::default() });
        });
        course
    }

    #[test]
    fn a_silent_layer_in_a_run_that_learns_nothing_is_found_and_named() {
        let found = course(|_| 995, 0.0).run(lar()).unwrap();
        assert_eq!(found.layers, ["dense_2"]);
        assert!(found.step < 40, "{}", found.step);
    }

    #[test]
    fn sparse_activations_and_runs_that_learn_go_on() {
        assert_eq!(course(|_| 900, 0.0).run(lar()), None);
        assert_eq!(course(|_| 995, 0.9).run(lar()), None);
    }

    #[test]
    fn the_published_rule_stops_a_run_that_learns() {
        assert!(course(|_| 995, 0.9).run(Lar::new(&Limits::bttackler())).is_some());
    }

    #[test]
    fn a_layer_that_speaks_now_and_then_is_not_silent() {
        assert_eq!(course(|step| if step % 3 == 0 { 500 } else { 1000 }, 0.0).run(lar()), None);
    }

    #[test]
    fn zero_gradients_are_not_zero_outputs() {
        let mut course = Course::new(facts()).skill(|_| 0.0);
        course.change(|_, seen| {
            for layer in &mut seen.layers {
                layer.dead_units = Some(1.0);
                layer.gradient = Some(Summary { count: 64, zeros: 64, ..Summary::default() });
            }
        });
        assert_eq!(course.run(lar()), None);
    }

    #[test]
    fn layers_that_only_pass_zeros_on_do_not_count() {
        let mut facts = facts();
        facts.layers[1].kind = crate::LayerKind::Dropout;
        facts.layers[1].activation = None;
        let mut course = Course::new(facts).skill(|_| 0.0);
        course.change(|_, seen| {
            seen.layers[1].output =
                Some(Summary { count: 1000, zeros: 1000, ..Summary::default() });
        });
        assert_eq!(course.run(lar()), None);
    }
}
