//! Static facts of a run.

use crate::layer::Activation;
use crate::observation::LayerInfo;
use serde::{Deserialize, Serialize};

/// Static facts of a run, available before its first step. Unknown facts are `None`.
///
/// All are optional: each detector uses the facts that it finds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// Observed layers in the order of [`Observation::layers`](crate::Observation::layers).
    pub layers: Vec<LayerInfo>,
    /// Kind of task.
    pub task: Option<TaskKind>,
    /// Name of the loss, such as `binary_crossentropy` or `mse`.
    pub loss: Option<String>,
    /// True if the loss expects logits.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub from_logits: bool,
    /// Name of the optimizer, such as `adam`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimizer: Option<String>,
    /// Momentum of the optimizer, if that is gradient descent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub momentum: Option<f64>,
    /// Base learning rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
    /// Name of the learning rate's decay, such as `constant` or `cosine`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decay: Option<String>,
    /// Name of the metric, such as `accuracy` or `r2`.
    pub metric: Option<String>,
    /// Number of classes of a classification, or of labels of a multi-label task.
    pub classes: Option<usize>,
    /// Samples per batch.
    pub batch_size: Option<usize>,
    /// Optimizer steps per epoch.
    pub steps_per_epoch: Option<u64>,
    /// Number of planned epochs.
    pub epochs: Option<u64>,
    /// Steps of learning-rate warm-up.
    #[serde(skip_serializing_if = "is_zero")]
    pub warmup_steps: u64,
    /// Metric of the best constant prediction: the share of the most frequent class (for labels: of the
    /// more frequent value, on average), or an R² of 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
    /// Loss of the best constant prediction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline_loss: Option<f64>,
    /// Smallest and largest target of a regression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_range: Option<[f64; 2]>,
    /// Share of input features with the same value in every training sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constant_inputs: Option<f64>,
    /// Number of input values that are NaN, in all splits.
    #[serde(skip_serializing_if = "is_zero")]
    pub missing_inputs: u64,
    /// Largest standard deviation of any input feature over the training samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_spread: Option<f64>,
}

/// Kind of task, by its targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// One of two classes.
    Binary,
    /// One of several classes.
    MultiClass,
    /// Any number of labels, each 0 or 1.
    MultiLabel,
    /// One or more numbers.
    Regression,
}

impl Facts {
    /// Number of planned optimizer steps, if known.
    pub fn total_steps(&self) -> Option<u64> {
        Some(self.steps_per_epoch?.saturating_mul(self.epochs?))
    }

    /// Returns true if the quality of the best constant prediction is known, so that a run can be
    /// compared with it.
    pub fn has_baseline(&self) -> bool {
        self.chance.is_some() || self.baseline_loss.is_some()
    }

    /// Activation function of the model's output, if known.
    pub fn output_activation(&self) -> Option<Activation> {
        let last = self.layers.iter().rfind(|layer| !layer.kind.only_arranges())?;
        match &last.activation {
            None if last.kind.may_activate() => None,
            None => Some(Activation::Linear),
            known => known.clone(),
        }
    }

    /// The last layer of the model.
    pub fn output_layer(&self) -> Option<&LayerInfo> {
        self.layers.last()
    }

    /// Returns true if a layer before the last one ends in a ReLU.
    pub fn has_relu(&self) -> bool {
        let hidden = self.layers.len().saturating_sub(1);
        self.layers[..hidden].iter().any(|layer| layer.activation == Some(Activation::Relu))
    }
}

fn is_zero(steps: &u64) -> bool {
    *steps == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::LayerKind;

    fn layer(kind: LayerKind, activation: Option<Activation>) -> LayerInfo {
        LayerInfo { kind, activation, ..LayerInfo::default() }
    }

    fn output(layers: Vec<LayerInfo>) -> Option<Activation> {
        Facts { layers, ..Facts::default() }.output_activation()
    }

    #[test]
    fn the_output_activation_is_that_of_the_last_layer_that_computes() {
        let relu = || layer(LayerKind::Dense, Some(Activation::Relu));
        assert_eq!(output(vec![relu(), layer(LayerKind::Flatten, None)]), Some(Activation::Relu));
        let norm = layer(LayerKind::BatchNorm, None);
        assert_eq!(output(vec![relu(), norm]), Some(Activation::Linear));
    }

    #[test]
    fn an_unknown_output_activation_is_not_linear() {
        assert_eq!(output(vec![layer(LayerKind::Dense, None)]), None);
        assert_eq!(output(vec![layer(LayerKind::default(), None)]), None);
    }
}
