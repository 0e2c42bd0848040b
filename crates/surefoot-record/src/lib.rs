//! The record of a run: a directory that survives a crash and can be copied.
//!
//! A [`Recorder`] writes it while training, a [`Record`] reads it during and after. What is in the
//! directory, how to read it, and the guarantees after a crash are described in `docs/record.md`.
//!
//! ```
//! use serde_json::json;
//! use surefoot_record::{Array, Checkpoint, Environment, Header, Recorder, Record, StepDigest};
//! # use surefoot_diagnose::Observation;
//! # fn observation(step: u64) -> Observation {
//! #     Observation::new(step, 1.0)
//! # }
//! # fn digest(step: u64) -> StepDigest {
//! #     let mut digest = StepDigest::default();
//! #     digest.seal(step, &[]);
//! #     digest
//! # }
//! # fn main() -> surefoot_record::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let runs = dir.path();
//! let mut recorder = Recorder::create(runs, "circles", "seed = 1\n", Header::default())?;
//! let dir = recorder.dir().to_owned();
//! for step in 1..=10 {
//!     recorder.observe(&observation(step));
//!     recorder.digest(&digest(step));
//! }
//! recorder.checkpoint(&Checkpoint {
//!     step: 10,
//!     epoch: 1,
//!     state: json!({}),
//!     arrays: vec![Array::new("weight", &[2], vec![0.5_f32, -0.5])],
//! })?;
//! drop(recorder); // or a crash, at any instant
//!
//! let (recorder, checkpoint) = Recorder::resume(&dir, &Environment::detect())?;
//! assert_eq!(checkpoint.map(|checkpoint| checkpoint.step), Some(10));
//! assert_eq!(Record::open(&dir)?.observations()?.count(), 10);
//! # Ok(())
//! # }
//! ```

mod append;
mod array;
mod capsule;
mod checkpoint;
mod checkpoint_dir;
mod digest;
mod digest_log;
mod error;
mod event;
#[cfg(test)]
mod fixture;
mod header;
mod layout;
mod ledger;
mod live_table;
pub mod logs;
mod observations;
mod record;
mod recorder;
mod replay;
mod resume;
mod step_digest;
mod summary;
mod table;
mod tensor_file;
mod watched_run;
mod writer;

pub use crate::array::{Array, Values};
pub use crate::capsule::{Capsule, CapsuleFacts};
pub use crate::checkpoint::Checkpoint;
pub use crate::digest::{Digest, NotADigest, StateDigest};
pub use crate::digest_log::DigestLog;
pub use crate::error::{Error, Result};
pub use crate::event::Event;
pub use crate::header::{Environment, FORMAT, Header};
pub use crate::ledger::{Attempt, AttemptOutcome, AttemptState};
pub use crate::observations::Observations;
pub use crate::record::Record;
pub use crate::recorder::Recorder;
pub use crate::replay::{Entry, Replay};
pub use crate::resume::InterruptedRun;
pub use crate::step_digest::{Part, Quantity, StepDigest};
pub use crate::summary::{MetricSummary, RunSummary, Status};
pub use crate::watched_run::WatchedRun;
pub use safetensors::tensor::Dtype;
