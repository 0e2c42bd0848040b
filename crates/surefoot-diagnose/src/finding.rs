//! Findings of detectors.

use crate::advice::Advice;
use crate::detector::Context;
use crate::measure::Measure;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// A training problem, identified by its id.
///
/// The set is open: other detectors define their own with [`Problem::new`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Problem(Cow<'static, str>);

impl Problem {
    /// Gradients shrink on their way back to the first layers.
    pub const VANISHING_GRADIENT: Problem = Problem::new("vanishing_gradient");
    /// Gradients grow on their way back to the first layers, or are NaN or infinite.
    pub const EXPLODING_GRADIENT: Problem = Problem::new("exploding_gradient");
    /// Most ReLU units output zero for every sample and cannot learn.
    pub const DYING_RELU: Problem = Problem::new("dying_relu");
    /// The loss oscillates instead of decreasing.
    pub const OSCILLATING_LOSS: Problem = Problem::new("oscillating_loss");
    /// The loss hardly decreases.
    pub const SLOW_CONVERGENCE: Problem = Problem::new("slow_convergence");
    /// The output layer has too few units for the classes.
    pub const IMPROPER_OUTPUT_UNITS: Problem = Problem::new("improper_output_units");
    /// The output activation does not fit the task.
    pub const IMPROPER_OUTPUT_ACTIVATION: Problem = Problem::new("improper_output_activation");
    /// The loss function does not fit the task.
    pub const IMPROPER_LOSS: Problem = Problem::new("improper_loss");
    /// The input contains NaN or is not scaled.
    pub const ABNORMAL_DATA: Problem = Problem::new("abnormal_data");
    /// The loss is NaN or infinite.
    pub const NON_FINITE_LOSS: Problem = Problem::new("non_finite_loss");
    /// The loss rises and ends far above its start.
    pub const DIVERGING_LOSS: Problem = Problem::new("diverging_loss");
    /// The run had learned and lost it again.
    pub const COLLAPSE: Problem = Problem::new("collapse");
    /// The accuracy stays at that of a constant prediction.
    pub const METRIC_AT_CHANCE: Problem = Problem::new("metric_at_chance");
    /// The validation accuracy stays low while the training accuracy is perfect.
    pub const VALIDATION_AT_CHANCE: Problem = Problem::new("validation_at_chance");
    /// The cross-entropy is negative.
    pub const NEGATIVE_LOSS: Problem = Problem::new("negative_loss");
    /// The loss jumped.
    pub const LOSS_SPIKE: Problem = Problem::new("loss_spike");
    /// Bounded activations are at their bounds.
    pub const SATURATED_ACTIVATION: Problem = Problem::new("saturated_activation");
    /// Trainable weights do not change.
    pub const UNCHANGED_WEIGHTS: Problem = Problem::new("unchanged_weights");
    /// A step changes the weights by too much or too little.
    pub const UPDATE_RATIO: Problem = Problem::new("update_ratio");
    /// The training loss decreases while the validation loss increases.
    pub const OVER_FITTING: Problem = Problem::new("over_fitting");
    /// The model predicts the same class for every sample.
    pub const ONE_CLASS_PREDICTED: Problem = Problem::new("one_class_predicted");
    /// All labels, or some input features, are the same in every sample.
    pub const CONSTANT_DATA: Problem = Problem::new("constant_data");
    /// Input features are large, or on very different scales.
    pub const INPUT_SCALE: Problem = Problem::new("input_scale");
    /// The targets of a regression are far from the range of an untrained output.
    pub const UNSCALED_TARGETS: Problem = Problem::new("unscaled_targets");
    /// The norm of the gradient jumps.
    pub const GRADIENT_SPIKE: Problem = Problem::new("gradient_spike");
    /// Some layers are updated much more or much less than the others.
    pub const UNEVEN_UPDATES: Problem = Problem::new("uneven_updates");
    /// The outputs of a layer grow without end.
    pub const OUTPUT_DRIFT: Problem = Problem::new("output_drift");
    /// The attention logits grow without end.
    pub const ATTENTION_DRIFT: Problem = Problem::new("attention_drift");
    /// The learning rate does not fit its warm-up.
    pub const IMPROPER_WARMUP: Problem = Problem::new("improper_warmup");
    /// The loss compares each output with the targets of other samples. Found by adapters, not by a
    /// detector.
    pub const MISMATCHED_SHAPES: Problem = Problem::new("mismatched_shapes");
    /// Gradients are added to those of earlier steps. Found by adapters, not by a detector.
    pub const UNCLEARED_GRADIENTS: Problem = Problem::new("uncleared_gradients");
    /// Indicator of abnormal gradient values.
    pub const AGV: Problem = Problem::new("agv");
    /// Indicator of exponentially amplified gradients.
    pub const EAG: Problem = Problem::new("eag");
    /// Indicator of exponentially reduced gradients.
    pub const ERG: Problem = Problem::new("erg");
    /// Indicator of passive loss changes.
    pub const PLC: Problem = Problem::new("plc");
    /// Indicator of a low activation ratio.
    pub const LAR: Problem = Problem::new("lar");
    /// Indicator of unexpected loss changes.
    pub const ULC: Problem = Problem::new("ulc");
    /// Indicator of no more gain.
    pub const NMG: Problem = Problem::new("nmg");

    /// Creates a problem from its id.
    pub const fn new(id: &'static str) -> Problem {
        Problem(Cow::Borrowed(id))
    }

    /// The id used in records and on the command line.
    pub fn id(&self) -> &str {
        &self.0
    }

    /// Returns true if `symptom` follows from this problem and is not reported beside it.
    pub(crate) fn explains(&self, symptom: &Problem) -> bool {
        let causes: &[Problem] = match symptom.id() {
            "slow_convergence" => &[
                Problem::MISMATCHED_SHAPES,
                Problem::UNCHANGED_WEIGHTS,
                Problem::VANISHING_GRADIENT,
                Problem::EXPLODING_GRADIENT,
                Problem::DYING_RELU,
                Problem::OSCILLATING_LOSS,
                Problem::DIVERGING_LOSS,
            ],
            "oscillating_loss" => &[Problem::DIVERGING_LOSS],
            "unchanged_weights" | "output_drift" | "loss_spike" | "gradient_spike" => {
                &[Problem::OSCILLATING_LOSS, Problem::DIVERGING_LOSS]
            }
            _ => &[],
        };
        causes.contains(self)
    }

    /// Name for messages: the id as words.
    pub fn title(&self) -> String {
        let words = self.0.replace('_', " ").replace("relu", "ReLU");
        words.replace("non finite", "non-finite").replace("over fitting", "overfitting")
    }
}

impl From<String> for Problem {
    fn from(id: String) -> Problem {
        Problem(Cow::Owned(id))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Does not prevent the training from succeeding.
    Warning,
    /// The training will not succeed without a change.
    Problem,
}

/// Strength of the evidence for a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// The symptoms are those of the problem, but the run may still succeed.
    #[default]
    Likely,
    /// The run cannot succeed without a change, such as after a loss of NaN.
    Certain,
}

/// A problem or warning found by a detector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The problem.
    pub problem: Problem,
    /// Problem or warning.
    pub severity: Severity,
    /// Strength of the evidence.
    #[serde(default)]
    pub confidence: Confidence,
    /// Step of the finding; 0 if it was found before the first step.
    pub step: u64,
    /// First step with the symptom.
    pub since: u64,
    /// Names of the affected layers; empty if it concerns the run as a whole.
    pub layers: Vec<String>,
    /// Measurements that show it.
    pub evidence: Vec<Evidence>,
    /// One or two sentences for people.
    pub message: String,
    /// A change that usually solves the problem; `None` if there is none for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
}

/// A measurement that shows a problem, and the limit that it exceeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The measured quantity.
    pub measure: Measure,
    /// The measured value.
    #[serde(with = "crate::number")]
    pub value: f64,
    /// The exceeded limit; `None` for context.
    #[serde(with = "crate::number::optional", default)]
    pub limit: Option<f64>,
}

impl Evidence {
    /// Relation of the value to its limit, `>` or `<`; `None` without a limit, or if neither holds.
    pub fn relation(&self) -> Option<&'static str> {
        match self.value.partial_cmp(&self.limit?)? {
            std::cmp::Ordering::Greater => Some(">"),
            std::cmp::Ordering::Less => Some("<"),
            std::cmp::Ordering::Equal => None,
        }
    }
}

impl Finding {
    /// Creates a finding of `problem` at `step` without layers and evidence.
    pub fn new(problem: Problem, step: u64, message: impl Into<String>) -> Finding {
        Finding {
            advice: Advice::of(&problem),
            problem,
            severity: Severity::Problem,
            confidence: Confidence::Likely,
            step,
            since: step,
            layers: Vec::new(),
            evidence: Vec::new(),
            message: message.into(),
        }
    }

    /// Turns it into a warning.
    #[must_use]
    pub fn warning(self) -> Finding {
        Finding { severity: Severity::Warning, ..self }
    }

    /// Marks the evidence as conclusive.
    #[must_use]
    pub fn certain(self) -> Finding {
        Finding { confidence: Confidence::Certain, ..self }
    }

    /// Sets the first step with the symptom.
    #[must_use]
    pub fn since(self, step: u64) -> Finding {
        Finding { since: step, ..self }
    }

    /// Sets the affected layers.
    #[must_use]
    pub fn within(self, layers: Vec<String>) -> Finding {
        Finding { layers, ..self }
    }

    /// Adds a measurement. A string is the id of a [`Measure`], known or not.
    #[must_use]
    pub fn with(
        mut self,
        measure: impl Into<Measure>,
        value: f64,
        limit: impl Into<Option<f64>>,
    ) -> Finding {
        self.evidence.push(Evidence { measure: measure.into(), value, limit: limit.into() });
        self
    }

    /// Adds a measurement that may be missing.
    #[must_use]
    pub(crate) fn with_known(
        self,
        measure: Measure,
        value: Option<f64>,
        limit: impl Into<Option<f64>>,
    ) -> Finding {
        match value.filter(|value| !value.is_nan()) {
            Some(value) => self.with(measure, value, limit),
            None => self,
        }
    }

    /// Replaces the advice.
    #[must_use]
    pub fn with_advice(self, advice: Advice) -> Finding {
        Finding { advice: Some(advice), ..self }
    }

    /// Adds the skill of the last four blocks, if known.
    #[must_use]
    pub(crate) fn with_skill(self, context: &Context<'_>) -> Finding {
        let known = context.facts.has_baseline();
        self.with_known(Measure::Skill, context.curve.recent_skill(4).filter(|_| known), None)
    }

    /// Returns the value of `measure` in the evidence.
    pub fn value(&self, measure: &Measure) -> Option<f64> {
        let evidence = self.evidence.iter().find(|evidence| evidence.measure == *measure);
        evidence.map(|evidence| evidence.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_with_an_infinite_value_is_read_back_from_json() {
        let finding = Finding::new(Problem::EXPLODING_GRADIENT, 12, "The gradients explode.")
            .since(10)
            .within(vec!["dense_1".to_owned()])
            .with(Measure::FirstToLastGradient, f64::INFINITY, 70.0);
        let text = serde_json::to_string(&finding).unwrap();
        assert!(text.contains(r#""problem":"exploding_gradient""#), "{text}");
        assert!(text.contains(r#""measure":"first_to_last_gradient""#), "{text}");
        assert_eq!(serde_json::from_str::<Finding>(&text).unwrap(), finding);
    }

    #[test]
    fn a_finding_without_a_confidence_is_likely() {
        let finding = Finding::new(Problem::NON_FINITE_LOSS, 1, "The loss is NaN.").certain();
        let text = serde_json::to_string(&finding).unwrap();
        let older = text.replace(r#""confidence":"certain","#, "");
        assert_ne!(older, text);
        let read = serde_json::from_str::<Finding>(&older).unwrap();
        assert_eq!(read.confidence, Confidence::Likely);
    }

    #[test]
    fn a_problem_has_a_title() {
        assert_eq!(Problem::DYING_RELU.title(), "dying ReLU");
    }
}
