//! The remedy trait.

use crate::action::Action;
use surefoot_diagnose::{Facts, Finding, Problem};

/// An answer to a problem.
///
/// A pure function: the same context gives the same actions.
pub trait Remedy: Send + Sync {
    /// Id in records and on the command line, such as `activation`.
    fn id(&self) -> &'static str;

    /// Title for people.
    fn title(&self) -> &'static str;

    /// Returns true if it answers `problem`. Only asked for problems of other crates, which
    /// [`order`](crate::order) does not list.
    fn answers(&self, _problem: &Problem) -> bool {
        false
    }

    /// Returns the actions of this remedy, or the reason why it does not apply.
    ///
    /// The first action is the remedy itself: where the subject cannot apply it, the remedy is not
    /// tried. The others accompany it, where the subject can apply them.
    ///
    /// `variant` counts from 0: a remedy may have several forms or strengths, each tried on its own,
    /// and returns an error when there are no more.
    fn propose(&self, context: &RemedyContext<'_>, variant: usize) -> Result<Vec<Action>, String>;
}

/// Finding to answer, with the facts of its run.
#[derive(Clone, Copy, Debug)]
pub struct RemedyContext<'a> {
    /// The finding.
    pub finding: &'a Finding,
    /// Facts of the run.
    pub facts: &'a Facts,
}
