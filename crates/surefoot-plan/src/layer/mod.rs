//! Layers of a model.
//!
//! Names and defaults are those of Keras 3. Shapes omit the batch dimension and have channels
//! last: an image is `[height, width, channels]`, a sequence `[steps, features]`.
//!
//! A layer is one file and one row of the list below. The file holds the struct, its keys, its
//! shape rule, its Keras translation and its tests; see [`LayerSpec`]. Everything else is
//! generated from the list.

mod activation_layer;
mod batch_norm;
mod conv1d;
mod conv2d;
mod dense;
mod dropout;
mod embedding;
mod flatten;
mod global_pool;
mod group_norm;
mod gru;
mod layer_norm;
mod lstm;
mod masking;
mod multi_head_attention;
mod padding;
mod pool1d;
mod pool2d;
mod position_embedding;
mod recurrent;
mod reshape;
mod residual;
mod simple_rnn;
mod transformer;
mod walk;

pub use padding::Padding;
pub use walk::{output_activation, output_position, walk_mut};

use crate::error::Fault;
#[cfg(feature = "keras")]
use crate::keras::{self, KerasArrays, LayerConfig};
use crate::language::{Choice, Fields, Find, Record, Term, Variant, alias};
use crate::shape::{Input, Mismatch, Output};
use crate::tree::{Node, Tree};
use crate::{Activation, Initializer};

/// Generates [`Layer`] and its dispatch from the list of layers.
macro_rules! layers {
    ($($module:ident :: $type:ident => $($variant:ident($kind:literal, $aliases:expr, $keras:expr)),+;)*) => {
        $(pub use $module::$type;)*

        /// One layer of a model.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)] // each struct documents its layer
        pub enum Layer {
            $($($variant($type),)+)*
        }

        impl Layer {
            /// Name of the kind in a plan: `dense`, `conv2d`, ...
            pub fn kind(&self) -> &'static str {
                match self {
                    $($(Self::$variant(_) => $kind,)+)*
                }
            }

            /// The name that the plan assigns to the layer, if any. For the names of all layers see
            /// [`layer_names`](crate::layer_names).
            pub fn name(&self) -> Option<&str> {
                match self {
                    $($(Self::$variant(layer) => layer.name.as_deref(),)+)*
                }
            }

            pub(crate) fn role(&self) -> Role {
                match self {
                    $($(Self::$variant(_) => $type::ROLE,)+)*
                }
            }

            pub(crate) fn output(&self, input: Input<'_>) -> Result<Output, Mismatch> {
                match self {
                    $($(Self::$variant(layer) => layer.output(input),)+)*
                }
            }
        }

        #[cfg(feature = "keras")]
        impl Layer {
            /// The Keras classes of all layers, with the role of each.
            pub(crate) fn keras_classes() -> Vec<(&'static str, Role)> {
                let mut classes = Vec::new();
                $($({
                    let names: &[&'static str] = &$keras;
                    classes.extend(names.iter().map(|name| (*name, $type::ROLE)));
                })+)*
                classes
            }

            /// Translates a Keras layer; `None` if the class is unknown.
            pub(crate) fn from_keras(config: &LayerConfig<'_>) -> Option<keras::Result<Self>> {
                $($({
                    let names: &[&str] = &$keras;
                    if names.contains(&config.class) {
                        return Some($type::from_keras(config).map(Self::$variant));
                    }
                })+)*
                None
            }

            pub(crate) fn keras_arrays(&self) -> KerasArrays {
                match self {
                    $($(Self::$variant(layer) => layer.keras_arrays(),)+)*
                }
            }

            pub(crate) fn rank(&self, input: Option<usize>) -> Option<usize> {
                match self {
                    $($(Self::$variant(layer) => layer.rank(input),)+)*
                }
            }
        }

        impl Record for Layer {
            fn fields<'a, F: Fields<'a>>(&'a mut self, f: &mut F) {
                match self {
                    $($(Self::$variant(layer) => layer.fields(f),)+)*
                }
            }
        }

        impl Choice for Layer {
            const TAG: &'static str = "layer";
            const NOUN: &'static str = "a layer";
            const BARE: bool = false;
            const VARIANTS: &'static [Variant<Self>] = &[
                $($(alias($kind, &$aliases, || Self::$variant($type::template())),)+)*
            ];
        }
    };
}

// Struct => variant(name in a plan, [other accepted names], [Keras classes]), ...;
layers! {
    dense::Dense => Dense("dense", [], ["Dense"]);
    conv1d::Conv1d => Conv1d("conv1d", ["convolution1d"], ["Conv1D"]);
    conv2d::Conv2d => Conv2d("conv2d", ["convolution2d"], ["Conv2D"]);
    pool1d::Pool1d =>
        MaxPool1d("max_pool1d", ["max_pooling1d"], ["MaxPooling1D"]),
        AveragePool1d("average_pool1d", ["average_pooling1d", "avg_pool1d"], ["AveragePooling1D"]);
    pool2d::Pool2d =>
        MaxPool2d("max_pool2d", ["max_pooling2d"], ["MaxPooling2D"]),
        AveragePool2d("average_pool2d", ["average_pooling2d", "avg_pool2d"], ["AveragePooling2D"]);
    global_pool::GlobalPool =>
        GlobalMaxPool(
            "global_max_pool",
            ["global_max_pooling", "global_max_pooling1d", "global_max_pooling2d"],
            ["GlobalMaxPooling1D", "GlobalMaxPooling2D"]
        ),
        GlobalAveragePool(
            "global_average_pool",
            ["global_average_pooling", "global_average_pooling1d", "global_average_pooling2d"],
            ["GlobalAveragePooling1D", "GlobalAveragePooling2D"]
        );
    flatten::Flatten => Flatten("flatten", [], ["Flatten"]);
    reshape::Reshape => Reshape("reshape", [], ["Reshape"]);
    dropout::Dropout => Dropout("dropout", [], ["Dropout"]);
    batch_norm::BatchNorm =>
        BatchNorm("batch_norm", ["batch_normalization"], ["BatchNormalization"]);
    layer_norm::LayerNorm =>
        LayerNorm("layer_norm", ["layer_normalization"], ["LayerNormalization"]);
    group_norm::GroupNorm =>
        GroupNorm("group_norm", ["group_normalization"], ["GroupNormalization"]);
    embedding::Embedding => Embedding("embedding", [], ["Embedding"]);
    position_embedding::PositionEmbedding => PositionEmbedding("position_embedding", [], []);
    masking::Masking => Masking("masking", [], ["Masking"]);
    simple_rnn::SimpleRnn => SimpleRnn("simple_rnn", [], ["SimpleRNN"]);
    lstm::Lstm => Lstm("lstm", [], ["LSTM"]);
    gru::Gru => Gru("gru", [], ["GRU"]);
    multi_head_attention::MultiHeadAttention =>
        MultiHeadAttention("multi_head_attention", ["mha"], []);
    transformer::Transformer => Transformer("transformer", ["transformer_encoder"], []);
    residual::Residual => Residual("residual", [], []);
    activation_layer::ActivationLayer =>
        Activation("activation", [], ["Activation", "ELU", "LeakyReLU", "ReLU", "Softmax"]);
}

/// The part a layer plays in a model, as far as other code depends on it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Multiplies by trained weights, so that it can be the output layer.
    Compute,
    /// Like `Compute`, with a state that runs along a sequence.
    Recurrent,
    /// Normalizes.
    Norm,
    /// Changes the shape and keeps the values.
    Reshape,
    /// Anything else.
    Other,
}

/// Everything that is specific to one kind of layer.
///
/// The struct also needs a field `name: Option<String>`, and its keys in `record!`.
pub(crate) trait LayerSpec: Record + Clone {
    /// The part it plays in a model.
    const ROLE: Role;

    /// A layer with every optional key at its default. Required keys have placeholder values.
    fn template() -> Self;

    /// The shape rule: output shape and number of parameters for an input.
    fn output(&self, input: Input<'_>) -> Result<Output, Mismatch>;

    /// Translates a Keras layer of one of the classes in the list.
    ///
    /// The default copies the values of all keys that Keras has under the same name. Override it
    /// to reject Keras options that would change what the layer computes.
    #[cfg(feature = "keras")]
    fn from_keras(config: &LayerConfig<'_>) -> keras::Result<Self> {
        config.read(Self::template())
    }

    /// The arrays of the Keras layer, in the order in which Keras stores them.
    #[cfg(feature = "keras")]
    fn keras_arrays(&self) -> KerasArrays {
        KerasArrays::default()
    }

    /// Number of dimensions of the output, without the batch.
    #[cfg(feature = "keras")]
    fn rank(&self, input: Option<usize>) -> Option<usize> {
        input
    }
}

impl Layer {
    /// The activation applied to the layer's output, for layers that have one.
    pub fn activation(&self) -> Option<Activation> {
        self.clone().activation_mut().copied()
    }

    /// Mutable access to [`activation`](Self::activation).
    pub fn activation_mut(&mut self) -> Option<&mut Activation> {
        Find::key(self, "activation")
    }

    /// Mutable access to the initializer of the weights, for layers that have one.
    pub fn kernel_initializer_mut(&mut self) -> Option<&mut Initializer> {
        Find::key(self, "kernel_initializer")
    }

    /// Mutable access to the initializer of the recurrent weights, for layers that have one.
    pub fn recurrent_initializer_mut(&mut self) -> Option<&mut Initializer> {
        Find::key(self, "recurrent_initializer")
    }

    /// Mutable access to the initializer of the biases, for layers that have one.
    pub fn bias_initializer_mut(&mut self) -> Option<&mut Initializer> {
        Find::key(self, "bias_initializer")
    }

    /// True for layers with a state that runs along a sequence. Their activation is part of the
    /// recurrence and must not be replaced by a separate layer.
    pub fn is_recurrent(&self) -> bool {
        self.role() == Role::Recurrent
    }

    /// True for layers after which hidden steps of a sequence stay hidden.
    pub(crate) fn keeps_mask(&self) -> bool {
        let by_step = matches!(
            self,
            Self::Masking(_)
                | Self::Dense(_)
                | Self::Dropout(_)
                | Self::Activation(_)
                | Self::LayerNorm(_)
        );
        by_step || self.is_recurrent()
    }

    /// True for normalization layers.
    pub fn is_norm(&self) -> bool {
        self.role() == Role::Norm
    }
}

/// A list of at least one layer.
impl Term for Vec<Layer> {
    const NOUN: &'static str = "a list of layers";

    fn read(node: &Node, key: &str) -> Result<Self, Fault> {
        let Tree::List(nodes) = &node.value else {
            return Err(Fault::kind(node, key, Self::NOUN));
        };
        if nodes.is_empty() {
            return Err(Fault::new(
                node.span.clone(),
                format!("`{key}` must have at least one layer"),
            ));
        }
        let mut layers: Self = Vec::new();
        for node in nodes {
            let layer = Layer::read(node, key)?;
            let taken = |other: &Layer| other.name().is_some() && other.name() == layer.name();
            if let Some(first) = layers.iter().position(taken) {
                let span = node.get("name").map_or(&node.span, |entry| &entry.node.span);
                return Err(Fault::new(span.clone(), "two layers have the same name".to_owned())
                    .label(format!("this is also the name of layer {}", first + 1)));
            }
            layers.push(layer);
        }
        Ok(layers)
    }

    fn write(&self) -> String {
        let lines: Vec<_> = self
            .iter()
            .map(|layer| format!("  {},\n", layer.write().replace('\n', "\n  ")))
            .collect();
        format!("[\n{}]", lines.concat())
    }
}

/// Output shape and number of parameters of one layer.
#[cfg(test)]
fn output_of(layer: Layer, input: &[usize]) -> (Vec<usize>, usize) {
    let shapes = crate::infer(&[layer], input, false).unwrap();
    let shape = shapes.last().unwrap();
    (shape.output.clone(), shape.parameters)
}

/// Reason why a layer rejects an input.
#[cfg(test)]
fn mismatch_of(layer: Layer, input: &[usize]) -> String {
    crate::infer(&[layer], input, false).unwrap_err().label.unwrap()
}
