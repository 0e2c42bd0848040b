//! Traversal of the layers of a model.

use super::{Layer, Residual, Role};
use crate::Activation;

/// Calls `change` with every layer from the input to the output, including residual blocks and the
/// layers inside them. The second argument is true for the output layer of the model and for what
/// follows it, such as its activation.
pub fn walk_mut(layers: &mut [Layer], change: &mut dyn FnMut(&mut Layer, bool)) {
    walk_some(layers, true, change);
}

fn walk_some(layers: &mut [Layer], ends_model: bool, change: &mut dyn FnMut(&mut Layer, bool)) {
    let output = ends_model.then(|| output_position(layers)).flatten();
    for (i, layer) in layers.iter_mut().enumerate() {
        change(layer, output.is_some_and(|output| i >= output));
        if let Layer::Residual(Residual { layers, shortcut, .. }) = layer {
            walk_some(layers, false, change);
            walk_some(shortcut.as_deref_mut().unwrap_or_default(), false, change);
        }
    }
}

/// Position of the output layer: the last one with trained weights. An activation, a dropout or a
/// change of shape may follow it.
pub fn output_position(layers: &[Layer]) -> Option<usize> {
    layers.iter().rposition(|layer| matches!(layer.role(), Role::Compute | Role::Recurrent))
}

/// The activation of the model's output: of the output layer, or of an activation layer after it.
pub fn output_activation(layers: &[Layer]) -> Activation {
    let Some(position) = output_position(layers) else {
        return Activation::Linear;
    };
    layers[position..]
        .iter()
        .rev()
        .filter_map(Layer::activation)
        .find(|activation| *activation != Activation::Linear)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ActivationLayer, Dense, Dropout};

    fn dense(activation: Activation) -> Layer {
        Layer::Dense(Dense { activation, ..Dense::new(2) })
    }

    #[test]
    fn every_layer_is_visited_and_the_output_is_marked() {
        let mut layers = vec![
            Layer::Residual(Residual::new(vec![dense(Activation::Relu)])),
            dense(Activation::Linear),
            Layer::Activation(ActivationLayer::new(Activation::Sigmoid)),
            Layer::Dropout(Dropout::new(0.1)),
        ];
        let mut visited = Vec::new();
        walk_mut(&mut layers, &mut |layer, output| {
            visited.push((layer.kind(), output));
        });
        assert_eq!(
            visited,
            [
                ("residual", false),
                ("dense", false),
                ("dense", true),
                ("activation", true),
                ("dropout", true)
            ]
        );
        assert_eq!(output_activation(&layers), Activation::Sigmoid);
    }
}
