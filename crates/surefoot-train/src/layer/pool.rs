//! Pooling over windows and over everything.

use super::conv::{as_image, as_sequence};
use super::{Pass, Stage};
use crate::compute::Compute;
use crate::kernel::conv::Window;
use crate::tensor::Tensor;

/// Reduction of a pooling window.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Summary {
    Max,
    Average,
}

/// Pooling over the windows of an image or a sequence.
pub(crate) struct Pool {
    pub(crate) summary: Summary,
    pub(crate) window: Window,
    pub(crate) sequence: bool,
}

impl<B: Compute> Stage<B> for Pool {
    fn forward(&self, x: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        let x = if self.sequence { as_image(x) } else { x };
        pass.keep(&x);
        let y = match self.summary {
            Summary::Max => {
                let (y, origin) = B::max_pool(&x, &self.window);
                pass.keep_origin(origin);
                y
            }
            Summary::Average => B::average_pool(&x, &self.window),
        };
        if self.sequence { as_sequence(y) } else { y }
    }

    fn backward(&self, gradient: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        let gradient = if self.sequence { as_image(gradient) } else { gradient };
        let d_x = match self.summary {
            Summary::Max => {
                let origin = pass.take_origin();
                let x = pass.take();
                B::max_pool_backward(&x, &gradient, origin, &self.window)
            }
            Summary::Average => B::average_pool_backward(&pass.take(), &gradient, &self.window),
        };
        if self.sequence { as_sequence(d_x) } else { d_x }
    }
}

/// Pooling over all positions of an image or a sequence.
pub(crate) struct GlobalPool {
    pub(crate) summary: Summary,
    /// Height and width of an image; absent for a sequence.
    pub(crate) image: Option<[usize; 2]>,
}

impl<B: Compute> Stage<B> for GlobalPool {
    fn forward(&self, x: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        let x = positions_last(x);
        let [batch, channels] = [x.shape()[0], x.shape()[1]];
        pass.keep(&x);
        let y = match self.summary {
            Summary::Max => x.max_last(),
            Summary::Average => x.mean_last(),
        };
        if self.summary == Summary::Max {
            pass.keep(&y);
        }
        y.reshape(&[batch, channels])
    }

    fn backward(&self, gradient: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        let peak = (self.summary == Summary::Max).then(|| pass.take());
        let x = pass.take();
        let shape = x.shape();
        let gradient = gradient.reshape(&[shape[0], shape[1], 1]);
        let spread = match peak {
            Some(peak) => first_peaks(&x, &peak, pass.device).mul(&gradient),
            None => {
                Tensor::zeros(&shape, pass.device).add(&gradient.mul_scalar(1.0 / shape[2] as f32))
            }
        };
        match self.image {
            Some([height, width]) => spread.reshape(&[shape[0], shape[1], height, width]),
            None => spread.permute(&[0, 2, 1]),
        }
    }
}

/// 1 at the first position of each row of `x` that has the value `peak`, 0 elsewhere.
fn first_peaks<B: Compute>(x: &Tensor<B>, peak: &Tensor<B>, device: &B::Device) -> Tensor<B> {
    let shape = x.shape();
    let peaks = peak.to_vec();
    let mask = B::read(x, |x| {
        let mut mask = vec![0.0; x.len()];
        for ((row, out), peak) in
            x.chunks_exact(shape[2]).zip(mask.chunks_exact_mut(shape[2])).zip(&peaks)
        {
            if let Some(at) = row.iter().position(|v| v == peak) {
                out[at] = 1.0;
            }
        }
        mask
    });
    Tensor::from_values(mask, &shape, device)
}

/// Image or sequence to `[batch, channels, positions]`.
fn positions_last<B: Compute>(x: Tensor<B>) -> Tensor<B> {
    let shape = x.shape();
    match shape.len() {
        4 => x.reshape(&[shape[0], shape[1], shape[2] * shape[3]]),
        _ => x.permute(&[0, 2, 1]),
    }
}
