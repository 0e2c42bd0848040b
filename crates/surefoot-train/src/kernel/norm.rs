//! Normalisation in as few passes over memory as possible.

use super::parallel::{self, Shared};
use super::{sum, vectorized};
use std::mem::MaybeUninit;

/// Channels summed at once, so that an addition need not wait for the one before.
const CHANNELS: usize = 8;

/// Images `[batch, channels, area]`.
#[derive(Clone, Copy)]
pub(crate) struct Images {
    pub(crate) channels: usize,
    pub(crate) area: usize,
}

impl Images {
    /// Calls `work` with the sums of some channels, the first of which has the given number.
    fn share<T: Send>(self, sums: &mut [T], work: impl Fn(usize, &mut [T]) + Sync) {
        parallel::chunks_mut(sums, CHANNELS, |index, sums| work(index * CHANNELS, sums));
    }

    /// Calls `work` with the channel and the start of each plane in `values`, and the plane.
    fn each_plane<T: Send>(self, values: &mut [T], work: impl Fn(usize, usize, &mut [T]) + Sync) {
        let size = parallel::part(values.len(), self.area);
        parallel::chunks_mut(values, size, |index, part| {
            for (plane, values) in
                (index * size / self.area..).zip(part.chunks_exact_mut(self.area))
            {
                work(plane % self.channels, plane * self.area, values);
            }
        });
    }
}

/// The mean of each channel, and the sum of squared deviations from it.
pub(crate) fn moments(x: &[f32], images: Images) -> Vec<[f64; 2]> {
    let Images { channels, area } = images;
    let count = (x.len() / channels.max(1)) as f64;
    let mut out = vec![[0.0; 2]; channels];
    images.share(&mut out, |first, out| {
        let add = |sums: &mut [f64; CHANNELS], term: &dyn Fn(usize, f64) -> f64| {
            for image in x.chunks_exact(channels * area) {
                let planes = &image[first * area..];
                let mut plane_sums = [0.0; CHANNELS];
                for position in 0..area {
                    for (channel, sum) in plane_sums[..out.len()].iter_mut().enumerate() {
                        *sum += term(channel, f64::from(planes[channel * area + position]));
                    }
                }
                sums.iter_mut().zip(plane_sums).for_each(|(sum, of_plane)| *sum += of_plane);
            }
        };
        let mut means = [0.0; CHANNELS];
        add(&mut means, &|_, value| value);
        means.iter_mut().for_each(|mean| *mean /= count);
        let mut squares = [0.0; CHANNELS];
        add(&mut squares, &|channel, value| (value - means[channel]).powi(2));
        for ((out, mean), square) in out.iter_mut().zip(means).zip(squares) {
            *out = [mean, square];
        }
    });
    out
}

/// The sum of each channel of `x`, times the `scale` of the channel and times `factor` where given.
pub(crate) fn channel_sums(
    x: &[f32],
    scale: Option<&[f32]>,
    factor: Option<&[f32]>,
    images: Images,
) -> Vec<f32> {
    let Images { channels, area } = images;
    let mut out = vec![0.0; channels];
    images.share(&mut out, |first, out| {
        let count = out.len();
        let mut scales = [1.0; CHANNELS];
        if let Some(scale) = scale {
            scales[..count].copy_from_slice(&scale[first..][..count]);
        }
        for start in (first * area..x.len()).step_by(channels * area) {
            for position in start..start + area {
                for (channel, sum) in out.iter_mut().enumerate() {
                    let at = position + channel * area;
                    let value = x[at] * scales[channel];
                    *sum += factor.map_or(value, |factor| value * factor[at]);
                }
            }
        }
    });
    out
}

/// `(x - mean) * inverse` of each channel in place, and that times `gamma` plus `beta`.
pub(crate) fn normalize(
    x: &mut [f32],
    [mean, inverse]: [&[f32]; 2],
    gamma: Option<&[f32]>,
    beta: Option<&[f32]>,
    images: Images,
) -> Vec<f32> {
    let mut y = Vec::with_capacity(x.len());
    let all = Shared::new(&mut y.spare_capacity_mut()[..x.len()]);
    images.each_plane(x, |channel, start, x| {
        let (mean, inverse) = (mean[channel], inverse[channel]);
        // SAFETY: each plane is visited once.
        let y = unsafe { all.slice(start, x.len()) };
        vectorized(
            #[inline(always)]
            || {
                x.iter_mut().for_each(|x| *x = (*x - mean) * inverse);
                affine(x, gamma.map(|g| g[channel]), beta.map(|b| b[channel]), y);
            },
        );
    });
    let len = x.len();
    // SAFETY: all planes have been written.
    unsafe { y.set_len(len) };
    y
}

#[inline(always)]
fn affine(x: &[f32], gamma: Option<f32>, beta: Option<f32>, y: &mut [MaybeUninit<f32>]) {
    let pairs = x.iter().zip(y);
    match (gamma, beta) {
        (Some(gamma), Some(beta)) => pairs.for_each(|(x, y)| _ = y.write(*x * gamma + beta)),
        (Some(gamma), None) => pairs.for_each(|(x, y)| _ = y.write(*x * gamma)),
        (None, Some(beta)) => pairs.for_each(|(x, y)| _ = y.write(*x + beta)),
        (None, None) => pairs.for_each(|(x, y)| _ = y.write(*x)),
    }
}

/// The gradient of [`normalize`] in place, given the means of the gradient and of its product with
/// `normalized`.
pub(crate) fn normalize_backward(
    gradient: &mut [f32],
    normalized: &[f32],
    gamma: Option<&[f32]>,
    [mean, product, inverse]: [&[f32]; 3],
    images: Images,
) {
    images.each_plane(gradient, |channel, start, gradient| {
        let [mean, product, inverse] = [mean, product, inverse].map(|values| values[channel]);
        let normalized = &normalized[start..][..gradient.len()];
        let gamma = gamma.map_or(1.0, |gamma| gamma[channel]);
        vectorized(
            #[inline(always)]
            || {
                for (g, n) in gradient.iter_mut().zip(normalized) {
                    *g = (*g * gamma - mean - n * product) * inverse;
                }
            },
        );
    });
}

/// Centres and scales each row of `width` values in place; returns `1 / std` of each.
pub(crate) fn rows(x: &mut [f32], width: usize, epsilon: f32) -> Vec<f32> {
    let mut inverses = vec![0.0; x.len() / width.max(1)];
    let all = Shared::new(&mut inverses);
    let size = parallel::part(x.len(), width);
    parallel::chunks_mut(x, size, |index, part| {
        // SAFETY: each part is visited once.
        let inverses = unsafe { all.slice(index * size / width, part.len() / width) };
        let mut squares = vec![0.0; width];
        vectorized(
            #[inline(always)]
            || {
                for (row, inverse) in part.chunks_exact_mut(width).zip(inverses) {
                    let mean = sum::row(row) / width as f32;
                    row.iter_mut().for_each(|x| *x -= mean);
                    squares.iter_mut().zip(&*row).for_each(|(square, x)| *square = x * x);
                    let variance = sum::row(&squares) / width as f32;
                    *inverse = 1.0 / (variance + epsilon).sqrt();
                    row.iter_mut().for_each(|x| *x *= *inverse);
                }
            },
        );
    });
    inverses
}

/// The gradient of [`rows`] in place.
pub(crate) fn rows_backward(
    gradient: &mut [f32],
    normalized: &[f32],
    inverses: &[f32],
    width: usize,
) {
    let size = parallel::part(gradient.len(), width);
    parallel::chunks_mut(gradient, size, |index, part| {
        let normalized = normalized[index * size..].chunks_exact(width);
        let inverses = &inverses[index * size / width..];
        let mut products = vec![0.0; width];
        vectorized(
            #[inline(always)]
            || {
                for ((row, normalized), inverse) in
                    part.chunks_exact_mut(width).zip(normalized).zip(inverses)
                {
                    let mean = sum::row(row) / width as f32;
                    for ((product, g), n) in products.iter_mut().zip(&*row).zip(normalized) {
                        *product = g * n;
                    }
                    let product = sum::row(&products) / width as f32;
                    for (g, n) in row.iter_mut().zip(normalized) {
                        *g = (*g - mean - n * product) * inverse;
                    }
                }
            },
        );
    });
}
