//! Remedies for training problems, and the search for one that works.
//!
//! A [`Remedy`] answers a finding with [`Action`]s: changes that are the same in every framework, such
//! as another activation or learning rate. A [`Subject`] is what is repaired: a plan, a model of a
//! framework, or [`Advice`] for a person. It says which actions it supports and applies them. A
//! [`RepairSearch`] decides which remedies are tried next, receives the result of each attempt, and
//! ends when all have been tried. A [`contest`] compares the attempts with the training as given. An
//! [`AttemptTrainer`] of the caller trains them.
//!
//! # Examples
//!
//! Advice for a run that cannot be rebuilt:
//!
//! ```
//! use surefoot_diagnose::{Facts, Finding, Problem};
//! use surefoot_repair::advice;
//!
//! let facts = Facts { optimizer: Some("sgd".to_owned()), ..Facts::default() };
//! let finding = Finding::new(Problem::SLOW_CONVERGENCE, 100, "The loss hardly falls.");
//! assert_eq!(advice(&finding, &facts)[0], "Train with adam at a learning rate of 0.001.");
//! ```

mod action;
mod advice;
mod catch_up;
mod contest;
mod order;
pub mod remedies;
mod remedy;
mod search;
mod standing;
mod subject;

pub use action::{Action, Decay, Initializers, LossKind, OptimizerKind, Outliers};
pub use advice::{Advice, advice};
pub use contest::{AttemptTrainer, ContestConfig, ContestResult, Ending, ORIGINAL, contest};
pub use order::order;
pub use remedy::{Remedy, RemedyContext};
pub use search::{AttemptResult, AttemptVerdict, Proposal, RepairConfig, RepairSearch};
pub use standing::Standing;
pub use subject::Subject;
