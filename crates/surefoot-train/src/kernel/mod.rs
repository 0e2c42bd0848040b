//! Loops over plain slices for the CPU.
//!
//! Each does in one pass over memory what would take several tensor operations (an activation and
//! its gradient, a recurrent cell), or orders the work so that it stays in cache (convolution by
//! blocks). Every value is computed by one thread in a fixed order ([`parallel`]), so it has the same
//! bits wherever it is computed on a machine.

pub(crate) mod activation;
pub(crate) mod conv;
mod direct;
mod implicit;
pub(crate) mod math;
pub(crate) mod norm;
pub(crate) mod parallel;
pub(crate) mod pool;
mod product;
pub(crate) mod recurrent;
pub(crate) mod sum;
mod tiles;

pub(crate) use product::{Matrix, blocked, multiply, product};
use std::cell::Cell;
use std::sync::OnceLock;

/// Vectors that kernels compute with on a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Vectors {
    /// The widest of this machine. Results depend on their width.
    #[default]
    Widest,
    /// The widest where the result does not depend on them, otherwise AVX2; no `gemm`, whose blocks
    /// depend on the caches. Results are the same on all machines with AVX2 and FMA.
    Portable,
    /// As on a machine without AVX-512.
    #[cfg(test)]
    PortableAvx2,
}

thread_local! {
    static VECTORS: Cell<Vectors> = const { Cell::new(Vectors::Widest) };
}

impl Vectors {
    /// Those of a plan.
    pub(crate) fn of(training: &surefoot_plan::Training) -> Self {
        if training.portable { Self::Portable } else { Self::Widest }
    }

    /// Calls `body` with these vectors on this thread.
    pub(crate) fn within<R>(self, body: impl FnOnce() -> R) -> R {
        struct Restore(Vectors);
        impl Drop for Restore {
            fn drop(&mut self) {
                VECTORS.set(self.0);
            }
        }
        let _restore = Restore(VECTORS.replace(self));
        body()
    }

    fn current() -> Self {
        VECTORS.get()
    }
}

/// Returns true if this machine has the instructions that portable results need.
pub(crate) fn is_portable_machine() -> bool {
    avx2().is_some()
}

/// AVX2 and FMA, if this machine has them.
fn avx2() -> Option<pulp::Arch> {
    #[cfg(target_arch = "x86_64")]
    return pulp::x86::V3::try_new().map(pulp::Arch::V3);
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// AVX2, which portable results are computed with where the number of lanes shows.
fn narrow() -> pulp::Arch {
    static ARCH: OnceLock<pulp::Arch> = OnceLock::new();
    *ARCH.get_or_init(|| avx2().unwrap_or_default())
}

/// Runs `body` compiled for the widest vectors of this machine.
#[inline(always)]
pub(crate) fn vectorized<R>(body: impl FnOnce() -> R) -> R {
    dispatch(body)
}

/// Runs `operation` with the widest vectors of this machine.
#[inline(always)]
fn dispatch<W: pulp::WithSimd>(operation: W) -> W::Output {
    #[cfg(test)]
    if Vectors::current() == Vectors::PortableAvx2 {
        return narrow().dispatch(operation);
    }
    static ARCH: OnceLock<pulp::Arch> = OnceLock::new();
    ARCH.get_or_init(pulp::Arch::new).dispatch(operation)
}

/// As [`dispatch`], for an operation whose result depends on the number of lanes.
#[inline(always)]
fn dispatch_by_lanes<W: pulp::WithSimd>(operation: W) -> W::Output {
    match Vectors::current() {
        Vectors::Widest => dispatch(operation),
        _ => narrow().dispatch(operation),
    }
}
