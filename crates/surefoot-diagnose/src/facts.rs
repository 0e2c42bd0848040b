//! What is known of a run before its first step.

use crate::observation::LayerInfo;
use serde::{Deserialize, Serialize};

/// The static facts of a run that detectors reason with. What is not known is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// The observed layers in the order of [`Observation::layers`](crate::Observation::layers).
    pub layers: Vec<LayerInfo>,
    /// What the targets are.
    pub task: Option<TaskKind>,
    /// The loss as plans write it.
    pub loss: Option<String>,
    /// Whether the loss takes the model's outputs for logits.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub from_logits: bool,
    /// The optimizer as plans write it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimizer: Option<String>,
    /// The name of the metric.
    pub metric: Option<String>,
    /// How many classes there are, if the task is to tell classes apart.
    pub classes: Option<usize>,
    /// The number of samples of a batch.
    pub batch_size: Option<usize>,
    /// The number of optimizer steps of an epoch.
    pub steps_per_epoch: Option<u64>,
    /// The number of epochs planned.
    pub epochs: Option<u64>,
    /// Steps in which the learning rate rises to its base.
    #[serde(skip_serializing_if = "is_zero")]
    pub warmup_steps: u64,
    /// The metric of the best prediction that does not look at the input: the share of the most
    /// frequent class, or an R² of 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
    /// The loss of that prediction, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline_loss: Option<f64>,
    /// The least and the largest number to be predicted, for a regression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_range: Option<[f64; 2]>,
    /// The share of input features that are the same in every training sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constant_inputs: Option<f64>,
    /// The largest, over the features, of the standard deviation in the training samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_spread: Option<f64>,
}

/// What the targets are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// One of two classes.
    Binary,
    /// One of several classes.
    MultiClass,
    /// One or more numbers.
    Regression,
}

impl Facts {
    /// All steps that are planned, if that is known.
    pub fn total_steps(&self) -> Option<u64> {
        Some(self.steps_per_epoch?.saturating_mul(self.epochs?))
    }

    /// The activation that ends the model, as plans write it.
    pub fn output_activation(&self) -> Option<&str> {
        // Layers that only arrange values keep what came before them.
        let arranging = ["flatten", "reshape", "dropout"];
        let last = self.layers.iter().rfind(|layer| !arranging.contains(&layer.kind.as_str()))?;
        Some(last.activation.as_deref().unwrap_or("linear"))
    }

    /// The layer that ends the model.
    pub fn output_layer(&self) -> Option<&LayerInfo> {
        self.layers.last()
    }

    /// Whether there is a ReLU in the model before its last layer.
    pub fn has_relu(&self) -> bool {
        let hidden = self.layers.len().saturating_sub(1);
        self.layers[..hidden].iter().any(|layer| layer.activation.as_deref() == Some("relu"))
    }
}

fn is_zero(steps: &u64) -> bool {
    *steps == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(kind: &str, activation: Option<&str>) -> LayerInfo {
        LayerInfo {
            kind: kind.to_owned(),
            activation: activation.map(str::to_owned),
            ..LayerInfo::default()
        }
    }

    #[test]
    fn the_output_activation_is_that_of_the_last_layer_that_computes() {
        let facts = Facts {
            layers: vec![layer("dense", Some("relu")), layer("flatten", None)],
            ..Facts::default()
        };
        assert_eq!(facts.output_activation(), Some("relu"));
        assert!(facts.has_relu());
        let facts = Facts {
            layers: vec![layer("dense", Some("relu")), layer("batch_norm", None)],
            ..Facts::default()
        };
        assert_eq!(facts.output_activation(), Some("linear"));
    }
}
