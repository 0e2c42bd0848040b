//! The remedy trait.

use surefoot_diagnose::{Facts, Finding, Problem};
use surefoot_plan::Plan;

/// A change of plan that answers a problem.
///
/// A pure function: the same plan and context give the same change. What it changes can be printed
/// with [`diff`](crate::diff), and undone by training the plan it started from.
pub trait Remedy: Send + Sync {
    /// Its id in records and on the command line: `activation`.
    fn id(&self) -> &'static str;

    /// Title for people.
    fn title(&self) -> &'static str;

    /// Returns true if it answers `problem`, for problems that [`order`](crate::order) does not list: those
    /// of detectors from elsewhere.
    fn answers(&self, _problem: &Problem) -> bool {
        false
    }

    /// Returns true if it re-initializes weights, so that a training that was to start from given weights starts
    /// from fresh ones.
    fn reinitializes(&self) -> bool {
        false
    }

    /// The changed plan, or why it does not apply.
    ///
    /// `variant` counts from 0: a remedy may have several forms or strengths, of which each is tried
    /// on its own, and says that it does not apply when there are no more.
    fn apply(
        &self,
        plan: &Plan,
        context: &RemedyContext<'_>,
        variant: usize,
    ) -> Result<Change, String>;
}

/// Finding to answer, with the facts of its run.
#[derive(Clone, Copy, Debug)]
pub struct RemedyContext<'a> {
    /// The finding.
    pub finding: &'a Finding,
    /// Facts of the run.
    pub facts: &'a Facts,
}

/// Changed plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The plan after it.
    pub plan: Plan,
    /// Description of the change.
    pub message: String,
}

impl Change {
    /// A change to `plan`, unless it is none.
    pub fn new(from: &Plan, plan: Plan, message: impl Into<String>) -> Result<Change, String> {
        if plan == *from {
            return Err("the plan has this setting already".to_owned());
        }
        Ok(Change { plan, message: message.into() })
    }
}
