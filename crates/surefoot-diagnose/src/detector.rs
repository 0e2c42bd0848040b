//! What a detector is.

use crate::curve::Curve;
use crate::facts::Facts;
use crate::finding::{Finding, Problem};
use crate::observation::{Evaluation, Observation};
use crate::thresholds::Thresholds;

/// Reads a run as it comes and says when something is wrong with it.
///
/// A detector sees no framework, no file and no clock: the same observations give the same
/// findings, live or from a record. One that has found something is not asked again.
pub trait Detector: Send {
    /// What it looks for.
    fn problem(&self) -> Problem;

    /// What it cannot do without.
    fn needs(&self) -> &'static [Quantity];

    /// Looks at a step. Called for every one, so it should cost well under a microsecond.
    fn observe(&mut self, _seen: &Observation, _context: &Context<'_>) -> Option<Finding> {
        None
    }

    /// Looks at the course of the run, whenever another two-hundredth of it is done.
    fn review(&mut self, _context: &Context<'_>) -> Option<Finding> {
        None
    }

    /// Looks at an evaluation of a split.
    fn evaluate(&mut self, _evaluation: &Evaluation, _context: &Context<'_>) -> Option<Finding> {
        None
    }

    /// Looks back when all steps are done.
    fn finish(&mut self, _context: &Context<'_>) -> Option<Finding> {
        None
    }
}

/// What a detector is told besides the step.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// What is known of the run.
    pub facts: &'a Facts,
    /// Its course so far.
    pub curve: &'a Curve,
    /// Where symptoms become problems.
    pub thresholds: &'a Thresholds,
}

impl Context<'_> {
    /// The step that was observed last.
    pub fn step(&self) -> u64 {
        self.curve.step()
    }

    /// Whether the learning rate is still on its way up, when nothing can be said of how the run
    /// learns.
    pub fn warming_up(&self) -> bool {
        self.step() <= self.facts.warmup_steps
    }
}

/// What may or may not be seen of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// The loss of every step.
    Loss,
    /// The metric of every step.
    Metric,
    /// The statistics of gradients.
    Gradients,
    /// The statistics of weights.
    Weights,
    /// The statistics of outputs and of the input.
    Outputs,
    /// Evaluations of a validation split.
    Validation,
    /// TaskKind, loss and layers.
    Model,
}

impl Quantity {
    /// What a person calls it.
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
