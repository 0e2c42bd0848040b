//! Findings of a check.

use crate::{Place, Rule};

/// Something in a script that keeps it from being repeated or resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which kind.
    pub rule: Rule,
    /// Place in the script.
    pub place: Place,
    /// Consequence, in one or two sentences.
    pub message: String,
    /// How to mend it.
    pub help: String,
    /// Other places that matter: where it flows to, where it should have been saved.
    pub notes: Vec<Note>,
}

/// A place that explains a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where.
    pub place: Place,
    /// Why it matters.
    pub text: String,
}
