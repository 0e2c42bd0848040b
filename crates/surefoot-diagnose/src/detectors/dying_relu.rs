//! Dying ReLU.

use super::conditions;
use crate::curve::LayerBlock;
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::layer::LayerKind;
use crate::measure::Measure;
use crate::observation::LayerInfo;

/// A large share of the ReLU units outputs zero for every sample, so their gradient is zero and they
/// never recover.
///
/// AutoTrainer: the gradient of at least γ = 70% of all neurons is zero in the last iterations, and
/// `max(Acc) ≤ Θ`.
///
/// Changed: a single hidden layer that is dead as a whole is enough, because nothing behind it
/// depends on the input any more. Only hidden layers count, only if the model has ReLUs, and the
/// share must hold for several blocks: with small batches a live unit is often zero for one. The
/// finding is certain once neither the dead layer nor those before it change: until then, the
/// momentum of the optimizer can still revive it.
#[derive(Clone, Copy, Debug, Default)]
pub struct DyingRelu;

/// Share of zero units from which a layer counts as dead.
const WHOLE: f64 = 0.98;
/// Update ratio below which weights do not change.
const STILL: f64 = 1e-6;

impl Detector for DyingRelu {
    fn problem(&self) -> Problem {
        Problem::DYING_RELU
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Model, Quantity::Gradients]
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        if !context.facts.has_relu() || context.warming_up() {
            return None;
        }
        let gamma = context.thresholds.gamma;
        let needed = context.thresholds.alpha + 1;
        let blocks: Vec<_> = context.curve.layers().rev().take(needed).collect();
        if blocks.len() < needed || !conditions::is_behind(context) {
            return None;
        }
        // Tiny weights produce values that round to zero.
        let tiny = conditions::gain(context).is_some_and(|gain| gain < conditions::SMALL_GAIN)
            && !conditions::was_destroyed_by_a_step(context);
        if conditions::has_plain_cause(context) || tiny {
            return None;
        }
        let hidden = context.facts.layers.len().saturating_sub(1);
        let dead = |i: usize| -> Option<f64> {
            let shares = blocks.iter().map(|layers| layers.get(i).and_then(|layer| layer.dead));
            shares.reduce(|a, b| Some(a?.min(b?)))?
        };
        let (mut units, mut dead_units, mut worst) = (0.0, 0.0, 0.0_f64);
        let mut layers = Vec::new();
        for (i, info) in context.facts.layers[..hidden].iter().enumerate() {
            let (Some(share), Some(count)) = (dead(i), info.units) else {
                continue;
            };
            units += count as f64;
            dead_units += share * count as f64;
            worst = worst.max(share);
            if share >= gamma {
                layers.push(info.name.clone());
            }
        }
        let share = if units > 0.0 { dead_units / units } else { 0.0 };
        if share < gamma && worst < WHOLE {
            return None;
        }
        let message = if share >= gamma {
            format!(
                "{:.0}% of the ReLU units output zero for every sample; they have no gradient \
                 and cannot recover.",
                100.0 * share
            )
        } else {
            "All units of a layer output zero for every sample, so neither signal nor gradient \
             passes through it."
                .to_owned()
        };
        let message = match conditions::largest_update(context) {
            Some(update) if update >= conditions::DESTRUCTIVE => format!(
                "{message} Before, a step changed the weights by {:.0}% of their size: the learning \
                 rate is too high.",
                100.0 * update
            ),
            _ => message,
        };
        let first = context.curve.recent(needed).first()?.first;
        let finding = Finding::new(self.problem(), context.step(), message);
        // A shortcut leads around a dead layer.
        let shortcut =
            |layer: &LayerInfo| matches!(layer.kind, LayerKind::Residual | LayerKind::Transformer);
        let whole = (0..hidden).find(|i| dead(*i).is_some_and(|share| share >= 1.0));
        let blocked = !context.facts.layers.iter().any(shortcut)
            && whole.is_some_and(|layer| is_still(&blocks[0][..=layer]));
        let finding = if blocked { finding.certain() } else { finding };
        Some(
            finding
                .since(first)
                .within(layers)
                .with(Measure::DeadUnits, share, gamma)
                .with(Measure::DeadUnitsInWorstLayer, worst, WHOLE)
                .with_known(Measure::LargestUpdateRatio, conditions::largest_update(context), None)
                .with_known(Measure::InitialGain, conditions::gain(context), None)
                .with(Measure::Depth, conditions::weighted(context).len() as f64, None)
                .with_skill(context),
        )
    }
}

/// Returns true if no weights change in a block. Layers without weights have no update ratio.
fn is_still(layers: &[LayerBlock]) -> bool {
    let mut ratios = layers.iter().filter_map(|layer| layer.update_ratio).peekable();
    ratios.peek().is_some() && ratios.all(|ratio| ratio < STILL)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, facts};
    use super::*;
    use crate::finding::Confidence;

    fn course(dead: f64, skill: f64) -> Course {
        let mut course = Course::new(facts()).skill(move |_| skill);
        course.change(move |_, seen| {
            for layer in &mut seen.layers {
                layer.dead_units = Some(dead);
            }
        });
        course
    }

    #[test]
    fn a_network_of_dead_units_is_found() {
        let found = course(0.8, 0.0).run(DyingRelu).unwrap();
        assert_eq!(found.layers, ["dense_1", "dense_2", "dense_3"]);
        assert_eq!(found.confidence, Confidence::Likely);
        assert!(found.value(&Measure::DeadUnits).is_some_and(|share| (share - 0.8).abs() < 1e-9));
    }

    #[test]
    fn a_single_dead_layer_is_enough() {
        let mut course = Course::new(facts()).skill(|_| 0.0);
        course.change(|_, seen| seen.layers[1].dead_units = Some(1.0));
        let found = course.run(DyingRelu).unwrap();
        assert_eq!(found.layers, ["dense_2"]);
        assert_eq!(found.confidence, Confidence::Likely, "its weights still change");
        course.change(|_, seen| {
            for layer in &mut seen.layers[..2] {
                layer.update_ratio = Some(0.0);
            }
        });
        let found = course.run(DyingRelu).unwrap();
        assert_eq!(found.confidence, Confidence::Certain);
    }

    #[test]
    fn half_dead_or_learning_all_the_same_is_no_problem() {
        assert_eq!(course(0.5, 0.0).run(DyingRelu), None);
        assert_eq!(course(0.8, 0.95).run(DyingRelu), None);
    }

    #[test]
    fn units_that_were_dead_for_one_batch_are_not() {
        let mut course = Course::new(facts()).skill(|_| 0.0);
        course.change(|step, seen| {
            for layer in &mut seen.layers {
                layer.dead_units = Some(if step % 3 == 0 { 0.2 } else { 1.0 });
            }
        });
        assert_eq!(course.run(DyingRelu), None);
    }
}
