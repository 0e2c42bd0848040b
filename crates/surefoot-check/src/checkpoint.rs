//! What a training loop must save so that it can be resumed.

use crate::Place;

/// A point where a training run can be stopped and carried on: a save in a training loop, or the end
/// of each round of a loop that saves nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The save, or the loop.
    pub place: Place,
    /// Whether the script saves there. If not, the place is that of the loop.
    pub saves: bool,
    /// What must be saved, with the reason for each.
    pub members: Vec<Member>,
    /// The code that saves them.
    pub save: String,
    /// The code that restores them.
    pub restore: String,
}

/// Something that a checkpoint must save.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// What people call it: the variable, or the generator.
    pub name: String,
    /// What it is.
    pub kind: MemberKind,
    /// Why it must be saved, as a sentence.
    pub reason: String,
    /// Whether the script saves it here.
    pub saved: bool,
    /// Where it is used after the checkpoint.
    pub used_at: Option<Place>,
}

/// Kinds of things in a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemberKind {
    /// Parameters, optimizers, schedulers, counters, lists.
    State,
    /// The state of a random generator.
    Generator,
    /// How far a loop has come.
    Position,
}

impl Checkpoint {
    /// The code to write: what saves, then what restores.
    pub fn code(&self) -> String {
        format!("{}\n\n{}", self.save, self.restore)
    }
}
