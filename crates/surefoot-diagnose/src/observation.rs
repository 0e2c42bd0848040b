//! What is seen of a run while it trains.

use serde::{Deserialize, Serialize};
use surefoot_stats::Summary;

/// The numbers of one optimizer step.
#[derive(Debug, PartialEq)]
pub struct Observation {
    /// The number of the optimizer step just done; the first is 1.
    pub step: u64,
    /// The epoch the step belongs to; the first is 1.
    pub epoch: u64,
    /// The loss of this training batch, regularisation included.
    pub loss: f64,
    /// The metric of this training batch: accuracy, or R² for a regression.
    pub metric: Option<f64>,
    /// The mean absolute error of this training batch, for a regression.
    pub mae: Option<f64>,
    /// The learning rate the step was taken with.
    pub learning_rate: f64,
    /// The share of the batch predicted as the most predicted class.
    pub top_class_share: Option<f64>,
    /// One entry for each [`LayerInfo`] of the run, in its order; empty when the layers were not
    /// observed at this step.
    pub layers: Vec<LayerObservation>,
    /// The batch that was fed in.
    pub input: Option<Summary>,
}

impl Observation {
    /// A step of which nothing is known but its loss.
    pub fn of_loss(step: u64, epoch: u64, loss: f64) -> Observation {
        Observation {
            step,
            epoch,
            loss,
            metric: None,
            mae: None,
            learning_rate: 0.0,
            top_class_share: None,
            layers: Vec::new(),
            input: None,
        }
    }
}

/// By hand, because the derived `clone_from` would not reuse the memory of the layers.
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

/// What is seen of one layer at one step. What was not observed is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LayerObservation {
    /// The gradient of the loss by the layer's weights.
    pub gradient: Option<Summary>,
    /// The layer's weights after the step.
    pub weight: Option<Summary>,
    /// What the layer put out for this batch.
    pub output: Option<Summary>,
    /// The share of units whose gradient is exactly zero.
    pub dead_units: Option<f64>,
    /// How far the step moved the weights: the L2 norm of the change by that of the weights.
    pub update_ratio: Option<f64>,
    /// The share of the outputs of a bounded activation that are at its bounds.
    pub saturated: Option<f64>,
}

/// The loss and metric of a whole split of the data.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// The epoch after which the split was evaluated; 0 is before the first.
    pub epoch: u64,
    /// The number of optimizer steps done by then.
    pub step: u64,
    /// What was evaluated.
    pub split: Split,
    /// The mean loss over the split, regularisation included.
    pub loss: f64,
    /// The metric over the split.
    pub metric: Option<f64>,
}

/// A part of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// What the weights are fitted to.
    Train,
    /// What models are chosen by.
    Validation,
    /// What nothing is decided by.
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

/// The static facts about an observed layer, so that a record can be diagnosed without its plan.
///
/// The layers of a run and their order are fixed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LayerInfo {
    /// A name that no other layer of the run has.
    pub name: String,
    /// The kind of layer as plans write it: `dense`, `conv2d`, `lstm`.
    pub kind: String,
    /// How many trainable parameters it has.
    pub parameters: u64,
    /// How many units (neurons, channels) it has, if that is a notion it knows.
    pub units: Option<usize>,
    /// The activation that ends it, as plans write it.
    pub activation: Option<String>,
    /// The shape of one sample of its output, without the batch.
    pub output_shape: Vec<usize>,
    /// Whether its weights are left as they are.
    pub frozen: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_is_displayed_as_it_is_named() {
        for split in [Split::Train, Split::Validation, Split::Test] {
            assert_eq!(split.to_string(), split.name());
        }
    }
}
