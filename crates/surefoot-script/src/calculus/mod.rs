//! A language for the randomness of a training program.

mod flow;
mod live;
mod outline;
mod parse;
mod print;
mod scoped;
mod solve;
mod syntax;
mod types;
mod typing;

pub use parse::{ParseError, parse};
pub use syntax::{
    Label, Operand, Program, Reduction, SUCCESSOR, Site, Statement, Symbol, Variable,
};
pub use types::{
    Member, Origin, OriginKind, Quality, Reason, Recomputed, Save, Type, WorkerCause,
    WorkerDependence,
};
pub use typing::{Output, Typing, infer};
