//! Initializers and regularizers.

use crate::error::Fault;
#[cfg(feature = "keras")]
use crate::keras::{self, LayerConfig};
use crate::language::{
    Choice, Fields, Record, Term, Variant, alias, any, keys, non_negative, read_record, record,
    variant, write_record,
};
use crate::tree::Node;

/// Distribution of initial weights. Names and definitions are those of Keras.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Initializer {
    /// All zero.
    Zeros,
    /// All one.
    Ones,
    /// All the same value.
    Constant {
        /// The value.
        value: f64,
    },
    /// Normal (default mean 0, stddev 0.05).
    RandomNormal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        stddev: f64,
    },
    /// Uniform (default -0.05 to 0.05).
    RandomUniform {
        /// Lower bound.
        minval: f64,
        /// Upper bound.
        maxval: f64,
    },
    /// Normal, redrawn beyond two standard deviations (default mean 0, stddev 0.05).
    TruncatedNormal {
        /// Mean.
        mean: f64,
        /// Standard deviation before truncation.
        stddev: f64,
    },
    /// Truncated normal of variance `2 / (fan_in + fan_out)`.
    GlorotNormal,
    /// Uniform of variance `2 / (fan_in + fan_out)`.
    #[default]
    GlorotUniform,
    /// Truncated normal of variance `2 / fan_in`.
    HeNormal,
    /// Uniform of variance `2 / fan_in`.
    HeUniform,
    /// Truncated normal of variance `1 / fan_in`.
    LecunNormal,
    /// Uniform of variance `1 / fan_in`.
    LecunUniform,
    /// A random orthogonal matrix times `gain` (default 1).
    Orthogonal {
        /// Factor.
        gain: f64,
    },
}

/// Penalty added to the loss: `l1 * sum |w| + l2 * sum w^2`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Regularizer {
    /// Weight of the sum of absolute values.
    pub l1: f64,
    /// Weight of the sum of squares.
    pub l2: f64,
}

impl Initializer {
    /// Normal with the defaults of Keras, mean 0 and stddev 0.05.
    pub fn random_normal() -> Self {
        Self::RandomNormal { mean: 0.0, stddev: 0.05 }
    }

    /// Uniform with the defaults of Keras, -0.05 to 0.05.
    pub fn random_uniform() -> Self {
        Self::RandomUniform { minval: -0.05, maxval: 0.05 }
    }

    /// Truncated normal with the defaults of Keras, mean 0 and stddev 0.05.
    pub fn truncated_normal() -> Self {
        Self::TruncatedNormal { mean: 0.0, stddev: 0.05 }
    }

    /// Orthogonal with gain 1.
    pub fn orthogonal() -> Self {
        Self::Orthogonal { gain: 1.0 }
    }

    /// Name in a plan.
    pub fn name(&self) -> &'static str {
        self.variant()
    }
}

impl Record for Initializer {
    fn fields<'a, F: Fields<'a>>(&'a mut self, f: &mut F) {
        match self {
            Self::Constant { value } => f.required("value", value, any),
            Self::RandomNormal { mean, stddev } | Self::TruncatedNormal { mean, stddev } => {
                keys! { f; optional: mean, stddev(non_negative); }
            }
            Self::RandomUniform { minval, maxval } => keys! { f; optional: minval, maxval; },
            Self::Orthogonal { gain } => f.optional("gain", gain, any),
            _ => {}
        }
    }

    fn check(&self) -> Result<(), (&'static str, &'static str)> {
        match self {
            Self::RandomUniform { minval, maxval } if minval > maxval => {
                Err(("maxval", "`maxval` must be at least `minval`"))
            }
            _ => Ok(()),
        }
    }
}

impl Choice for Initializer {
    const TAG: &'static str = "name";
    const NOUN: &'static str = "an initializer";
    const VARIANTS: &'static [Variant<Self>] = &[
        variant("zeros", || Self::Zeros),
        variant("ones", || Self::Ones),
        variant("constant", || Self::Constant { value: 0.0 }),
        alias("random_normal", &["normal"], Self::random_normal),
        alias("random_uniform", &["uniform"], Self::random_uniform),
        variant("truncated_normal", Self::truncated_normal),
        alias("glorot_normal", &["xavier_normal"], || Self::GlorotNormal),
        alias("glorot_uniform", &["xavier_uniform"], || Self::GlorotUniform),
        alias("he_normal", &["kaiming_normal"], || Self::HeNormal),
        alias("he_uniform", &["kaiming_uniform"], || Self::HeUniform),
        variant("lecun_normal", || Self::LecunNormal),
        variant("lecun_uniform", || Self::LecunUniform),
        variant("orthogonal", Self::orthogonal),
    ];

    #[cfg(feature = "keras")]
    fn read_keras(config: &LayerConfig<'_>, key: &str) -> keras::Result<Option<Self>> {
        Ok(config.initializer(key))
    }
}

record! { Regularizer; optional: l1(non_negative), l2(non_negative); }

impl Term for Regularizer {
    const NOUN: &'static str = "a table with `l1` and `l2`";

    fn read(node: &Node, key: &str) -> Result<Self, Fault> {
        read_record(node, key)
    }

    fn write(&self) -> String {
        write_record(self)
    }

    #[cfg(feature = "keras")]
    fn from_keras(config: &LayerConfig<'_>, key: &str) -> keras::Result<Option<Self>> {
        Ok(config.regularizer(key))
    }
}
