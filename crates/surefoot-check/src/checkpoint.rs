//! State that a training loop must save to be resumable.

use crate::Place;

/// A point where a training run can be stopped and resumed: a save in a training loop, or the end
/// of each iteration of a loop that saves nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredCheckpoint {
    /// The save, or the loop.
    pub place: Place,
    /// True if the script saves at this place; otherwise the place is that of the loop.
    pub saves: bool,
    /// State to save, each with its reason.
    pub members: Vec<Member>,
    /// The code that saves them.
    pub save: String,
    /// The code that restores them.
    pub restore: String,
}

/// Something that a checkpoint must save.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Display name: the variable or the generator.
    pub name: String,
    /// Kind of state.
    pub kind: MemberKind,
    /// Reason why it must be saved, as a sentence.
    pub reason: String,
    /// True if the script saves it here.
    pub saved: bool,
    /// Next use after the checkpoint.
    pub used_at: Option<Place>,
}

/// Kinds of things in a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemberKind {
    /// Parameters, optimizers, schedulers, counters, lists.
    State,
    /// The state of a random generator.
    Generator,
    /// Position in a loop.
    Position,
}

impl RequiredCheckpoint {
    /// Code that saves, then code that restores.
    pub fn code(&self) -> String {
        format!("{}\n\n{}", self.save, self.restore)
    }
}
