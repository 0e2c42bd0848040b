//! The detectors, one a file.

mod abnormal_data;
mod collapse;
mod conditions;
mod constant_data;
mod diverging_loss;
mod dying_relu;
mod exploding_gradient;
mod improper_loss;
mod improper_output_activation;
mod improper_output_units;
mod input_scale;
mod loss_spike;
mod metric_at_chance;
mod negative_loss;
mod non_finite_loss;
mod one_class_predicted;
mod oscillating_loss;
mod over_fitting;
mod saturated_activation;
mod shape;
mod slow_convergence;
mod unchanged_weights;
mod unscaled_targets;
mod update_ratio;
mod validation_at_chance;
mod vanishing_gradient;

pub use abnormal_data::AbnormalData;
pub use collapse::Collapse;
pub use constant_data::ConstantData;
pub use diverging_loss::DivergingLoss;
pub use dying_relu::DyingRelu;
pub use exploding_gradient::ExplodingGradient;
pub use improper_loss::ImproperLoss;
pub use improper_output_activation::ImproperOutputActivation;
pub use improper_output_units::ImproperOutputUnits;
pub use input_scale::InputScale;
pub use loss_spike::LossSpike;
pub use metric_at_chance::MetricAtChance;
pub use negative_loss::NegativeLoss;
pub use non_finite_loss::NonFiniteLoss;
pub use one_class_predicted::OneClassPredicted;
pub use oscillating_loss::OscillatingLoss;
pub use over_fitting::OverFitting;
pub use saturated_activation::SaturatedActivation;
pub use slow_convergence::SlowConvergence;
pub use unchanged_weights::UnchangedWeights;
pub use unscaled_targets::UnscaledTargets;
pub use update_ratio::UpdateRatio;
pub use validation_at_chance::ValidationAtChance;
pub use vanishing_gradient::VanishingGradient;

pub(crate) use conditions::weighted;

use crate::detector::Detector;

/// A new set of all detectors. The eight problems of AutoTrainer come first; among them, those that
/// name a cause before those that name what it does to the gradients.
pub fn all() -> Vec<Box<dyn Detector>> {
    vec![
        Box::new(AbnormalData::default()),
        Box::new(ImproperOutputUnits),
        Box::new(ImproperOutputActivation::default()),
        Box::new(ImproperLoss::default()),
        Box::new(UnscaledTargets),
        Box::new(DyingRelu),
        Box::new(ExplodingGradient::default()),
        Box::new(VanishingGradient::default()),
        Box::new(OscillatingLoss),
        Box::new(SlowConvergence),
        Box::new(NonFiniteLoss),
        Box::new(DivergingLoss),
        Box::new(NegativeLoss),
        Box::new(Collapse),
        Box::new(MetricAtChance),
        Box::new(ValidationAtChance),
        Box::new(LossSpike::default()),
        Box::new(SaturatedActivation),
        Box::new(UnchangedWeights),
        Box::new(UpdateRatio),
        Box::new(OverFitting),
        Box::new(OneClassPredicted),
        Box::new(ConstantData),
        Box::new(InputScale),
    ]
}

#[cfg(test)]
pub(crate) mod fixture;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_detectors_look_for_the_same() {
        let problems: BTreeSet<_> = all().iter().map(|detector| detector.problem()).collect();
        assert_eq!(problems.len(), all().len());
    }
}
