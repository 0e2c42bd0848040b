//! The zoo: plans generated from a seed, some with an injected fault, to evaluate detectors and
//! remedies.

mod case;
mod corruption;
mod dataset;
mod evaluate;
mod fault;
mod real;
mod rng;
mod table;

pub use case::{Case, Injected, cases};
pub use dataset::DatasetKind;
pub use evaluate::{Faulty, Row, Treated, evaluate, treat, with_fault};
pub use fault::{Corruption, Degree, Fault};
pub use real::{motivating, real_cases};
pub use table::{Line, Tables};
