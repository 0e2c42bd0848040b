//! Normalisation over the batch, over a sample's last dimension, and over groups of channels.

use super::{MovingUpdate, ParameterId, Pass, Stage, Synchronous, channels_first, channels_last};
use crate::compute::Compute;
use crate::tensor::Tensor;

/// The learned factor and offset of a normalisation.
#[derive(Clone, Copy)]
pub(crate) struct Affine {
    pub(crate) gamma: Option<ParameterId>,
    pub(crate) beta: Option<ParameterId>,
}

impl Affine {
    /// `x * gamma + beta`, with both laid out as `shape`.
    fn forward<B: Compute>(self, x: Tensor<B>, shape: &[usize], pass: &Pass<'_, B>) -> Tensor<B> {
        let laid_out = |id| pass.parameter(id).clone().reshape(shape);
        let x = match self.gamma {
            Some(id) => x.mul(&laid_out(id)),
            None => x,
        };
        match self.beta {
            Some(id) => x.add(&laid_out(id)),
            None => x,
        }
    }

    /// Learns both parameters from the gradient of the output.
    fn learn<B: Compute>(
        self,
        gradient: &Tensor<B>,
        normalized: &Tensor<B>,
        pass: &mut Pass<'_, B>,
    ) {
        if let Some(id) = self.beta {
            pass.learn(id, B::channel_sums(gradient, None, None));
        }
        if let Some(id) = self.gamma {
            pass.learn(id, B::channel_sums(gradient, None, Some(normalized)));
        }
    }

    /// The gradient of the normalised values, given that of the output.
    fn backward<B: Compute>(
        self,
        gradient: Tensor<B>,
        shape: &[usize],
        pass: &Pass<'_, B>,
    ) -> Tensor<B> {
        match self.gamma {
            Some(id) => gradient.mul(&pass.parameter(id).clone().reshape(shape)),
            None => gradient,
        }
    }
}

/// Batch normalisation over all dimensions but the channels'.
pub(crate) struct BatchNorm {
    pub(crate) affine: Affine,
    pub(crate) moving_mean: ParameterId,
    pub(crate) moving_variance: ParameterId,
    pub(crate) channels: usize,
    pub(crate) momentum: f64,
    pub(crate) epsilon: f64,
}

impl BatchNorm {
    /// The normalised values, the output, and `1 / std` of each channel.
    fn normalize<B: Compute>(
        &self,
        x: Tensor<B>,
        mean: &Tensor<B>,
        variance: Tensor<B>,
        pass: &Pass<'_, B>,
    ) -> (Tensor<B>, Tensor<B>, Tensor<B>) {
        let inverse = variance.add_scalar(self.epsilon as f32).sqrt().recip();
        let [gamma, beta] =
            [self.affine.gamma, self.affine.beta].map(|id| id.map(|id| pass.parameter(id)));
        let (normalized, y) = B::normalize_channels(x, [mean, &inverse], gamma, beta);
        (normalized, y, inverse)
    }

    fn upload<B: Compute>(&self, values: &[f64], pass: &Pass<'_, B>) -> Tensor<B> {
        let values = values.iter().map(|&v| v as f32).collect();
        Tensor::from_values(values, &[self.channels], pass.device)
    }
}

fn rows<B: Compute>(x: Tensor<B>) -> Tensor<B> {
    if x.shape().len() == 4 { channels_last(x) } else { x }
}

/// `[channels]` laid out to broadcast against a tensor of this rank. Of full rank: not every device
/// adds missing dimensions.
fn by_channel<B: Compute>(values: &Tensor<B>, rank: usize) -> Tensor<B> {
    let mut shape = vec![1; rank];
    shape[if rank == 4 { 1 } else { rank - 1 }] = values.len();
    values.clone().reshape(&shape)
}

/// [`Compute::channel_sums`] from simpler operations.
pub(crate) fn channel_sums<B: Compute>(
    x: &Tensor<B>,
    scale: Option<&Tensor<B>>,
    factor: Option<&Tensor<B>>,
) -> Tensor<B> {
    let mut x = x.clone();
    if let Some(scale) = scale {
        let scale = by_channel(scale, x.shape().len());
        x = x.mul(&scale);
    }
    if let Some(factor) = factor {
        x = x.mul(factor);
    }
    rows(x).sum_rows()
}

/// [`Compute::normalize_channels`] from simpler operations.
pub(crate) fn normalize_channels<B: Compute>(
    x: Tensor<B>,
    statistics: [&Tensor<B>; 2],
    gamma: Option<&Tensor<B>>,
    beta: Option<&Tensor<B>>,
) -> (Tensor<B>, Tensor<B>) {
    let rank = x.shape().len();
    let [mean, inverse] = statistics.map(|values| by_channel(values, rank));
    let normalized = x.sub(&mean).mul(&inverse);
    let mut y = normalized.clone();
    if let Some(gamma) = gamma {
        y = y.mul(&by_channel(gamma, rank));
    }
    if let Some(beta) = beta {
        y = y.add(&by_channel(beta, rank));
    }
    (normalized, y)
}

/// [`Compute::normalize_channels_backward`] from simpler operations.
pub(crate) fn normalize_channels_backward<B: Compute>(
    gradient: Tensor<B>,
    normalized: &Tensor<B>,
    gamma: Option<&Tensor<B>>,
    statistics: [&Tensor<B>; 3],
) -> Tensor<B> {
    let rank = gradient.shape().len();
    let [mean, product, inverse] = statistics.map(|values| by_channel(values, rank));
    let gradient = match gamma {
        Some(gamma) => gradient.mul(&by_channel(gamma, rank)),
        None => gradient,
    };
    gradient.sub(&mean).sub(&normalized.clone().mul(&product)).mul(&inverse)
}

/// [`Compute::channel_moments`] from the values.
pub(crate) fn channel_moments<B: Compute>(x: &Tensor<B>, channels: usize) -> Vec<[f64; 2]> {
    let count = (x.len() / channels) as f64;
    let image = x.shape().len() == 4;
    let area = if image { x.len() / channels / x.shape()[0].max(1) } else { 1 };
    B::read(x, |values| {
        let mut out = vec![[0.0; 2]; channels];
        for (i, plane) in values.chunks_exact(area).enumerate() {
            out[i % channels][0] += plane.iter().map(|&v| f64::from(v)).sum::<f64>();
        }
        out.iter_mut().for_each(|[mean, _]| *mean /= count);
        for (i, plane) in values.chunks_exact(area).enumerate() {
            let [mean, squares] = &mut out[i % channels];
            *squares += plane.iter().map(|&v| (f64::from(v) - *mean).powi(2)).sum::<f64>();
        }
        out
    })
}

impl<B: Compute> Stage<B> for BatchNorm {
    fn forward(&self, x: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        let mean = pass.parameter(self.moving_mean);
        let variance = pass.parameter(self.moving_variance).clone();
        self.normalize(x, mean, variance, pass).1
    }

    fn backward(&self, _gradient: Tensor<B>, _pass: &mut Pass<'_, B>) -> Tensor<B> {
        unreachable!("batch normalisation learns through `synchronous`")
    }

    fn synchronous(&self) -> Option<&dyn Synchronous<B>> {
        Some(self)
    }
}

// Statistics travel as [count, mean of each channel.., sum of squared deviations of each..].
impl<B: Compute> Synchronous<B> for BatchNorm {
    fn gather(&self, x: &Tensor<B>) -> Vec<f64> {
        let n = self.channels;
        let moments = B::channel_moments(x, n);
        let mut out = vec![(x.len() / n) as f64];
        out.extend(moments.iter().map(|[mean, _]| mean));
        out.extend(moments.iter().map(|[_, squares]| squares));
        out
    }

    fn merge(&self, left: &[f64], right: &[f64]) -> Vec<f64> {
        let n = self.channels;
        let (a, b) = (left[0], right[0]);
        let total = a + b;
        if b == 0.0 {
            return left.to_vec();
        }
        if a == 0.0 {
            return right.to_vec();
        }
        // Chan, Golub and LeVeque's pairwise update.
        let mut out = vec![total];
        out.extend((0..n).map(|c| left[1 + c] + (right[1 + c] - left[1 + c]) * b / total));
        out.extend((0..n).map(|c| {
            let delta = right[1 + c] - left[1 + c];
            left[1 + n + c] + right[1 + n + c] + delta * delta * a * b / total
        }));
        out
    }

    fn apply(&self, x: Tensor<B>, whole: &[f64], pass: &mut Pass<'_, B>) -> Tensor<B> {
        let n = self.channels;
        let mean = self.upload(&whole[1..=n], pass);
        let variances: Vec<f64> = whole[1 + n..].iter().map(|s| s / whole[0]).collect();
        let variance = self.upload(&variances, pass);
        let (normalized, y, inverse) = self.normalize(x, &mean, variance, pass);
        pass.keep(&inverse);
        pass.keep(&normalized);
        y
    }

    fn gather_backward(&self, gradient: &Tensor<B>, pass: &mut Pass<'_, B>) -> Vec<f64> {
        let normalized = pass.take();
        self.affine.learn(gradient, &normalized, pass);
        let gamma = self.affine.gamma.map(|id| pass.parameter(id));
        let mut out = vec![(gradient.len() / self.channels) as f64];
        for factor in [None, Some(&normalized)] {
            B::read(&B::channel_sums(gradient, gamma, factor), |values| {
                out.extend(values.iter().map(|&v| f64::from(v)));
            });
        }
        pass.keep(&normalized);
        out
    }

    fn apply_backward(
        &self,
        gradient: Tensor<B>,
        whole: &[f64],
        pass: &mut Pass<'_, B>,
    ) -> Tensor<B> {
        let n = self.channels;
        let normalized = pass.take();
        let inverse = pass.take();
        let mean = |values: &[f64]| -> Tensor<B> {
            let means: Vec<f64> = values.iter().map(|v| v / whole[0]).collect();
            self.upload(&means, pass)
        };
        let (sum, product) = (mean(&whole[1..=n]), mean(&whole[1 + n..]));
        let gamma = self.affine.gamma.map(|id| pass.parameter(id));
        B::normalize_channels_backward(gradient, &normalized, gamma, [&sum, &product, &inverse])
    }

    fn moving(&self, whole: &[f64]) -> Vec<MovingUpdate> {
        let n = self.channels;
        let variances = whole[1 + n..].iter().map(|s| s / whole[0]).collect();
        let update = |parameter, batch| MovingUpdate { parameter, momentum: self.momentum, batch };
        vec![
            update(self.moving_mean, whole[1..=n].to_vec()),
            update(self.moving_variance, variances),
        ]
    }
}

/// [`Compute::normalize_last`] from simpler operations.
pub(crate) fn normalize_last<B: Compute>(x: Tensor<B>, epsilon: f32) -> (Tensor<B>, Tensor<B>) {
    let mean = x.clone().mean_last();
    let centered = x.sub(&mean);
    let variance = centered.clone().mul(&centered).mean_last();
    let inverse = variance.add_scalar(epsilon).sqrt().recip();
    (centered.mul(&inverse), inverse)
}

/// [`Compute::normalize_last_backward`] from simpler operations.
pub(crate) fn normalize_last_backward<B: Compute>(
    gradient: Tensor<B>,
    normalized: &Tensor<B>,
    inverse: &Tensor<B>,
) -> Tensor<B> {
    let mean = gradient.clone().mean_last();
    let product = gradient.clone().mul(normalized).mean_last();
    gradient.sub(&mean).sub(&normalized.clone().mul(&product)).mul(inverse)
}

/// The shape that broadcasts along the last dimension. Of full rank: not every device adds
/// missing dimensions.
fn last_only(shape: &[usize]) -> Vec<usize> {
    let mut layout = vec![1; shape.len()];
    if let (Some(to), Some(last)) = (layout.last_mut(), shape.last()) {
        *to = *last;
    }
    layout
}

/// Normalises each sample over its last dimension (an image: over the channels of each position).
pub(crate) struct LayerNorm {
    pub(crate) affine: Affine,
    pub(crate) epsilon: f64,
}

impl<B: Compute> Stage<B> for LayerNorm {
    fn forward(&self, x: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        let image = x.shape().len() == 4;
        let (normalized, inverse) = B::normalize_last(rows(x), self.epsilon as f32);
        pass.keep(&inverse);
        pass.keep(&normalized);
        let layout = last_only(&normalized.shape());
        let y = self.affine.forward(normalized, &layout, pass);
        if image { channels_first(y) } else { y }
    }

    fn backward(&self, gradient: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        let image = gradient.shape().len() == 4;
        let (normalized, inverse) = (pass.take(), pass.take());
        let layout = last_only(&normalized.shape());
        let gradient = rows(gradient);
        // Positions are rows here, also those of an image.
        let flat = |x: &Tensor<B>| {
            let width = layout[layout.len() - 1];
            x.clone().reshape(&[x.len() / width, width])
        };
        self.affine.learn(&flat(&gradient), &flat(&normalized), pass);
        let gradient = self.affine.backward(gradient, &layout, pass);
        let d_x = B::normalize_last_backward(gradient, &normalized, &inverse);
        if image { channels_first(d_x) } else { d_x }
    }
}

/// Normalises each sample over groups of channels and all positions.
pub(crate) struct GroupNorm {
    pub(crate) affine: Affine,
    pub(crate) groups: usize,
    pub(crate) epsilon: f64,
}

impl GroupNorm {
    /// Any input to `[batch, groups, the rest]`, channels running slowest.
    fn grouped<B: Compute>(&self, x: Tensor<B>) -> Tensor<B> {
        let shape = x.shape();
        let x = if channels_run_fastest(&shape) {
            let last = shape.len() - 1;
            let axes: Vec<usize> = [0, last].into_iter().chain(1..last).collect();
            x.permute(&axes)
        } else {
            x
        };
        let rest = shape[1..].iter().product::<usize>() / self.groups;
        x.reshape(&[shape[0], self.groups, rest])
    }

    /// The inverse of [`GroupNorm::grouped`].
    fn ungrouped<B: Compute>(x: Tensor<B>, shape: &[usize]) -> Tensor<B> {
        if channels_run_fastest(shape) {
            let last = shape.len() - 1;
            let mut moved = vec![shape[0], shape[last]];
            moved.extend(&shape[1..last]);
            let axes: Vec<usize> = [0].into_iter().chain(2..=last).chain([1]).collect();
            x.reshape(&moved).permute(&axes)
        } else {
            x.reshape(shape)
        }
    }

    fn layout(shape: &[usize]) -> Vec<usize> {
        let mut layout = vec![1; shape.len()];
        let axis = if shape.len() == 4 { 1 } else { shape.len() - 1 };
        layout[axis] = shape[axis];
        layout
    }
}

/// Returns true if a tensor of this shape has positions followed by channels.
fn channels_run_fastest(shape: &[usize]) -> bool {
    !matches!(shape.len(), 2 | 4)
}

impl<B: Compute> Stage<B> for GroupNorm {
    fn forward(&self, x: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        let shape = x.shape();
        let (normalized, inverse) = B::normalize_last(self.grouped(x), self.epsilon as f32);
        pass.keep(&inverse);
        pass.keep(&normalized);
        let normalized = Self::ungrouped(normalized, &shape);
        self.affine.forward(normalized, &Self::layout(&shape), pass)
    }

    fn backward(&self, gradient: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        let shape = gradient.shape();
        let (normalized, inverse) = (pass.take(), pass.take());
        self.affine.learn(&gradient, &Self::ungrouped(normalized.clone(), &shape), pass);
        let gradient = self.affine.backward(gradient, &Self::layout(&shape), pass);
        let d_x = B::normalize_last_backward(self.grouped(gradient), &normalized, &inverse);
        Self::ungrouped(d_x, &shape)
    }
}
