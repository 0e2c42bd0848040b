//! Loops over plain slices for the CPU.
//!
//! Each does in one pass over memory what would take several tensor operations (an activation and
//! its gradient, a recurrent cell), or orders the work so that it stays in cache (convolution by
//! blocks). Every loop runs on one thread in a fixed order, so its result has the same bits
//! wherever it runs on a machine.

pub(crate) mod activation;
pub(crate) mod conv;
mod direct;
pub(crate) mod math;
pub(crate) mod pool;
mod product;
pub(crate) mod recurrent;
pub(crate) mod sum;

pub(crate) use product::{Matrix, blocked, multiply};
use std::sync::OnceLock;

/// Runs `body` compiled for the widest vectors of this machine.
#[inline(always)]
pub(crate) fn vectorized<R>(body: impl FnOnce() -> R) -> R {
    dispatch(body)
}

/// Runs `operation` with the widest vectors of this machine.
#[inline(always)]
fn dispatch<W: pulp::WithSimd>(operation: W) -> W::Output {
    static ARCH: OnceLock<pulp::Arch> = OnceLock::new();
    ARCH.get_or_init(pulp::Arch::new).dispatch(operation)
}
