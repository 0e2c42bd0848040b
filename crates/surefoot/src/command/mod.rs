//! The commands, a file each: `Arguments` with their help, and `run`.

pub(crate) mod board;
pub(crate) mod capsule;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod diagnose;
pub(crate) mod export;
pub(crate) mod init;
pub(crate) mod predict;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod simulate;
mod stored;
pub(crate) mod train;
pub(crate) mod tune;

use std::num::NonZeroUsize;

/// Number of threads that share the work of a step: the given number, or that of all cores.
fn workers(asked: Option<NonZeroUsize>) -> usize {
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    asked.unwrap_or(cores).get()
}
