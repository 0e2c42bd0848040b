//! The detector trait.

use crate::curve::Curve;
use crate::facts::Facts;
use crate::finding::{Finding, Problem};
use crate::observation::{Evaluation, Observation};
use crate::thresholds::Thresholds;

/// Looks for one problem in the observations of a run.
///
/// A detector has no access to frameworks, files or clocks: the same observations yield the same
/// findings, live or from a record. After its first finding it is not called again.
///
/// # Add a detector
///
/// Implement the trait in one file and pass it to [`Builder::detector`](crate::Builder::detector). A
/// built-in detector also takes one line in [`detectors::all`](crate::detectors::all).
///
/// ```
/// use surefoot_diagnose::{Context, Detector, Finding, Measure, Problem, Quantity};
/// use surefoot_diagnose::{Diagnosis, Observation};
///
/// /// The loss is negative, which no cross-entropy is.
/// struct NegativeLoss;
///
/// impl Detector for NegativeLoss {
///     fn problem(&self) -> Problem {
///         Problem::new("negative_loss")
///     }
///
///     fn needs(&self) -> &'static [Quantity] {
///         &[Quantity::Loss]
///     }
///
///     fn observe(&mut self, seen: &Observation, _: &Context<'_>) -> Option<Finding> {
///         (seen.loss < 0.0).then(|| {
///             Finding::new(self.problem(), seen.step, "The loss is negative.")
///                 .with(Measure::Loss, seen.loss, 0.0)
///         })
///     }
/// }
///
/// let mut diagnosis = Diagnosis::builder().detector(NegativeLoss).build();
/// diagnosis.observe(&Observation::new(1, 0.3));
/// let findings = diagnosis.observe(&Observation::new(2, -0.1));
/// assert_eq!(findings[0].problem.id(), "negative_loss");
/// ```
pub trait Detector: Send {
    /// The problem it looks for.
    fn problem(&self) -> Problem;

    /// Quantities that it requires.
    fn needs(&self) -> &'static [Quantity];

    /// Called once, before the first step: for problems that the facts alone show.
    fn start(&mut self, _context: &Context<'_>) -> Option<Finding> {
        None
    }

    /// Called for every step; should take well under a microsecond.
    fn observe(&mut self, _seen: &Observation, _context: &Context<'_>) -> Option<Finding> {
        None
    }

    /// Called after every block of steps, a two-hundredth of the training, unless the loss or a weight is
    /// NaN or infinite then.
    fn review(&mut self, _context: &Context<'_>) -> Option<Finding> {
        None
    }

    /// Called for every evaluation of a split.
    fn evaluate(&mut self, _evaluation: &Evaluation, _context: &Context<'_>) -> Option<Finding> {
        None
    }

    /// Called once after the last step, unless the loss or a weight is NaN or infinite then.
    fn finish(&mut self, _context: &Context<'_>) -> Option<Finding> {
        None
    }
}

/// State of the run that detectors read besides the step.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Static facts of the run.
    pub facts: &'a Facts,
    /// Learning curve so far.
    pub curve: &'a Curve,
    /// Limits of the detectors.
    pub thresholds: &'a Thresholds,
}

impl Context<'_> {
    /// The last observed step.
    pub fn step(&self) -> u64 {
        self.curve.step()
    }

    /// Returns true during the warm-up of the learning rate, when slow learning is expected.
    pub fn warming_up(&self) -> bool {
        self.step() <= self.facts.warmup_steps
    }

    /// Returns true once `share` of the training is done. If the number of steps is unknown, it counts
    /// as 2,000 observations.
    pub fn has_run_for(&self, share: f64) -> bool {
        self.curve.elapsed(self.facts) >= share
    }
}

/// A kind of observation that a run may or may not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// Loss of every step.
    Loss,
    /// Metric of every step.
    Metric,
    /// Statistics of gradients.
    Gradients,
    /// Statistics of weights.
    Weights,
    /// Statistics of layer outputs and of the input.
    Outputs,
    /// Evaluations of a validation split.
    Validation,
    /// TaskKind, loss and layers.
    Model,
}

impl Quantity {
    /// Name for people.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::Loss => "the loss",
            Quantity::Metric => "the metric",
            Quantity::Gradients => "gradients",
            Quantity::Weights => "weights",
            Quantity::Outputs => "outputs",
            Quantity::Validation => "a validation split",
            Quantity::Model => "the model and its task",
        }
    }
}
