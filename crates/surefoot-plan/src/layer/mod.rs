//! Layers: the vocabulary of the model.
//!
//! Names and defaults are those of Keras 3, so that a plan and a Keras model mean the same.
//! Shapes leave out the batch dimension and have channels last: an image is
//! `[height, width, channels]`, a sequence `[steps, features]`.

mod arrange;
mod attention;
mod convolution;
mod dense;
mod embedding;
mod norm;
mod pooling;
mod recurrent;
mod walk;

pub use arrange::{Dropout, Flatten, Reshape};
pub use attention::{MultiHeadAttention, Transformer};
pub use convolution::{Conv1d, Conv2d, Padding};
pub use dense::Dense;
pub use embedding::{Embedding, PositionEmbedding};
pub use norm::{BatchNorm, GroupNorm, LayerNorm};
pub use pooling::{GlobalPool, Pool1d, Pool2d};
pub use recurrent::{Gru, Lstm, SimpleRnn};
pub use walk::{output_activation, output_position, walk_mut};

use crate::Activation;
use crate::error::Fault;
use crate::language::{Choice, Fields, Record, Term, Variant, alias, any, name, variant};
use crate::tree::{Node, Tree};

/// One layer of the model.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // each variant is documented at its struct
pub enum Layer {
    Dense(Dense),
    Conv1d(Conv1d),
    Conv2d(Conv2d),
    MaxPool1d(Pool1d),
    MaxPool2d(Pool2d),
    AveragePool1d(Pool1d),
    AveragePool2d(Pool2d),
    GlobalMaxPool(GlobalPool),
    GlobalAveragePool(GlobalPool),
    Flatten(Flatten),
    Reshape(Reshape),
    Dropout(Dropout),
    BatchNorm(BatchNorm),
    LayerNorm(LayerNorm),
    GroupNorm(GroupNorm),
    Embedding(Embedding),
    PositionEmbedding(PositionEmbedding),
    SimpleRnn(SimpleRnn),
    Lstm(Lstm),
    Gru(Gru),
    MultiHeadAttention(MultiHeadAttention),
    Transformer(Transformer),
    Residual(Residual),
    Activation(ActivationLayer),
}

/// `x + layers(x)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Residual {
    /// A name for people.
    pub name: Option<String>,
    /// The branch; its output must have the shape of its input.
    pub layers: Vec<Layer>,
}

/// An activation as a layer of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivationLayer {
    /// A name for people.
    pub name: Option<String>,
    /// Applied to the input.
    pub activation: Activation,
}

impl Residual {
    /// A residual block around `layers`.
    pub fn new(layers: Vec<Layer>) -> Self {
        Self { name: None, layers }
    }
}

impl ActivationLayer {
    /// A layer that applies `activation`.
    pub fn new(activation: Activation) -> Self {
        Self { name: None, activation }
    }
}

impl Layer {
    /// What the layer is called in a plan: `dense`, `conv2d`, ...
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Dense(_) => "dense",
            Self::Conv1d(_) => "conv1d",
            Self::Conv2d(_) => "conv2d",
            Self::MaxPool1d(_) => "max_pool1d",
            Self::MaxPool2d(_) => "max_pool2d",
            Self::AveragePool1d(_) => "average_pool1d",
            Self::AveragePool2d(_) => "average_pool2d",
            Self::GlobalMaxPool(_) => "global_max_pool",
            Self::GlobalAveragePool(_) => "global_average_pool",
            Self::Flatten(_) => "flatten",
            Self::Reshape(_) => "reshape",
            Self::Dropout(_) => "dropout",
            Self::BatchNorm(_) => "batch_norm",
            Self::LayerNorm(_) => "layer_norm",
            Self::GroupNorm(_) => "group_norm",
            Self::Embedding(_) => "embedding",
            Self::PositionEmbedding(_) => "position_embedding",
            Self::SimpleRnn(_) => "simple_rnn",
            Self::Lstm(_) => "lstm",
            Self::Gru(_) => "gru",
            Self::MultiHeadAttention(_) => "multi_head_attention",
            Self::Transformer(_) => "transformer",
            Self::Residual(_) => "residual",
            Self::Activation(_) => "activation",
        }
    }

    /// The name the plan gives the layer, if it does; see [`layer_names`](crate::layer_names) for
    /// the names of all.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Dense(layer) => layer.name.as_deref(),
            Self::Conv1d(layer) => layer.name.as_deref(),
            Self::Conv2d(layer) => layer.name.as_deref(),
            Self::MaxPool1d(layer) => layer.name.as_deref(),
            Self::MaxPool2d(layer) => layer.name.as_deref(),
            Self::AveragePool1d(layer) => layer.name.as_deref(),
            Self::AveragePool2d(layer) => layer.name.as_deref(),
            Self::GlobalMaxPool(layer) => layer.name.as_deref(),
            Self::GlobalAveragePool(layer) => layer.name.as_deref(),
            Self::Flatten(layer) => layer.name.as_deref(),
            Self::Reshape(layer) => layer.name.as_deref(),
            Self::Dropout(layer) => layer.name.as_deref(),
            Self::BatchNorm(layer) => layer.name.as_deref(),
            Self::LayerNorm(layer) => layer.name.as_deref(),
            Self::GroupNorm(layer) => layer.name.as_deref(),
            Self::Embedding(layer) => layer.name.as_deref(),
            Self::PositionEmbedding(layer) => layer.name.as_deref(),
            Self::SimpleRnn(layer) => layer.name.as_deref(),
            Self::Lstm(layer) => layer.name.as_deref(),
            Self::Gru(layer) => layer.name.as_deref(),
            Self::MultiHeadAttention(layer) => layer.name.as_deref(),
            Self::Transformer(layer) => layer.name.as_deref(),
            Self::Residual(layer) => layer.name.as_deref(),
            Self::Activation(layer) => layer.name.as_deref(),
        }
    }

    /// The activation applied to the layer's output, for layers that have one.
    pub fn activation(&self) -> Option<Activation> {
        match self {
            Self::Dense(layer) => Some(layer.activation),
            Self::Conv1d(layer) => Some(layer.activation),
            Self::Conv2d(layer) => Some(layer.activation),
            Self::SimpleRnn(layer) => Some(layer.activation),
            Self::Lstm(layer) => Some(layer.activation),
            Self::Gru(layer) => Some(layer.activation),
            Self::Transformer(layer) => Some(layer.activation),
            Self::Activation(layer) => Some(layer.activation),
            _ => None,
        }
    }

    /// Where [`Layer::activation`] is kept, to change it.
    pub fn activation_mut(&mut self) -> Option<&mut Activation> {
        match self {
            Self::Dense(layer) => Some(&mut layer.activation),
            Self::Conv1d(layer) => Some(&mut layer.activation),
            Self::Conv2d(layer) => Some(&mut layer.activation),
            Self::SimpleRnn(layer) => Some(&mut layer.activation),
            Self::Lstm(layer) => Some(&mut layer.activation),
            Self::Gru(layer) => Some(&mut layer.activation),
            Self::Transformer(layer) => Some(&mut layer.activation),
            Self::Activation(layer) => Some(&mut layer.activation),
            _ => None,
        }
    }
}

impl Record for Layer {
    fn fields<F: Fields>(&mut self, f: &mut F) {
        match self {
            Self::Dense(layer) => layer.fields(f),
            Self::Conv1d(layer) => layer.fields(f),
            Self::Conv2d(layer) => layer.fields(f),
            Self::MaxPool1d(layer) => layer.fields(f),
            Self::MaxPool2d(layer) => layer.fields(f),
            Self::AveragePool1d(layer) => layer.fields(f),
            Self::AveragePool2d(layer) => layer.fields(f),
            Self::GlobalMaxPool(layer) => layer.fields(f),
            Self::GlobalAveragePool(layer) => layer.fields(f),
            Self::Flatten(layer) => layer.fields(f),
            Self::Reshape(layer) => layer.fields(f),
            Self::Dropout(layer) => layer.fields(f),
            Self::BatchNorm(layer) => layer.fields(f),
            Self::LayerNorm(layer) => layer.fields(f),
            Self::GroupNorm(layer) => layer.fields(f),
            Self::Embedding(layer) => layer.fields(f),
            Self::PositionEmbedding(layer) => layer.fields(f),
            Self::SimpleRnn(layer) => layer.fields(f),
            Self::Lstm(layer) => layer.fields(f),
            Self::Gru(layer) => layer.fields(f),
            Self::MultiHeadAttention(layer) => layer.fields(f),
            Self::Transformer(layer) => layer.fields(f),
            Self::Residual(layer) => layer.fields(f),
            Self::Activation(layer) => layer.fields(f),
        }
    }
}

impl Choice for Layer {
    const TAG: &'static str = "layer";
    const NOUN: &'static str = "a layer";
    const BARE: bool = false;
    const VARIANTS: &'static [Variant<Self>] = &[
        variant("dense", || Self::Dense(Dense::new(1))),
        alias("conv1d", &["convolution1d"], || Self::Conv1d(Conv1d::new(1, 1))),
        alias("conv2d", &["convolution2d"], || Self::Conv2d(Conv2d::new(1, [1, 1]))),
        alias("max_pool1d", &["max_pooling1d"], || Self::MaxPool1d(Pool1d::default())),
        alias("max_pool2d", &["max_pooling2d"], || Self::MaxPool2d(Pool2d::default())),
        alias("average_pool1d", &["average_pooling1d", "avg_pool1d"], || {
            Self::AveragePool1d(Pool1d::default())
        }),
        alias("average_pool2d", &["average_pooling2d", "avg_pool2d"], || {
            Self::AveragePool2d(Pool2d::default())
        }),
        alias(
            "global_max_pool",
            &["global_max_pooling", "global_max_pooling1d", "global_max_pooling2d"],
            || Self::GlobalMaxPool(GlobalPool::default()),
        ),
        alias(
            "global_average_pool",
            &["global_average_pooling", "global_average_pooling1d", "global_average_pooling2d"],
            || Self::GlobalAveragePool(GlobalPool::default()),
        ),
        variant("flatten", || Self::Flatten(Flatten::default())),
        variant("reshape", || Self::Reshape(Reshape::new(Vec::new()))),
        variant("dropout", || Self::Dropout(Dropout::new(0.0))),
        alias("batch_norm", &["batch_normalization"], || Self::BatchNorm(BatchNorm::default())),
        alias("layer_norm", &["layer_normalization"], || Self::LayerNorm(LayerNorm::default())),
        alias("group_norm", &["group_normalization"], || Self::GroupNorm(GroupNorm::default())),
        variant("embedding", || Self::Embedding(Embedding::new(1, 1))),
        variant("position_embedding", || Self::PositionEmbedding(PositionEmbedding::default())),
        variant("simple_rnn", || Self::SimpleRnn(SimpleRnn::new(1))),
        variant("lstm", || Self::Lstm(Lstm::new(1))),
        variant("gru", || Self::Gru(Gru::new(1))),
        alias("multi_head_attention", &["mha"], || {
            Self::MultiHeadAttention(MultiHeadAttention::new(1))
        }),
        alias("transformer", &["transformer_encoder"], || {
            Self::Transformer(Transformer::new(1, 1))
        }),
        variant("residual", || Self::Residual(Residual::new(Vec::new()))),
        variant("activation", || Self::Activation(ActivationLayer::new(Activation::Linear))),
    ];

    fn variant(&self) -> &'static str {
        self.kind()
    }
}

impl Record for Residual {
    fn fields<F: Fields>(&mut self, f: &mut F) {
        f.maybe("name", &mut self.name, name);
        f.required("layers", &mut self.layers, any);
    }
}

impl Record for ActivationLayer {
    fn fields<F: Fields>(&mut self, f: &mut F) {
        f.maybe("name", &mut self.name, name);
        f.required("activation", &mut self.activation, any);
    }
}

/// Layers one after the other; at least one.
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
