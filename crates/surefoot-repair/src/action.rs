//! Framework-neutral changes of a training.

use std::fmt;
use surefoot_diagnose::{Activation, Facts};

/// A change of a training, proposed by a [`Remedy`](crate::Remedy) and applied by a
/// [`Subject`](crate::Subject).
///
/// Displayed as advice: `Clip the gradient to a norm of at most 1.`
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// Adds batch normalization before every hidden activation.
    AddBatchNorm,
    /// Adds a residual connection around every hidden layer that is as wide as the one before it.
    AddResidual,
    /// Replaces the activations of hidden layers and re-initializes the weights of these layers to fit.
    SwapActivation(Activation),
    /// Changes the number of units of the output layer.
    SetOutputUnits(usize),
    /// Replaces the activation of the output.
    SetOutputActivation(Activation),
    /// Re-initializes the weights of every layer.
    Reinitialize(Initializers),
    /// Scales the gradient of all parameters down to this norm.
    ClipGradient {
        /// Largest norm.
        norm: f64,
    },
    /// Clips every value of the gradient to `[-limit, limit]`.
    ClipGradientValues {
        /// Largest absolute value.
        limit: f64,
    },
    /// Changes the number of samples per step.
    SetBatchSize(usize),
    /// Multiplies the number of epochs.
    ExtendTraining {
        /// The factor.
        factor: u64,
    },
    /// Changes the base learning rate.
    SetLearningRate(f64),
    /// Changes the decay of the learning rate.
    SetDecay(Decay),
    /// Replaces the optimizer. Weight decay and clipping are kept; the learning rate becomes constant.
    SwapOptimizer {
        /// The new optimizer.
        optimizer: OptimizerKind,
        /// Its learning rate.
        learning_rate: f64,
    },
    /// Replaces the loss.
    SwapLoss {
        /// The new loss.
        loss: LossKind,
        /// True if the loss expects logits.
        from_logits: bool,
    },
    /// Standardizes the targets of a regression; predictions are converted back.
    ScaleTargets,
    /// Replaces missing values of a feature by its mean.
    ImputeMissing,
    /// Standardizes every input feature.
    NormalizeData {
        /// Treatment of outliers before.
        outliers: Outliers,
    },
}

/// Initial weights that a remedy proposes. Recurrent weights are orthogonal and biases zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Initializers {
    /// To fit the activation: He's for ReLU and its relatives, LeCun's for SELU, Glorot's for others.
    Fitting,
    /// Glorot's (Xavier's) for every layer.
    Glorot,
}

/// Treatment of outliers among the features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outliers {
    /// Keeps them.
    Keep,
    /// Clips them to the range of the other values.
    Clip,
    /// Drops training samples that have any.
    Drop,
}

/// Decay of the learning rate over a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decay {
    /// A constant rate from the first step, without warm-up.
    Constant,
    /// Half a cosine over the whole run. A warm-up is kept.
    Cosine,
}

/// Optimizer that a remedy proposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptimizerKind {
    /// Adam.
    Adam,
    /// Adam with Nesterov momentum.
    Nadam,
    /// Stochastic gradient descent with a Nesterov momentum of 0.9.
    Momentum,
}

impl OptimizerKind {
    /// Name of the optimizer class, as in [`Facts::optimizer`](surefoot_diagnose::Facts::optimizer).
    pub fn name(self) -> &'static str {
        match self {
            Self::Adam => "adam",
            Self::Nadam => "nadam",
            Self::Momentum => "sgd",
        }
    }

    /// Returns true if a run trains with it already. Gradient descent without a momentum does not.
    pub(crate) fn is_that_of(self, facts: &Facts) -> bool {
        let plain = self == Self::Momentum && facts.momentum == Some(0.0);
        facts.optimizer.as_deref() == Some(self.name()) && !plain
    }
}

/// Loss that a remedy proposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossKind {
    /// Mean squared error.
    MeanSquaredError,
    /// Cross-entropy of one output for two classes, or of one output per label.
    BinaryCrossentropy,
    /// Cross-entropy of one output per class, with class numbers as targets.
    CategoricalCrossentropy,
}

impl Action {
    /// Returns true if the action re-initializes weights, so that given weights are not kept.
    pub fn reinitializes(&self) -> bool {
        matches!(self, Self::SwapActivation(_) | Self::Reinitialize(_) | Self::AddResidual)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddBatchNorm => {
                f.write_str("Add batch normalization before the hidden activations.")
            }
            Self::AddResidual => f.write_str("Add residual connections around the hidden layers."),
            Self::SwapActivation(activation) => write!(
                f,
                "Replace the hidden activations with {activation} and initialize their weights to fit."
            ),
            Self::SetOutputUnits(units) => {
                write!(f, "Give the output layer {units} units, one per class.")
            }
            Self::SetOutputActivation(activation) => {
                write!(f, "Set the output activation to {activation}.")
            }
            Self::Reinitialize(Initializers::Fitting) => {
                f.write_str("Initialize the weights of every layer to fit its activation.")
            }
            Self::Reinitialize(Initializers::Glorot) => {
                f.write_str("Initialize the weights of every layer as Glorot does.")
            }
            Self::ClipGradient { norm } => {
                write!(f, "Clip the gradient to a norm of at most {norm}.")
            }
            Self::ClipGradientValues { limit } => {
                write!(f, "Clip every value of the gradient to [-{limit}, {limit}].")
            }
            Self::SetBatchSize(size) => write!(f, "Set the batch size to {size}."),
            Self::ExtendTraining { factor } => write!(f, "Train {factor} times as many epochs."),
            Self::SetLearningRate(rate) => write!(f, "Set the learning rate to {rate}."),
            Self::SetDecay(Decay::Constant) => f.write_str("Keep the learning rate constant."),
            Self::SetDecay(Decay::Cosine) => {
                f.write_str("Decay the learning rate along a cosine over the whole run.")
            }
            Self::SwapOptimizer { optimizer: OptimizerKind::Momentum, learning_rate } => write!(
                f,
                "Train with sgd, a momentum of 0.9 and a learning rate of {learning_rate}."
            ),
            Self::SwapOptimizer { optimizer, learning_rate } => {
                write!(f, "Train with {} at a learning rate of {learning_rate}.", optimizer.name())
            }
            Self::SwapLoss { loss, from_logits } => {
                let loss = match loss {
                    LossKind::MeanSquaredError => "the mean squared error",
                    LossKind::BinaryCrossentropy => "binary cross-entropy",
                    LossKind::CategoricalCrossentropy => "categorical cross-entropy",
                };
                let logits = if *from_logits { " of logits" } else { "" };
                write!(f, "Replace the loss with {loss}{logits}.")
            }
            Self::ScaleTargets => {
                f.write_str("Standardize the targets, and convert predictions back.")
            }
            Self::ImputeMissing => {
                f.write_str("Replace missing values by the mean of their feature.")
            }
            Self::NormalizeData { outliers } => f.write_str(match outliers {
                Outliers::Keep => "Standardize every input feature.",
                Outliers::Clip => "Clip outliers and standardize every input feature.",
                Outliers::Drop => {
                    "Drop training samples with outliers and standardize every input feature."
                }
            }),
        }
    }
}
