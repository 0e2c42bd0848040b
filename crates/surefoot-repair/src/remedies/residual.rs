//! `residual` (E2): residual connections.

use super::initializer::reinitialize;
use crate::remedy::{Change, Remedy, RemedyContext};
use surefoot_plan::{
    Activation, ActivationLayer, Layer, LayerNorm, Plan, Residual, output_position,
};

/// `residual` (E2): shortcuts around hidden dense layers, our own answer to depth (He and others, 2016).
///
/// What neither another activation nor normalisation can do for a network of thirty layers, a way
/// around each of them does: the gradient reaches the first layer undiminished. Every dense layer as
/// wide as the one before becomes `x + dense(activation(norm(x)))`, and the output is fed what is
/// normalised.
#[derive(Clone, Copy, Debug)]
pub struct ResidualConnections;

/// The least number of layers that are worth a shortcut.
const LEAST: usize = 4;

impl Remedy for ResidualConnections {
    fn id(&self) -> &'static str {
        "residual"
    }

    fn title(&self) -> &'static str {
        "add residual connections"
    }

    fn reinitializes(&self) -> bool {
        true
    }

    fn apply(&self, plan: &Plan, _: &RemedyContext<'_>, variant: usize) -> Result<Change, String> {
        if variant > 0 {
            return Err("they are added once".to_owned());
        }
        let mut changed = plan.clone();
        let output = output_position(&plan.model).unwrap_or(plan.model.len());
        let mut width = None;
        let mut count = 0;
        for layer in &mut changed.model[..output] {
            let Layer::Dense(dense) = &mut *layer else {
                if layer.activation().is_none() && !matches!(layer, Layer::Dropout(_)) {
                    width = None;
                }
                continue;
            };
            let wide = width.replace(dense.units) == Some(dense.units);
            if !wide || dense.activation == Activation::Linear {
                continue;
            }
            // The activation goes first, so that what is added can be of either sign and the sum
            // does not grow with every layer.
            let activation = std::mem::replace(&mut dense.activation, Activation::Linear);
            let inner = vec![
                Layer::LayerNorm(LayerNorm::default()),
                Layer::Activation(ActivationLayer::new(activation)),
                layer.clone(),
            ];
            *layer = Layer::Residual(Residual::new(inner));
            count += 1;
        }
        changed.model.insert(output, Layer::LayerNorm(LayerNorm::default()));
        if count < LEAST {
            return Err("the model has too few layers of the same width in a row".to_owned());
        }
        reinitialize(&mut changed);
        let message = format!("Adds a residual connection around each of {count} hidden layers.");
        Change::new(plan, changed, message)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, finding, plan};
    use super::*;
    use surefoot_diagnose::Problem;

    #[test]
    fn layers_of_the_same_width_get_a_way_around_them() {
        let (facts, finding) = (facts(), finding(Problem::VANISHING_GRADIENT));
        let context = RemedyContext { finding: &finding, facts: &facts };
        assert!(ResidualConnections.apply(&plan(), &context, 0).is_err());
        let mut deep = plan();
        let hidden = deep.model[0].clone();
        deep.model.splice(0..0, vec![hidden; 6]);
        let change = ResidualConnections.apply(&deep, &context, 0).unwrap();
        let kinds: Vec<&str> = change.plan.model.iter().map(Layer::kind).collect();
        assert_eq!(kinds[..3], ["dense", "residual", "residual"]);
        assert_eq!(kinds.last(), Some(&"dense"));
        change.plan.validate().unwrap();
    }
}
