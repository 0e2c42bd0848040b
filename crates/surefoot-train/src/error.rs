//! What can go wrong before or while training.

use thiserror::Error;

/// Why a plan could not be trained.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The record could not be written or read.
    #[error(transparent)]
    Record(#[from] surefoot_record::Error),
    /// The model has no parameters.
    #[error("the model has nothing to learn: none of its layers has weights")]
    NothingToLearn,
    /// An embedding has too few rows for the data.
    #[error(
        "layer `{layer}` has input_dim = {rows}, but the data have symbols up to {largest}; \
         it needs input_dim = {}",
        largest + 1
    )]
    TooFewSymbols {
        /// The embedding.
        layer: String,
        /// Its rows.
        rows: usize,
        /// The largest symbol.
        largest: usize,
    },
    /// Weights to start from do not fit the model.
    #[error("the weights `{name}` of layer `{layer}` (shape {shape:?}) do not fit the model")]
    ForeignWeight {
        /// The layer they name.
        layer: String,
        /// The array they name.
        name: String,
        /// Their dimensions.
        shape: Vec<usize>,
    },
    /// A checkpoint is not one of this plan.
    #[error("the checkpoint at step {step} does not belong to this plan: {reason}")]
    ForeignCheckpoint {
        /// Its step.
        step: u64,
        /// What does not fit.
        reason: String,
    },
    /// A capsule cannot be repeated.
    #[error("the capsule cannot be repeated: {0}")]
    ForeignCapsule(String),
    /// The device is not there.
    #[error("{0}")]
    NoDevice(String),
}
