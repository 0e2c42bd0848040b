//! Computes with a backend of Burn: layers composed of its operations.

mod activation;

use crate::compute::{Binary, Compute, Gradients, Reduction, Unary};
use crate::kernel::conv::Window;
use crate::tensor::Tensor;
use burn_backend::ops::ConvOptions;
use burn_backend::tensor::{FloatTensor, IntTensor};
use burn_backend::{Backend, Scalar, TensorData, TensorMetadata};
use burn_std::{BoolDType, FloatDType, IntDType, Shape, Slice};
use std::marker::PhantomData;
use surefoot_plan::Activation;

/// A backend of Burn.
pub struct Burn<B>(PhantomData<B>);

impl<B: Backend> Compute for Burn<B> {
    type Device = B::Device;
    type Array = FloatTensor<B>;
    type Origin = IntTensor<B>;

    fn upload(values: Vec<f32>, shape: &[usize], device: &B::Device) -> Tensor<Self> {
        Tensor(B::float_from_data(TensorData::new(values, shape.to_vec()), device))
    }

    fn read<R>(tensor: &Tensor<Self>, read: impl FnOnce(&[f32]) -> R) -> R {
        match burn_std::reader::try_read_sync(B::float_into_data(tensor.0.clone())) {
            Some(Ok(data)) => match data.as_slice::<f32>() {
                Ok(values) => read(values),
                Err(error) => {
                    panic!("the device gave back other values than it was given: {error:?}")
                }
            },
            // Out of memory, or gone. Nothing that could be read afterwards would be true.
            failure => panic!("the device failed: {:?}", failure.and_then(Result::err)),
        }
    }

    fn shape(tensor: &Tensor<Self>) -> Vec<usize> {
        tensor.0.shape().iter().copied().collect()
    }

    fn reshape(tensor: Tensor<Self>, shape: &[usize]) -> Tensor<Self> {
        Tensor(B::float_reshape(tensor.0, Shape::from(shape.to_vec())))
    }

    fn permute(tensor: Tensor<Self>, axes: &[usize]) -> Tensor<Self> {
        Tensor(B::float_permute(tensor.0, axes))
    }

    fn slice(tensor: &Tensor<Self>, dim: usize, start: usize, len: usize) -> Tensor<Self> {
        let shape = tensor.shape();
        let spans = shape.iter().enumerate().map(|(axis, &size)| match axis == dim {
            true => span(start, len),
            false => span(0, size),
        });
        let spans: Vec<Slice> = spans.collect();
        Tensor(B::float_slice(tensor.0.clone(), &spans))
    }

    fn concat(parts: Vec<Tensor<Self>>, dim: usize) -> Tensor<Self> {
        Tensor(B::float_cat(parts.into_iter().map(|part| part.0).collect(), dim))
    }

    fn settle(tensor: Tensor<Self>) -> Tensor<Self> {
        tensor
    }

    fn unary(function: Unary, Tensor(x): Tensor<Self>) -> Tensor<Self> {
        Tensor(match function {
            Unary::Negate => B::float_neg(x),
            Unary::Reciprocal => B::float_recip(x),
            Unary::SquareRoot => B::float_sqrt(x),
            Unary::Add(a) => B::float_add_scalar(x, scalar(a)),
            Unary::Multiply(a) => B::float_mul_scalar(x, scalar(a)),
        })
    }

    fn binary(function: Binary, Tensor(x): Tensor<Self>, y: &Tensor<Self>) -> Tensor<Self> {
        let y = y.0.clone();
        Tensor(match function {
            Binary::Add => B::float_add(x, y),
            Binary::Subtract => B::float_sub(x, y),
            Binary::Multiply => B::float_mul(x, y),
        })
    }

    fn reduce_last(reduction: Reduction, x: Tensor<Self>) -> Tensor<Self> {
        let last = x.shape().len() - 1;
        Tensor(match reduction {
            Reduction::Mean => B::float_mean_dim(x.0, last),
            Reduction::Max => B::float_max_dim(x.0, last),
        })
    }

    fn sum_rows(x: Tensor<Self>) -> Tensor<Self> {
        let shape = x.shape();
        let last = shape[shape.len() - 1];
        let rows = x.reshape(&[shape[..shape.len() - 1].iter().product(), last]);
        Tensor(B::float_sum_dim(rows.0, 0)).reshape(&[last])
    }

    fn matmul(x: &Tensor<Self>, y: &Tensor<Self>) -> Tensor<Self> {
        Tensor(B::float_matmul(x.0.clone(), y.0.clone()))
    }

    fn activate(activation: Activation, x: Tensor<Self>) -> Tensor<Self> {
        activation::forward(activation, &x)
    }

    fn activate_backward(
        activation: Activation,
        x: Option<&Tensor<Self>>,
        y: &Tensor<Self>,
        gradient: Tensor<Self>,
    ) -> Tensor<Self> {
        activation::backward(activation, x, y, gradient)
    }

    fn embed(table: &Tensor<Self>, symbols: &Tensor<Self>) -> Tensor<Self> {
        let symbols = B::float_into_int(symbols.0.clone(), IntDType::I64);
        Tensor(B::embedding(table.0.clone(), symbols))
    }

    fn embed_backward(
        table: &Tensor<Self>,
        symbols: &Tensor<Self>,
        gradient: &Tensor<Self>,
    ) -> Tensor<Self> {
        let symbols = B::float_into_int(symbols.0.clone(), IntDType::I64);
        Tensor(B::embedding_backward(table.0.clone(), gradient.0.clone(), symbols))
    }

    fn product(
        x: &Tensor<Self>,
        kernel: &Tensor<Self>,
        bias: Option<&Tensor<Self>>,
    ) -> Tensor<Self> {
        let y = x.matmul(kernel);
        match bias {
            Some(bias) => y.add(&bias.clone().reshape(&[1, bias.len()])),
            None => y,
        }
    }

    fn add_product(sum: Tensor<Self>, x: &Tensor<Self>, kernel: &Tensor<Self>) -> Tensor<Self> {
        sum.add(&x.matmul(kernel))
    }

    fn product_backward(
        x: &Tensor<Self>,
        kernel: &Tensor<Self>,
        gradient: &Tensor<Self>,
        with_x: bool,
    ) -> Gradients<Self> {
        Gradients {
            x: with_x.then(|| gradient.matmul(&kernel.clone().transpose())),
            kernel: x.clone().transpose().matmul(gradient),
            bias: gradient.clone().sum_rows(),
        }
    }

    fn convolve(
        x: &Tensor<Self>,
        kernel: &Tensor<Self>,
        bias: Option<&Tensor<Self>>,
        window: &Window,
    ) -> Tensor<Self> {
        let x = pad_planes(x, window, 0.0);
        let bias = bias.map(|bias| bias.0.clone());
        Tensor(B::conv2d(x.0, kernel.0.clone(), bias, conv_options(window)))
    }

    fn convolve_backward(
        x: &Tensor<Self>,
        kernel: &Tensor<Self>,
        gradient: &Tensor<Self>,
        window: &Window,
        with_x: bool,
    ) -> Gradients<Self> {
        let padded = pad_planes(x, window, 0.0).0;
        let options = conv_options(window);
        let d_x = with_x.then(|| {
            let (x, kernel) = (padded.clone(), kernel.0.clone());
            let d_x = B::conv2d_x_backward(x, kernel, gradient.0.clone(), options.clone());
            crop_planes(Tensor(d_x), window)
        });
        let d_kernel =
            B::conv2d_weight_backward(padded, kernel.0.clone(), gradient.0.clone(), options);
        let bias = gradient.clone().permute(&[0, 2, 3, 1]).sum_rows();
        Gradients { x: d_x, kernel: Tensor(d_kernel), bias }
    }

    fn max_pool(x: &Tensor<Self>, window: &Window) -> (Tensor<Self>, IntTensor<B>) {
        let pooled = B::max_pool2d_with_indices(
            pad_planes(x, window, f32::NEG_INFINITY).0,
            window.size,
            window.stride,
            [0, 0],
            window.dilation,
            false,
            IntDType::I32,
        );
        (Tensor(pooled.output), pooled.indices)
    }

    fn max_pool_backward(
        x: &Tensor<Self>,
        gradient: &Tensor<Self>,
        origin: IntTensor<B>,
        window: &Window,
    ) -> Tensor<Self> {
        let d_x = B::max_pool2d_with_indices_backward(
            pad_planes(x, window, f32::NEG_INFINITY).0,
            window.size,
            window.stride,
            [0, 0],
            window.dilation,
            false,
            gradient.0.clone(),
            origin,
        );
        crop_planes(Tensor(d_x.x_grad), window)
    }

    fn average_pool(x: &Tensor<Self>, window: &Window) -> Tensor<Self> {
        let padded = pad_planes(x, window, 0.0).0;
        let means = B::avg_pool2d(padded, window.size, window.stride, [0, 0], true, false);
        Tensor(means).mul(&inside_factor(x, window))
    }

    fn average_pool_backward(
        x: &Tensor<Self>,
        gradient: &Tensor<Self>,
        window: &Window,
    ) -> Tensor<Self> {
        let d_x = B::avg_pool2d_backward(
            pad_planes(x, window, 0.0).0,
            gradient.clone().mul(&inside_factor(x, window)).0,
            window.size,
            window.stride,
            [0, 0],
            true,
            false,
        );
        crop_planes(Tensor(d_x), window)
    }

    fn lstm_step(
        gates: Tensor<Self>,
        cell: Tensor<Self>,
    ) -> (Tensor<Self>, Tensor<Self>, Tensor<Self>) {
        let units = cell.shape()[1];
        let part = |i: usize| gates.slice(1, i * units, units);
        let i = Self::activate(Activation::Sigmoid, part(0));
        let f = Self::activate(Activation::Sigmoid, part(1));
        let g = Self::activate(Activation::Tanh, part(2));
        let o = Self::activate(Activation::Sigmoid, part(3));
        let cell = f.clone().mul(&cell).add(&i.clone().mul(&g));
        let hidden = Self::activate(Activation::Tanh, cell.clone()).mul(&o);
        (Tensor::concat(vec![i, f, g, o], 1), cell, hidden)
    }

    fn lstm_step_backward(
        gates: &Tensor<Self>,
        cell_before: &Tensor<Self>,
        cell_after: &Tensor<Self>,
        d_hidden: &Tensor<Self>,
        d_cell: Tensor<Self>,
    ) -> (Tensor<Self>, Tensor<Self>) {
        let units = cell_before.shape()[1];
        let part = |i: usize| gates.slice(1, i * units, units);
        let [i, f, g, o] = [part(0), part(1), part(2), part(3)];
        let t = Self::activate(Activation::Tanh, cell_after.clone());
        let slope = |y: &Tensor<Self>| y.clone().mul(&y.clone().neg().add_scalar(1.0));
        let bow = |y: &Tensor<Self>| y.clone().mul(y).neg().add_scalar(1.0);
        let d_cell = d_cell.add(&d_hidden.clone().mul(&o).mul(&bow(&t)));
        let d_o = d_hidden.clone().mul(&t).mul(&slope(&o));
        let d_i = d_cell.clone().mul(&g).mul(&slope(&i));
        let d_f = d_cell.clone().mul(cell_before).mul(&slope(&f));
        let d_g = d_cell.clone().mul(&i).mul(&bow(&g));
        (Tensor::concat(vec![d_i, d_f, d_g, d_o], 1), d_cell.mul(&f))
    }
}

fn scalar(value: f32) -> Scalar {
    Scalar::Float(f64::from(value))
}

fn span(start: usize, len: usize) -> Slice {
    Slice::new(start as isize, Some((start + len) as isize), 1)
}

fn conv_options(window: &Window) -> ConvOptions<2> {
    ConvOptions::new(window.stride, [0, 0], window.dilation, 1)
}

/// A `[batch, channels, height, width]` tensor with the window's padding around each plane.
fn pad_planes<B: Backend>(x: &Tensor<Burn<B>>, window: &Window, value: f32) -> Tensor<Burn<B>> {
    if window.before == [0, 0] && window.after == [0, 0] {
        return x.clone();
    }
    let shape = x.shape();
    let side = |axis: usize| shape[2 + axis] + window.before[axis] + window.after[axis];
    let full = B::float_full(
        Shape::from(vec![shape[0], shape[1], side(0), side(1)]),
        scalar(value),
        &x.0.device(),
        FloatDType::F32,
    );
    Tensor(B::float_slice_assign(full, &plane_spans(window, &shape), x.0.clone()))
}

/// The inverse of [`pad_planes`].
fn crop_planes<B: Backend>(x: Tensor<Burn<B>>, window: &Window) -> Tensor<Burn<B>> {
    if window.before == [0, 0] && window.after == [0, 0] {
        return x;
    }
    let shape = x.shape();
    let inner = [shape[0], shape[1], window.input[0], window.input[1]];
    Tensor(B::float_slice(x.0, &plane_spans(window, &inner)))
}

fn plane_spans(window: &Window, shape: &[usize]) -> [Slice; 4] {
    [
        span(0, shape[0]),
        span(0, shape[1]),
        span(window.before[0], shape[2]),
        span(window.before[1], shape[3]),
    ]
}

/// Factor from the mean of a full window to the mean of its part inside the input.
fn inside_factor<B: Backend>(x: &Tensor<Burn<B>>, window: &Window) -> Tensor<Burn<B>> {
    let inside = |axis: usize, at: usize| {
        (0..window.size[axis]).filter(|&tap| window.source(axis, at, tap).is_some()).count()
    };
    let full = (window.size[0] * window.size[1]) as f32;
    let mut factors = Vec::with_capacity(window.output[0] * window.output[1]);
    for oy in 0..window.output[0] {
        for ox in 0..window.output[1] {
            factors.push(full / (inside(0, oy) * inside(1, ox)) as f32);
        }
    }
    Tensor::from_values(factors, &[1, 1, window.output[0], window.output[1]], &x.0.device())
}

/// Operations that only activations need.
impl<B: Backend> Tensor<Burn<B>> {
    fn div(self, right: &Self) -> Self {
        Self(B::float_div(self.0, right.0.clone()))
    }

    fn exp(self) -> Self {
        Self(B::float_exp(self.0))
    }

    fn log1p(self) -> Self {
        Self(B::float_log1p(self.0))
    }

    fn erf(self) -> Self {
        Self(B::float_erf(self.0))
    }

    fn tanh(self) -> Self {
        Self(B::float_tanh(self.0))
    }

    fn abs(self) -> Self {
        Self(B::float_abs(self.0))
    }

    fn clamp(self, low: f32, high: f32) -> Self {
        Self(B::float_clamp(self.0, scalar(low), scalar(high)))
    }

    /// Sums over the last dimension, which stays with size 1.
    fn sum_last(self) -> Self {
        let last = self.shape().len() - 1;
        Self(B::float_sum_dim(self.0, last))
    }

    /// 1 where the values are above `bound`, 0 elsewhere.
    fn above(&self, bound: f32) -> Self {
        let mask = B::float_greater_elem(self.0.clone(), scalar(bound), BoolDType::Native);
        Self(B::bool_into_float(mask, FloatDType::F32))
    }

    /// `self` where `mask` is above zero, `other` elsewhere.
    fn where_above_zero(self, mask: &Self, other: Self) -> Self {
        let mask = B::float_greater_elem(mask.0.clone(), scalar(0.0), BoolDType::Native);
        Self(B::float_mask_where(other.0, mask, self.0))
    }
}
