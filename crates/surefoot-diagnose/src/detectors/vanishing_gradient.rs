//! Vanishing gradient.

use super::conditions;
use crate::advice::Advice;
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::layer::{Activation, LayerKind};
use crate::measure::Measure;
use crate::observation::{LayerInfo, Observation};

/// The gradient shrinks towards the first layers, which then do not learn.
///
/// AutoTrainer: the norm of the first layer's gradient is at most β1 = 1e-3 of the last layer's, and
/// at most β2 = 1e-4, and `max(Acc) ≤ Θ`.
///
/// Changed:
/// - A layer's gradient is measured by its root mean square where layers are compared, so that a
///   wide layer does not look stronger than a narrow one.
/// - With tiny weights the last layer's gradient vanishes with the others', and no ratio shows it:
///   a first layer below a tenth of β2 is enough where the run has learned nothing.
/// - A deep healthy network can start in that state and leave it by itself; its gradient then grows. So
///   the symptom must last, and must not be receding.
/// - Later in a run that learns nothing, a milder decay counts (ten times β1 and β2); sooner, and
///   milder still, where hidden layers end in sigmoids, whose slope is a quarter at most.
/// - Weights that are many times too small for their layers (a gain far below 1) are the same problem
///   seen at its source, as those too large are in [`ExplodingGradient`](super::ExplodingGradient).
///   Later, less is enough in a network of many layers that is behind: their joint effect on the signal
///   counts.
/// - After steps that destroyed the weights, small gradients are a consequence; that is
///   [`OscillatingLoss`](super::OscillatingLoss).
/// - Where only the norm of the whole gradient is known, it is exactly zero for several steps.
#[derive(Clone, Copy, Debug, Default)]
pub struct VanishingGradient {
    /// Number of consecutive steps without any gradient.
    without: usize,
}

/// Share of the training after which the milder decay counts.
const LATE: f64 = 0.3;
/// The same where hidden layers end in sigmoids.
const SOON: f64 = 0.08;
/// Gain below which weights are too small.
const STARVING: f64 = 0.1;
/// Share of the training after which weights that are less small count.
const HALFWAY: f64 = 0.4;
/// Gain below which they do, and what is left of a signal after all hidden layers.
const WEAK: (f64, f64) = (0.45, 0.05);
/// Largest growth of the first gradient over the reviewed blocks that still counts as vanishing.
const GROWTH: f64 = 1.5;
/// Loss below which a gradient of zero is no problem.
const DONE: f64 = 1e-6;

fn has_sigmoids(context: &Context<'_>) -> bool {
    let hidden = context.facts.layers.len().saturating_sub(1);
    let sigmoid = |layer: &&LayerInfo| {
        matches!(layer.activation, Some(Activation::Sigmoid | Activation::HardSigmoid))
    };
    let layers = context.facts.layers[..hidden].iter();
    layers.filter(sigmoid).count() >= 2
}

/// Returns true if hidden layers with this gain shrink a signal to nearly nothing, no normalization
/// restores it, and the run is behind.
fn is_weakened(gain: f64, context: &Context<'_>) -> bool {
    let (largest, left) = WEAK;
    let hidden = conditions::weighted(context).len().saturating_sub(1);
    let mut layers = context.facts.layers.iter();
    gain <= largest
        && gain.powi(hidden as i32) <= left
        && context.has_run_for(HALFWAY)
        && conditions::is_behind(context)
        && !layers.any(|layer| layer.kind.is_norm() || layer.kind == LayerKind::Residual)
}

impl Detector for VanishingGradient {
    fn problem(&self) -> Problem {
        Problem::VANISHING_GRADIENT
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Gradients]
    }

    fn observe(&mut self, seen: &Observation, context: &Context<'_>) -> Option<Finding> {
        let norm = seen.gradient_norm?;
        // Nothing is left to learn from a loss of zero.
        self.without = if norm == 0.0 && seen.loss > DONE { self.without + 1 } else { 0 };
        let needed = 2 * (context.thresholds.alpha + 1);
        (self.without >= needed).then(|| {
            let message = "The gradient is exactly zero: no weight changes.";
            Finding::new(self.problem(), seen.step, message).certain().with(
                Measure::GradientNorm,
                norm,
                0.0,
            )
        })
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        let thresholds = context.thresholds;
        let needed = 2 * (thresholds.alpha + 1);
        if context.warming_up()
            || !context.has_run_for(0.04)
            || context.curve.layers().len() < needed
        {
            return None;
        }
        let gain = conditions::gain(context);
        let weakened = gain.filter(|gain| is_weakened(*gain, context));
        let has_learned_nothing = conditions::has_learned_nothing(context);
        if !(has_learned_nothing || weakened.is_some())
            || conditions::has_plain_cause(context)
            || conditions::was_destroyed_by_a_step(context)
            || conditions::normalizes_tiny_batches(context)
        {
            return None;
        }
        let weighted = conditions::weighted(context);
        let (&first, &last) = (weighted.first()?, weighted.last()?);
        let leniency = match has_sigmoids(context) {
            true if context.has_run_for(SOON) => 30.0,
            false if context.has_run_for(LATE) => 10.0,
            _ => 1.0,
        };
        let beta_1 = thresholds.beta_1 * leniency;
        let beta_2 = thresholds.beta_2 * leniency;
        let (mut ratio, mut norm) = (0.0_f64, 0.0_f64);
        let mut course = Vec::with_capacity(needed);
        for layers in context.curve.layers().rev().take(needed) {
            let (head, tail) = (layers.get(first)?, layers.get(last)?);
            let decay = head.gradient_rms? / tail.gradient_rms?;
            // Nothing at either end is another problem, unless nothing was ever there.
            ratio = ratio.max(if decay.is_nan() { 0.0 } else { decay });
            norm = norm.max(head.gradient?);
            course.push(head.gradient?);
        }
        let vanishes = has_learned_nothing
            && ((norm <= beta_2 && ratio <= beta_1) || norm <= 0.1 * thresholds.beta_2);
        let (newest, oldest) = (course.first()?, course.last()?);
        let starves =
            |gain: &f64| has_learned_nothing && *gain <= STARVING && context.has_run_for(SOON);
        let starved = gain.filter(starves).or(weakened);
        if !(starved.is_some() || vanishes && *newest <= GROWTH * oldest) {
            return None;
        }
        let weak: Vec<String> = {
            let layers = context.curve.last_layers()?;
            weighted
                .iter()
                .filter(|&&i| layers[i].gradient.is_some_and(|norm| norm <= beta_2))
                .map(|&i| context.facts.layers[i].name.clone())
                .collect()
        };
        let nowhere = context.curve.layers().rev().take(needed).all(|layers| {
            weighted.iter().all(|&i| layers.get(i).is_some_and(|l| l.gradient == Some(0.0)))
        });
        let gains = || context.curve.initial().gains.iter().flatten();
        let starts_at_zero = nowhere && gains().count() > 0 && gains().all(|&gain| gain == 0.0);
        let message = if starts_at_zero {
            "All initial weights are zero, so no gradient reaches any layer: initialize them at random."
                .to_owned()
        } else if nowhere {
            "The gradient of every layer is exactly zero: no weight changes.".to_owned()
        } else if vanishes {
            format!(
                "The gradient of the first layer has a norm of only {}: it shrinks from layer to \
                 layer, and the first layers do not learn.",
                crate::number::rough(norm)
            )
        } else {
            format!(
                "The weights are {} times too small for their layers: outputs and \
                 gradients shrink from layer to layer.",
                crate::number::rough(1.0 / starved.unwrap_or(f64::NAN))
            )
        };
        let finding = Finding::new(self.problem(), context.step(), message);
        let finding = if nowhere { finding.certain() } else { finding };
        let finding = match starts_at_zero {
            true => finding.with_advice(Advice {
                pytorch:
                    "torch.nn.init.kaiming_normal_(layer.weight)  # each layer; biases may stay 0"
                        .into(),
                keras:
                    "Dense(m, kernel_initializer=\"he_normal\")  # each layer; biases may stay 0"
                        .into(),
            }),
            false => finding,
        };
        Some(
            finding
                .since(context.curve.recent(needed).first()?.first)
                .within(weak)
                .with(Measure::FirstGradient, norm, beta_2)
                .with(Measure::FirstToLastGradient, ratio, beta_1)
                .with_known(Measure::InitialGain, gain, STARVING)
                .with(Measure::Depth, conditions::weighted(context).len() as f64, None)
                .with_skill(context),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, curve, facts, gradient};
    use super::*;
    use crate::finding::Confidence;
    use crate::observation::LayerObservation;

    fn course(first: impl Fn(u64) -> f64 + 'static, skill: f64) -> Course {
        let mut course = Course::new(facts()).skill(move |_| skill);
        course.change(move |step, seen| seen.layers[0].gradient = Some(gradient(first(step))));
        course
    }

    #[test]
    fn a_first_layer_without_gradient_in_a_run_that_learns_nothing_is_found() {
        let found = course(|_| 1e-6, 0.0).run(VanishingGradient::default()).unwrap();
        assert_eq!(found.layers, ["dense_1"]);
        assert!(found.step < 30);
    }

    #[test]
    fn no_gradient_in_any_layer_is_certain() {
        let mut course = Course::new(facts()).skill(|_| 0.0);
        course.change(|_, seen| {
            for layer in &mut seen.layers {
                layer.gradient = Some(gradient(0.0));
            }
        });
        let found = course.run(VanishingGradient::default()).unwrap();
        assert_eq!(found.confidence, Confidence::Certain);
        let first_only = self::course(|_| 0.0, 0.0).run(VanishingGradient::default()).unwrap();
        assert_eq!(first_only.confidence, Confidence::Likely);
    }

    #[test]
    fn a_whole_gradient_of_zero_is_certain() {
        let course = |loss: f64| {
            curve(20, move |_, seen| (seen.loss, seen.gradient_norm) = (loss, Some(0.0)))
        };
        let found = course(2.3).run(VanishingGradient::default()).unwrap();
        assert_eq!((found.step, found.confidence), (8, Confidence::Certain));
        assert_eq!(course(0.0).run(VanishingGradient::default()), None);
    }

    #[test]
    fn layers_of_unknown_kind_are_enough() {
        let mut course = curve(100, |_, _| {});
        let layer =
            |name: &str| LayerInfo { name: name.to_owned(), parameters: 1, ..LayerInfo::default() };
        course.facts_mut().layers = vec![layer("a"), layer("b")];
        course.change(|_, seen| {
            let of =
                |norm| LayerObservation { gradient: Some(gradient(norm)), ..Default::default() };
            seen.layers = vec![of(1e-6), of(0.1)];
        });
        assert_eq!(course.run(VanishingGradient::default()).unwrap().layers, ["a"]);
    }

    #[test]
    fn a_run_that_learns_is_left_alone() {
        assert_eq!(course(|_| 1e-6, 0.6).run(VanishingGradient::default()), None);
    }

    #[test]
    fn tiny_initial_weights_in_a_run_that_learns_nothing_are_found_by_their_gain() {
        let course = |skill: f64| {
            let mut course = Course::new(facts()).skill(move |_| skill);
            course.change(|step, seen| {
                for layer in &mut seen.layers {
                    layer.weight = Some(gradient(0.2));
                }
                seen.layers[0].gradient = Some(gradient(1e-3 * 1.2_f64.powi(step as i32)));
            });
            course
        };
        let found = course(0.0).run(VanishingGradient::default()).unwrap();
        assert!(found.message.contains("too small"), "{}", found.message);
        assert!(found.step < 40);
        let late = course(0.6).run(VanishingGradient::default()).unwrap();
        assert!(late.step >= 80, "{}", late.step);
        assert_eq!(course(0.95).run(VanishingGradient::default()), None);
    }

    #[test]
    fn a_gradient_that_works_itself_out_is_left_alone() {
        let growing = course(|step| 1e-7 * 1.2_f64.powi(step as i32), 0.0);
        assert_eq!(growing.run(VanishingGradient::default()), None);
    }
}
