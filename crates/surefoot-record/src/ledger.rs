//! The ledger of a repair: what was tried, why, and how it went.

use serde::{Deserialize, Serialize};
use surefoot_diagnose::{Finding, Problem};

/// A remedy that is tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Steps done by the plan as given when it was stopped.
    pub step: u64,
    /// Its number, from 1.
    pub number: u32,
    /// The attempt whose plan it changes; 0 is the plan as given.
    pub parent: u32,
    /// The problem it answers.
    pub problem: Problem,
    /// The ids of all remedies in its plan, in the order of their application.
    pub remedies: Vec<String>,
    /// What it changes, in a sentence.
    pub change: String,
    /// What it changes in the plan that it starts from, as lines with `-` and `+`.
    pub diff: String,
    /// Its run directory, relative to that of the run.
    pub run: String,
}

/// How an attempt went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptOutcome {
    /// Steps done by the plan as given when it was stopped.
    pub step: u64,
    /// The number of the attempt.
    pub number: u32,
    /// What became of it.
    pub state: AttemptState,
    /// The problem that ended it, if one did.
    pub finding: Option<Finding>,
    /// The best metric it came to on the validation split.
    #[serde(with = "surefoot_diagnose::number::optional")]
    pub metric: Option<f64>,
    /// What it cost: optimizer steps.
    pub steps: u64,
}

/// What became of an attempt.
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
    /// Was given up for one beside it that did better.
    Outperformed,
}

impl AttemptState {
    /// What a person calls it.
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
