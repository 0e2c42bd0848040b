//! Convolution: straight from the image where windows are one apart ([`super::direct`]), as one product
//! of matrices where there are many channels ([`super::implicit`]), else as products of matrices,
//! block by block.
//!
//! For the latter, each block of output rows has its windows laid out as the columns of a matrix
//! (`im2col`), small enough to stay in cache until the product with the kernel has used it.

use super::{Matrix, direct, implicit, multiply, parallel};

/// Values of one block of unrolled windows: half of a common L2 cache, the gradient needs two.
const BLOCK_VALUES: usize = 96 * 1024;

/// The geometry of a convolution or pooling over `[height, width]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Size of the window.
    pub size: [usize; 2],
    /// Distance between windows.
    pub stride: [usize; 2],
    /// Distance between the taps of a window.
    pub dilation: [usize; 2],
    /// Positions added before the input, top and left.
    pub before: [usize; 2],
    /// Positions added after the input, bottom and right.
    pub after: [usize; 2],
    /// Size of the input.
    pub input: [usize; 2],
    /// Number of windows.
    pub output: [usize; 2],
}

impl Window {
    /// The position in the input of tap `tap` of window `at` along `axis`, if it is inside.
    #[inline(always)]
    pub(crate) fn source(&self, axis: usize, at: usize, tap: usize) -> Option<usize> {
        (at * self.stride[axis] + tap * self.dilation[axis])
            .checked_sub(self.before[axis])
            .filter(|&i| i < self.input[axis])
    }

    /// The windows along the width for which tap `tap` is inside the input.
    pub(crate) fn inside(&self, tap: usize) -> std::ops::Range<usize> {
        let offset = tap * self.dilation[1];
        let stride = self.stride[1];
        let first = self.before[1].saturating_sub(offset).div_ceil(stride);
        let end = (self.input[1] + self.before[1]).saturating_sub(offset).div_ceil(stride);
        let end = end.min(self.output[1]);
        first.min(end)..end
    }

    fn input_area(&self) -> usize {
        self.input[0] * self.input[1]
    }

    fn output_area(&self) -> usize {
        self.output[0] * self.output[1]
    }
}

/// The sizes of a convolution besides its window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channels {
    pub(crate) batch: usize,
    pub(crate) input: usize,
    pub(crate) output: usize,
}

/// `[batch, input, h, w]` convolved with `[output, input, kh, kw]`, plus `bias`.
pub(crate) fn forward(
    x: &[f32],
    kernel: &[f32],
    bias: Option<&[f32]>,
    channels: Channels,
    window: &Window,
) -> Vec<f32> {
    let straight = direct::suits(window);
    if straight && !implicit::suits_narrow(channels, window) {
        direct::forward(x, kernel, bias, channels, window)
    } else if straight || implicit::suits(channels, window) {
        implicit::forward(x, kernel, bias, channels, window)
    } else {
        forward_by_blocks(x, kernel, bias, channels, window)
    }
}

fn forward_by_blocks(
    x: &[f32],
    kernel: &[f32],
    bias: Option<&[f32]>,
    channels: Channels,
    window: &Window,
) -> Vec<f32> {
    let mut y = vec![0.0; channels.batch * channels.output * window.output_area()];
    let taps = channels.input * window.size[0] * window.size[1];
    let kernel = Matrix::new(kernel, channels.output, taps);
    let mut blocks = Blocks::new(channels, window, taps);
    while let Some(block) = blocks.next() {
        blocks.unroll(x, &block);
        let columns = block.len() * window.output[1];
        let product = &mut blocks.outputs[..channels.output * columns];
        multiply(
            product,
            kernel,
            Matrix::new(&blocks.windows[..taps * columns], taps, columns),
            false,
        );
        if let Some(bias) = bias {
            for (row, &b) in product.chunks_exact_mut(columns).zip(bias) {
                row.iter_mut().for_each(|v| *v += b);
            }
        }
        blocks.for_each_run(&block, |outputs, block_run, image_run| {
            y[image_run].copy_from_slice(&outputs[block_run]);
        });
    }
    y
}

/// Gradients of a convolution.
pub(crate) struct Gradients {
    pub(crate) x: Option<Vec<f32>>,
    pub(crate) kernel: Vec<f32>,
    pub(crate) bias: Vec<f32>,
}

/// Gradients with respect to kernel and bias, and to the input if `with_x`.
pub(crate) fn backward(
    x: &[f32],
    kernel: &[f32],
    gradient: &[f32],
    channels: Channels,
    window: &Window,
    with_x: bool,
) -> Gradients {
    let straight = direct::suits(window);
    let large = implicit::suits(channels, window);
    if !straight && !large {
        return backward_by_blocks(x, kernel, gradient, channels, window, with_x);
    }
    Gradients {
        x: with_x.then(|| match straight {
            true => direct::input_gradient(kernel, gradient, channels, window),
            false => input_gradient_by_images(kernel, gradient, channels, window),
        }),
        kernel: match large {
            true => implicit::kernel_gradient(x, gradient, channels, window),
            false => direct::kernel_gradient(x, gradient, channels, window),
        },
        bias: direct::bias_gradient(gradient, channels, window),
    }
}

/// The input's gradient, image by image.
fn input_gradient_by_images(
    kernel: &[f32],
    gradient: &[f32],
    channels: Channels,
    window: &Window,
) -> Vec<f32> {
    let taps = channels.input * window.size[0] * window.size[1];
    let kernel = Matrix::new(kernel, channels.output, taps).transposed();
    let area = window.output_area();
    let image = channels.input * window.input_area();
    let one = Channels { batch: 1, ..channels };
    let mut d_x = vec![0.0; channels.batch * image];
    parallel::chunks_mut(&mut d_x, image, |index, d_x| {
        let mut blocks = Blocks::new(one, window, 1);
        blocks.windows.resize(taps * area, 0.0);
        let from = &gradient[index * channels.output * area..][..channels.output * area];
        multiply(&mut blocks.windows, kernel, Matrix::new(from, channels.output, area), false);
        blocks.fold(d_x, &(0..window.output[0]));
    });
    d_x
}

fn backward_by_blocks(
    x: &[f32],
    kernel: &[f32],
    gradient: &[f32],
    channels: Channels,
    window: &Window,
    with_x: bool,
) -> Gradients {
    let taps = channels.input * window.size[0] * window.size[1];
    let mut d_kernel = vec![0.0; channels.output * taps];
    let mut d_bias = vec![0.0; channels.output];
    let mut d_x = with_x.then(|| vec![0.0; x.len()]);
    let kernel = Matrix::new(kernel, channels.output, taps);
    let mut blocks = Blocks::new(channels, window, taps);
    while let Some(block) = blocks.next() {
        blocks.unroll(x, &block);
        let columns = block.len() * window.output[1];
        blocks.for_each_run(&block, |outputs, block_run, image_run| {
            outputs[block_run].copy_from_slice(&gradient[image_run]);
        });
        let d_y = &blocks.outputs[..channels.output * columns];
        for (total, row) in d_bias.iter_mut().zip(d_y.chunks_exact(columns)) {
            *total += row.iter().sum::<f32>();
        }
        let d_y = Matrix::new(d_y, channels.output, columns);
        multiply(
            &mut d_kernel,
            d_y,
            Matrix::new(&blocks.windows[..taps * columns], taps, columns).transposed(),
            true,
        );
        if let Some(d_x) = &mut d_x {
            multiply(&mut blocks.windows[..taps * columns], kernel.transposed(), d_y, false);
            blocks.fold(d_x, &block);
        }
    }
    Gradients { x: d_x, kernel: d_kernel, bias: d_bias }
}

/// Walks over blocks of output rows; rows of all images follow one another, so that a block may
/// hold several small images or a part of a large one.
struct Blocks<'a> {
    channels: Channels,
    window: &'a Window,
    rows_per_block: usize,
    next_row: usize,
    /// The block's windows, `[taps, columns]`.
    windows: Vec<f32>,
    /// The block's outputs, `[output channels, columns]`.
    outputs: Vec<f32>,
}

impl<'a> Blocks<'a> {
    fn new(channels: Channels, window: &'a Window, taps: usize) -> Self {
        let rows = channels.batch * window.output[0];
        let columns = (BLOCK_VALUES / taps.max(1)).clamp(64, 2048);
        let rows_per_block = (columns / window.output[1].max(1)).clamp(1, rows.max(1));
        let columns = rows_per_block * window.output[1];
        Self {
            channels,
            window,
            rows_per_block,
            next_row: 0,
            windows: vec![0.0; taps * columns],
            outputs: vec![0.0; channels.output * columns],
        }
    }

    fn next(&mut self) -> Option<std::ops::Range<usize>> {
        let rows = self.channels.batch * self.window.output[0];
        let start = self.next_row;
        (start < rows).then(|| {
            self.next_row = (start + self.rows_per_block).min(rows);
            start..self.next_row
        })
    }

    /// Lays out the windows of `block` as columns.
    fn unroll(&mut self, x: &[f32], block: &std::ops::Range<usize>) {
        let window = self.window;
        let [width_in, width] = [window.input[1], window.output[1]];
        let columns = block.len() * width;
        let mut tap_rows = self.windows.chunks_exact_mut(columns);
        for channel in 0..self.channels.input {
            for ky in 0..window.size[0] {
                for kx in 0..window.size[1] {
                    let Some(tap_row) = tap_rows.next() else {
                        return;
                    };
                    let inside = window.inside(kx);
                    if inside.is_empty() {
                        tap_row.fill(0.0);
                        continue;
                    }
                    let first = inside.start * window.stride[1] + kx * window.dilation[1]
                        - window.before[1];
                    for (row, out) in block.clone().zip(tap_row.chunks_exact_mut(width)) {
                        let (image, oy) = (row / window.output[0], row % window.output[0]);
                        let Some(iy) = window.source(0, oy, ky) else {
                            out.fill(0.0);
                            continue;
                        };
                        let plane = (image * self.channels.input + channel) * window.input_area();
                        let source = &x[plane + iy * width_in..][..width_in];
                        out[..inside.start].fill(0.0);
                        out[inside.end..].fill(0.0);
                        let out = &mut out[inside.clone()];
                        if window.stride[1] == 1 {
                            out.copy_from_slice(&source[first..][..out.len()]);
                        } else {
                            for (o, i) in
                                out.iter_mut().zip(source[first..].iter().step_by(window.stride[1]))
                            {
                                *o = *i;
                            }
                        }
                    }
                }
            }
        }
    }

    /// Adds the windows of `block` back to where they came from.
    fn fold(&self, x: &mut [f32], block: &std::ops::Range<usize>) {
        let window = self.window;
        let [width_in, width] = [window.input[1], window.output[1]];
        let columns = block.len() * width;
        let mut tap_rows = self.windows.chunks_exact(columns);
        for channel in 0..self.channels.input {
            for ky in 0..window.size[0] {
                for kx in 0..window.size[1] {
                    let Some(tap_row) = tap_rows.next() else {
                        return;
                    };
                    let inside = window.inside(kx);
                    if inside.is_empty() {
                        continue;
                    }
                    let first = inside.start * window.stride[1] + kx * window.dilation[1]
                        - window.before[1];
                    for (row, values) in block.clone().zip(tap_row.chunks_exact(width)) {
                        let (image, oy) = (row / window.output[0], row % window.output[0]);
                        let Some(iy) = window.source(0, oy, ky) else {
                            continue;
                        };
                        let plane = (image * self.channels.input + channel) * window.input_area();
                        let target = &mut x[plane + iy * width_in..][..width_in];
                        let values = &values[inside.clone()];
                        if window.stride[1] == 1 {
                            for (t, v) in target[first..].iter_mut().zip(values) {
                                *t += v;
                            }
                        } else {
                            for (t, v) in
                                target[first..].iter_mut().step_by(window.stride[1]).zip(values)
                            {
                                *t += v;
                            }
                        }
                    }
                }
            }
        }
    }

    /// Calls `visit(outputs, run in the block, run in the batch)` for each stretch of values that
    /// is contiguous in both.
    fn for_each_run(
        &mut self,
        block: &std::ops::Range<usize>,
        mut visit: impl FnMut(&mut [f32], std::ops::Range<usize>, std::ops::Range<usize>),
    ) {
        let [height, width] = self.window.output;
        let columns = block.len() * width;
        let area = self.window.output_area();
        let mut row = block.start;
        while row < block.end {
            let (image, oy) = (row / height, row % height);
            let rows = (height - oy).min(block.end - row);
            for channel in 0..self.channels.output {
                let here = channel * columns + (row - block.start) * width;
                let there = (image * self.channels.output + channel) * area + oy * width;
                visit(&mut self.outputs, here..here + rows * width, there..there + rows * width);
            }
            row += rows;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(
        input: [usize; 2],
        size: [usize; 2],
        stride: [usize; 2],
        dilation: [usize; 2],
        pad: [usize; 4],
    ) -> Window {
        let output = [0, 1].map(|axis| {
            let span = (size[axis] - 1) * dilation[axis] + 1;
            (input[axis] + pad[axis] + pad[axis + 2] - span) / stride[axis] + 1
        });
        Window {
            size,
            stride,
            dilation,
            before: [pad[0], pad[1]],
            after: [pad[2], pad[3]],
            input,
            output,
        }
    }

    fn naive(x: &[f32], kernel: &[f32], bias: &[f32], c: Channels, w: &Window) -> Vec<f32> {
        let mut y = Vec::new();
        for n in 0..c.batch {
            for (f, b) in bias.iter().enumerate() {
                for oy in 0..w.output[0] {
                    for ox in 0..w.output[1] {
                        let mut sum = *b;
                        for i in 0..c.input {
                            for ky in 0..w.size[0] {
                                for kx in 0..w.size[1] {
                                    if let (Some(iy), Some(ix)) =
                                        (w.source(0, oy, ky), w.source(1, ox, kx))
                                    {
                                        sum += x[((n * c.input + i) * w.input[0] + iy)
                                            * w.input[1]
                                            + ix]
                                            * kernel[((f * c.input + i) * w.size[0] + ky)
                                                * w.size[1]
                                                + kx];
                                    }
                                }
                            }
                        }
                        y.push(sum);
                    }
                }
            }
        }
        y
    }

    /// Gradients as they are computed for many channels.
    fn backward_of_many_channels(
        x: &[f32],
        kernel: &[f32],
        gradient: &[f32],
        channels: Channels,
        window: &Window,
        with_x: bool,
    ) -> Gradients {
        Gradients {
            x: with_x.then(|| input_gradient_by_images(kernel, gradient, channels, window)),
            kernel: implicit::kernel_gradient(x, gradient, channels, window),
            bias: direct::bias_gradient(gradient, channels, window),
        }
    }

    fn values(n: usize, salt: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * 37 + salt * 11) % 19) as f32 * 0.1 - 0.9).collect()
    }

    fn cases() -> Vec<(Channels, Window)> {
        let c = |batch, input, output| Channels { batch, input, output };
        vec![
            (c(2, 3, 4), window([7, 6], [3, 3], [1, 1], [1, 1], [1, 1, 1, 1])),
            (c(3, 1, 2), window([9, 8], [3, 2], [2, 2], [1, 1], [0, 0, 1, 1])),
            (c(2, 2, 3), window([9, 9], [3, 3], [1, 2], [2, 2], [2, 1, 2, 2])),
            (c(1, 2, 3), window([1, 12], [1, 5], [1, 3], [1, 1], [0, 0, 0, 0])),
            (c(2, 1, 1), window([3, 3], [3, 3], [1, 1], [1, 1], [3, 3, 3, 3])),
            (c(5, 4, 50), window([8, 8], [3, 3], [2, 2], [1, 1], [0, 0, 1, 1])),
            (c(7, 3, 9), window([4, 4], [3, 3], [1, 1], [1, 1], [1, 1, 1, 1])),
            (c(2, 3, 4), window([6, 8], [2, 4], [1, 1], [1, 2], [0, 2, 1, 4])),
            (c(40, 3, 2), window([40, 40], [5, 5], [1, 1], [1, 1], [2, 2, 2, 2])),
        ]
    }

    #[test]
    fn blocks_give_what_the_definition_gives() {
        for (c, w) in cases() {
            let x = values(c.batch * c.input * w.input_area(), 1);
            let kernel = values(c.output * c.input * w.size[0] * w.size[1], 2);
            let bias = values(c.output, 3);
            let want = naive(&x, &kernel, &bias, c, &w);
            for way in [forward, forward_by_blocks, implicit::forward] {
                let y = way(&x, &kernel, Some(&bias), c, &w);
                assert_eq!(y.len(), want.len());
                for (a, b) in y.iter().zip(&want) {
                    assert!((a - b).abs() < 1e-4, "{w:?}: {a} instead of {b}");
                }
            }
        }
    }

    #[test]
    fn implicit_products_have_the_bits_of_convolution_straight_from_the_image() {
        for (c, w) in cases().into_iter().filter(|(_, window)| direct::suits(window)) {
            let x = values(c.batch * c.input * w.input_area(), 1);
            let kernel = values(c.output * c.input * w.size[0] * w.size[1], 2);
            let bias = values(c.output, 3);
            let y = implicit::forward(&x, &kernel, Some(&bias), c, &w);
            assert_eq!(y, direct::forward(&x, &kernel, Some(&bias), c, &w), "{w:?}");
        }
    }

    #[test]
    fn gradients_are_the_adjoint_of_the_convolution() {
        // <dy, conv(x, k)> is linear in x and in k, so its gradients are exact dot products.
        for (c, w) in cases() {
            let x = values(c.batch * c.input * w.input_area(), 4);
            let kernel = values(c.output * c.input * w.size[0] * w.size[1], 5);
            let zero = vec![0.0; c.output];
            let dy = values(c.batch * c.output * w.output_area(), 6);
            let dot = |a: &[f32], b: &[f32]| -> f64 {
                a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
            };
            let other_x = values(x.len(), 7);
            let other_k = values(kernel.len(), 8);
            let along_x = dot(&dy, &naive(&other_x, &kernel, &zero, c, &w));
            let along_k = dot(&dy, &naive(&x, &other_k, &zero, c, &w));
            for way in [backward, backward_by_blocks, backward_of_many_channels] {
                let g = way(&x, &kernel, &dy, c, &w, true);
                let dx = g.x.unwrap();
                assert!((dot(&dx, &other_x) - along_x).abs() < 1e-3 * (1.0 + along_x.abs()));
                assert!((dot(&g.kernel, &other_k) - along_k).abs() < 1e-3 * (1.0 + along_k.abs()));
                let total: f64 = dy.iter().map(|&v| f64::from(v)).sum();
                let bias: f64 = g.bias.iter().map(|&v| f64::from(v)).sum();
                assert!((total - bias).abs() < 1e-2);
            }
        }
    }
}
