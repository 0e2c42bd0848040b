//! Static analysis of randomness in training scripts.
//!
//! [`calculus`] is a small language for it: state, generators, keyed draws, reads of the
//! environment, loops, checkpoints. Its types say where each value comes from, and from them follows
//! what a checkpoint must save.
//!
//! Training scripts in Python are read into that language, and what its types show is reported as
//! [`Finding`]s.

pub mod calculus;
mod check;
mod checkpoint;
mod explain;
mod finding;
mod library;
mod lift;
mod parallel;
mod project;
mod rule;
mod rules;
mod source;
mod suppression;
mod torch;
mod unreadable;

pub use check::{CheckConfig, CheckReport, check};
pub use checkpoint::{Checkpoint, Member, MemberKind};
pub use explain::Explanation;
pub use finding::{Finding, Note};
pub use rule::{NoSuchRule, Rule};
pub use source::{FileId, Place, Source, Sources};
pub use torch::{TorchListError, TorchOperations};
pub use unreadable::{Reason, Unreadable};
