//! What a detector says.

use crate::detector::Context;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Something that goes wrong in training, by its id.
///
/// The set is open: a detector from elsewhere brings its own with [`Problem::new`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Problem(Cow<'static, str>);

impl Problem {
    /// Gradients die away on their way to the first layers.
    pub const VANISHING_GRADIENT: Problem = Problem::new("vanishing_gradient");
    /// Gradients grow on their way to the first layers, or are no numbers any more.
    pub const EXPLODING_GRADIENT: Problem = Problem::new("exploding_gradient");
    /// Most ReLU units put out zero for every sample and cannot learn.
    pub const DYING_RELU: Problem = Problem::new("dying_relu");
    /// The loss goes up and down instead of down.
    pub const OSCILLATING_LOSS: Problem = Problem::new("oscillating_loss");
    /// The loss hardly moves.
    pub const SLOW_CONVERGENCE: Problem = Problem::new("slow_convergence");
    /// The last activation does not suit the task.
    pub const IMPROPER_OUTPUT_ACTIVATION: Problem = Problem::new("improper_output_activation");
    /// The loss does not suit the task.
    pub const IMPROPER_LOSS: Problem = Problem::new("improper_loss");
    /// The input is far from what a network can start from.
    pub const ABNORMAL_DATA: Problem = Problem::new("abnormal_data");
    /// The loss is NaN or infinite.
    pub const NON_FINITE_LOSS: Problem = Problem::new("non_finite_loss");
    /// The loss jumped.
    pub const LOSS_SPIKE: Problem = Problem::new("loss_spike");
    /// Bounded activations are at their bounds.
    pub const SATURATED_ACTIVATION: Problem = Problem::new("saturated_activation");
    /// Weights that should learn stay as they are.
    pub const UNCHANGED_WEIGHTS: Problem = Problem::new("unchanged_weights");
    /// A step changes the weights by too much or too little.
    pub const UPDATE_RATIO: Problem = Problem::new("update_ratio");
    /// The training split gets better and the validation split worse.
    pub const OVER_FITTING: Problem = Problem::new("over_fitting");
    /// The model predicts one class for everything.
    pub const ONE_CLASS_PREDICTED: Problem = Problem::new("one_class_predicted");
    /// All labels, or some input features, are the same in every sample.
    pub const CONSTANT_DATA: Problem = Problem::new("constant_data");
    /// Input features are large, or on very different scales.
    pub const INPUT_SCALE: Problem = Problem::new("input_scale");
    /// The indicator of abnormal gradient values.
    pub const AGV: Problem = Problem::new("agv");
    /// The indicator of exponentially amplified gradients.
    pub const EAG: Problem = Problem::new("eag");
    /// The indicator of exponentially reduced gradients.
    pub const ERG: Problem = Problem::new("erg");
    /// The indicator of passive loss changes.
    pub const PLC: Problem = Problem::new("plc");
    /// The indicator of a low activation ratio.
    pub const LAR: Problem = Problem::new("lar");
    /// The indicator of unexpected loss changes.
    pub const ULC: Problem = Problem::new("ulc");
    /// The indicator that there is no more to gain.
    pub const NMG: Problem = Problem::new("nmg");

    /// The problem of that id.
    pub const fn new(id: &'static str) -> Problem {
        Problem(Cow::Borrowed(id))
    }

    /// The id, as it stands in records and on the command line.
    pub fn id(&self) -> &str {
        &self.0
    }

    /// What a person calls it: the id with spaces.
    pub fn title(&self) -> String {
        self.0.replace('_', " ").replace("relu", "ReLU")
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

/// What a finding asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Warning,
    /// The training is not going to succeed like this.
    Problem,
}

/// Something that a detector saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is.
    pub problem: Problem,
    /// What it asks for.
    pub severity: Severity,
    /// The step at which it was certain.
    pub step: u64,
    /// The step since which it is so.
    pub since: u64,
    /// The names of the layers where it is; empty if it is nowhere in particular.
    pub layers: Vec<String>,
    /// The numbers that show it.
    pub evidence: Vec<Evidence>,
    /// One message for people.
    pub message: String,
}

/// A number that shows a problem, and the limit that it is beyond.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// What was measured.
    pub name: String,
    /// What it came to.
    #[serde(with = "crate::number")]
    pub value: f64,
    /// The limit that it is beyond, if it is that kind of number.
    #[serde(with = "crate::number::optional", default)]
    pub limit: Option<f64>,
}

impl Finding {
    /// A finding of `problem` at `step`, without layers and evidence.
    pub fn new(problem: Problem, step: u64, message: impl Into<String>) -> Finding {
        Finding {
            problem,
            severity: Severity::Problem,
            step,
            since: step,
            layers: Vec::new(),
            evidence: Vec::new(),
            message: message.into(),
        }
    }

    /// The same as a warning.
    #[must_use]
    pub fn warning(self) -> Finding {
        Finding { severity: Severity::Warning, ..self }
    }

    /// The same, true since `step`.
    #[must_use]
    pub fn since(self, step: u64) -> Finding {
        Finding { since: step, ..self }
    }

    /// The same in these layers.
    #[must_use]
    pub fn within(self, layers: Vec<String>) -> Finding {
        Finding { layers, ..self }
    }

    /// The same with a number that shows it.
    #[must_use]
    pub fn with(mut self, name: &str, value: f64, limit: impl Into<Option<f64>>) -> Finding {
        self.evidence.push(Evidence { name: name.to_owned(), value, limit: limit.into() });
        self
    }

    /// The same with how much the run has learned so far, if that is known.
    #[must_use]
    pub(crate) fn with_skill(self, context: &Context<'_>) -> Finding {
        match context.curve.recent_skill(4) {
            Some(skill) => self.with("skill", skill, None),
            None => self,
        }
    }

    /// The number of that name among the evidence.
    pub fn number(&self, name: &str) -> Option<f64> {
        let evidence = self.evidence.iter().find(|evidence| evidence.name == name);
        evidence.map(|evidence| evidence.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_survives_json_with_numbers_that_are_none() {
        let finding = Finding::new(Problem::EXPLODING_GRADIENT, 12, "The gradients explode.")
            .since(10)
            .within(vec!["dense_1".to_owned()])
            .with("gradient norm", f64::INFINITY, 70.0);
        let text = serde_json::to_string(&finding).unwrap();
        assert!(text.contains(r#""problem":"exploding_gradient""#), "{text}");
        assert_eq!(serde_json::from_str::<Finding>(&text).unwrap(), finding);
    }

    #[test]
    fn a_problem_has_a_title() {
        assert_eq!(Problem::DYING_RELU.title(), "dying ReLU");
    }
}
