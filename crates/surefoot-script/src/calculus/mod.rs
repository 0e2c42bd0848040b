//! A language for the randomness of a training program.

mod flow;
mod intern;
mod interpreter;
mod live;
mod meaning;
mod outline;
mod parse;
mod print;
mod recompute;
mod scoped;
mod solve;
mod syntax;
mod token;
mod types;
mod typing;

pub use interpreter::{Execution, Omission, Run, Snapshot, resume, run};
pub use meaning::Interpretation;
pub use parse::{ParseError, parse};
pub use syntax::{
    Label, Operand, Program, Reduction, SUCCESSOR, Site, Statement, Symbol, Variable,
};
pub use types::{
    Member, Origin, OriginKind, Quality, Reason, Recomputed, Save, Type, WorkerCause,
    WorkerDependence,
};
pub use typing::{Output, Typing, infer};
