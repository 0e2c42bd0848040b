//! The zoo: plans made from a seed, some with a fault, and what becomes of them.

mod case;
mod dice;
mod evaluate;
mod fault;
mod habitat;
mod real;
mod spoil;
mod table;

pub use case::{Case, Injected, cases};
pub use evaluate::{Faulty, Row, Treated, evaluate, treat};
pub use fault::{Degree, Fault, Spoiled};
pub use habitat::Habitat;
pub use real::{motivating, real_cases};
pub use table::{Line, Tables};
