//! A small language for the randomness of training programs.
//!
//! A program states what it keeps, draws, reads and outputs. [`infer`] computes a type for every value,
//! and from the types follows what a checkpoint must save. `docs/randomness.md` describes the language
//! and its laws.
//!
//! The program of this example trains a model from a keyed initialization:
//!
//! ```
//! use surefoot_check::calculus::{Operand, Program, Site, Statement, infer};
//!
//! let mut program = Program::default();
//! let [weights, epoch] = ["weights", "epoch"].map(|name| program.variable(name));
//! let [init, step, epochs] = ["init", "step", "epochs"].map(|name| program.symbol(name));
//! let label = program.label("end_of_epoch");
//! let compute = |function, operands: &[Operand], line| Statement::Compute {
//!     target: weights,
//!     function,
//!     operands: operands.to_vec(),
//!     site: Site(line),
//! };
//! // weights := init()
//! // for epoch < epochs {
//! //     weights := step(weights, epoch)
//! //     ckpt end_of_epoch
//! // }
//! // out weights
//! let body = vec![
//!     compute(step, &[Operand::Variable(weights), Operand::Variable(epoch)], 3),
//!     Statement::Checkpoint { label, site: Site(4) },
//! ];
//! let bound = Operand::Constant(epochs);
//! program.body = vec![
//!     compute(init, &[], 1),
//!     Statement::For { counter: epoch, bound, body, site: Site(2) },
//!     Statement::Output { operands: vec![Operand::Variable(weights)], site: Site(6) },
//! ];
//!
//! let typing = infer(&program);
//! let save = typing.save(label).expect("the checkpoint is reached");
//! let members: Vec<_> = save.members.iter().map(|it| program.name(it.variable)).collect();
//! assert_eq!(members, ["weights"]);
//! assert_eq!(save.counters, [epoch]);
//! ```

mod constants;
mod flow;
mod intern;
mod live;
mod outline;
mod scoped;
mod solve;
mod syntax;
#[cfg(test)]
pub(crate) mod tests;
mod types;
mod typing;

pub use syntax::{
    Label, Operand, Program, Reduction, SUCCESSOR, Site, Statement, Symbol, Variable,
};
pub use types::{
    Origin, OriginKind, Quality, Recomputed, SaveReason, SaveSet, SavedVariable, Type, WorkerCause,
    WorkerDependence,
};
pub use typing::{Output, Typing, infer};
