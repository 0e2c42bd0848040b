//! Measured quantities that findings cite as evidence.

use crate::layer::open_names;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

open_names! {
    /// A measured quantity. Serialized as its id, such as `initial_gain`.
    Measure {
        /// Batch size in samples.
        BatchSize = "batch_size",
        /// Lowest validation loss so far.
        BestValidationLoss = "best_validation_loss",
        /// Share of input features that never change.
        ConstantFeatures = "constant_features",
        /// Share of dead units.
        DeadUnits = "dead_units",
        /// Share of dead units in the worst layer.
        DeadUnitsInWorstLayer = "dead_units_in_worst_layer",
        /// Number of layers with weights.
        Depth = "depth",
        /// Norm of the gradient of all weights.
        GradientNorm = "gradient_norm",
        /// Gradient norm of the first layer.
        FirstGradient = "first_gradient",
        /// Gradient of the first layer divided by that of the last.
        FirstToLastGradient = "first_to_last_gradient",
        /// Median over adjacent layers: gradient of the earlier one divided by that of the later one.
        GradientAmplification = "gradient_amplification",
        /// Gain of the initial weights.
        InitialGain = "initial_gain",
        /// Root mean square of the input.
        InputSize = "input_size",
        /// Largest increase of the metric in an iteration.
        LargestGain = "largest_gain",
        /// Largest absolute gradient.
        LargestGradient = "largest_gradient",
        /// Largest absolute output of any layer.
        LargestOutput = "largest_output",
        /// Largest absolute target.
        LargestTarget = "largest_target",
        /// Largest update ratio of any step.
        LargestUpdateRatio = "largest_update_ratio",
        /// Learning rate.
        LearningRate = "learning_rate",
        /// Learning rate as a fraction of its maximum so far.
        LearningRateFraction = "learning_rate_fraction",
        /// Training loss of a step.
        Loss = "loss",
        /// Mean change of the loss relative to the first loss.
        LossChange = "loss_change",
        /// Rise of the loss relative to its total improvement.
        LossRise = "loss_rise",
        /// Fluctuation of the loss relative to its total improvement.
        LossSwing = "loss_swing",
        /// Loss divided by that of the best constant prediction.
        LossToBaseline = "loss_to_baseline",
        /// Lowest loss so far.
        LowestLoss = "lowest_loss",
        /// Lowest loss of the recent window.
        LowestRecentLoss = "lowest_recent_loss",
        /// Median of the losses before a spike.
        MedianLossBefore = "median_loss_before",
        /// Metric on the training split.
        Metric = "metric",
        /// Number of NaN and infinite gradient values.
        NonFiniteGradients = "non_finite_gradients",
        /// Number of NaN and infinite input values.
        NonFiniteInputs = "non_finite_inputs",
        /// Number of units of the output layer.
        OutputUnits = "output_units",
        /// Skill at the last step, extrapolated.
        ProjectedSkill = "projected_skill",
        /// Share of outputs at the bounds of their activation.
        SaturatedOutputs = "saturated_outputs",
        /// Improvement over the best constant prediction: 0 is none, 1 is perfect.
        Skill = "skill",
        /// Skill lost since its best.
        SkillLost = "skill_lost",
        /// Share of blocks that end a large swing.
        SwingShare = "swing_share",
        /// Share of the most predicted class.
        TopClassShare = "top_class_share",
        /// Training loss of a block.
        TrainingLoss = "training_loss",
        /// Number of layers whose weights do not change.
        UnchangedLayers = "unchanged_layers",
        /// Change of the weights in a step relative to the weights.
        UpdateRatio = "update_ratio",
        /// Validation loss.
        ValidationLoss = "validation_loss",
        /// Metric on the validation split.
        ValidationMetric = "validation_metric",
        /// Share of outputs that are zero.
        ZeroOutputs = "zero_outputs",
    }
}

impl Measure {
    /// Name for people.
    pub fn label(&self) -> String {
        let label = match self {
            Measure::DeadUnitsInWorstLayer => "dead units in the worst layer",
            Measure::FirstGradient => "gradient of the first layer",
            Measure::FirstToLastGradient => "gradient of the first layer / last layer",
            Measure::GradientAmplification => "gradient of a layer / next layer",
            Measure::InitialGain => "gain of the initial weights",
            Measure::InputSize => "size of the input",
            Measure::LearningRateFraction => "learning rate / its maximum",
            Measure::LossRise => "rise / improvement of the loss",
            Measure::LossSwing => "fluctuation / improvement of the loss",
            Measure::LossToBaseline => "loss / loss of a constant guess",
            Measure::MedianLossBefore => "median loss before",
            Measure::NonFiniteGradients => "NaN or infinite gradients",
            Measure::NonFiniteInputs => "NaN or infinite inputs",
            Measure::ProjectedSkill => "projected final skill",
            Measure::SwingShare => "share of large swings",
            Measure::TopClassShare => "share of the most predicted class",
            other => return other.as_str().replace('_', " "),
        };
        label.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_have_ids_and_labels() {
        assert_eq!(Measure::from("initial_gain"), Measure::InitialGain);
        assert_eq!(Measure::InitialGain.label(), "gain of the initial weights");
        assert_eq!(Measure::from("loss_of_a_friend").label(), "loss of a friend");
    }
}
