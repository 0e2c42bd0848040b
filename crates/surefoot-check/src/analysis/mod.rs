//! Analyses of a lifted script that several rules use.

mod bound_names;
pub(crate) mod checkpoints;
mod copies;
mod framework_code;
pub(crate) mod generators;
mod positions;
pub(crate) mod repeated_iteration;
pub(crate) mod requirements;
pub(crate) mod restart_code;
mod resumption;
mod writes;
