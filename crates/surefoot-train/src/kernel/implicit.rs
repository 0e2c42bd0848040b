//! Convolution with many channels as a product of matrices. The matrix of all windows is never
//! created: the panels of [`tiles`] are copied straight from the image.
//!
//! The image is written out with its padding. With strides it is cut into phases, one for each position
//! of a window modulo the strides, so that neighbouring windows have neighbouring values in memory.

use super::Matrix;
use super::conv::{Channels, Window};
use super::parallel::{self, Shared};
use super::tiles::{self, Left, Right, Segment, Sink};
use std::mem::MaybeUninit;
use std::ops::Range;

/// Multiplications from which a gradient of the kernel, or a convolution with strides, is computed here.
const LARGE: usize = 1 << 25;
/// Filters below which the copies into panels cost too much.
const FEW_FILTERS: usize = 32;
/// Width of an output below which convolution straight from the image wastes much.
const NARROW: usize = 16;
/// Positions of a segment of the kernel's gradient.
const SEGMENT: usize = 544;

/// Returns true if the product is faster than a convolution straight from the image, which has the
/// same bits.
pub(crate) fn suits_narrow(channels: Channels, window: &Window) -> bool {
    window.output[1] < NARROW
        && channels.output >= FEW_FILTERS
        && channels.input * window.size[0] * window.size[1] >= 64
}

/// Returns true if this is large enough to be computed here. The bits differ from those of other methods.
pub(crate) fn suits(channels: Channels, window: &Window) -> bool {
    let outputs = channels.batch * channels.output * window.output[0] * window.output[1];
    let depth = channels.input * window.size[0] * window.size[1];
    channels.output >= FEW_FILTERS
        && channels.input >= FEW_FILTERS / 2
        && outputs.saturating_mul(depth) >= LARGE
}

/// The layout of a padded image.
struct Layout {
    pitch: usize,
    /// Values of one phase of a channel.
    phase: usize,
    /// Values of a channel.
    channel: usize,
    /// Offset of each tap of each channel from its window.
    taps: Vec<usize>,
    /// Phases that have taps.
    used: Vec<bool>,
}

impl Layout {
    fn new(channels: Channels, window: &Window) -> Self {
        let padding = [0, 1].map(|axis| window.before[axis] + window.after[axis]);
        let [down, across] = window.stride;
        let rows = (window.input[0] + padding[0]).div_ceil(down);
        // With stride 1 the padding after a row is the padding before the next one.
        let pitch = match across {
            1 => (window.input[1] + window.before[1].max(window.after[1])).max(window.output[1]),
            _ => (window.input[1] + padding[1]).div_ceil(across),
        };
        let phase = rows * pitch + padding[1];
        let channel = phase * down * across;
        let mut used = vec![false; down * across];
        let mut taps = Vec::with_capacity(channels.input * window.size[0] * window.size[1]);
        for c in 0..channels.input {
            for ky in 0..window.size[0] {
                for kx in 0..window.size[1] {
                    let (y, x) = (ky * window.dilation[0], kx * window.dilation[1]);
                    let number = y % down * across + x % across;
                    used[number] = true;
                    taps.push(c * channel + number * phase + y / down * pitch + x / across);
                }
            }
        }
        Self { pitch, phase, channel, taps, used }
    }

    /// All images with their padding.
    fn pad(&self, x: &[f32], channels: Channels, window: &Window) -> Vec<f32> {
        let area = window.input[0] * window.input[1];
        let mut padded = vec![0.0; channels.batch * channels.input * self.channel];
        parallel::chunks_mut(&mut padded, channels.input * self.channel, |image, to| {
            let planes = x[image * channels.input * area..].chunks_exact(area);
            for (plane, to) in planes.zip(to.chunks_exact_mut(self.channel)) {
                self.pad_plane(plane, window, to);
            }
        });
        padded
    }

    fn pad_plane(&self, plane: &[f32], window: &Window, to: &mut [f32]) {
        let [down, across] = window.stride;
        for (y, row) in plane.chunks_exact(window.input[1]).enumerate() {
            let y = y + window.before[0];
            let start = y % down * across * self.phase + y / down * self.pitch;
            if across == 1 {
                to[start + window.before[1]..][..row.len()].copy_from_slice(row);
                continue;
            }
            for (x, from) in (window.before[1]..).zip(0..across.min(row.len())) {
                let number = y % down * across + x % across;
                if self.used[number] {
                    let to = &mut to[start + x % across * self.phase + x / across..];
                    let row = row[from..].iter().step_by(across);
                    to.iter_mut().zip(row).for_each(|(to, value)| *to = *value);
                }
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
    let layout = Layout::new(channels, window);
    let padded = layout.pad(x, channels, window);
    let area = window.output[0] * window.output[1];
    let len = channels.batch * channels.output * area;
    let mut y = Vec::with_capacity(len);
    let sink = Images {
        values: Shared::new(&mut y.spare_capacity_mut()[..len]),
        filters: channels.output,
        area,
        bias,
    };
    let left = Left::matrix(Matrix::new(kernel, channels.output, layout.taps.len()));
    let image = channels.input * layout.channel;
    let windows =
        Windows { padded: &padded, layout: &layout, image, area, width: window.output[1] };
    tiles::multiply(&left, &windows, channels.batch * area, &sink);
    // SAFETY: `tiles::multiply` has given every value to `Images::finish`, which wrote it.
    unsafe { y.set_len(len) };
    y
}

/// The windows of all images as columns.
struct Windows<'a> {
    padded: &'a [f32],
    layout: &'a Layout,
    /// Values of a padded image.
    image: usize,
    area: usize,
    width: usize,
}

impl Windows<'_> {
    /// Copies runs of `N` windows, which are in one row of an image.
    #[inline(always)]
    fn copy<const N: usize>(
        &self,
        taps: &[usize],
        columns: Range<usize>,
        width: usize,
        panel: &mut [f32],
    ) {
        let mut starts = [0; 48];
        let runs = columns.len() / N;
        for (start, column) in starts.iter_mut().zip(columns.step_by(N)) {
            let (image, at) = (column / self.area, column % self.area);
            *start = image * self.image + at / self.width * self.layout.pitch + at % self.width;
        }
        for (&tap, to) in taps.iter().zip(panel.chunks_exact_mut(width)) {
            let (to, rest) = to.split_at_mut(runs * N);
            for (to, start) in to.chunks_exact_mut(N).zip(starts) {
                to.copy_from_slice(&self.padded[start + tap..][..N]);
            }
            rest.fill(0.0);
        }
    }
}

impl Right for Windows<'_> {
    #[inline(always)]
    fn pack(&self, segment: Segment, columns: Range<usize>, width: usize, panel: &mut [f32]) {
        let taps = &self.layout.taps[segment.first..][..segment.len];
        match self.width {
            n if n.is_multiple_of(16) => self.copy::<16>(taps, columns, width, panel),
            n if n.is_multiple_of(8) => self.copy::<8>(taps, columns, width, panel),
            n if n.is_multiple_of(4) => self.copy::<4>(taps, columns, width, panel),
            _ => self.copy::<1>(taps, columns, width, panel),
        }
    }
}

/// Outputs `[batch, filters, area]`; rows are filters, columns the positions of all images.
struct Images<'a> {
    values: Shared<'a, MaybeUninit<f32>>,
    filters: usize,
    area: usize,
    bias: Option<&'a [f32]>,
}

impl Sink for Images<'_> {
    #[inline(always)]
    fn start(&self, row: usize, _columns: Range<usize>, sums: &mut [f32]) {
        if let Some(bias) = self.bias {
            sums.fill(bias[row]);
        }
    }

    #[inline(always)]
    fn finish(&self, row: usize, columns: Range<usize>, mut sums: &[f32]) {
        let mut column = columns.start;
        while !sums.is_empty() {
            let (image, at) = (column / self.area, column % self.area);
            let (now, later) = sums.split_at(sums.len().min(self.area - at));
            let start = (image * self.filters + row) * self.area + at;
            // SAFETY: these columns of this row are given once.
            unsafe { self.values.slice(start, now.len()) }.write_copy_of_slice(now);
            column += now.len();
            sums = later;
        }
    }
}

/// The gradient with respect to the kernel.
pub(crate) fn kernel_gradient(
    x: &[f32],
    gradient: &[f32],
    channels: Channels,
    window: &Window,
) -> Vec<f32> {
    let layout = Layout::new(channels, window);
    let padded = layout.pad(x, channels, window);
    let [height, width] = window.output;
    // The places between the rows have no gradient.
    let positions = (height - 1) * layout.pitch + width;
    let filters = channels.output;
    let mut turned = vec![0.0; channels.batch * positions * filters];
    parallel::chunks_mut(&mut turned, positions * filters, |image, to| {
        let planes = &gradient[image * filters * height * width..];
        for (y, to) in to.chunks_mut(layout.pitch * filters).enumerate() {
            let row = Segment { first: 0, start: 0, len: width };
            let values = &planes[y * width..];
            Matrix::strided(values, [width, filters], [1, height * width]).pack(
                row,
                0..filters,
                filters,
                to,
            );
        }
    });
    let image = channels.input * layout.channel;
    let segments = (0..channels.batch).flat_map(|number| {
        (0..positions).step_by(SEGMENT).map(move |at| Segment {
            first: number * positions + at,
            start: number * image + at,
            len: SEGMENT.min(positions - at),
        })
    });
    let left = Left::rows(&padded, layout.taps.clone(), segments.collect());
    let right = Matrix::new(&turned, channels.batch * positions, filters);
    let depth = layout.taps.len();
    let mut out = vec![0.0; filters * depth];
    tiles::multiply(&left, &right, filters, &Columns { values: Shared::new(&mut out), depth });
    out
}

/// A matrix whose columns are computed as rows.
struct Columns<'a> {
    values: Shared<'a, f32>,
    depth: usize,
}

impl Sink for Columns<'_> {
    #[inline(always)]
    fn start(&self, _row: usize, _columns: Range<usize>, _sums: &mut [f32]) {}

    #[inline(always)]
    fn finish(&self, row: usize, columns: Range<usize>, sums: &[f32]) {
        for (column, sum) in columns.zip(sums) {
            // SAFETY: this column of this row is given once.
            let to = unsafe { self.values.slice(column * self.depth + row, 1) };
            to[0] = *sum;
        }
    }
}
