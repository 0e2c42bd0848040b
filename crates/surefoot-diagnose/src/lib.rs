//! Observations of a training run, and what they say about it.
//!
//! Whoever trains (an edge: Burn, PyTorch, Keras) translates what happens into [`Observation`]s and
//! [`Evaluation`]s, and what is known beforehand into [`Facts`]. Everything after that is a pure
//! function of them, so a recorded run is diagnosed exactly as a live one.
//!
//! A [`Diagnosis`] asks every [`Detector`] and collects their [`Finding`]s.

mod curve;
mod detector;
pub mod detectors;
mod diagnosis;
mod facts;
mod finding;
pub mod indicators;
pub mod number;
mod observation;
mod thresholds;

pub use crate::curve::{Block, Curve, LayerBlock, Opening, block_steps};
pub use crate::detector::{Context, Detector, Quantity};
pub use crate::diagnosis::{DetectorPanic, Diagnosis, panic_message};
pub use crate::facts::{Facts, TaskKind};
pub use crate::finding::{Evidence, Finding, Problem, Severity};
pub use crate::observation::{Evaluation, LayerInfo, LayerObservation, Observation, Split};
pub use crate::thresholds::Thresholds;
pub use surefoot_stats::{Quartiles, Summary};
