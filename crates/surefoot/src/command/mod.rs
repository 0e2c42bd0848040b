//! The commands, a file each: `Arguments` with their help, and `run`.

pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod diagnose;
pub(crate) mod report;
pub(crate) mod train;
pub(crate) mod zoo;
