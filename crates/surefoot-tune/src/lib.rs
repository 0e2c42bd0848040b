//! Hyper-parameter search: what is tried, how it is judged, when it is ended, and where it is kept.
//!
//! * A [`Space`] has the parameters of a search, a [`Point`] in it is what a trial is run with.
//! * A [`Sampler`] says which point to try next. It is a pure function of the space, the seed, the
//!   number of the trial and the [`History`], so that a search can be replayed.
//! * A [`Pruner`] ends a trial that is not worth going on with, and says why.
//! * A [`Store`] holds a study for any number of workers on any number of machines.
//! * [`simulate`] replays recorded trials through any set of pruners, without training.
//! * A [`Format`](export::Format) hands a study on to other programs.

pub mod checker;
pub mod command;
mod direction;
pub mod export;
mod history;
pub mod imputation;
mod learning_curve;
pub mod pruner;
mod registry;
pub mod report;
pub mod runner;
pub mod sampler;
pub mod simulate;
pub mod space;
pub mod store;
pub mod study;
pub mod worker;

pub use direction::Direction;
pub use history::{History, TrialOutcome, TrialResult};
pub use learning_curve::LearningCurve;
pub use pruner::{PruneReason, Pruner};
pub use registry::{ConfigError, Configured};
pub use sampler::Sampler;
pub use space::{Condition, Domain, Parameter, Point, Space, SpaceError, Value};
pub use store::Store;
pub use study::Study;
