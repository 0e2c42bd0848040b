//! Stoppers: when a trial is not worth going on with, one a file.

use crate::course::Course;
use serde::{Deserialize, Serialize};
use surefoot_diagnose::Evidence;

/// Ends a trial by comparing its course with that of the others.
///
/// A stopper keeps nothing between calls, so that a recorded study can be judged again by other
/// rules and gives what it would have given live. What looks into a single trial, layer by layer, is an
/// indicator (`surefoot_diagnose::indicators`).
pub trait Stopper: Send + Sync {
    /// The name it has in studies.
    fn name(&self) -> &'static str;

    /// Whether to end the trial after what it reported last, and why.
    fn judge(&self, trial: &Course, others: &[Course]) -> Option<Reason>;
}

/// Why a trial was ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// The stopper or indicator: `median`, `erg`.
    pub by: String,
    /// One sentence for people.
    pub sentence: String,
    /// The numbers that show it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// Whether what it reached counts as any other result: it was not bad, only done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts: bool,
}
