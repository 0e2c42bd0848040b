//! Activation functions.

#[cfg(feature = "keras")]
use crate::keras::{self, LayerConfig};
use crate::language::{
    Choice, Fields, Record, Variant, alias, any, non_negative, positive, variant,
};

/// A function applied to each value (softmax: to the last dimension).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Activation {
    /// `max(x, 0)`
    Relu,
    /// `x` if positive, else `negative_slope * x` (default 0.2)
    LeakyRelu {
        /// Slope below zero.
        negative_slope: f64,
    },
    /// `x` if positive, else `alpha * (exp(x) - 1)` (default 1)
    Elu {
        /// Size of the negative part.
        alpha: f64,
    },
    /// Scaled ELU, self-normalizing.
    Selu,
    /// `x * Phi(x)`; exact unless `approximate`.
    Gelu {
        /// Uses the tanh approximation.
        approximate: bool,
    },
    /// `x * sigmoid(x)`
    Silu,
    /// Hyperbolic tangent.
    Tanh,
    /// `1 / (1 + exp(-x))`
    Sigmoid,
    /// `clip(slope * x + 0.5, 0, 1)`; the slope is 1/6 in Keras 3 and PyTorch, 0.2 in Keras 2.
    HardSigmoid {
        /// Slope of the middle part.
        slope: f64,
    },
    /// `ln(1 + exp(x))`
    Softplus,
    /// `exp(x) / sum(exp(x))` over the last dimension.
    Softmax,
    /// `x`
    #[default]
    Linear,
}

impl Record for Activation {
    fn fields<'a, F: Fields<'a>>(&'a mut self, f: &mut F) {
        match self {
            Self::LeakyRelu { negative_slope } => {
                f.optional("negative_slope", negative_slope, non_negative)
            }
            Self::Elu { alpha } => f.optional("alpha", alpha, non_negative),
            Self::Gelu { approximate } => f.optional("approximate", approximate, any),
            Self::HardSigmoid { slope } => f.optional("slope", slope, positive),
            _ => {}
        }
    }
}

impl Choice for Activation {
    const TAG: &'static str = "name";
    const NOUN: &'static str = "an activation";
    const VARIANTS: &'static [Variant<Self>] = &[
        variant("relu", || Self::Relu),
        variant("leaky_relu", Self::leaky_relu),
        variant("elu", Self::elu),
        variant("selu", || Self::Selu),
        variant("gelu", Self::gelu),
        alias("silu", &["swish"], || Self::Silu),
        variant("tanh", || Self::Tanh),
        variant("sigmoid", || Self::Sigmoid),
        variant("hard_sigmoid", Self::hard_sigmoid),
        variant("softplus", || Self::Softplus),
        variant("softmax", || Self::Softmax),
        alias("linear", &["none", "identity"], || Self::Linear),
    ];

    #[cfg(feature = "keras")]
    fn read_keras(config: &LayerConfig<'_>, key: &str) -> keras::Result<Option<Self>> {
        config.activation(key)
    }
}

impl Activation {
    /// Leaky ReLU with the slope of Keras, 0.2.
    pub fn leaky_relu() -> Self {
        Self::LeakyRelu { negative_slope: 0.2 }
    }

    /// ELU with `alpha` 1.
    pub fn elu() -> Self {
        Self::Elu { alpha: 1.0 }
    }

    /// The exact GELU.
    pub fn gelu() -> Self {
        Self::Gelu { approximate: false }
    }

    /// Hard sigmoid with the slope of Keras 3 and PyTorch, 1/6.
    pub fn hard_sigmoid() -> Self {
        Self::HardSigmoid { slope: 1.0 / 6.0 }
    }

    /// Name in a plan.
    pub fn name(&self) -> &'static str {
        self.variant()
    }
}
