//! Exploding gradient.

use super::conditions;
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;
use crate::observation::{LayerObservation, Observation};

/// The gradient grows towards the first layers, or is NaN or infinite.
///
/// AutoTrainer: the norm of the first layer's gradient is at least β3 = 70 times the last layer's, or
/// some gradient is NaN, and `max(Acc) ≤ Θ`.
///
/// Changed:
/// - NaN and infinity are reported at once: no accuracy excuses them. But a loss of NaN has many causes:
///   it counts only if something has grown before, such as the loss, the weights or their steps. Else
///   it is just a [`NonFiniteLoss`](super::NonFiniteLoss).
/// - Weights that are too large for their layer (a gain far above 1) make signal and gradient grow
///   layer by layer; where the run is behind, that is the same problem seen at its source, also
///   where activations that saturate hide it from the ratio.
/// - So is a loss that is many times that of the best constant prediction and stays there.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExplodingGradient {
    broken: bool,
    /// Number of consecutive steps with a gradient norm of NaN or infinity. Mixed precision skips
    /// single ones.
    overflowed: usize,
    /// The first finite loss, and the last.
    losses: Option<(f64, f64)>,
}

/// Gain above which weights are too large.
const GAIN: f64 = 3.0;
/// Multiple of the loss of random guessing that is out of range.
const BEYOND: f64 = 20.0;
/// Rise of the loss since the first step before it became NaN.
const RISE: f64 = 3.0;

impl Detector for ExplodingGradient {
    fn problem(&self) -> Problem {
        Problem::EXPLODING_GRADIENT
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Gradients]
    }

    fn observe(&mut self, seen: &Observation, context: &Context<'_>) -> Option<Finding> {
        let gradients = seen.layers.iter().filter_map(|layer| layer.gradient.as_ref());
        let nonfinite: u64 = gradients.map(|summary| summary.nan + summary.inf).sum();
        let overflow = seen.gradient_norm.is_some_and(|norm| !norm.is_finite());
        self.overflowed = if overflow { self.overflowed + 1 } else { 0 };
        if seen.loss.is_finite() {
            self.losses = Some((self.losses.map_or(seen.loss, |(first, _)| first), seen.loss));
        }
        let grew = context.curve.is_broken() && self.has_grown(seen, context);
        let overflows = !context.curve.is_broken() && nonfinite > 0;
        self.broken |= grew || overflows || self.overflowed > context.thresholds.alpha;
        if !self.broken || conditions::has_plain_cause(context) {
            return None;
        }
        let broken = |i: &usize| {
            let output = seen.layers.get(*i).and_then(|layer| layer.output.as_ref());
            output.is_some_and(|output| output.nan + output.inf > 0)
        };
        let first = (0..seen.layers.len()).find(broken);
        let names = first.map(|i| context.facts.layers[i].name.clone());
        let message = match &names {
            Some(name) => format!(
                "Values have grown until they overflowed; `{name}` is the first layer that \
                 outputs NaN or infinity."
            ),
            None => "Values have grown until they overflowed to NaN or infinity.".to_owned(),
        };
        // Infinite gradients alone may be skipped by the optimizer, as with mixed precision.
        let weights = seen.layers.iter().filter_map(|layer| layer.weight.as_ref());
        let certain = !seen.loss.is_finite() || weights.map(|w| w.nan + w.inf).sum::<u64>() > 0;
        let finding = Finding::new(self.problem(), seen.step, message);
        let finding = if certain { finding.certain() } else { finding };
        Some(
            finding
                .within(names.into_iter().collect())
                .with(Measure::Loss, seen.loss, None)
                .with_known(
                    Measure::NonFiniteGradients,
                    (nonfinite > 0).then_some(nonfinite as f64),
                    0.0,
                )
                .with_known(Measure::GradientNorm, seen.gradient_norm, None)
                .with_known(Measure::LargestUpdateRatio, conditions::largest_update(context), None)
                .with_known(Measure::InitialGain, conditions::gain(context), None),
        )
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        let needed = context.thresholds.alpha + 1;
        if context.warming_up() || context.curve.layers().len() < needed {
            return None;
        }
        if !conditions::is_behind(context) || conditions::has_plain_cause(context) {
            return None;
        }
        let weighted = conditions::weighted(context);
        let (&first, &last) = (weighted.first()?, weighted.last()?);
        let mut ratio = f64::INFINITY;
        for layers in context.curve.layers().rev().take(needed) {
            let (head, tail) = (layers.get(first)?, layers.get(last)?);
            let step = head.gradient_rms? / tail.gradient_rms?;
            // Without a gradient in either, nothing grows.
            ratio = if step.is_nan() { 0.0 } else { ratio.min(step) };
        }
        let gain = conditions::gain(context);
        let worst = context
            .curve
            .recent(needed)
            .iter()
            .map(|block| block.loss)
            .fold(f64::INFINITY, f64::min);
        let beyond = context.facts.baseline_loss.map(|baseline| worst / baseline);
        // A healthy network may start like this and recover.
        let stuck = context
            .curve
            .recent_losses(2 * needed)
            .is_some_and(|(now, before)| now > 0.97 * before);
        let grows =
            ratio >= context.thresholds.beta_3 && conditions::has_learned_nothing(context) && stuck;
        let huge = gain.filter(|gain| *gain >= GAIN);
        if !(grows || huge.is_some() || beyond.is_some_and(|beyond| beyond >= BEYOND)) {
            return None;
        }
        let message = if grows && ratio.is_infinite() {
            "The last layer has no gradient and the first has one: it grows from layer to layer on \
             the backward pass."
                .to_owned()
        } else if grows {
            format!(
                "The gradient of the first layer is {} times that of the last: it grows from \
                 layer to layer on the backward pass.",
                crate::number::rough(ratio)
            )
        } else if let Some(gain) = huge {
            format!(
                "The weights are {} times too large for their layers: outputs and \
                 gradients grow from layer to layer.",
                crate::number::rough(gain)
            )
        } else {
            let beyond = crate::number::rough(beyond.unwrap_or(f64::NAN));
            format!("The loss is {beyond} times that of random guessing.")
        };
        Some(
            Finding::new(self.problem(), context.step(), message)
                .since(context.curve.recent(needed).first()?.first)
                .with(Measure::FirstToLastGradient, ratio, context.thresholds.beta_3)
                .with_known(Measure::InitialGain, gain, GAIN)
                .with_known(Measure::LossToBaseline, beyond, BEYOND)
                .with_known(Measure::LargestUpdateRatio, conditions::largest_update(context), None)
                .with(Measure::Depth, conditions::weighted(context).len() as f64, None)
                .with_skill(context),
        )
    }
}

impl ExplodingGradient {
    /// Returns true if values have grown before they became NaN, or are infinite.
    fn has_grown(self, seen: &Observation, context: &Context<'_>) -> bool {
        let infinite = |layer: &LayerObservation| {
            let all = [layer.gradient, layer.weight, layer.output];
            all.iter().flatten().any(|summary| summary.inf > 0)
        };
        let baseline = context.facts.baseline_loss.map_or(f64::INFINITY, |loss| BEYOND * loss);
        let rose = |(first, last): (f64, f64)| last >= RISE * first || last >= baseline;
        seen.loss.is_infinite()
            || seen.layers.iter().any(infinite)
            || self.losses.is_some_and(rose)
            || conditions::largest_update(context).is_some_and(|it| it >= conditions::DESTRUCTIVE)
            || conditions::gain(context).is_some_and(|gain| gain >= GAIN)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, facts, gradient};
    use super::*;
    use surefoot_stats::Summary;

    #[test]
    fn a_gradient_that_is_no_number_is_found_at_once_with_the_first_layer() {
        let nan = Summary { nan: 3, ..Summary::default() };
        let mut course = Course::new(facts()).skill(|_| 0.9);
        course.change(|step, seen| {
            if step == 12 {
                seen.layers[1].output = Some(nan);
                seen.layers[2].output = Some(nan);
                seen.layers[0].gradient = Some(nan);
            }
        });
        let found = course.run(ExplodingGradient::default()).unwrap();
        assert_eq!(found.step, 12);
        assert_eq!(found.layers, ["dense_2"]);
    }

    #[test]
    fn a_gradient_that_grows_backwards_in_a_run_that_learns_nothing_is_found() {
        let course = |skill: f64| {
            let mut course = Course::new(facts()).skill(move |_| skill);
            course.change(|_, seen| seen.layers[0].gradient = Some(gradient(500.0)));
            course
        };
        assert!(course(0.0).run(ExplodingGradient::default()).is_some());
        assert_eq!(course(0.95).run(ExplodingGradient::default()), None);
    }

    #[test]
    fn a_last_layer_without_gradient_is_not_called_a_ratio() {
        let mut course = Course::new(facts()).skill(|_| 0.0);
        course.change(|_, seen| {
            seen.layers[0].gradient = Some(gradient(500.0));
            seen.layers[3].gradient = Some(gradient(0.0));
        });
        let found = course.run(ExplodingGradient::default()).unwrap();
        assert!(found.message.contains("no gradient"), "{}", found.message);
    }

    #[test]
    fn a_network_without_any_gradient_does_not_explode() {
        let mut course = Course::new(facts()).skill(|_| 0.0);
        course.change(|_, seen| {
            seen.layers.iter_mut().for_each(|layer| layer.gradient = Some(gradient(0.0)));
        });
        assert_eq!(course.run(ExplodingGradient::default()), None);
    }

    #[test]
    fn huge_initial_weights_are_found_by_their_gain() {
        let mut course = Course::new(facts()).skill(|_| 0.1);
        course.change(|_, seen| {
            for layer in &mut seen.layers {
                layer.weight = Some(gradient(40.0));
            }
        });
        let found = course.run(ExplodingGradient::default()).unwrap();
        assert!(found.message.contains("too large"), "{}", found.message);
    }
}
