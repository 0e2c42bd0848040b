//! Errors of preparing and training a plan.

use std::path::PathBuf;
use surefoot_data::DataError;
use surefoot_plan::{PlanError, ShapeError};
use thiserror::Error;

/// An error of preparing or training a plan.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The record could not be written or read.
    #[error(transparent)]
    Record(#[from] surefoot_record::Error),
    /// The plan is invalid.
    #[error(transparent)]
    Plan(#[from] Box<PlanError>),
    /// The layers do not fit each other or the data.
    #[error("{}", .0)]
    Shape(#[from] Box<ShapeError>),
    /// The data cannot be loaded.
    #[error(transparent)]
    Data(#[from] Box<DataError>),
    /// The Keras file cannot be read.
    #[cfg(feature = "keras")]
    #[error(transparent)]
    Keras(#[from] Box<surefoot_plan::keras::KerasError>),
    /// The model has no parameters.
    #[error("the model has nothing to learn: none of its layers has weights")]
    NothingToLearn,
    /// The model does not fit into memory.
    #[error("the model and a batch need {needed} bytes of memory, and {available} are available")]
    TooLarge {
        /// Bytes needed.
        needed: u64,
        /// Bytes available.
        available: u64,
    },
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
        /// The mismatch.
        reason: String,
    },
    /// A capsule cannot be repeated.
    #[error("the capsule cannot be repeated: {0}")]
    ForeignCapsule(String),
    /// The plan asks for portable results, which this device or CPU cannot compute.
    #[error("the plan has training.portable = true, and {0}; remove the key, or train elsewhere")]
    NotPortable(&'static str),
    /// The device is not there.
    #[error("{0}")]
    NoDevice(String),
    /// A Keras model expects samples of another shape.
    #[error("the Keras model expects samples of shape {expected:?}, but the data have {found:?}")]
    InputShape {
        /// The shape that the model expects.
        expected: Vec<usize>,
        /// The shape of the data.
        found: Vec<usize>,
    },
    /// The run started from a Keras file, which this build cannot read.
    #[error("{} started from a Keras file, which this build cannot read", run.display())]
    NoKeras {
        /// The run directory.
        run: PathBuf,
    },
    /// The data of a recorded run have changed.
    #[error("the data differ from those that {} was started with", run.display())]
    DataChanged {
        /// The run directory.
        run: PathBuf,
    },
    /// The plan names a remedy that does not exist.
    #[error("`repair.{key}`: unknown remedy `{id}`; there are {known}")]
    UnknownRemedy {
        /// `forbid` or `order`.
        key: &'static str,
        /// The unknown id.
        id: String,
        /// The ids that exist.
        known: String,
    },
    /// The plan's thresholds are invalid.
    #[error("{0}")]
    Thresholds(String),
    /// The run has a summary already.
    #[error("{} is finished", run.display())]
    AlreadyFinished {
        /// The run directory.
        run: PathBuf,
    },
    /// The run has no delivered model.
    #[error("{} has no delivered model: the run is not finished, or was recorded by another version", run.display())]
    NoModel {
        /// The run directory.
        run: PathBuf,
    },
    /// The files of a delivered model do not belong together.
    #[error("the model of {} cannot be read: {reason}", run.display())]
    ForeignModel {
        /// The run directory.
        run: PathBuf,
        /// The mismatch.
        reason: String,
    },
    /// The model is too large for an ONNX file.
    #[error(
        "the arrays of the model have {size} bytes, and an ONNX file holds at most 2000000000; \
         export it to .py"
    )]
    TooLargeForOnnx {
        /// Bytes of the arrays.
        size: u64,
    },
    /// The run asks before it tries a remedy.
    #[error("this run was started with approval of remedies; set a repair mode")]
    NeedsApproval,
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A callback failed.
    #[error(transparent)]
    Callback(Box<dyn std::error::Error + Send + Sync>),
}

macro_rules! boxed {
    ($($variant:ident($error:ty)),*) => {$(
        impl From<$error> for TrainError {
            fn from(error: $error) -> Self {
                Self::$variant(Box::new(error))
            }
        }
    )*};
}

boxed!(Plan(PlanError), Shape(ShapeError), Data(DataError));
#[cfg(feature = "keras")]
boxed!(Keras(surefoot_plan::keras::KerasError));
