//! Going through the layers of a model to change them.

use super::{Layer, Residual};
use crate::{Activation, Initializer, Regularizer};

impl Layer {
    /// Where the initial weights are kept, for layers that have them.
    pub fn kernel_initializer_mut(&mut self) -> Option<&mut Initializer> {
        match self {
            Self::Dense(layer) => Some(&mut layer.kernel_initializer),
            Self::Conv1d(layer) => Some(&mut layer.kernel_initializer),
            Self::Conv2d(layer) => Some(&mut layer.kernel_initializer),
            Self::SimpleRnn(layer) => Some(&mut layer.kernel_initializer),
            Self::Lstm(layer) => Some(&mut layer.kernel_initializer),
            Self::Gru(layer) => Some(&mut layer.kernel_initializer),
            Self::MultiHeadAttention(layer) => Some(&mut layer.kernel_initializer),
            Self::Transformer(layer) => Some(&mut layer.kernel_initializer),
            _ => None,
        }
    }

    /// Where the initial recurrent weights are kept, for layers that have them.
    pub fn recurrent_initializer_mut(&mut self) -> Option<&mut Initializer> {
        match self {
            Self::SimpleRnn(layer) => Some(&mut layer.recurrent_initializer),
            Self::Lstm(layer) => Some(&mut layer.recurrent_initializer),
            Self::Gru(layer) => Some(&mut layer.recurrent_initializer),
            _ => None,
        }
    }

    /// Where the initial biases are kept, for layers that have them.
    pub fn bias_initializer_mut(&mut self) -> Option<&mut Initializer> {
        match self {
            Self::Dense(layer) => Some(&mut layer.bias_initializer),
            Self::Conv1d(layer) => Some(&mut layer.bias_initializer),
            Self::Conv2d(layer) => Some(&mut layer.bias_initializer),
            Self::SimpleRnn(layer) => Some(&mut layer.bias_initializer),
            Self::Lstm(layer) => Some(&mut layer.bias_initializer),
            Self::Gru(layer) => Some(&mut layer.bias_initializer),
            Self::MultiHeadAttention(layer) => Some(&mut layer.bias_initializer),
            _ => None,
        }
    }

    /// Where the penalty on the weights is kept, for layers that have one.
    pub fn kernel_regularizer_mut(&mut self) -> Option<&mut Regularizer> {
        match self {
            Self::Dense(layer) => Some(&mut layer.kernel_regularizer),
            Self::Conv1d(layer) => Some(&mut layer.kernel_regularizer),
            Self::Conv2d(layer) => Some(&mut layer.kernel_regularizer),
            Self::SimpleRnn(layer) => Some(&mut layer.kernel_regularizer),
            Self::Lstm(layer) => Some(&mut layer.kernel_regularizer),
            Self::Gru(layer) => Some(&mut layer.kernel_regularizer),
            _ => None,
        }
    }

    /// Whether the layer has a fixed non-linearity that is its own: an activation elsewhere would
    /// change what it is.
    pub fn is_recurrent(&self) -> bool {
        matches!(self, Self::SimpleRnn(_) | Self::Lstm(_) | Self::Gru(_))
    }

    /// Whether the layer normalises.
    pub fn is_norm(&self) -> bool {
        matches!(self, Self::BatchNorm(_) | Self::LayerNorm(_) | Self::GroupNorm(_))
    }
}

/// Calls `change` with every layer from the input to the output, those within residual blocks and
/// these blocks themselves included. The second argument says whether the layer is the last of the
/// model, the one that gives its output.
pub fn walk_mut(layers: &mut [Layer], change: &mut dyn FnMut(&mut Layer, bool)) {
    walk_some(layers, true, change);
}

fn walk_some(layers: &mut [Layer], ends_model: bool, change: &mut dyn FnMut(&mut Layer, bool)) {
    let output = ends_model.then(|| output_position(layers)).flatten();
    for (i, layer) in layers.iter_mut().enumerate() {
        change(layer, output == Some(i));
        if let Layer::Residual(Residual { layers, .. }) = layer {
            walk_some(layers, false, change);
        }
    }
}

/// The position of the layer that decides the model's output: the last that computes. Behind it
/// there may be an activation of its own, dropout or a change of shape.
pub fn output_position(layers: &[Layer]) -> Option<usize> {
    layers.iter().rposition(|layer| {
        matches!(
            layer,
            Layer::Dense(_)
                | Layer::Conv1d(_)
                | Layer::Conv2d(_)
                | Layer::SimpleRnn(_)
                | Layer::Lstm(_)
                | Layer::Gru(_)
                | Layer::MultiHeadAttention(_)
                | Layer::Transformer(_)
                | Layer::Residual(_)
        )
    })
}

/// The activation that ends the model: of its last layer, or of an activation layer behind it.
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
    fn every_layer_is_met_and_the_output_is_told() {
        let mut layers = vec![
            Layer::Residual(Residual::new(vec![dense(Activation::Relu)])),
            dense(Activation::Linear),
            Layer::Activation(ActivationLayer::new(Activation::Sigmoid)),
            Layer::Dropout(Dropout::new(0.1)),
        ];
        let mut met = Vec::new();
        walk_mut(&mut layers, &mut |layer, output| {
            met.push((layer.kind(), output));
        });
        assert_eq!(
            met,
            [
                ("residual", false),
                ("dense", false),
                ("dense", true),
                ("activation", false),
                ("dropout", false)
            ]
        );
        assert_eq!(output_activation(&layers), Activation::Sigmoid);
    }
}
