//! Random layers.

use super::{name, number, positive, share, size, sizes};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use surefoot_plan::*;

fn padding() -> BoxedStrategy<Padding> {
    prop_oneof![Just(Padding::Valid), Just(Padding::Same)].boxed()
}

fn regularizer() -> BoxedStrategy<Regularizer> {
    (share(), share()).prop_map(|(l1, l2)| Regularizer { l1, l2 }).boxed()
}

fn activation() -> BoxedStrategy<Activation> {
    prop_oneof![
        Just(Activation::Relu),
        number().prop_map(|slope| Activation::LeakyRelu { negative_slope: slope.abs() }),
        Just(Activation::leaky_relu()),
        number().prop_map(|alpha| Activation::Elu { alpha: alpha.abs() }),
        Just(Activation::Selu),
        any::<bool>().prop_map(|approximate| Activation::Gelu { approximate }),
        Just(Activation::Silu),
        Just(Activation::Tanh),
        Just(Activation::Sigmoid),
        positive().prop_map(|slope| Activation::HardSigmoid { slope }),
        Just(Activation::hard_sigmoid()),
        Just(Activation::Softplus),
        Just(Activation::Softmax),
        Just(Activation::Linear),
    ]
    .boxed()
}

fn initializer() -> BoxedStrategy<Initializer> {
    prop_oneof![
        Just(Initializer::Zeros),
        Just(Initializer::Ones),
        number().prop_map(|value| Initializer::Constant { value }),
        (number(), positive())
            .prop_map(|(mean, stddev)| Initializer::RandomNormal { mean, stddev }),
        (-1.0..0.0, 0.0..1.0)
            .prop_map(|(minval, maxval)| Initializer::RandomUniform { minval, maxval }),
        (number(), positive())
            .prop_map(|(mean, stddev)| Initializer::TruncatedNormal { mean, stddev }),
        Just(Initializer::GlorotNormal),
        Just(Initializer::GlorotUniform),
        Just(Initializer::HeNormal),
        Just(Initializer::HeUniform),
        Just(Initializer::LecunNormal),
        Just(Initializer::LecunUniform),
        number().prop_map(|gain| Initializer::Orthogonal { gain }),
    ]
    .boxed()
}

/// Fields that most layers with weights share.
type Weights = (Option<String>, Activation, bool, [Initializer; 3], [Regularizer; 2]);

fn weights() -> BoxedStrategy<Weights> {
    (
        name(),
        activation(),
        any::<bool>(),
        [initializer(), initializer(), initializer()],
        [regularizer(), regularizer()],
    )
        .boxed()
}

fn dense() -> BoxedStrategy<Layer> {
    (weights(), size())
        .prop_map(|((name, activation, use_bias, [kernel, bias, _], [l, m]), units)| {
            Layer::Dense(Dense {
                name,
                units,
                activation,
                use_bias,
                kernel_initializer: kernel,
                bias_initializer: bias,
                kernel_regularizer: l,
                bias_regularizer: m,
            })
        })
        .boxed()
}

fn convolution() -> BoxedStrategy<Layer> {
    (weights(), size(), [sizes(), sizes(), sizes()], padding(), any::<bool>())
        .prop_map(|(weights, filters, [kernel_size, strides, dilation_rate], padding, two)| {
            let (name, activation, use_bias, [kernel, bias, _], [l, m]) = weights;
            match two {
                true => Layer::Conv2d(Conv2d {
                    name,
                    filters,
                    kernel_size,
                    strides,
                    padding,
                    dilation_rate,
                    activation,
                    use_bias,
                    kernel_initializer: kernel,
                    bias_initializer: bias,
                    kernel_regularizer: l,
                    bias_regularizer: m,
                }),
                false => Layer::Conv1d(Conv1d {
                    name,
                    filters,
                    kernel_size: kernel_size[0],
                    strides: strides[0],
                    padding,
                    dilation_rate: dilation_rate[0],
                    activation,
                    use_bias,
                    kernel_initializer: kernel,
                    bias_initializer: bias,
                    kernel_regularizer: l,
                    bias_regularizer: m,
                }),
            }
        })
        .boxed()
}

fn pooling() -> BoxedStrategy<Layer> {
    let two = (name(), sizes(), option::of(sizes()), padding()).prop_map(
        |(name, pool_size, strides, padding)| Pool2d { name, pool_size, strides, padding },
    );
    let one = (name(), size(), option::of(size()), padding()).prop_map(
        |(name, pool_size, strides, padding)| Pool1d { name, pool_size, strides, padding },
    );
    let global = name().prop_map(|name| GlobalPool { name });
    prop_oneof![
        one.clone().prop_map(Layer::MaxPool1d),
        one.prop_map(Layer::AveragePool1d),
        two.clone().prop_map(Layer::MaxPool2d),
        two.prop_map(Layer::AveragePool2d),
        global.clone().prop_map(Layer::GlobalMaxPool),
        global.prop_map(Layer::GlobalAveragePool),
    ]
    .boxed()
}

fn small() -> BoxedStrategy<Layer> {
    prop_oneof![
        name().prop_map(|name| Layer::Flatten(Flatten { name })),
        (name(), vec(1..9i64, 1..4), any::<bool>()).prop_map(|(name, mut target_shape, open)| {
            if open {
                target_shape[0] = -1;
            }
            Layer::Reshape(Reshape { name, target_shape })
        }),
        (name(), share()).prop_map(|(name, rate)| Layer::Dropout(Dropout { name, rate })),
        (name(), activation())
            .prop_map(|(name, activation)| Layer::Activation(ActivationLayer { name, activation })),
        (name(), size(), size(), initializer()).prop_map(
            |(name, input_dim, output_dim, embeddings_initializer)| Layer::Embedding(Embedding {
                name,
                input_dim,
                output_dim,
                embeddings_initializer
            })
        ),
        (name(), initializer()).prop_map(|(name, initializer)| Layer::PositionEmbedding(
            PositionEmbedding { name, initializer }
        )),
        (name(), positive())
            .prop_map(|(name, mask_value)| Layer::Masking(Masking { name, mask_value })),
    ]
    .boxed()
}

fn norm() -> BoxedStrategy<Layer> {
    let flags = (any::<bool>(), any::<bool>());
    (name(), 0..3, size(), share(), positive(), flags)
        .prop_map(|(name, kind, groups, momentum, epsilon, (center, scale))| match kind {
            0 => Layer::BatchNorm(BatchNorm { name, momentum, epsilon, center, scale }),
            1 => Layer::LayerNorm(LayerNorm { name, epsilon, center, scale }),
            _ => Layer::GroupNorm(GroupNorm { name, groups, epsilon, center, scale }),
        })
        .boxed()
}

fn recurrent() -> BoxedStrategy<Layer> {
    (weights(), 0..3, size(), activation(), any::<[bool; 3]>())
        .prop_map(|(weights, kind, units, recurrent_activation, flags)| {
            let (name, activation, use_bias, initializers, regularizers) = weights;
            let [kernel_initializer, recurrent_initializer, bias_initializer] = initializers;
            let [kernel_regularizer, recurrent_regularizer] = regularizers;
            let [return_sequences, bidirectional, flag] = flags;
            match kind {
                0 => Layer::SimpleRnn(SimpleRnn {
                    name,
                    units,
                    activation,
                    use_bias,
                    kernel_initializer,
                    recurrent_initializer,
                    bias_initializer,
                    kernel_regularizer,
                    recurrent_regularizer,
                    return_sequences,
                    bidirectional,
                }),
                1 => Layer::Lstm(Lstm {
                    name,
                    units,
                    activation,
                    recurrent_activation,
                    use_bias,
                    unit_forget_bias: flag,
                    kernel_initializer,
                    recurrent_initializer,
                    bias_initializer,
                    kernel_regularizer,
                    recurrent_regularizer,
                    return_sequences,
                    bidirectional,
                }),
                _ => Layer::Gru(Gru {
                    name,
                    units,
                    activation,
                    recurrent_activation,
                    use_bias,
                    reset_after: flag,
                    kernel_initializer,
                    recurrent_initializer,
                    bias_initializer,
                    kernel_regularizer,
                    recurrent_regularizer,
                    return_sequences,
                    bidirectional,
                }),
            }
        })
        .boxed()
}

fn attention() -> BoxedStrategy<Layer> {
    let heads = (weights(), size(), option::of(size()), share());
    let block = (weights(), size(), size(), share(), positive());
    prop_oneof![
        heads.prop_map(
            |((name, _, use_bias, [kernel, bias, _], _), num_heads, key_dim, dropout)| {
                Layer::MultiHeadAttention(MultiHeadAttention {
                    name,
                    num_heads,
                    key_dim,
                    dropout,
                    use_bias,
                    kernel_initializer: kernel,
                    bias_initializer: bias,
                })
            }
        ),
        block.prop_map(|(weights, num_heads, feed_forward, dropout, epsilon)| {
            let (name, activation, norm_first, [kernel_initializer, ..], _) = weights;
            Layer::Transformer(Transformer {
                name,
                num_heads,
                feed_forward,
                activation,
                dropout,
                norm_first,
                epsilon,
                kernel_initializer,
            })
        }),
    ]
    .boxed()
}

pub(crate) fn layer() -> BoxedStrategy<Layer> {
    let leaf =
        prop_oneof![dense(), convolution(), pooling(), small(), norm(), recurrent(), attention()];
    leaf.prop_recursive(3, 12, 4, |inner| {
        (name(), vec(inner, 1..4))
            .prop_map(|(name, layers)| Layer::Residual(Residual { name, layers, shortcut: None }))
    })
    .boxed()
}
