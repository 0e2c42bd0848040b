//! The training that a repair changes.

use crate::action::Action;

/// Something that remedies change: a plan, a model of a framework, or advice for a person.
///
/// Two subjects are equal if training them gives the same result, so that none is tried twice.
pub trait Subject: Clone + PartialEq {
    /// Returns true if [`apply`](Subject::apply) knows this kind of action.
    fn supports(&self, action: &Action) -> bool;

    /// Applies `action` and returns a sentence that says exactly what has changed, or the reason why
    /// nothing can be changed.
    fn apply(&mut self, action: &Action) -> Result<String, String>;

    /// Difference to `changed` for a person to read, empty if there is none.
    fn diff(&self, changed: &Self) -> String;
}
