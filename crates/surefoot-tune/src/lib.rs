//! Hyperparameter search: spaces, samplers, pruners, storage and workers.
//!
//! * A [`Space`] has the parameters of a search; a [`Point`] in it is what a trial runs with.
//! * A [`Sampler`] suggests the next point. It is a pure function of the space, the seed, the trial
//!   number and the [`History`], so a search can be replayed.
//! * A [`Scheduler`] chooses which trial runs next: a new one, or a paused one.
//! * A [`Pruner`] ends trials that are not worth continuing, with a reason.
//! * A [`Storage`] keeps studies for any number of workers on any number of machines.
//! * A [`Worker`](worker::Worker) runs the trials of a study with an [`Objective`].
//! * [`simulate`] replays recorded trials through any set of pruners, without training.
//! * A [`Format`](export::Format) exports a study to other programs.
//!
//! ```
//! use surefoot_tune::create_study;
//!
//! let mut study = create_study("quadratic").open()?;
//! study.optimize(30, |trial| {
//!     let x = trial.suggest_float("x", -5.0, 5.0)?;
//!     let mut value = f64::INFINITY;
//!     for epoch in 1..=10 {
//!         value = (x - 2.0).powi(2) + 1.0 / epoch as f64;
//!         trial.report(epoch, value)?;
//!         if trial.should_stop() {
//!             break;
//!         }
//!     }
//!     Ok(value)
//! })?;
//! let best = study.best_trial().and_then(|trial| trial.value());
//! assert!(best < Some(1.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod command;
pub mod diagnosis;
mod direction;
pub mod export;
pub mod function;
mod history;
pub mod importance;
mod imputation;
mod learning_curve;
mod objective;
mod optimize;
pub mod pruner;
mod registry;
pub mod sampler;
pub mod scheduler;
mod scheduling;
pub mod simulate;
pub mod space;
pub mod storage;
pub mod study;
mod trial;
pub mod worker;

pub use direction::Direction;
pub use history::{History, TrialOutcome, TrialResult};
pub use learning_curve::LearningCurve;
pub use objective::{Objective, Progress, WorkerError};
pub use optimize::{OpenStudy, StudyBuilder, create_study};
pub use pruner::{PruneReason, Pruner};
pub use registry::{ConfigError, Configured};
pub use sampler::Sampler;
pub use scheduler::Scheduler;
pub use space::{Condition, Domain, Parameter, Point, Space, SpaceError, Value};
pub use storage::{Storage, TrialState};
pub use study::Study;
pub use trial::Trial;
