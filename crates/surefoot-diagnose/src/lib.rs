//! Observations of a training run, and what they say about it.
//!
//! Whoever trains (an edge: Burn, PyTorch, Keras) translates what happens into [`Observation`]s and
//! [`Evaluation`]s. Everything after that is a pure function of them and of the static facts in
//! [`LayerInfo`], so a recorded run is diagnosed exactly as a live one.

mod observation;

pub use crate::observation::{Evaluation, LayerInfo, LayerObservation, Observation, Split};
pub use surefoot_stats::{Quartiles, Summary};
