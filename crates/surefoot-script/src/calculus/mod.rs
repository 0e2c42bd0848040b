//! A language for the randomness of a training program.

mod syntax;

pub use syntax::{Label, Operand, Program, Reduction, Site, Statement, Symbol, Variable};
