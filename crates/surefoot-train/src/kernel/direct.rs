//! Convolution with stride 1, straight from the image.
//!
//! An image with its padding written out is one long row of values: with rows `pitch` apart, the
//! window at `(y, x)` starts at `y * pitch + x`, and each tap is a fixed distance from there. So a
//! convolution is a sum of shifted rows times scalars, in which nothing has to be laid out first
//! and the sums stay in registers. The positions between the rows are computed too and thrown
//! away; where they would be more than half, [`suits`] says no.

use super::conv::{Channels, Window};
use super::parallel;
use pulp::{Simd, WithSimd};

/// Vectors of positions computed at once.
const VECTORS: usize = 3;
/// Filters computed at once; with three vectors each they fill the registers of AVX-512.
const FILTERS: usize = 8;
/// Of the kernel's gradient: filters times taps computed at once.
const GRADIENT_FILTERS: usize = 6;
const GRADIENT_TAPS: usize = 4;
/// Images whose kernel gradients are summed in registers.
const IMAGES: usize = 8;
/// Multiplications of a part that a thread computes.
const TASK: usize = 1 << 20;
/// Values readable past the end of a plane, for whole vectors.
const SLACK: usize = 64;

/// Returns true if direct convolution is faster for `window`.
pub(crate) fn suits(window: &Window) -> bool {
    let within_reach = |padding: [usize; 2]| (0..2).all(|axis| padding[axis] < span(window, axis));
    window.stride == [1, 1]
        && 2 * window.output[1] >= pitch(window)
        && within_reach(window.before)
        && within_reach(window.after)
}

fn pitch(window: &Window) -> usize {
    window.input[1] + window.before[1] + window.after[1]
}

fn span(window: &Window, axis: usize) -> usize {
    (window.size[axis] - 1) * window.dilation[axis] + 1
}

/// The geometry of padded planes.
#[derive(Clone, Copy)]
struct Layout {
    pitch: usize,
    /// Positions of a plane of outputs, those between the rows included.
    positions: usize,
    /// Values of a padded plane with its slack.
    plane: usize,
}

impl Layout {
    fn new(window: &Window) -> Self {
        let pitch = pitch(window);
        let rows = window.input[0] + window.before[0] + window.after[0];
        Self {
            pitch,
            positions: window.output[0] * pitch,
            plane: rows * pitch + span(window, 1) + SLACK,
        }
    }

    /// Offset of each tap from the start of its window's plane.
    fn taps(&self, window: &Window) -> Vec<usize> {
        let mut taps = Vec::with_capacity(window.size[0] * window.size[1]);
        for ky in 0..window.size[0] {
            for kx in 0..window.size[1] {
                taps.push(ky * window.dilation[0] * self.pitch + kx * window.dilation[1]);
            }
        }
        taps
    }

    /// Writes the planes of `x` with their padding; `padded` is zero where nothing is written.
    fn pad(&self, x: &[f32], window: &Window, padded: &mut [f32]) {
        let area = window.input[0] * window.input[1];
        for (plane, to) in x.chunks_exact(area).zip(padded.chunks_exact_mut(self.plane)) {
            let rows = to[window.before[0] * self.pitch..].chunks_exact_mut(self.pitch);
            for (row, to) in plane.chunks_exact(window.input[1]).zip(rows) {
                to[window.before[1]..][..row.len()].copy_from_slice(row);
            }
        }
    }
}

/// `[batch, input, h, w]` convolved with `[output, input, kh, kw]`, plus `bias`.
pub(crate) fn forward(
    x: &[f32],
    kernel: &[f32],
    bias: Option<&[f32]>,
    channels: Channels,
    window: &Window,
) -> Vec<f32> {
    let layout = Layout::new(window);
    let taps = window.size[0] * window.size[1];
    let depth = channels.input * taps;
    // Filters in groups, a tap's weights side by side.
    let groups = channels.output.div_ceil(FILTERS);
    let mut packed = vec![0.0; groups * depth * FILTERS];
    for (filter, weights) in kernel.chunks_exact(depth).enumerate() {
        let group = &mut packed[filter / FILTERS * depth * FILTERS..];
        for (k, &w) in weights.iter().enumerate() {
            group[k * FILTERS + filter % FILTERS] = w;
        }
    }
    let offsets: Vec<usize> = (0..channels.input)
        .flat_map(|c| layout.taps(window).into_iter().map(move |t| c * layout.plane + t))
        .collect();
    let wide = layout.positions + SLACK;
    let area_in = window.input[0] * window.input[1];
    let area = window.output[0] * window.output[1];
    let mut y = vec![0.0; channels.batch * channels.output * area];
    // Images are shared among threads, several at a time if they are small.
    let images = TASK.div_ceil((channels.output * area * depth).max(1));
    parallel::chunks_mut(&mut y, images * channels.output * area, |task, y| {
        let mut padded = vec![0.0; channels.input * layout.plane];
        let mut outputs = vec![0.0; FILTERS * wide];
        let x =
            x[task * images * channels.input * area_in..].chunks_exact(channels.input * area_in);
        for (image, y) in x.zip(y.chunks_exact_mut(channels.output * area)) {
            layout.pad(image, window, &mut padded);
            for (group, y) in y.chunks_mut(FILTERS * area).enumerate() {
                let mut start = [0.0; FILTERS];
                if let Some(bias) = bias {
                    let bias = &bias[group * FILTERS..];
                    start.iter_mut().zip(bias).for_each(|(s, b)| *s = *b);
                }
                super::dispatch(Correlate {
                    padded: &padded,
                    offsets: &offsets,
                    weights: &packed[group * depth * FILTERS..][..depth * FILTERS],
                    start,
                    positions: layout.positions,
                    wide,
                    outputs: &mut outputs,
                });
                for (y, row) in y.chunks_exact_mut(area).zip(outputs.chunks_exact(wide)) {
                    let rows = row.chunks(layout.pitch);
                    for (y, row) in y.chunks_exact_mut(window.output[1]).zip(rows) {
                        y.copy_from_slice(&row[..y.len()]);
                    }
                }
            }
        }
    });
    y
}

/// Sums of shifted planes times weights, for one group of filters.
struct Correlate<'a> {
    padded: &'a [f32],
    offsets: &'a [usize],
    weights: &'a [f32],
    start: [f32; FILTERS],
    positions: usize,
    wide: usize,
    outputs: &'a mut [f32],
}

impl WithSimd for Correlate<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Narrower vectors leave fewer registers: half the filters at a time.
        if S::F32_LANES >= 16 {
            self.run::<S, FILTERS>(simd);
        } else {
            self.run::<S, { FILTERS / 2 }>(simd);
        }
    }
}

impl Correlate<'_> {
    #[inline(always)]
    fn run<S: Simd, const N: usize>(self, simd: S) {
        let block = VECTORS * S::F32_LANES;
        for first in (0..FILTERS).step_by(N) {
            let mut at = 0;
            while at < self.positions {
                let mut sums = [[simd.splat_f32s(0.0); VECTORS]; N];
                for (sums, filter) in sums.iter_mut().zip(first..) {
                    *sums = [simd.splat_f32s(self.start[filter]); VECTORS];
                }
                let (weights, _) = self.weights.as_chunks::<FILTERS>();
                for (&offset, weights) in self.offsets.iter().zip(weights) {
                    let (x, _) = S::as_simd_f32s(&self.padded[offset + at..][..block]);
                    for (sums, filter) in sums.iter_mut().zip(first..) {
                        let w = simd.splat_f32s(weights[filter]);
                        for v in 0..VECTORS {
                            sums[v] = simd.mul_add_e_f32s(x[v], w, sums[v]);
                        }
                    }
                }
                for (sums, filter) in sums.iter().zip(first..) {
                    let to = &mut self.outputs[filter * self.wide + at..][..block];
                    S::as_mut_simd_f32s(to).0.copy_from_slice(sums);
                }
                at += block;
            }
        }
    }
}

/// The gradient with respect to the bias.
pub(crate) fn bias_gradient(gradient: &[f32], channels: Channels, window: &Window) -> Vec<f32> {
    let area = window.output[0] * window.output[1];
    let mut bias = vec![0.0; channels.output];
    let size = (parallel::part(gradient.len(), 1) / (channels.batch * area).max(1)).max(1);
    parallel::chunks_mut(&mut bias, size, |index, bias| {
        for image in gradient.chunks_exact(channels.output * area) {
            let planes = image.chunks_exact(area).skip(index * size);
            for (total, plane) in bias.iter_mut().zip(planes) {
                *total += super::vectorized(
                    #[inline(always)]
                    || sum(plane),
                );
            }
        }
    });
    bias
}

#[inline(always)]
fn sum(values: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut sums = [0.0; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        sums.iter_mut().zip(chunk).for_each(|(s, v)| *s += v);
    }
    sums.iter().sum::<f32>() + rest.iter().sum::<f32>()
}

/// The input's gradient is the convolution of the output's with the kernel turned around.
pub(crate) fn input_gradient(
    kernel: &[f32],
    gradient: &[f32],
    channels: Channels,
    window: &Window,
) -> Vec<f32> {
    let taps = window.size[0] * window.size[1];
    let mut turned = vec![0.0; kernel.len()];
    for filter in 0..channels.output {
        for channel in 0..channels.input {
            let from = &kernel[(filter * channels.input + channel) * taps..][..taps];
            let to = &mut turned[(channel * channels.output + filter) * taps..][..taps];
            to.iter_mut().zip(from.iter().rev()).for_each(|(t, f)| *t = *f);
        }
    }
    let reach = [0, 1].map(|axis| span(window, axis) - 1);
    let turned_window = Window {
        before: [reach[0] - window.before[0], reach[1] - window.before[1]],
        after: [reach[0] - window.after[0], reach[1] - window.after[1]],
        input: window.output,
        output: window.input,
        ..*window
    };
    let turned_channels =
        Channels { batch: channels.batch, input: channels.output, output: channels.input };
    super::conv::forward(gradient, &turned, None, turned_channels, &turned_window)
}

/// The kernel's gradient: dot products of the output's gradient with shifted planes.
pub(crate) fn kernel_gradient(
    x: &[f32],
    gradient: &[f32],
    channels: Channels,
    window: &Window,
) -> Vec<f32> {
    let layout = Layout::new(window);
    let taps = layout.taps(window);
    let area_in = window.input[0] * window.input[1];
    let area = window.output[0] * window.output[1];
    let images = IMAGES.min(channels.batch.max(1));
    // The filters are filled up to whole groups, with zeros.
    let filters = channels.output.next_multiple_of(GRADIENT_FILTERS);
    let wide = layout.positions + SLACK;
    let mut padded = vec![0.0; images * channels.input * layout.plane];
    let mut spread = vec![0.0; images * filters * wide];
    let mut total = vec![0.0; channels.output * channels.input * taps.len()];
    for (x, gradient) in x
        .chunks(images * channels.input * area_in)
        .zip(gradient.chunks(images * channels.output * area))
    {
        layout.pad(x, window, &mut padded);
        for (image, planes) in gradient.chunks_exact(channels.output * area).enumerate() {
            let planes = planes.chunks_exact(area);
            for (plane, to) in planes.zip(spread[image * filters * wide..].chunks_exact_mut(wide)) {
                let rows = to.chunks_mut(layout.pitch);
                for (row, to) in plane.chunks_exact(window.output[1]).zip(rows) {
                    to[..row.len()].copy_from_slice(row);
                }
            }
        }
        let row = channels.input * taps.len();
        let images = gradient.len() / (channels.output * area).max(1);
        // Groups of filters are shared among threads, several at a time if they are small.
        let groups = TASK.div_ceil((GRADIENT_FILTERS * row * images * area).max(1));
        let size = groups * GRADIENT_FILTERS;
        parallel::chunks_mut(&mut total, size * row, |task, total| {
            super::dispatch_by_lanes(Dots {
                padded: &padded,
                spread: &spread,
                taps: &taps,
                images,
                channels,
                filters,
                first: task * size,
                wide,
                layout,
                total,
            });
        });
    }
    total
}

/// Dot products of all filters' gradients with all taps of all channels, summed over images.
struct Dots<'a> {
    padded: &'a [f32],
    spread: &'a [f32],
    taps: &'a [usize],
    images: usize,
    channels: Channels,
    filters: usize,
    /// The first filter whose gradient is in `total`.
    first: usize,
    wide: usize,
    layout: Layout,
    total: &'a mut [f32],
}

impl WithSimd for Dots<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if S::F32_LANES >= 16 {
            self.run::<S, GRADIENT_TAPS>(simd);
        } else {
            self.run::<S, { GRADIENT_TAPS / 2 }>(simd);
        }
    }
}

impl Dots<'_> {
    #[inline(always)]
    fn run<S: Simd, const T: usize>(self, simd: S) {
        const F: usize = GRADIENT_FILTERS;
        let count = self.taps.len();
        let mine = self.total.len() / (self.channels.input * count).max(1);
        for first in (0..mine).step_by(F) {
            for channel in 0..self.channels.input {
                for tap in (0..count).step_by(T) {
                    // Past the last tap the last one is computed again, and not used.
                    let mut shifts = [0; T];
                    for (i, shift) in shifts.iter_mut().enumerate() {
                        *shift = self.taps[(tap + i).min(count - 1)];
                    }
                    let sums = self.block::<S, F, T>(simd, self.first + first, channel, shifts);
                    let used = F.min(mine - first);
                    for (filter, sums) in sums.iter().take(used).enumerate() {
                        let to = ((first + filter) * self.channels.input + channel) * count + tap;
                        let to = &mut self.total[to..][..T.min(count - tap)];
                        for (t, s) in to.iter_mut().zip(sums) {
                            *t += simd.reduce_sum_f32s(*s);
                        }
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn block<S: Simd, const F: usize, const T: usize>(
        &self,
        simd: S,
        first: usize,
        channel: usize,
        shifts: [usize; T],
    ) -> [[S::f32s; T]; F] {
        let lanes = S::F32_LANES;
        let length = self.layout.positions.next_multiple_of(lanes);
        let mut sums = [[simd.splat_f32s(0.0); T]; F];
        for image in 0..self.images {
            let gradients: [&[f32]; F] = std::array::from_fn(|f| {
                &self.spread[(image * self.filters + first + f) * self.wide..][..length]
            });
            let plane = (image * self.channels.input + channel) * self.layout.plane;
            let shifted: [&[f32]; T] =
                std::array::from_fn(|t| &self.padded[plane + shifts[t]..][..length]);
            let gradients = gradients.map(|g| S::as_simd_f32s(g).0);
            let shifted = shifted.map(|x| S::as_simd_f32s(x).0);
            for at in 0..length / lanes {
                let x = shifted.map(|x| x[at]);
                for (sums, gradient) in sums.iter_mut().zip(&gradients) {
                    let g = gradient[at];
                    for t in 0..T {
                        sums[t] = simd.mul_add_e_f32s(g, x[t], sums[t]);
                    }
                }
            }
        }
        sums
    }
}
