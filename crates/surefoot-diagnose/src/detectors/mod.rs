//! The detectors, one a file.

mod abnormal_data;
mod attention_drift;
mod autotrainer;
mod collapse;
mod conditions;
mod constant_data;
mod diverging_loss;
mod dying_relu;
mod exploding_gradient;
mod gradient_spike;
mod improper_loss;
mod improper_output_activation;
mod improper_output_units;
mod improper_warmup;
mod input_scale;
mod loss_spike;
mod metric_at_chance;
mod negative_loss;
mod non_finite_loss;
mod one_class_predicted;
mod oscillating_loss;
mod output_drift;
mod over_fitting;
mod running_scale;
mod saturated_activation;
mod shape;
mod slow_convergence;
mod unchanged_weights;
mod uneven_updates;
mod unscaled_targets;
mod update_ratio;
mod validation_at_chance;
mod vanishing_gradient;

pub use abnormal_data::AbnormalData;
pub use attention_drift::AttentionDrift;
pub use autotrainer::autotrainer;
pub use collapse::Collapse;
pub use constant_data::ConstantData;
pub use diverging_loss::DivergingLoss;
pub use dying_relu::DyingRelu;
pub use exploding_gradient::ExplodingGradient;
pub use gradient_spike::GradientSpike;
pub use improper_loss::ImproperLoss;
pub use improper_output_activation::ImproperOutputActivation;
pub use improper_output_units::ImproperOutputUnits;
pub use improper_warmup::ImproperWarmup;
pub use input_scale::InputScale;
pub use loss_spike::LossSpike;
pub use metric_at_chance::MetricAtChance;
pub use negative_loss::NegativeLoss;
pub use non_finite_loss::NonFiniteLoss;
pub use one_class_predicted::OneClassPredicted;
pub use oscillating_loss::OscillatingLoss;
pub use output_drift::OutputDrift;
pub use over_fitting::OverFitting;
pub use saturated_activation::SaturatedActivation;
pub use slow_convergence::SlowConvergence;
pub use unchanged_weights::UnchangedWeights;
pub use uneven_updates::UnevenUpdates;
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
        Box::new(UnevenUpdates),
        Box::new(GradientSpike::default()),
        Box::new(OutputDrift::default()),
        Box::new(AttentionDrift::default()),
        Box::new(ImproperWarmup::default()),
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
    use super::fixture::{Course, facts, gradient, with_output};
    use super::*;
    use crate::facts::{Facts, TaskKind};
    use crate::finding::{Problem, Severity};
    use crate::layer::Activation;
    use crate::observation::Observation;
    use crate::thresholds::Thresholds;
    use std::collections::BTreeSet;
    use surefoot_stats::Summary;

    #[test]
    fn no_two_detectors_look_for_the_same() {
        let problems: BTreeSet<_> = all().iter().map(|detector| detector.problem()).collect();
        assert_eq!(problems.len(), all().len());
    }

    fn changed(facts: Facts, change: impl Fn(u64, &mut Observation)) -> Course {
        let mut course = Course::new(facts).skill(|_| 0.0);
        course.change(change);
        course
    }

    /// A run with each problem that is found by how little a run has learned.
    fn problems() -> Vec<(Problem, Course)> {
        let first = |norm: f64| {
            changed(facts(), move |_, seen| seen.layers[0].gradient = Some(gradient(norm)))
        };
        let targets = Facts {
            task: Some(TaskKind::Regression),
            loss: Some("mse".to_owned()),
            target_range: Some([-900.0, 900.0]),
            ..with_output(facts(), Activation::Linear)
        };
        let foreign = Facts { loss: Some("mse".to_owned()), ..facts() };
        let slow = |_, seen: &mut Observation| {
            seen.layers.iter_mut().for_each(|layer| layer.update_ratio = Some(1e-6));
        };
        let erratic = |step, seen: &mut Observation| {
            let ratio = if step == 2 { 0.5 } else { 0.001 };
            seen.layers.iter_mut().for_each(|layer| layer.update_ratio = Some(ratio));
        };
        vec![
            (Problem::ABNORMAL_DATA, Course::new(facts()).input(200.0, 80.0).skill(|_| 0.0)),
            (
                Problem::IMPROPER_OUTPUT_ACTIVATION,
                changed(with_output(facts(), Activation::Relu), |_, _| {}),
            ),
            (Problem::IMPROPER_LOSS, changed(foreign, |_, _| {})),
            (Problem::UNSCALED_TARGETS, changed(targets, |_, _| {})),
            (
                Problem::DYING_RELU,
                changed(facts(), |_, seen| seen.layers[1].dead_units = Some(1.0)),
            ),
            (Problem::EXPLODING_GRADIENT, first(80.0)),
            (Problem::VANISHING_GRADIENT, first(1e-6)),
            (Problem::OSCILLATING_LOSS, changed(facts(), erratic)),
            (Problem::SLOW_CONVERGENCE, changed(facts(), slow)),
            (
                Problem::DIVERGING_LOSS,
                changed(facts(), |step, seen| seen.loss *= 1.1_f64.powi(step as i32)),
            ),
        ]
    }

    /// Step at which `problem` is found.
    fn found_at(problem: &Problem, course: &Course, thresholds: Thresholds) -> Option<u64> {
        let findings = course.run_with(thresholds, all());
        findings.iter().find(|finding| finding.problem == *problem).map(|finding| finding.step)
    }

    #[test]
    fn theta_alpha_and_the_check_interval_affect_every_detector() {
        for (problem, course) in problems() {
            let at = |thresholds| found_at(&problem, &course, thresholds);
            let usual = at(Thresholds::default());
            assert!(usual.is_some_and(|step| step < 100), "{problem}: {usual:?}");
            let lenient = Thresholds { theta: 0.5, ..Thresholds::default() };
            let later = at(lenient);
            // A loss that ends far above its start needs no skill to be found.
            assert!(later.is_none_or(|step| step == 200), "{problem}: {later:?}");
            let lasting = Thresholds { alpha: 12, ..Thresholds::default() };
            assert!(at(lasting) > usual, "{problem} with alpha");
            let rarely = Thresholds { check_every: 70, ..Thresholds::default() };
            assert!([Some(70), Some(140)].contains(&at(rarely)), "{problem} with check_every");
        }
    }

    /// The problems of a run of which a third has passed when every value becomes NaN.
    fn problems_after_nan(change: impl Fn(u64, &mut Observation)) -> Vec<Problem> {
        let nan = Summary { nan: 64, ..Summary::default() };
        let mut course = Course::new(facts()).skill(|p| 1.5 * p);
        course.change(|step, seen| {
            if step >= 60 {
                seen.loss = f64::NAN;
                for layer in &mut seen.layers {
                    (layer.gradient, layer.weight, layer.output) =
                        (Some(nan), Some(nan), Some(nan));
                }
            }
            change(step, seen);
        });
        let problems = course.run_all(all()).into_iter();
        let problems = problems.filter(|finding| finding.severity == Severity::Problem);
        problems.map(|finding| finding.problem).collect()
    }

    #[test]
    fn nan_in_the_data_is_the_only_finding() {
        let nan = Summary { nan: 1, ..Summary::default() };
        let found = problems_after_nan(|step, seen| {
            if step == 60 {
                seen.input = Some(nan);
            }
        });
        assert_eq!(found, [Problem::ABNORMAL_DATA]);
    }

    #[test]
    fn nothing_is_derived_from_nan() {
        assert_eq!(problems_after_nan(|_, _| {}), [Problem::NON_FINITE_LOSS]);
        let after_growth = problems_after_nan(|step, seen| {
            if step == 59 {
                seen.loss *= 10.0;
            }
        });
        assert_eq!(after_growth, [Problem::EXPLODING_GRADIENT, Problem::NON_FINITE_LOSS]);
    }

    #[test]
    fn no_problem_is_reported_between_two_checks() {
        let mut course = Course::new(facts()).skill(|_| 0.0);
        course.change(|step, seen| {
            if step == 3 {
                seen.loss = f64::NAN;
            }
        });
        let thresholds = Thresholds { check_every: 30, ..Thresholds::default() };
        let finding = course.run_with(thresholds, vec![Box::new(NonFiniteLoss)]);
        assert_eq!((finding[0].step, finding[0].since), (30, 3));
    }
}
