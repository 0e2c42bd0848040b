//! Observations of a run while it trains.

use crate::layer::{Activation, LayerKind};
use serde::{Deserialize, Serialize};
use surefoot_stats::Summary;

/// Measurements of one optimizer step. Unobserved quantities are `None`.
///
/// ```
/// use surefoot_diagnose::Observation;
///
/// let seen = Observation::new(1, 0.7).with_metric(0.5).with_learning_rate(1e-3);
/// assert_eq!((seen.epoch, seen.learning_rate), (1, Some(1e-3)));
/// ```
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub struct Observation {
    /// 1-based number of the optimizer step.
    pub step: u64,
    /// 1-based epoch of the step.
    pub epoch: u64,
    /// Loss of this training batch, including regularization.
    pub loss: f64,
    /// Metric of this training batch: accuracy, or R² for a regression.
    pub metric: Option<f64>,
    /// Mean absolute error of this training batch, for a regression.
    pub mae: Option<f64>,
    /// Learning rate of the step.
    pub learning_rate: Option<f64>,
    /// Share of the batch predicted as the most predicted class.
    pub top_class_share: Option<f64>,
    /// Norm of the gradient of all weights, where those of layers are not known.
    pub gradient_norm: Option<f64>,
    /// One entry for each [`LayerInfo`] of the run, in the same order. Empty if layers were not
    /// observed at this step.
    pub layers: Vec<LayerObservation>,
    /// Statistics of the input batch.
    pub input: Option<Summary>,
}

/// Step 1 of epoch 1 with a loss of NaN.
impl Default for Observation {
    fn default() -> Self {
        Self {
            step: 1,
            epoch: 1,
            loss: f64::NAN,
            metric: None,
            mae: None,
            learning_rate: None,
            top_class_share: None,
            gradient_norm: None,
            layers: Vec::new(),
            input: None,
        }
    }
}

impl Observation {
    /// Creates the observation of a step in epoch 1 with only its loss.
    pub fn new(step: u64, loss: f64) -> Observation {
        Observation { step, loss, ..Observation::default() }
    }

    /// Sets the epoch.
    #[must_use]
    pub fn with_epoch(mut self, epoch: u64) -> Observation {
        self.epoch = epoch;
        self
    }

    /// Sets the metric.
    #[must_use]
    pub fn with_metric(mut self, metric: impl Into<Option<f64>>) -> Observation {
        self.metric = metric.into();
        self
    }

    /// Sets the learning rate.
    #[must_use]
    pub fn with_learning_rate(mut self, rate: impl Into<Option<f64>>) -> Observation {
        self.learning_rate = rate.into();
        self
    }

    /// Sets the statistics of the layers.
    #[must_use]
    pub fn with_layers(mut self, layers: Vec<LayerObservation>) -> Observation {
        self.layers = layers;
        self
    }

    /// Sets the statistics of the input.
    #[must_use]
    pub fn with_input(mut self, input: impl Into<Option<Summary>>) -> Observation {
        self.input = input.into();
        self
    }
}

/// Implemented by hand because the derived `clone_from` would not reuse the memory of the layers.
impl Clone for Observation {
    fn clone(&self) -> Self {
        Self { layers: self.layers.clone(), ..*self }
    }

    fn clone_from(&mut self, other: &Self) {
        let mut layers = std::mem::take(&mut self.layers);
        layers.clone_from(&other.layers);
        *self = Self { layers, ..*other };
    }
}

/// Statistics of one layer at one step. Unobserved quantities are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LayerObservation {
    /// Gradient of the loss with respect to the weights.
    pub gradient: Option<Summary>,
    /// Weights after the step.
    pub weight: Option<Summary>,
    /// Outputs for this batch.
    pub output: Option<Summary>,
    /// Share of units whose gradient is exactly zero.
    pub dead_units: Option<f64>,
    /// L2 norm of the weight change divided by the L2 norm of the weights.
    pub update_ratio: Option<f64>,
    /// Share of the outputs of a bounded activation that are at its bounds.
    pub saturated: Option<f64>,
}

/// Loss and metric of a whole split of the data.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// Epoch after which the split was evaluated; 0 is before the first.
    pub epoch: u64,
    /// Optimizer steps completed before the evaluation.
    pub step: u64,
    /// The evaluated split.
    pub split: Split,
    /// Mean loss over the split, including regularization.
    pub loss: f64,
    /// Metric over the split.
    pub metric: Option<f64>,
}

/// A part of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// Samples that the weights are fitted to.
    Train,
    /// Samples that models are selected by.
    Validation,
    /// Samples that no decision depends on.
    Test,
}

impl Split {
    /// The name used in plans, records and output.
    pub fn name(self) -> &'static str {
        match self {
            Split::Train => "train",
            Split::Validation => "validation",
            Split::Test => "test",
        }
    }
}

impl std::fmt::Display for Split {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Static description of an observed layer, stored with the record of a run.
///
/// The layers of a run and their order are fixed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LayerInfo {
    /// Unique name within the run.
    pub name: String,
    /// Kind of layer.
    pub kind: LayerKind,
    /// Number of trainable parameters.
    pub parameters: u64,
    /// Number of units (neurons, channels), if the layer has any.
    pub units: Option<usize>,
    /// Activation function at its end; `None` if unknown or if its kind has none.
    pub activation: Option<Activation>,
    /// Shape of its output for one sample, without the batch dimension.
    pub output_shape: Vec<usize>,
    /// True if its weights are not trained.
    pub frozen: bool,
}

impl LayerInfo {
    /// Describes a trainable layer by its name and kind.
    ///
    /// ```
    /// use surefoot_diagnose::{Activation, LayerInfo, LayerKind};
    ///
    /// let layer = LayerInfo::new("hidden", LayerKind::Dense)
    ///     .with_units(64)
    ///     .with_activation(Activation::Relu);
    /// assert_eq!(layer.units, Some(64));
    /// ```
    pub fn new(name: impl Into<String>, kind: LayerKind) -> LayerInfo {
        LayerInfo { name: name.into(), kind, parameters: 1, ..LayerInfo::default() }
    }

    /// Sets the number of units.
    #[must_use]
    pub fn with_units(mut self, units: usize) -> LayerInfo {
        self.units = Some(units);
        self.output_shape = vec![units];
        self
    }

    /// Sets the activation function.
    #[must_use]
    pub fn with_activation(mut self, activation: Activation) -> LayerInfo {
        self.activation = Some(activation);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_is_displayed_by_its_name() {
        for split in [Split::Train, Split::Validation, Split::Test] {
            assert_eq!(split.to_string(), split.name());
        }
    }
}
