//! Models for other programs.

mod onnx;
mod step;
mod torch;

use crate::error::TrainError;
use crate::predict::Predictor;

/// Bytes of arrays in an ONNX file: its encoding is limited to 2 GiB, of which the graph needs a part.
const LARGEST_ONNX: u64 = 2_000_000_000;

impl Predictor {
    /// The model as the source of a Python module for PyTorch, which reads the arrays from the file
    /// `weights`.
    ///
    /// The class `Model` takes encoded samples, channels last, and applies the preprocessing of the
    /// training. `encode` turns the rows of a table into such samples.
    pub fn to_pytorch(&self, weights: &str) -> String {
        torch::module(self, weights)
    }

    /// The model as an ONNX file.
    ///
    /// Its input `samples` takes encoded samples, channels last, any number at once; the graph applies
    /// the preprocessing of the training. Metadata hold the task, the classes and the columns.
    ///
    /// # Errors
    ///
    /// If the arrays are larger than an ONNX file can be.
    pub fn to_onnx(&self) -> Result<Vec<u8>, TrainError> {
        let size = self.weights().iter().map(|weight| 4 * weight.values.len() as u64).sum();
        match size > LARGEST_ONNX {
            true => Err(TrainError::TooLargeForOnnx { size }),
            false => Ok(onnx::file(self)),
        }
    }
}
