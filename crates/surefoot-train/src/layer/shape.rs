//! Flatten and reshape.

use super::{Pass, Stage, channels_first, channels_last};
use crate::compute::Compute;
use crate::tensor::Tensor;

/// The same values in another shape. Shapes are channels-last, as the plan has them.
pub(crate) struct Reshape {
    pub(crate) from: Vec<usize>,
    pub(crate) to: Vec<usize>,
}

impl<B: Compute> Stage<B> for Reshape {
    fn forward(&self, x: Tensor<B>, _pass: &mut Pass<'_, B>) -> Tensor<B> {
        reshape(x, &self.from, &self.to)
    }

    fn backward(&self, gradient: Tensor<B>, _pass: &mut Pass<'_, B>) -> Tensor<B> {
        reshape(gradient, &self.to, &self.from)
    }
}

fn reshape<B: Compute>(x: Tensor<B>, from: &[usize], to: &[usize]) -> Tensor<B> {
    let batch = x.shape()[0];
    let x = if from.len() == 3 { channels_last(x) } else { x };
    let mut shape = vec![batch];
    shape.extend(to);
    let x = x.reshape(&shape);
    if to.len() == 3 { channels_first(x) } else { x }
}
