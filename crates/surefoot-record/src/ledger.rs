//! The ledger of a repair: what was tried, why, and how it went.

use serde::{Deserialize, Serialize};
use surefoot_diagnose::{Finding, Problem};

/// A remedy that is tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Steps completed by the original plan.
    pub step: u64,
    /// Its number, from 1.
    pub number: u32,
    /// Attempt whose plan it changes; 0 is the original plan.
    pub parent: u32,
    /// The problem it answers.
    pub problem: Problem,
    /// The ids of all remedies in its plan, in the order of their application.
    pub remedies: Vec<String>,
    /// Description of the change.
    pub change: String,
    /// Change to the parent's plan, as lines with `-` and `+`.
    pub diff: String,
    /// Its run directory, relative to that of the run.
    pub run: String,
}

/// Result of an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptOutcome {
    /// Steps completed by the original plan.
    pub step: u64,
    /// The number of the attempt.
    pub number: u32,
    /// State in which it ended.
    pub state: AttemptState,
    /// The problem that ended it, if one did.
    pub finding: Option<Finding>,
    /// Best metric on the validation split.
    #[serde(with = "surefoot_diagnose::number::optional")]
    pub metric: Option<f64>,
    /// Optimizer steps spent.
    pub steps: u64,
}

/// State in which an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptState {
    /// Trained to its end without a problem.
    Repaired,
    /// Had the same problem again.
    Persists,
    /// Had another problem.
    NewProblem,
    /// Had no problem, but was no better than what it was to replace.
    NoBetter,
    /// Stopped early because another attempt did better.
    Outperformed,
}

impl AttemptState {
    /// Short description for people.
    pub fn title(self) -> &'static str {
        match self {
            AttemptState::Repaired => "repaired",
            AttemptState::Persists => "the problem persists",
            AttemptState::NewProblem => "another problem",
            AttemptState::NoBetter => "no better",
            AttemptState::Outperformed => "another attempt did better",
        }
    }
}
