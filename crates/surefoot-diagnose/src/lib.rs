//! Diagnosis of neural-network training: observations in, findings out.
//!
//! Add it to any training loop. The loop reports an [`Observation`] after each optimizer step; a
//! [`Diagnosis`] passes it to every [`Detector`] and returns their [`Finding`]s. The loss is enough to
//! start with. With statistics of gradients and weights (see [`summarize`]) more problems are visible,
//! and with [`Facts`] about the model and the task the messages are more specific.
//!
//! ```
//! use surefoot_diagnose::{Diagnosis, LayerInfo, LayerKind, LayerObservation, Observation, summarize};
//!
//! let mut diagnosis = Diagnosis::builder()
//!     .total_steps(200)
//!     .layers(vec![LayerInfo::new("hidden", LayerKind::Dense)])
//!     .build();
//! for step in 1..=200 {
//!     // In a real loop: the loss and the gradient of this step.
//!     let (loss, gradient) = (f64::NAN, [f32::NAN, 0.5]);
//!     let layer = LayerObservation { gradient: Some(summarize(&gradient)), ..Default::default() };
//!     for finding in diagnosis.observe(&Observation::new(step, loss).with_layers(vec![layer])) {
//!         eprintln!("step {}: {}: {}", finding.step, finding.problem, finding.message);
//!     }
//! }
//! diagnosis.finish();
//! assert_eq!(diagnosis.findings()[0].problem.id(), "non_finite_loss");
//! ```
//!
//! Findings are a pure function of the facts, thresholds and observations: no clock, no randomness, no
//! framework. A recorded run is diagnosed exactly as a live one, and a NaN or a panic in a detector
//! never ends the training.
//!
//! - [`detectors`] has the problems that call for a repair, and warnings.
//! - [`indicators`] has conservative checks that end trials of a hyperparameter search.
//! - [`Thresholds`] has the limits, each with its reason, and [`Rules`] presets of detectors and limits.

mod advice;
mod curve;
mod detector;
pub mod detectors;
mod diagnosis;
mod facts;
mod finding;
pub mod indicators;
mod layer;
mod measure;
pub mod number;
mod observation;
mod thresholds;

pub use crate::advice::Advice;
pub use crate::curve::{Block, Curve, InitialState, LayerBlock, block_steps};
pub use crate::detector::{Context, Detector, Quantity};
pub use crate::diagnosis::{Builder, DetectorPanic, Diagnosis, panic_message};
pub use crate::facts::{Facts, TaskKind};
pub use crate::finding::{Confidence, Evidence, Finding, Problem, Severity};
pub use crate::layer::{Activation, LayerKind};
pub use crate::measure::Measure;
pub use crate::observation::{Evaluation, LayerInfo, LayerObservation, Observation, Split};
pub use crate::thresholds::{Rules, Thresholds};
pub use surefoot_stats::{Quartiles, Summary, summarize};
