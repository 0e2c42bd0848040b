//! Optimizers, with the names and defaults of Keras 3.

use crate::language::{
    Choice, Fields, Record, Variant, keys, non_negative, positive, share, unit_interval, variant,
};

/// An optimizer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimizer {
    /// Update rule.
    pub algorithm: Algorithm,
    /// The base learning rate.
    pub learning_rate: f64,
    /// Decoupled weight decay (default 0.004 for AdamW, 0 otherwise).
    pub weight_decay: f64,
    /// Clips each gradient value at this magnitude.
    pub clipvalue: Option<f64>,
    /// Scales the gradient of each parameter down to this norm.
    pub clipnorm: Option<f64>,
    /// Scales the gradient of all parameters together down to this norm.
    pub global_clipnorm: Option<f64>,
}

/// Update rule of an [`Optimizer`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)] // the fields are Keras's, by name
pub enum Algorithm {
    /// Stochastic gradient descent.
    Sgd { momentum: f64, nesterov: bool },
    /// RMSprop (Tieleman and Hinton).
    Rmsprop { rho: f64, momentum: f64, epsilon: f64, centered: bool },
    /// Adagrad (Duchi, Hazan and Singer).
    Adagrad { initial_accumulator_value: f64, epsilon: f64 },
    /// Adadelta (Zeiler).
    Adadelta { rho: f64, epsilon: f64 },
    /// Adam (Kingma and Ba).
    Adam { beta_1: f64, beta_2: f64, epsilon: f64, amsgrad: bool },
    /// Adam with decoupled weight decay (Loshchilov and Hutter).
    Adamw { beta_1: f64, beta_2: f64, epsilon: f64, amsgrad: bool },
    /// Adam with Nesterov momentum (Dozat).
    Nadam { beta_1: f64, beta_2: f64, epsilon: f64 },
}

/// Default of Keras for every rule with an epsilon.
const EPSILON: f64 = 1e-7;

impl Optimizer {
    /// An optimizer without weight decay or clipping.
    pub fn new(algorithm: Algorithm, learning_rate: f64) -> Self {
        Self {
            algorithm,
            learning_rate,
            weight_decay: 0.0,
            clipvalue: None,
            clipnorm: None,
            global_clipnorm: None,
        }
    }

    /// `SGD` with the defaults of Keras.
    pub fn sgd() -> Self {
        let algorithm = Algorithm::Sgd { momentum: 0.0, nesterov: false };
        Self::new(algorithm, 0.01)
    }

    /// `RMSprop` with the defaults of Keras.
    pub fn rmsprop() -> Self {
        let algorithm =
            Algorithm::Rmsprop { rho: 0.9, momentum: 0.0, epsilon: EPSILON, centered: false };
        Self::new(algorithm, 0.001)
    }

    /// `Adagrad` with the defaults of Keras.
    pub fn adagrad() -> Self {
        let algorithm = Algorithm::Adagrad { initial_accumulator_value: 0.1, epsilon: EPSILON };
        Self::new(algorithm, 0.001)
    }

    /// `Adadelta` with the defaults of Keras.
    pub fn adadelta() -> Self {
        let algorithm = Algorithm::Adadelta { rho: 0.95, epsilon: EPSILON };
        Self::new(algorithm, 0.001)
    }

    /// `Adam` with the defaults of Keras.
    pub fn adam() -> Self {
        let algorithm =
            Algorithm::Adam { beta_1: 0.9, beta_2: 0.999, epsilon: EPSILON, amsgrad: false };
        Self::new(algorithm, 0.001)
    }

    /// `AdamW` with the defaults of Keras.
    pub fn adamw() -> Self {
        let algorithm =
            Algorithm::Adamw { beta_1: 0.9, beta_2: 0.999, epsilon: EPSILON, amsgrad: false };
        Self { weight_decay: 0.004, ..Self::new(algorithm, 0.001) }
    }

    /// `Nadam` with the defaults of Keras.
    pub fn nadam() -> Self {
        let algorithm = Algorithm::Nadam { beta_1: 0.9, beta_2: 0.999, epsilon: EPSILON };
        Self::new(algorithm, 0.001)
    }
}

impl Default for Optimizer {
    fn default() -> Self {
        Self::adam()
    }
}

impl Algorithm {
    /// Name in a plan.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sgd { .. } => "sgd",
            Self::Rmsprop { .. } => "rmsprop",
            Self::Adagrad { .. } => "adagrad",
            Self::Adadelta { .. } => "adadelta",
            Self::Adam { .. } => "adam",
            Self::Adamw { .. } => "adamw",
            Self::Nadam { .. } => "nadam",
        }
    }
}

impl Choice for Optimizer {
    const TAG: &'static str = "name";
    const NOUN: &'static str = "an optimizer";
    const FALLBACK: Option<&'static str> = Some("adam");
    const VARIANTS: &'static [Variant<Self>] = &[
        variant("sgd", Self::sgd),
        variant("rmsprop", Self::rmsprop),
        variant("adagrad", Self::adagrad),
        variant("adadelta", Self::adadelta),
        variant("adam", Self::adam),
        variant("adamw", Self::adamw),
        variant("nadam", Self::nadam),
    ];

    fn variant(&self) -> &'static str {
        self.algorithm.name()
    }
}

impl Record for Optimizer {
    fn fields<'a, F: Fields<'a>>(&'a mut self, f: &mut F) {
        keys! { f, self; optional: learning_rate(positive); }
        self.algorithm.fields(f);
        keys! { f, self;
            optional: weight_decay(non_negative);
            maybe: clipvalue(positive), clipnorm(positive), global_clipnorm(positive);
        }
    }

    fn check(&self) -> Result<(), (&'static str, &'static str)> {
        match self.algorithm {
            Algorithm::Sgd { momentum: 0.0, nesterov: true } => {
                Err(("nesterov", "`nesterov` needs a `momentum` above 0"))
            }
            _ => Ok(()),
        }
    }
}

impl Record for Algorithm {
    fn fields<'a, F: Fields<'a>>(&'a mut self, f: &mut F) {
        match self {
            Self::Sgd { momentum, nesterov } => {
                keys! { f; optional: momentum(unit_interval), nesterov; }
            }
            Self::Rmsprop { rho, momentum, epsilon, centered } => {
                keys! { f;
                    optional: rho(share), momentum(unit_interval), epsilon(non_negative), centered;
                }
            }
            Self::Adagrad { initial_accumulator_value, epsilon } => {
                keys! { f;
                    optional: initial_accumulator_value(non_negative), epsilon(non_negative);
                }
            }
            Self::Adadelta { rho, epsilon } => {
                keys! { f; optional: rho(share), epsilon(non_negative); }
            }
            Self::Adam { beta_1, beta_2, epsilon, amsgrad }
            | Self::Adamw { beta_1, beta_2, epsilon, amsgrad } => {
                keys! { f; optional: beta_1(share), beta_2(share), epsilon(non_negative), amsgrad; }
            }
            Self::Nadam { beta_1, beta_2, epsilon } => {
                keys! { f; optional: beta_1(share), beta_2(share), epsilon(non_negative); }
            }
        }
    }
}
