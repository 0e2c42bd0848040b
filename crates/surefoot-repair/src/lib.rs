//! Remedies for training problems, and the search for one that works.
//!
//! A [`Remedy`] is a pure function from plan to plan. A [`RepairSearch`] proposes which to try next, receives
//! how each went, and knows when all have been tried. Who trains, and how, is none of its business:
//! the same search serves a trainer, a test, or a person who wants to see what would be tried.

mod diff;
mod order;
pub mod remedies;
mod remedy;
mod search;
mod thresholds;

pub use diff::diff;
pub use order::order;
pub use remedy::{Change, Remedy, RemedyContext};
pub use search::{AttemptResult, AttemptVerdict, Proposal, RepairSearch};
pub use thresholds::thresholds;
