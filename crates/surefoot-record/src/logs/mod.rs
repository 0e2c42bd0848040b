//! Logs of trainings that others made, as observations.
//!
//! Whoever trained without surefoot has a CSV file of metrics or a TensorBoard log directory.
//! [`read`] makes a [`Log`] of it: what a [`Diagnosis`](surefoot_diagnose::Diagnosis) looks at, and
//! which [`Quantities`](surefoot_diagnose::Quantity) are in it at all.
//!
//! ```
//! use surefoot_record::logs::{Map, read};
//! # fn main() -> Result<(), surefoot_record::logs::Error> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("history.csv");
//! # std::fs::write(&path, "epoch,loss,val_loss\n0,0.7,0.8\n1,0.5,0.6\n").unwrap();
//! let log = read(&path, &Map::new())?; // epoch,loss,val_loss
//! assert_eq!(log.steps.len(), 2);
//! assert_eq!(log.evaluations[1].loss, 0.6);
//! # Ok(())
//! # }
//! ```

mod csv;
mod error;
mod log;
mod name;
mod role;
mod source;
mod table;
mod tensorboard;

pub use crate::logs::error::Error;
pub use crate::logs::log::{Format, Log, Origin, Series, Unit};
pub use crate::logs::role::{Map, Role, UnknownRole};
pub use crate::logs::source::read;
