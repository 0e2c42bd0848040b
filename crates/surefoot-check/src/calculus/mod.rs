//! A language for the randomness of a training program.
//!
//! A program says what it keeps, draws, reads and puts out. Its types say of every value what it is
//! made of, and from them follows what a checkpoint must save. `docs/randomness.md` has the laws.
//!
//! ```
//! use surefoot_check::calculus::{Label, infer, parse};
//!
//! let program = parse(
//!     "g := seed 42
//!      for epoch < epochs {
//!          ckpt L
//!          rate := schedule(epoch)
//!          order := draw g
//!          weights := step(weights, order, rate)
//!      }
//!      out weights",
//! )?;
//! let typing = infer(&program);
//! let save = typing.save(Label(0)).expect("the checkpoint is reached");
//! let why = save.members.iter().map(|member| {
//!     let name = program.name(member.variable);
//!     member.reason.sentence(name, &program, |site| format!("line {}", site.0))
//! });
//! assert_eq!(
//!     why.collect::<Vec<_>>(),
//!     [
//!         "g is moved on by the draw at line 5 in the loop at line 2.",
//!         "weights is carried round the loop at line 2.",
//!     ]
//! );
//! # Ok::<(), surefoot_check::calculus::ParseError>(())
//! ```

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
mod settle;
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
