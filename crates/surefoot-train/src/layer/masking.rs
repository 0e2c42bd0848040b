//! Masking of padded steps.

use super::{Pass, Stage};
use crate::compute::Compute;
use crate::tensor::Tensor;

/// Hides the steps of `[batch, steps, features]` in which every feature is `value`, and sets them to 0.
pub(crate) struct Masking {
    pub(crate) value: f32,
}

impl<B: Compute> Stage<B> for Masking {
    fn forward(&self, x: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        let shape = x.shape();
        let [batch, steps, features] = [shape[0], shape[1], shape[2]];
        let is_data = |step: &[f32]| step.iter().any(|value| *value != self.value);
        let mask: Vec<f32> = B::read(&x, |values| {
            values.chunks_exact(features).map(|step| f32::from(u8::from(is_data(step)))).collect()
        });
        let mask = Tensor::from_values(mask, &[batch, steps, 1], pass.device);
        pass.keep(&mask);
        pass.mask = Some(mask.clone());
        x.mul(&mask)
    }

    fn backward(&self, gradient: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        gradient.mul(&pass.take())
    }
}
