//! AutoTrainer's eight problems as published.

use super::{conditions, improper_loss, improper_output_activation};
use crate::curve::LayerBlock;
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;
use crate::observation::{LayerObservation, Observation};
use crate::thresholds::Thresholds;
use surefoot_stats::Summary;

/// The eight problems of AutoTrainer's Table 1, in its order, by the published symptoms alone.
///
/// | problem | symptom in each of the last α + 1 iterations |
/// | --- | --- |
/// | vanishing gradient | first / last layer's gradient norm ≤ β1, and the first ≤ β2 |
/// | exploding gradient | first / last layer's gradient norm ≥ β3, or a gradient is NaN |
/// | dying ReLU | share of neurons with a gradient of zero ≥ γ |
/// | oscillating loss | swings of the accuracy of at least ζ, per iteration so far ≥ η |
/// | slow convergence | no iteration so far raised the accuracy by more than δ |
/// | improper output activation | it does not fit the task |
/// | improper loss | it does not fit the task |
/// | abnormal data | the largest output of any layer ≥ ω, or NaN |
///
/// All but the oscillating loss and slow convergence also require `max(Acc) ≤ Θ`.
///
/// The paper leaves three things open:
/// - An *iteration* has an accuracy and a "last batch" (Table 1, notes 12 and 15), so it is an epoch.
///   Norms and shares are means over the observed steps of the epoch instead of its last batch.
/// - Dying ReLU is looked for in networks with a hidden ReLU (section 2.3).
/// - A regression has no accuracy; its R² takes that place.
pub fn autotrainer() -> Vec<Box<dyn Detector>> {
    let all = [
        Problem::VANISHING_GRADIENT,
        Problem::EXPLODING_GRADIENT,
        Problem::DYING_RELU,
        Problem::OSCILLATING_LOSS,
        Problem::SLOW_CONVERGENCE,
        Problem::IMPROPER_OUTPUT_ACTIVATION,
        Problem::IMPROPER_LOSS,
        Problem::ABNORMAL_DATA,
    ];
    all.map(|problem| Box::new(Published { problem, broken: false }) as Box<dyn Detector>).into()
}

/// One problem by its published symptoms.
#[derive(Clone, Debug)]
struct Published {
    problem: Problem,
    /// True once a gradient or output was NaN or infinite. Such a run does not recover.
    broken: bool,
}

impl Detector for Published {
    fn problem(&self) -> Problem {
        self.problem.clone()
    }

    fn needs(&self) -> &'static [Quantity] {
        match self.problem.id() {
            "vanishing_gradient" | "exploding_gradient" => &[Quantity::Metric, Quantity::Gradients],
            "dying_relu" => &[Quantity::Metric, Quantity::Gradients, Quantity::Model],
            "improper_output_activation" | "improper_loss" => &[Quantity::Metric, Quantity::Model],
            "abnormal_data" => &[Quantity::Metric, Quantity::Outputs],
            _ => &[Quantity::Metric],
        }
    }

    fn observe(&mut self, seen: &Observation, _: &Context<'_>) -> Option<Finding> {
        let tensor = |layer: &LayerObservation| match self.problem.id() {
            "exploding_gradient" => layer.gradient,
            "abnormal_data" => layer.output,
            _ => None,
        };
        let non_finite = |tensor: Summary| tensor.nan + tensor.inf > 0;
        let mut tensors = seen.layers.iter().filter_map(tensor);
        self.broken |= tensors.any(non_finite);
        None
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        let limits = context.thresholds;
        let accuracies: Vec<f64> =
            context.curve.blocks().iter().map(|block| block.metric).collect::<Option<_>>()?;
        let first = context.curve.recent(limits.alpha + 1).first()?.first;
        let (message, measure, value, limit) = match self.problem.id() {
            "vanishing_gradient" => vanishing_gradient(context, limits)?,
            "exploding_gradient" if self.broken => broken("A gradient"),
            "exploding_gradient" => exploding_gradient(context, limits)?,
            "dying_relu" => dying_relu(context, limits)?,
            "oscillating_loss" => oscillating_loss(&accuracies, limits)?,
            "slow_convergence" => slow_convergence(&accuracies, limits)?,
            "improper_output_activation" => {
                let why = improper_output_activation::mismatch(context.facts)?;
                (format!("The model ends with {why}."), Measure::Metric, f64::NAN, None)
            }
            "improper_loss" => {
                let expected = improper_loss::expected(context.facts)?;
                let message = format!("The loss does not fit the task; use {expected}.");
                (message, Measure::Metric, f64::NAN, None)
            }
            "abnormal_data" if self.broken => broken("The output of a layer"),
            "abnormal_data" => abnormal_data(context, limits)?,
            _ => return None,
        };
        let best = accuracies.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let excused = best > limits.theta
            && !matches!(self.problem.id(), "oscillating_loss" | "slow_convergence");
        if excused {
            return None;
        }
        let finding = Finding::new(self.problem(), context.step(), message).since(first);
        let finding = if self.broken { finding.certain() } else { finding };
        let known = Some(value).filter(|value| !value.is_nan());
        Some(finding.with_known(measure, known, limit).with(Measure::Metric, best, limits.theta))
    }
}

/// Message, measured quantity, its value and its limit.
type Symptom = (String, Measure, f64, Option<f64>);

fn broken(what: &str) -> Symptom {
    (format!("{what} is NaN or infinite."), Measure::Metric, f64::NAN, None)
}

/// The most lenient value of `measure` over the last α + 1 iterations; `None` if there are fewer.
fn lasting(
    context: &Context<'_>,
    limits: &Thresholds,
    measure: impl Fn(&[LayerBlock]) -> Option<f64>,
    lenient: fn(f64, f64) -> f64,
) -> Option<f64> {
    let needed = limits.alpha + 1;
    let recent = context.curve.layers().rev().take(needed);
    let values: Vec<f64> = recent.map(measure).collect::<Option<_>>()?;
    (values.len() == needed).then(|| values.into_iter().reduce(lenient))?
}

/// Gradient norm of the first layer, and that relative to the last layer's.
fn gradients(context: &Context<'_>, layers: &[LayerBlock]) -> Option<(f64, f64)> {
    let weighted = conditions::weighted(context);
    let norm = |i: &usize| layers.get(*i)?.gradient;
    let (first, last) = (norm(weighted.first()?)?, norm(weighted.last()?)?);
    Some((first, if first == 0.0 { 0.0 } else { first / last }))
}

fn vanishing_gradient(context: &Context<'_>, limits: &Thresholds) -> Option<Symptom> {
    let norm = lasting(context, limits, |layers| Some(gradients(context, layers)?.0), f64::max)?;
    let ratio = lasting(context, limits, |layers| Some(gradients(context, layers)?.1), f64::max)?;
    (ratio <= limits.beta_1 && norm <= limits.beta_2).then(|| {
        let message = format!(
            "The gradient of the first layer has a norm of {}, {} times that of the last.",
            crate::number::rough(norm),
            crate::number::rough(ratio)
        );
        (message, Measure::FirstToLastGradient, ratio, Some(limits.beta_1))
    })
}

fn exploding_gradient(context: &Context<'_>, limits: &Thresholds) -> Option<Symptom> {
    let ratio = lasting(context, limits, |layers| Some(gradients(context, layers)?.1), f64::min)?;
    (ratio >= limits.beta_3).then(|| {
        let rough = crate::number::rough(ratio);
        let message = format!("The gradient of the first layer is {rough} times the last's.");
        (message, Measure::FirstToLastGradient, ratio, Some(limits.beta_3))
    })
}

fn dying_relu(context: &Context<'_>, limits: &Thresholds) -> Option<Symptom> {
    let dead = |layers: &[LayerBlock]| {
        let pairs = context.facts.layers.iter().zip(layers);
        let pairs = pairs.filter_map(|(info, layer)| Some((info.units? as f64, layer.dead?)));
        let (units, dead) = pairs
            .fold((0.0, 0.0), |(all, dead), (units, share)| (all + units, dead + share * units));
        (units > 0.0).then(|| dead / units)
    };
    let share = lasting(context, limits, dead, f64::min)?;
    (context.facts.has_relu() && share >= limits.gamma).then(|| {
        let message = format!("{:.0}% of the neurons have a gradient of zero.", 100.0 * share);
        (message, Measure::DeadUnits, share, Some(limits.gamma))
    })
}

fn abnormal_data(context: &Context<'_>, limits: &Thresholds) -> Option<Symptom> {
    let largest = |layers: &[LayerBlock]| {
        let outputs = layers.iter().filter_map(|layer| layer.output);
        outputs.reduce(f64::max)
    };
    let output = lasting(context, limits, largest, f64::min)?;
    (output >= limits.omega).then(|| {
        let message = format!("A layer outputs values of {}.", crate::number::rough(output));
        (message, Measure::LargestOutput, output, Some(limits.omega))
    })
}

fn oscillating_loss(accuracies: &[f64], limits: &Thresholds) -> Option<Symptom> {
    let turns = |sign: f64| {
        let windows = accuracies.windows(3);
        let peak = move |w: &&[f64]| sign * (w[1] - w[0]) > 0.0 && sign * (w[1] - w[2]) > 0.0;
        windows.filter(peak).map(|w| w[1])
    };
    let swings = turns(1.0).zip(turns(-1.0)).filter(|(high, low)| high - low >= limits.zeta);
    let share = swings.count() as f64 / accuracies.len().max(1) as f64;
    (share > 0.0 && share >= limits.eta).then(|| {
        let message = format!(
            "The accuracy swings by {} or more in {:.0}% of the epochs.",
            limits.zeta,
            100.0 * share
        );
        (message, Measure::SwingShare, share, Some(limits.eta))
    })
}

fn slow_convergence(accuracies: &[f64], limits: &Thresholds) -> Option<Symptom> {
    let gains = accuracies.windows(2).map(|pair| pair[1] - pair[0]);
    let largest = gains.reduce(f64::max)?;
    (largest <= limits.delta).then(|| {
        let message = "No epoch has raised the accuracy noticeably.".to_owned();
        (message, Measure::LargestGain, largest, Some(limits.delta))
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, facts, gradient, with_output};
    use super::*;
    use crate::diagnosis::Diagnosis;
    use crate::finding::Confidence;
    use crate::layer::Activation;

    /// Two hundred steps in ten epochs whose accuracy is `accuracy` of the epoch, from 1.
    fn course(accuracy: impl Fn(u64) -> f64 + 'static) -> Course {
        let mut course = Course::new(facts());
        course.change(move |_, seen| seen.metric = Some(accuracy(seen.epoch)));
        course
    }

    /// A course that is excused from slow convergence.
    fn rising() -> Course {
        course(|epoch| 0.3 + 0.02 * epoch as f64)
    }

    fn findings(course: &Course, thresholds: Thresholds) -> Vec<(String, u64)> {
        let mut diagnosis = Diagnosis::new(course.facts().clone(), thresholds);
        course.steps().iter().for_each(|seen| {
            diagnosis.observe(seen);
        });
        let all = diagnosis.findings().iter();
        all.map(|finding| (finding.problem.id().to_owned(), finding.step)).collect()
    }

    fn found(course: &Course) -> Vec<(String, u64)> {
        findings(course, Thresholds::autotrainer())
    }

    fn only(problem: &Problem) -> Vec<(String, u64)> {
        vec![(problem.id().to_owned(), 60)]
    }

    #[test]
    fn a_run_without_symptoms_has_no_findings() {
        assert_eq!(found(&rising()), []);
    }

    #[test]
    fn gradients_are_found_at_the_first_check() {
        let mut vanishing = rising();
        vanishing.change(|_, seen| seen.layers[0].gradient = Some(gradient(5e-5)));
        assert_eq!(found(&vanishing), only(&Problem::VANISHING_GRADIENT));
        let mut exploding = rising();
        exploding.change(|_, seen| seen.layers[0].gradient = Some(gradient(8.0)));
        assert_eq!(found(&exploding), only(&Problem::EXPLODING_GRADIENT));
        let mut dying = rising();
        dying.change(|_, seen| {
            seen.layers[..3].iter_mut().for_each(|layer| layer.dead_units = Some(0.75));
        });
        assert_eq!(found(&dying), only(&Problem::DYING_RELU));
    }

    #[test]
    fn a_gradient_of_nan_is_certain() {
        let mut course = rising();
        course.change(|step, seen| {
            let gradient = seen.layers[1].gradient.as_mut();
            gradient.unwrap().nan = u64::from(step == 65);
        });
        let mut diagnosis = Diagnosis::new(course.facts().clone(), Thresholds::autotrainer());
        course.steps().iter().for_each(|seen| {
            diagnosis.observe(seen);
        });
        let finding = &diagnosis.findings()[0];
        assert_eq!((finding.step, finding.confidence), (120, Confidence::Certain));
        assert_eq!(finding.problem, Problem::EXPLODING_GRADIENT);
    }

    #[test]
    fn any_large_output_is_abnormal_data() {
        let mut course = rising();
        course.change(|_, seen| {
            seen.layers[2].output = Some(Summary { linf: 12.0, ..gradient(12.0) });
        });
        assert_eq!(found(&course), only(&Problem::ABNORMAL_DATA));
    }

    #[test]
    fn an_output_or_loss_that_does_not_fit_is_found() {
        let mut output = rising();
        *output.facts_mut() = with_output(facts(), Activation::Relu);
        assert_eq!(found(&output), only(&Problem::IMPROPER_OUTPUT_ACTIVATION));
        let mut loss = rising();
        loss.facts_mut().loss = Some("mse".to_owned());
        assert_eq!(found(&loss), only(&Problem::IMPROPER_LOSS));
    }

    #[test]
    fn an_accuracy_above_theta_excuses_all_but_its_own_symptoms() {
        let mut course = course(|epoch| 0.62 + 0.02 * epoch as f64);
        course.change(|_, seen| seen.layers[0].gradient = Some(gradient(8.0)));
        assert_eq!(found(&course), []);
        let strict = Thresholds { theta: 0.9, ..Thresholds::autotrainer() };
        assert_eq!(findings(&course, strict), only(&Problem::EXPLODING_GRADIENT));
    }

    #[test]
    fn a_level_accuracy_is_slow_convergence_however_high() {
        assert_eq!(found(&course(|_| 0.97)), only(&Problem::SLOW_CONVERGENCE));
    }

    #[test]
    fn an_accuracy_that_swings_is_an_oscillating_loss() {
        let swinging = course(|epoch| if epoch % 2 == 0 { 0.7 } else { 0.5 });
        assert_eq!(found(&swinging), [("oscillating_loss".to_owned(), 120)]);
    }

    #[test]
    fn alpha_and_the_check_interval_delay_findings() {
        let mut course = rising();
        course.change(|step, seen| {
            let norm = if step > 100 { 8.0 } else { 0.1 };
            seen.layers[0].gradient = Some(gradient(norm));
        });
        let at = |alpha, check_every| {
            let thresholds = Thresholds { alpha, check_every, ..Thresholds::autotrainer() };
            findings(&course, thresholds)[0].1
        };
        assert_eq!([at(0, 1), at(2, 1), at(0, 3), at(0, 5)], [120, 160, 120, 200]);
    }
}
