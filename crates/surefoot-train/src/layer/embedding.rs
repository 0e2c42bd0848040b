//! Learned vectors for symbols and positions.

use super::{ParameterId, Pass, Stage};
use crate::compute::Compute;
use crate::tensor::Tensor;

/// Symbols `[batch, steps]`, whole numbers as floats, to vectors `[batch, steps, width]`.
///
/// Symbols are checked against the table when the data are loaded.
pub(crate) struct Embedding {
    pub(crate) table: ParameterId,
}

impl<B: Compute> Stage<B> for Embedding {
    fn forward(&self, x: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        pass.keep(&x);
        B::embed(pass.parameter(self.table), &x)
    }

    fn backward(&self, gradient: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        let x = pass.take();
        let d_table = B::embed_backward(pass.parameter(self.table), &x, &gradient);
        pass.learn(self.table, d_table);
        x // symbols have no gradient, and nothing before this stage learns
    }
}

/// Adds a learned vector for each position of `[batch, steps, features]`.
pub(crate) struct PositionEmbedding {
    pub(crate) table: ParameterId,
}

impl<B: Compute> Stage<B> for PositionEmbedding {
    fn forward(&self, x: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        let shape = x.shape();
        let table = pass.parameter(self.table).clone();
        x.add(&table.reshape(&[1, shape[1], shape[2]]))
    }

    fn backward(&self, gradient: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        let shape = gradient.shape();
        let rows = gradient.clone().reshape(&[shape[0], shape[1] * shape[2]]);
        pass.learn(self.table, rows.sum_rows().reshape(&[shape[1], shape[2]]));
        gradient
    }
}
