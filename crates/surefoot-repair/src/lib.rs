//! Remedies for training problems, and the search for one that works.
//!
//! A [`Remedy`] is a pure function from plan to plan. A [`Search`] says which to try next, is told
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
pub use remedy::{Case, Change, Remedy};
pub use search::{Judgement, Proposal, Search, Trial};
pub use thresholds::thresholds;
