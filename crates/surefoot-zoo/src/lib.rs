//! The zoo: plans made from a seed, some with a fault, and what becomes of them.

mod case;
mod dice;
mod fault;
mod habitat;

pub use case::{Case, Injected, cases};
pub use fault::{Degree, Fault, Spoiled};
pub use habitat::Habitat;
