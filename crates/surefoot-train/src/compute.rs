//! Operations that layers need from a device.

use crate::kernel::conv::Window;
use crate::layer::norm;
use crate::tensor::Tensor;
use std::ops::Range;
use surefoot_plan::Activation;

/// Gradients of a product with a kernel: of a matrix or of a convolution.
pub struct Gradients<B: Compute> {
    /// With respect to the input, if requested.
    pub x: Option<Tensor<B>>,
    /// With respect to the kernel.
    pub kernel: Tensor<B>,
    /// With respect to the bias.
    pub bias: Tensor<B>,
}

/// A function of one value.
#[derive(Clone, Copy)]
pub enum Unary {
    /// `-x`
    Negate,
    /// `1 / x`
    Reciprocal,
    /// The square root of `x`.
    SquareRoot,
    /// `x + a`
    Add(f32),
    /// `x * a`
    Multiply(f32),
}

/// A function of two values.
#[derive(Clone, Copy)]
pub enum Binary {
    /// `x + y`
    Add,
    /// `x - y`
    Subtract,
    /// `x * y`
    Multiply,
}

/// A reduction of the last dimension.
#[derive(Clone, Copy)]
pub enum Reduction {
    /// The mean.
    Mean,
    /// The maximum; NaN if there is one.
    Max,
}

/// A device that can train.
///
/// Layers and optimizers are generic in it. [`crate::Cpu`] has loops of its own for each operation.
pub trait Compute: Sized + Send + Sync + 'static {
    /// One device of this kind.
    type Device: Clone + Default + Send + Sync;
    /// An array of f32 of any rank. Cloning shares the values.
    type Array: Clone + Send + Sync;
    /// Positions of the maxima of a pooling.
    type Origin: Send + Sync;

    /// A tensor of `values`, row-major.
    fn upload(values: Vec<f32>, shape: &[usize], device: &Self::Device) -> Tensor<Self>;

    /// Calls `body` with tensors of parts of `values`, each a range with its shape.
    fn lend<R>(
        values: &mut Vec<f32>,
        parts: &[(Range<usize>, &[usize])],
        device: &Self::Device,
        body: impl FnOnce(&[Tensor<Self>]) -> R,
    ) -> R {
        let part = |(range, shape): &(Range<usize>, &[usize])| {
            Self::upload(values[range.clone()].to_vec(), shape, device)
        };
        body(&parts.iter().map(part).collect::<Vec<_>>())
    }

    /// Calls `read` with the values of `tensor`, row-major.
    ///
    /// # Panics
    ///
    /// If the device fails to give them.
    fn read<R>(tensor: &Tensor<Self>, read: impl FnOnce(&[f32]) -> R) -> R;

    /// The dimensions of a tensor.
    fn shape(tensor: &Tensor<Self>) -> Vec<usize>;

    /// The same values in the same order with other dimensions.
    fn reshape(tensor: Tensor<Self>, shape: &[usize]) -> Tensor<Self>;

    /// The dimensions in another order.
    fn permute(tensor: Tensor<Self>, axes: &[usize]) -> Tensor<Self>;

    /// `len` entries of dimension `dim` from `start` on.
    fn slice(tensor: &Tensor<Self>, dim: usize, start: usize, len: usize) -> Tensor<Self>;

    /// `parts` one after the other along dimension `dim`.
    fn concat(parts: Vec<Tensor<Self>>, dim: usize) -> Tensor<Self>;

    /// The same values, laid out so that they are quickest to read again and again.
    fn settle(tensor: Tensor<Self>) -> Tensor<Self>;

    /// A function of each value.
    fn unary(function: Unary, x: Tensor<Self>) -> Tensor<Self>;

    /// A function of each pair of values. Dimensions of `y` with size 1 are repeated.
    fn binary(function: Binary, x: Tensor<Self>, y: &Tensor<Self>) -> Tensor<Self>;

    /// A reduction of the last dimension, which stays with size 1.
    fn reduce_last(reduction: Reduction, x: Tensor<Self>) -> Tensor<Self>;

    /// Sums over all dimensions but the last: `[..., n]` to `[n]`.
    fn sum_rows(x: Tensor<Self>) -> Tensor<Self>;

    /// Products of the matrices in the last two dimensions.
    fn matmul(x: &Tensor<Self>, y: &Tensor<Self>) -> Tensor<Self>;

    /// Sums over all dimensions but the channels of `x`, times the `scale` of each channel and times
    /// `factor` where given: `[batch, channels, height, width]` or `[..., channels]` to `[channels]`.
    fn channel_sums(
        x: &Tensor<Self>,
        scale: Option<&Tensor<Self>>,
        factor: Option<&Tensor<Self>>,
    ) -> Tensor<Self> {
        norm::channel_sums(x, scale, factor)
    }

    /// `(x - mean) * inverse` for each channel, and that times `gamma` plus `beta`.
    fn normalize_channels(
        x: Tensor<Self>,
        statistics: [&Tensor<Self>; 2],
        gamma: Option<&Tensor<Self>>,
        beta: Option<&Tensor<Self>>,
    ) -> (Tensor<Self>, Tensor<Self>) {
        norm::normalize_channels(x, statistics, gamma, beta)
    }

    /// The gradient of [`Compute::normalize_channels`], given the means of the gradient times `gamma` and
    /// of that times `normalized`, and `inverse`.
    fn normalize_channels_backward(
        gradient: Tensor<Self>,
        normalized: &Tensor<Self>,
        gamma: Option<&Tensor<Self>>,
        statistics: [&Tensor<Self>; 3],
    ) -> Tensor<Self> {
        norm::normalize_channels_backward(gradient, normalized, gamma, statistics)
    }

    /// The last dimension centred and scaled, and `1 / std`.
    fn normalize_last(x: Tensor<Self>, epsilon: f32) -> (Tensor<Self>, Tensor<Self>) {
        norm::normalize_last(x, epsilon)
    }

    /// The gradient of [`Compute::normalize_last`].
    fn normalize_last_backward(
        gradient: Tensor<Self>,
        normalized: &Tensor<Self>,
        inverse: &Tensor<Self>,
    ) -> Tensor<Self> {
        norm::normalize_last_backward(gradient, normalized, inverse)
    }

    /// Mean of each channel of `[batch, channels, height, width]` or `[..., channels]`, and the sum of
    /// squared deviations from it.
    fn channel_moments(x: &Tensor<Self>, channels: usize) -> Vec<[f64; 2]> {
        norm::channel_moments(x, channels)
    }

    /// `activation(x)`
    fn activate(activation: Activation, x: Tensor<Self>) -> Tensor<Self>;

    /// The gradient before an activation, given that after it. `x` is absent where the output
    /// suffices ([`crate::kernel::activation::gradient_from_output`]).
    fn activate_backward(
        activation: Activation,
        x: Option<&Tensor<Self>>,
        y: &Tensor<Self>,
        gradient: Tensor<Self>,
    ) -> Tensor<Self>;

    /// The rows of `table` `[symbols, width]` with the numbers `symbols` `[batch, steps]`.
    fn embed(table: &Tensor<Self>, symbols: &Tensor<Self>) -> Tensor<Self>;

    /// The gradient of [`Compute::embed`] with respect to the table.
    fn embed_backward(
        table: &Tensor<Self>,
        symbols: &Tensor<Self>,
        gradient: &Tensor<Self>,
    ) -> Tensor<Self>;

    /// `[rows, in]` times `[in, out]`, plus `[out]`.
    fn product(
        x: &Tensor<Self>,
        kernel: &Tensor<Self>,
        bias: Option<&Tensor<Self>>,
    ) -> Tensor<Self>;

    /// `sum + x * kernel`
    fn add_product(sum: Tensor<Self>, x: &Tensor<Self>, kernel: &Tensor<Self>) -> Tensor<Self>;

    /// The gradients of [`Compute::product`].
    fn product_backward(
        x: &Tensor<Self>,
        kernel: &Tensor<Self>,
        gradient: &Tensor<Self>,
        with_x: bool,
    ) -> Gradients<Self>;

    /// Convolution of `[batch, channels, height, width]` with `[filters, channels, h, w]`.
    fn convolve(
        x: &Tensor<Self>,
        kernel: &Tensor<Self>,
        bias: Option<&Tensor<Self>>,
        window: &Window,
    ) -> Tensor<Self>;

    /// The gradients of [`Compute::convolve`].
    fn convolve_backward(
        x: &Tensor<Self>,
        kernel: &Tensor<Self>,
        gradient: &Tensor<Self>,
        window: &Window,
        with_x: bool,
    ) -> Gradients<Self>;

    /// The maximum of each window of `[batch, channels, height, width]`.
    fn max_pool(x: &Tensor<Self>, window: &Window) -> (Tensor<Self>, Self::Origin);

    /// The gradient of [`Compute::max_pool`].
    fn max_pool_backward(
        x: &Tensor<Self>,
        gradient: &Tensor<Self>,
        origin: Self::Origin,
        window: &Window,
    ) -> Tensor<Self>;

    /// The mean of each window over the positions inside the input.
    fn average_pool(x: &Tensor<Self>, window: &Window) -> Tensor<Self>;

    /// The gradient of [`Compute::average_pool`].
    fn average_pool_backward(
        x: &Tensor<Self>,
        gradient: &Tensor<Self>,
        window: &Window,
    ) -> Tensor<Self>;

    /// One step of an LSTM with sigmoid gates and tanh: `[batch, 4 units]` gates before their
    /// activations and `[batch, units]` cell state to (gates after them, cell, hidden).
    fn lstm_step(
        gates: Tensor<Self>,
        cell: Tensor<Self>,
    ) -> (Tensor<Self>, Tensor<Self>, Tensor<Self>);

    /// The gradient of [`Compute::lstm_step`]: (of the gates, of the cell state before).
    fn lstm_step_backward(
        gates: &Tensor<Self>,
        cell_before: &Tensor<Self>,
        cell_after: &Tensor<Self>,
        d_hidden: &Tensor<Self>,
        d_cell: Tensor<Self>,
    ) -> (Tensor<Self>, Tensor<Self>);
}
