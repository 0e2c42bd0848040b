//! Multi-head self-attention.

use super::dense::{linear, linear_backward};
use super::{ParameterId, Pass, Stage};
use crate::compute::Compute;
use crate::tensor::Tensor;
use surefoot_plan::Activation;

/// A product with its bias.
#[derive(Clone, Copy)]
pub(crate) struct Projection {
    pub(crate) kernel: ParameterId,
    pub(crate) bias: Option<ParameterId>,
}

/// `softmax(Q K^T / sqrt(d)) V` for each head, over `[batch, steps, features]`.
pub(crate) struct Attention {
    pub(crate) query: Projection,
    pub(crate) key: Projection,
    pub(crate) value: Projection,
    pub(crate) output: Projection,
    pub(crate) heads: usize,
    pub(crate) key_dim: usize,
    pub(crate) dropout: f64,
    pub(crate) site: u64,
}

impl Attention {
    fn project<B: Compute>(
        &self,
        x: &Tensor<B>,
        by: Projection,
        pass: &mut Pass<'_, B>,
    ) -> Tensor<B> {
        let shape = x.shape();
        linear(x, by.kernel, by.bias, pass)
            .reshape(&[shape[0], shape[1], self.heads, self.key_dim])
            .permute(&[0, 2, 1, 3])
    }

    /// `[batch, heads, steps, key_dim]` to `[batch, steps, heads * key_dim]`.
    fn unheaded<B: Compute>(&self, x: Tensor<B>) -> Tensor<B> {
        let shape = x.shape();
        x.permute(&[0, 2, 1, 3]).reshape(&[shape[0], shape[2], self.heads * self.key_dim])
    }

    fn scale(&self) -> f32 {
        1.0 / (self.key_dim as f32).sqrt()
    }
}

impl<B: Compute> Stage<B> for Attention {
    fn forward(&self, x: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        let query = self.project(&x, self.query, pass);
        let key = self.project(&x, self.key, pass);
        let value = self.project(&x, self.value, pass);
        let scores = query.matmul(&key.clone().transpose()).mul_scalar(self.scale());
        let weights = B::activate(Activation::Softmax, scores);
        pass.keep(&query);
        pass.keep(&key);
        pass.keep(&value);
        pass.keep(&weights);
        let used = match pass.dropout_mask(self.dropout, self.site, &weights.shape()) {
            Some(mask) => {
                pass.keep(&mask);
                weights.mul(&mask)
            }
            None => weights,
        };
        let mixed = self.unheaded(used.matmul(&value));
        linear(&mixed, self.output.kernel, self.output.bias, pass)
    }

    fn backward(&self, gradient: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        let shape = gradient.shape();
        let d_mixed = linear_backward(gradient, self.output.kernel, self.output.bias, true, pass)
            .reshape(&[shape[0], shape[1], self.heads, self.key_dim])
            .permute(&[0, 2, 1, 3]);
        let mask = (self.dropout > 0.0).then(|| pass.take());
        let weights = pass.take();
        let value = pass.take();
        let key = pass.take();
        let query = pass.take();
        let used = match &mask {
            Some(mask) => weights.clone().mul(mask),
            None => weights.clone(),
        };
        let d_value = used.transpose().matmul(&d_mixed);
        let d_used = d_mixed.matmul(&value.transpose());
        let d_weights = match &mask {
            Some(mask) => d_used.mul(mask),
            None => d_used,
        };
        let d_scores = B::activate_backward(Activation::Softmax, None, &weights, d_weights)
            .mul_scalar(self.scale());
        let d_query = d_scores.matmul(&key);
        let d_key = d_scores.transpose().matmul(&query);
        // The three projections kept the same input, in the order query, key, value.
        let mut back = |d: Tensor<B>, by: Projection| {
            linear_backward(self.unheaded(d), by.kernel, by.bias, true, pass)
        };
        let d_x = back(d_value, self.value);
        let d_x = d_x.add(&back(d_key, self.key));
        d_x.add(&back(d_query, self.query))
    }
}
