//! Models for other programs.

mod step;
mod torch;

use crate::predict::Predictor;

impl Predictor {
    /// The model as the source of a Python module for PyTorch, which reads the arrays from the file
    /// `weights`.
    ///
    /// The class `Model` takes encoded samples, channels last, and applies the preprocessing of the
    /// training. `encode` turns the rows of a table into such samples.
    pub fn to_pytorch(&self, weights: &str) -> String {
        torch::module(self, weights)
    }
}
