//! Findings of a check.

use crate::{Place, Rule};

/// Something in a script that keeps it from being repeated or resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Rule of the finding.
    pub rule: Rule,
    /// Place in the script.
    pub place: Place,
    /// Consequence, in one or two sentences.
    pub message: String,
    /// Advice on how to fix it.
    pub help: String,
    /// Places that explain it.
    pub notes: Vec<Note>,
}

/// A place that explains a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Place in the script.
    pub place: Place,
    /// Explanation.
    pub text: String,
}
