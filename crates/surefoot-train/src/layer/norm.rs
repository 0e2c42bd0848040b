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

    /// Learns both parameters and returns the gradient of the normalised values; `rows` turns a
    /// tensor into `[..., channels]`.
    fn backward<B: Compute>(
        self,
        gradient: Tensor<B>,
        normalized: &Tensor<B>,
        shape: &[usize],
        rows: impl Fn(Tensor<B>) -> Tensor<B>,
        pass: &mut Pass<'_, B>,
    ) -> Tensor<B> {
        if let Some(id) = self.beta {
            pass.learn(id, rows(gradient.clone()).sum_rows());
        }
        match self.gamma {
            Some(id) => {
                let product = gradient.clone().mul(normalized);
                pass.learn(id, rows(product).sum_rows());
                gradient.mul(&pass.parameter(id).clone().reshape(shape))
            }
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
    /// `[channels]` laid out to broadcast against `x`.
    fn layout(&self, dimensions: usize) -> Vec<usize> {
        let mut shape = vec![1; dimensions];
        shape[if dimensions == 4 { 1 } else { dimensions - 1 }] = self.channels;
        shape
    }

    fn normalize<B: Compute>(
        &self,
        x: Tensor<B>,
        mean: Tensor<B>,
        variance: Tensor<B>,
    ) -> (Tensor<B>, Tensor<B>) {
        let layout = self.layout(x.shape().len());
        let inverse = variance.add_scalar(self.epsilon as f32).sqrt().recip().reshape(&layout);
        (x.sub(&mean.reshape(&layout)).mul(&inverse), inverse)
    }

    fn upload<B: Compute>(&self, values: &[f64], pass: &Pass<'_, B>) -> Tensor<B> {
        let values = values.iter().map(|&v| v as f32).collect();
        Tensor::from_values(values, &[self.channels], pass.device)
    }
}

fn rows<B: Compute>(x: Tensor<B>) -> Tensor<B> {
    if x.shape().len() == 4 { channels_last(x) } else { x }
}

impl<B: Compute> Stage<B> for BatchNorm {
    fn forward(&self, x: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        let mean = pass.parameter(self.moving_mean).clone();
        let variance = pass.parameter(self.moving_variance).clone();
        let layout = self.layout(x.shape().len());
        let (normalized, _) = self.normalize(x, mean, variance);
        self.affine.forward(normalized, &layout, pass)
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
        let count = x.len() / n;
        let mut out = vec![0.0; 1 + 2 * n];
        out[0] = count as f64;
        let (means, squares) = out[1..].split_at_mut(n);
        let image = x.shape().len() == 4;
        let batch = x.shape()[0];
        let area = if image { count / batch.max(1) } else { 1 };
        B::read(x, |values| {
            // Position of channel c of row r: images have whole planes per channel.
            let each = |visit: &mut dyn FnMut(usize, &[f32])| {
                for (i, plane) in values.chunks_exact(area).enumerate() {
                    visit(i % n, plane);
                }
            };
            each(&mut |c, plane| {
                means[c] += plane.iter().map(|&v| f64::from(v)).sum::<f64>();
            });
            means.iter_mut().for_each(|m| *m /= count as f64);
            each(&mut |c, plane| {
                squares[c] += plane.iter().map(|&v| (f64::from(v) - means[c]).powi(2)).sum::<f64>();
            });
        });
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
        let layout = self.layout(x.shape().len());
        let (normalized, inverse) = self.normalize(x, mean, variance);
        pass.keep(&inverse);
        pass.keep(&normalized);
        self.affine.forward(normalized, &layout, pass)
    }

    fn gather_backward(&self, gradient: &Tensor<B>, pass: &mut Pass<'_, B>) -> Vec<f64> {
        let normalized = pass.take();
        let layout = self.layout(gradient.shape().len());
        let gradient = self.affine.backward(gradient.clone(), &normalized, &layout, rows, pass);
        let sum = rows(gradient.clone()).sum_rows();
        let product = rows(gradient.clone().mul(&normalized)).sum_rows();
        let mut out = vec![(gradient.len() / self.channels) as f64];
        for part in [sum, product] {
            B::read(&part, |values| {
                out.extend(values.iter().map(|&v| f64::from(v)));
            });
        }
        pass.keep(&normalized);
        pass.keep(&gradient);
        out
    }

    fn apply_backward(
        &self,
        _gradient: Tensor<B>,
        whole: &[f64],
        pass: &mut Pass<'_, B>,
    ) -> Tensor<B> {
        let n = self.channels;
        let gradient = pass.take();
        let normalized = pass.take();
        let inverse = pass.take();
        let layout = self.layout(gradient.shape().len());
        let mean = |values: &[f64]| -> Tensor<B> {
            let means: Vec<f64> = values.iter().map(|v| v / whole[0]).collect();
            self.upload(&means, pass).reshape(&layout)
        };
        let (sum, product) = (mean(&whole[1..=n]), mean(&whole[1 + n..]));
        gradient.sub(&sum).sub(&normalized.mul(&product)).mul(&inverse)
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

/// Centres and scales the last dimension; returns the normalised values and `1 / std`.
fn normalize_last<B: Compute>(x: Tensor<B>, epsilon: f64) -> (Tensor<B>, Tensor<B>) {
    let mean = x.clone().mean_last();
    let centered = x.sub(&mean);
    let variance = centered.clone().mul(&centered).mean_last();
    let inverse = variance.add_scalar(epsilon as f32).sqrt().recip();
    (centered.mul(&inverse), inverse)
}

/// The gradient of [`normalize_last`].
fn normalize_last_backward<B: Compute>(
    gradient: Tensor<B>,
    normalized: &Tensor<B>,
    inverse: &Tensor<B>,
) -> Tensor<B> {
    let mean = gradient.clone().mean_last();
    let product = gradient.clone().mul(normalized).mean_last();
    gradient.sub(&mean).sub(&normalized.clone().mul(&product)).mul(inverse)
}

/// The shape that broadcasts along the last dimension. Of full rank: not every device fills up the
/// dimensions that are missing.
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
        let (normalized, inverse) = normalize_last(rows(x), self.epsilon);
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
        let gradient = self.affine.backward(rows(gradient), &normalized, &layout, |x| x, pass);
        let d_x = normalize_last_backward(gradient, &normalized, &inverse);
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
        let (normalized, inverse) = normalize_last(self.grouped(x), self.epsilon);
        pass.keep(&inverse);
        pass.keep(&normalized);
        let normalized = Self::ungrouped(normalized, &shape);
        self.affine.forward(normalized, &Self::layout(&shape), pass)
    }

    fn backward(&self, gradient: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        let shape = gradient.shape();
        let (normalized, inverse) = (pass.take(), pass.take());
        let gradient = self.affine.backward(
            gradient,
            &Self::ungrouped(normalized.clone(), &shape),
            &Self::layout(&shape),
            rows,
            pass,
        );
        let d_x = normalize_last_backward(self.grouped(gradient), &normalized, &inverse);
        Self::ungrouped(d_x, &shape)
    }
}
