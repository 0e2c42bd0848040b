//! Kinds of layers and activations.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Defines an enum of names that is open at the end: unknown names are kept in `Other`.
macro_rules! open_names {
    ($(#[$meta:meta])* $enum:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $enum {
            $($(#[$doc])* $variant,)+
            /// Any other, by its name.
            Other(String),
        }

        impl $enum {
            /// The name in plans, records and output.
            pub fn as_str(&self) -> &str {
                match self {
                    $($enum::$variant => $name,)+
                    $enum::Other(name) => name,
                }
            }
        }

        impl From<&str> for $enum {
            fn from(name: &str) -> $enum {
                match name {
                    $($name => $enum::$variant,)+
                    other => $enum::Other(other.to_owned()),
                }
            }
        }

        impl fmt::Display for $enum {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl Serialize for $enum {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $enum {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$enum, D::Error> {
                String::deserialize(deserializer).map(|name| $enum::from(name.as_str()))
            }
        }
    };
}
pub(crate) use open_names;

open_names! {
    /// Kind of a layer. Serialized as its name.
    LayerKind {
        /// Fully connected.
        Dense = "dense",
        /// Convolution over one dimension.
        Conv1d = "conv1d",
        /// Convolution over two dimensions.
        Conv2d = "conv2d",
        /// Simple recurrent layer.
        SimpleRnn = "simple_rnn",
        /// Gated recurrent unit.
        Gru = "gru",
        /// Long short-term memory.
        Lstm = "lstm",
        /// Table of vectors, one for each symbol.
        Embedding = "embedding",
        /// Table of vectors, one for each position.
        PositionEmbedding = "position_embedding",
        /// Hides padded steps of a sequence.
        Masking = "masking",
        /// Products of queries and keys in an attention, before the softmax. It has no weights.
        AttentionLogits = "attention_logits",
        /// Normalization over the batch.
        BatchNorm = "batch_norm",
        /// Normalization over the features.
        LayerNorm = "layer_norm",
        /// Normalization over groups of channels.
        GroupNorm = "group_norm",
        /// Activation function without weights.
        Activation = "activation",
        /// Drops a share of the values in training.
        Dropout = "dropout",
        /// Merges all dimensions of a sample into one.
        Flatten = "flatten",
        /// Arranges the values of a sample in another shape.
        Reshape = "reshape",
        /// Maximum over windows of one dimension.
        MaxPool1d = "max_pool1d",
        /// Maximum over windows of two dimensions.
        MaxPool2d = "max_pool2d",
        /// Mean over windows of one dimension.
        AveragePool1d = "average_pool1d",
        /// Mean over windows of two dimensions.
        AveragePool2d = "average_pool2d",
        /// Maximum over all positions.
        GlobalMaxPool = "global_max_pool",
        /// Mean over all positions.
        GlobalAveragePool = "global_average_pool",
        /// Attention with several heads.
        MultiHeadAttention = "multi_head_attention",
        /// Transformer block.
        Transformer = "transformer",
        /// Layers with a shortcut around them.
        Residual = "residual",
    }
}

open_names! {
    /// Activation function. Serialized as its name.
    Activation {
        /// The identity.
        Linear = "linear",
        /// Rectified linear unit.
        Relu = "relu",
        /// ReLU with a small slope below zero.
        LeakyRelu = "leaky_relu",
        /// Exponential linear unit.
        Elu = "elu",
        /// Self-normalizing ELU.
        Selu = "selu",
        /// Gaussian error linear unit.
        Gelu = "gelu",
        /// Sigmoid-weighted linear unit, also called swish.
        Silu = "silu",
        /// Hyperbolic tangent.
        Tanh = "tanh",
        /// Logistic function.
        Sigmoid = "sigmoid",
        /// Piecewise linear approximation of the sigmoid.
        HardSigmoid = "hard_sigmoid",
        /// Smooth ReLU.
        Softplus = "softplus",
        /// Exponentials that sum to one.
        Softmax = "softmax",
    }
}

impl LayerKind {
    /// True for normalization layers.
    pub fn is_norm(&self) -> bool {
        self.as_str().ends_with("_norm")
    }

    /// True for embeddings.
    pub fn is_embedding(&self) -> bool {
        self.as_str().ends_with("embedding")
    }

    /// True for layers that pass values on without computing new ones.
    pub(crate) fn only_arranges(&self) -> bool {
        matches!(self, LayerKind::Flatten | LayerKind::Reshape | LayerKind::Dropout)
    }

    /// True for layers that may end in an activation function, and for unknown ones.
    pub(crate) fn may_activate(&self) -> bool {
        matches!(
            self,
            LayerKind::Dense
                | LayerKind::Conv1d
                | LayerKind::Conv2d
                | LayerKind::SimpleRnn
                | LayerKind::Activation
                | LayerKind::Other(_)
        )
    }
}

/// An unknown kind: the empty name.
impl Default for LayerKind {
    fn default() -> Self {
        LayerKind::Other(String::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_known_or_not() {
        for name in ["dense", "batch_norm", "mamba"] {
            let kind = LayerKind::from(name);
            let json = serde_json::to_string(&kind).unwrap();
            assert_eq!(json, format!("\"{name}\""));
            assert_eq!(serde_json::from_str::<LayerKind>(&json).unwrap(), kind);
        }
        assert_eq!(Activation::from("relu"), Activation::Relu);
        assert_eq!(Activation::from("mish"), Activation::Other("mish".to_owned()));
    }
}
