//! Computes in memory, with the loops of [`crate::kernel`].

mod array;

use crate::compute::{Binary, Compute, Gradients, Reduction, Unary};
use crate::kernel::conv::{Channels, Window};
use crate::kernel::norm::Images;
use crate::kernel::{self, Matrix, multiply, sum};
use crate::layer::norm;
use crate::tensor::Tensor;
use array::Array;
use std::ops::Range;
use surefoot_plan::Activation;

/// The CPU.
///
/// Every value is computed by one thread in a fixed order, so that results have the same bits on any
/// number of threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu;

impl Compute for Cpu {
    type Device = Self;
    type Array = Array;
    type Origin = Vec<u32>;

    fn upload(values: Vec<f32>, shape: &[usize], _device: &Self) -> Tensor<Self> {
        tensor(values, shape)
    }

    fn lend<R>(
        values: &mut Vec<f32>,
        parts: &[(Range<usize>, &[usize])],
        _device: &Self,
        body: impl FnOnce(&[Tensor<Self>]) -> R,
    ) -> R {
        let len = values.len();
        let all = Array::new(std::mem::take(values), &[len]);
        let part = |(range, shape): &(Range<usize>, &[usize])| {
            Tensor(all.slice(0, range.start, range.len()).reshape(shape))
        };
        let result = body(&parts.iter().map(part).collect::<Vec<_>>());
        // The tensors have been dropped, so nothing is copied.
        *values = all.into_values();
        result
    }

    fn read<R>(tensor: &Tensor<Self>, read: impl FnOnce(&[f32]) -> R) -> R {
        read(&tensor.0.values())
    }

    fn shape(tensor: &Tensor<Self>) -> Vec<usize> {
        tensor.0.shape()
    }

    fn reshape(tensor: Tensor<Self>, shape: &[usize]) -> Tensor<Self> {
        Tensor(tensor.0.reshape(shape))
    }

    fn permute(tensor: Tensor<Self>, axes: &[usize]) -> Tensor<Self> {
        Tensor(tensor.0.permute(axes))
    }

    fn slice(tensor: &Tensor<Self>, dim: usize, start: usize, len: usize) -> Tensor<Self> {
        Tensor(tensor.0.slice(dim, start, len))
    }

    fn concat(parts: Vec<Tensor<Self>>, dim: usize) -> Tensor<Self> {
        Tensor(Array::concat(parts.into_iter().map(|part| part.0).collect(), dim))
    }

    fn settle(x: Tensor<Self>) -> Tensor<Self> {
        let shape = x.shape();
        x.reshape(&shape)
    }

    fn unary(function: Unary, x: Tensor<Self>) -> Tensor<Self> {
        Tensor(match function {
            Unary::Negate => x.0.map(|x| -x),
            Unary::Reciprocal => x.0.map(|x| 1.0 / x),
            Unary::SquareRoot => x.0.map(f32::sqrt),
            Unary::Add(a) => x.0.map(|x| x + a),
            Unary::Multiply(a) => x.0.map(|x| x * a),
        })
    }

    fn binary(function: Binary, x: Tensor<Self>, y: &Tensor<Self>) -> Tensor<Self> {
        Tensor(match function {
            Binary::Add => x.0.zip(&y.0, |x, y| x + y),
            Binary::Subtract => x.0.zip(&y.0, |x, y| x - y),
            Binary::Multiply => x.0.zip(&y.0, |x, y| x * y),
        })
    }

    fn reduce_last(reduction: Reduction, x: Tensor<Self>) -> Tensor<Self> {
        let (values, width) = (x.0.values(), x.0.width());
        let out = match reduction {
            Reduction::Max => sum::row_maxima(&values, width),
            Reduction::Mean => {
                let mut means = sum::each_row(&values, width);
                means.iter_mut().for_each(|mean| *mean /= width as f32);
                means
            }
        };
        let mut shape = x.shape();
        if let Some(last) = shape.last_mut() {
            *last = 1;
        }
        tensor(out, &shape)
    }

    fn sum_rows(x: Tensor<Self>) -> Tensor<Self> {
        let width = x.0.width();
        tensor(sum::all_rows(&x.0.values(), width), &[width])
    }

    fn matmul(x: &Tensor<Self>, y: &Tensor<Self>) -> Tensor<Self> {
        Tensor(x.0.matmul(&y.0))
    }

    fn channel_sums(
        x: &Tensor<Self>,
        scale: Option<&Tensor<Self>>,
        factor: Option<&Tensor<Self>>,
    ) -> Tensor<Self> {
        let Some(images) = images(x) else { return norm::channel_sums(x, scale, factor) };
        let (scale, factor) = (scale.map(|s| s.0.values()), factor.map(|f| f.0.values()));
        let x = x.0.values();
        let sums = kernel::norm::channel_sums(&x, scale.as_deref(), factor.as_deref(), images);
        tensor(sums, &[images.channels])
    }

    fn normalize_channels(
        x: Tensor<Self>,
        statistics: [&Tensor<Self>; 2],
        gamma: Option<&Tensor<Self>>,
        beta: Option<&Tensor<Self>>,
    ) -> (Tensor<Self>, Tensor<Self>) {
        let Some(images) = images(&x) else {
            return norm::normalize_channels(x, statistics, gamma, beta);
        };
        let (gamma, beta) = (gamma.map(|g| g.0.values()), beta.map(|b| b.0.values()));
        let [mean, inverse] = statistics.map(|values| values.0.values());
        let shape = x.shape();
        let mut x = x.0.into_values();
        let y = kernel::norm::normalize(
            &mut x,
            [&mean, &inverse],
            gamma.as_deref(),
            beta.as_deref(),
            images,
        );
        (tensor(x, &shape), tensor(y, &shape))
    }

    fn normalize_channels_backward(
        gradient: Tensor<Self>,
        normalized: &Tensor<Self>,
        gamma: Option<&Tensor<Self>>,
        statistics: [&Tensor<Self>; 3],
    ) -> Tensor<Self> {
        let Some(images) = images(&gradient) else {
            return norm::normalize_channels_backward(gradient, normalized, gamma, statistics);
        };
        let gamma = gamma.map(|g| g.0.values());
        let [mean, product, inverse] = statistics.map(|values| values.0.values());
        let shape = gradient.shape();
        let mut gradient = gradient.0.into_values();
        kernel::norm::normalize_backward(
            &mut gradient,
            &normalized.0.values(),
            gamma.as_deref(),
            [&mean, &product, &inverse],
            images,
        );
        tensor(gradient, &shape)
    }

    fn normalize_last(x: Tensor<Self>, epsilon: f32) -> (Tensor<Self>, Tensor<Self>) {
        let (mut shape, width) = (x.shape(), x.0.width());
        let mut values = x.0.into_values();
        let inverse = kernel::norm::rows(&mut values, width, epsilon);
        let normalized = tensor(values, &shape);
        if let Some(last) = shape.last_mut() {
            *last = 1;
        }
        (normalized, tensor(inverse, &shape))
    }

    fn normalize_last_backward(
        gradient: Tensor<Self>,
        normalized: &Tensor<Self>,
        inverse: &Tensor<Self>,
    ) -> Tensor<Self> {
        let (shape, width) = (gradient.shape(), gradient.0.width());
        let mut gradient = gradient.0.into_values();
        let (normalized, inverse) = (normalized.0.values(), inverse.0.values());
        kernel::norm::rows_backward(&mut gradient, &normalized, &inverse, width);
        tensor(gradient, &shape)
    }

    fn channel_moments(x: &Tensor<Self>, channels: usize) -> Vec<[f64; 2]> {
        match images(x) {
            Some(images) => kernel::norm::moments(&x.0.values(), images),
            None => norm::channel_moments(x, channels),
        }
    }

    fn activate(activation: Activation, x: Tensor<Self>) -> Tensor<Self> {
        if activation == Activation::Linear {
            return x;
        }
        let (shape, width) = (x.shape(), x.0.width());
        let mut values = x.0.into_values();
        kernel::activation::forward(activation, &mut values, width);
        tensor(values, &shape)
    }

    fn activate_backward(
        activation: Activation,
        x: Option<&Tensor<Self>>,
        y: &Tensor<Self>,
        gradient: Tensor<Self>,
    ) -> Tensor<Self> {
        if activation == Activation::Linear {
            return gradient;
        }
        let (shape, width) = (y.shape(), y.0.width());
        let x = x.map(|x| x.0.values()).unwrap_or_default();
        let mut gradient = gradient.0.into_values();
        kernel::activation::backward(activation, &x, &y.0.values(), &mut gradient, width);
        tensor(gradient, &shape)
    }

    fn embed(table: &Tensor<Self>, symbols: &Tensor<Self>) -> Tensor<Self> {
        let mut shape = symbols.shape();
        let width = table.0.width();
        shape.push(width);
        let table = table.0.values();
        let mut out = Vec::with_capacity(shape.iter().product());
        for &symbol in symbols.0.values().iter() {
            out.extend_from_slice(&table[symbol as usize * width..][..width]);
        }
        tensor(out, &shape)
    }

    fn embed_backward(
        table: &Tensor<Self>,
        symbols: &Tensor<Self>,
        gradient: &Tensor<Self>,
    ) -> Tensor<Self> {
        let shape = table.shape();
        let width = shape[1];
        let mut d_table = vec![0.0; table.len()];
        let (symbols, gradient) = (symbols.0.values(), gradient.0.values());
        for (&symbol, gradient) in symbols.iter().zip(gradient.chunks_exact(width)) {
            let row = &mut d_table[symbol as usize * width..][..width];
            row.iter_mut().zip(gradient).for_each(|(sum, g)| *sum += g);
        }
        tensor(d_table, &shape)
    }

    fn product(
        x: &Tensor<Self>,
        kernel: &Tensor<Self>,
        bias: Option<&Tensor<Self>>,
    ) -> Tensor<Self> {
        let [rows, inner, outer] = [x.shape()[0], kernel.shape()[0], kernel.shape()[1]];
        let bias = bias.map(|bias| bias.0.values());
        let (x, kernel) = (x.0.values(), kernel.0.values());
        let (x, kernel) = (Matrix::new(&x, rows, inner), Matrix::new(&kernel, inner, outer));
        tensor(kernel::product(x, kernel, bias.as_deref()), &[rows, outer])
    }

    fn add_product(sum: Tensor<Self>, x: &Tensor<Self>, kernel: &Tensor<Self>) -> Tensor<Self> {
        let shape = sum.shape();
        let inner = kernel.shape()[0];
        let mut sum = sum.0.into_values();
        let (x, kernel) = (x.0.values(), kernel.0.values());
        let (x, kernel) = (Matrix::new(&x, shape[0], inner), Matrix::new(&kernel, inner, shape[1]));
        multiply(&mut sum, x, kernel, true);
        tensor(sum, &shape)
    }

    fn product_backward(
        x: &Tensor<Self>,
        kernel: &Tensor<Self>,
        gradient: &Tensor<Self>,
        with_x: bool,
    ) -> Gradients<Self> {
        let [rows, inner, outer] = [x.shape()[0], kernel.shape()[0], kernel.shape()[1]];
        let (x, kernel, gradient) = (x.0.values(), kernel.0.values(), gradient.0.values());
        let d_bias = sum::all_rows(&gradient, outer);
        let gradient = Matrix::new(&gradient, rows, outer);
        let d_kernel = kernel::product(Matrix::new(&x, rows, inner).transposed(), gradient, None);
        let d_x = with_x.then(|| {
            let kernel = Matrix::new(&kernel, inner, outer).transposed();
            tensor(kernel::product(gradient, kernel, None), &[rows, inner])
        });
        Gradients {
            x: d_x,
            kernel: tensor(d_kernel, &[inner, outer]),
            bias: tensor(d_bias, &[outer]),
        }
    }

    fn convolve(
        x: &Tensor<Self>,
        kernel: &Tensor<Self>,
        bias: Option<&Tensor<Self>>,
        window: &Window,
    ) -> Tensor<Self> {
        let channels = channels(x, kernel);
        let (x, kernel, bias) = (x.0.values(), kernel.0.values(), bias.map(|b| b.0.values()));
        let y = kernel::conv::forward(&x, &kernel, bias.as_deref(), channels, window);
        tensor(y, &[channels.batch, channels.output, window.output[0], window.output[1]])
    }

    fn convolve_backward(
        x: &Tensor<Self>,
        kernel: &Tensor<Self>,
        gradient: &Tensor<Self>,
        window: &Window,
        with_x: bool,
    ) -> Gradients<Self> {
        let channels = channels(x, kernel);
        let gradients = kernel::conv::backward(
            &x.0.values(),
            &kernel.0.values(),
            &gradient.0.values(),
            channels,
            window,
            with_x,
        );
        Gradients {
            x: gradients.x.map(|d_x| tensor(d_x, &x.shape())),
            kernel: tensor(gradients.kernel, &kernel.shape()),
            bias: tensor(gradients.bias, &[channels.output]),
        }
    }

    fn max_pool(x: &Tensor<Self>, window: &Window) -> (Tensor<Self>, Vec<u32>) {
        let shape = x.shape();
        let (y, origin) = kernel::pool::max(&x.0.values(), shape[0] * shape[1], window);
        (tensor(y, &[shape[0], shape[1], window.output[0], window.output[1]]), origin)
    }

    fn max_pool_backward(
        x: &Tensor<Self>,
        gradient: &Tensor<Self>,
        origin: Vec<u32>,
        window: &Window,
    ) -> Tensor<Self> {
        let shape = x.shape();
        let (planes, gradient) = (shape[0] * shape[1], gradient.0.values());
        tensor(kernel::pool::max_backward(&gradient, &origin, planes, window), &shape)
    }

    fn average_pool(x: &Tensor<Self>, window: &Window) -> Tensor<Self> {
        let shape = x.shape();
        let y = kernel::pool::average(&x.0.values(), shape[0] * shape[1], window);
        tensor(y, &[shape[0], shape[1], window.output[0], window.output[1]])
    }

    fn average_pool_backward(
        x: &Tensor<Self>,
        gradient: &Tensor<Self>,
        window: &Window,
    ) -> Tensor<Self> {
        let shape = x.shape();
        let (planes, gradient) = (shape[0] * shape[1], gradient.0.values());
        tensor(kernel::pool::average_backward(&gradient, planes, window), &shape)
    }

    fn lstm_step(
        gates: Tensor<Self>,
        cell: Tensor<Self>,
    ) -> (Tensor<Self>, Tensor<Self>, Tensor<Self>) {
        let shape = cell.shape();
        let (mut gates, mut cell) = (gates.0.into_values(), cell.0.into_values());
        let hidden = kernel::recurrent::lstm(&mut gates, &mut cell, shape[1]);
        let gates = tensor(gates, &[shape[0], 4 * shape[1]]);
        (gates, tensor(cell, &shape), tensor(hidden, &shape))
    }

    fn lstm_step_backward(
        gates: &Tensor<Self>,
        cell_before: &Tensor<Self>,
        cell_after: &Tensor<Self>,
        d_hidden: &Tensor<Self>,
        d_cell: Tensor<Self>,
    ) -> (Tensor<Self>, Tensor<Self>) {
        let shape = cell_before.shape();
        let mut d_cell = d_cell.0.into_values();
        let d_gates = kernel::recurrent::lstm_backward(
            &gates.0.values(),
            &cell_before.0.values(),
            &cell_after.0.values(),
            &d_hidden.0.values(),
            &mut d_cell,
            shape[1],
        );
        (tensor(d_gates, &gates.shape()), tensor(d_cell, &shape))
    }
}

fn tensor(values: Vec<f32>, shape: &[usize]) -> Tensor<Cpu> {
    Tensor(Array::new(values, shape))
}

/// The sizes of `[batch, channels, height, width]`.
fn images(x: &Tensor<Cpu>) -> Option<Images> {
    match x.shape()[..] {
        [_, channels, height, width] => Some(Images { channels, area: height * width }),
        _ => None,
    }
}

fn channels(x: &Tensor<Cpu>, kernel: &Tensor<Cpu>) -> Channels {
    let (x, kernel) = (x.shape(), kernel.shape());
    Channels { batch: x[0], input: x[1], output: kernel[0] }
}
