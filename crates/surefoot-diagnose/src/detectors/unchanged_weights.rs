//! Weights that do not change.

use super::conditions;
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;

/// Weights that are meant to learn stay exactly as they are for several blocks: a layer that is cut
/// off from the loss, or an optimizer that does nothing. A gradient that is too small to change a
/// weight in single precision is a vanishing gradient, and not reported here. A batch contains some
/// rows of an embedding only, so an embedding counts as unchanged if it has no gradient either, as one
/// that was left out of the optimizer. After a step that destroyed the weights, layers without a
/// gradient are a consequence. It is a problem if no layer has ever changed and no
/// gradient is zero, and otherwise a warning.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnchangedWeights;

impl Detector for UnchangedWeights {
    fn problem(&self) -> Problem {
        Problem::UNCHANGED_WEIGHTS
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Weights]
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        let needed = context.thresholds.alpha + 1;
        if context.curve.layers().len() < needed || conditions::was_destroyed_by_a_step(context) {
            return None;
        }
        let vanishes = |gradient: f64| gradient > 0.0 && gradient < context.thresholds.beta_2;
        let still = |i: &usize| {
            let mut blocks = context.curve.layers().rev().take(needed);
            blocks.all(|layers| {
                let layer = &layers[*i];
                layer.update_ratio == Some(0.0) && !layer.gradient.is_some_and(vanishes)
            })
        };
        let infos = &context.facts.layers;
        let mut blocks = context.curve.layers().rev().take(needed);
        let has_gradients = blocks.all(|layers| layers.iter().any(|it| it.gradient.is_some()));
        let is_left_out = |i: &usize| {
            let mut blocks = context.curve.layers().rev().take(needed);
            has_gradients && blocks.all(|layers| layers[*i].gradient.is_none())
        };
        let embeddings = (0..infos.len()).filter(|&i| {
            let info = &infos[i];
            info.kind.is_embedding() && info.parameters > 0 && !info.frozen && is_left_out(&i)
        });
        let mut layers = conditions::weighted(context);
        layers.extend(embeddings);
        layers.retain(still);
        layers.sort_unstable();
        if layers.is_empty() {
            return None;
        }
        let name = |i: &usize| context.facts.layers[*i].name.clone();
        let count = layers.len() as f64;
        let finding = Finding::new(
            self.problem(),
            context.step(),
            "Weights that should learn do not change at all.",
        );
        let (peak, _) = context.curve.peak_update();
        // A gradient of zero is a problem of its own.
        let gradients = || context.curve.last_layers().into_iter().flatten().map(|it| it.gradient);
        let nothing_learns = peak == 0.0
            && layers.len() == conditions::weighted(context).len()
            && gradients().all(|gradient| gradient != Some(0.0));
        let finding = if nothing_learns { finding.certain() } else { finding.warning() };
        Some(
            finding
                .since(context.curve.recent(needed).first()?.first)
                .within(layers.iter().map(name).collect())
                .with(Measure::UnchangedLayers, count, 0.0),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, facts};
    use super::*;
    use crate::layer::LayerKind;

    #[test]
    fn a_layer_that_stands_still_is_found() {
        let mut course = Course::new(facts()).skill(|_| 0.5);
        course.change(|_, seen| seen.layers[2].update_ratio = Some(0.0));
        assert_eq!(course.run(UnchangedWeights).unwrap().layers, ["dense_3"]);
        assert_eq!(Course::new(facts()).skill(|_| 0.5).run(UnchangedWeights), None);
    }

    #[test]
    fn an_embedding_is_unchanged_only_without_a_gradient() {
        let found = |has_gradient: bool| {
            let mut facts = facts();
            facts.layers[0].kind = LayerKind::Embedding;
            let mut course = Course::new(facts).skill(|_| 0.5);
            course.change(move |_, seen| {
                seen.layers[0].update_ratio = Some(0.0);
                seen.layers[0].gradient = seen.layers[1].gradient.filter(|_| has_gradient);
            });
            course.run(UnchangedWeights).map(|finding| finding.layers)
        };
        assert_eq!(found(false), Some(vec!["dense_1".to_owned()]));
        assert_eq!(found(true), None);
    }

    #[test]
    fn a_vanishing_gradient_is_no_fault_of_the_optimizer() {
        let mut course = Course::new(facts()).skill(|_| 0.5);
        course.change(|_, seen| {
            seen.layers[2].update_ratio = Some(0.0);
            if let Some(gradient) = &mut seen.layers[2].gradient {
                gradient.l2 = 1e-9;
            }
        });
        assert_eq!(course.run(UnchangedWeights), None);
    }
}
