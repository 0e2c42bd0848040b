//! A tensor with a dynamic rank.
//!
//! A thin skin over Burn's primitives: Burn's own `Tensor<D>` carries the rank in its type.

use crate::compute::{Compute, Primitive, scalar};
use crate::kernel::conv::Window;
use burn_backend::{Backend, TensorData, TensorMetadata};
use burn_std::{FloatDType, Shape, Slice};

/// A tensor of f32 on a device. Cloning shares the values.
pub struct Tensor<B: Backend>(Primitive<B>);

impl<B: Backend> Clone for Tensor<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<B: Backend> Tensor<B> {
    /// Wraps a primitive.
    pub(crate) fn new(primitive: Primitive<B>) -> Self {
        Self(primitive)
    }

    /// The primitive, sharing the values.
    pub(crate) fn primitive(&self) -> Primitive<B> {
        self.0.clone()
    }

    /// A tensor of `values`, row-major.
    pub fn from_values(values: Vec<f32>, shape: &[usize], device: &B::Device) -> Self {
        Self(B::float_from_data(TensorData::new(values, shape.to_vec()), device))
    }

    /// A tensor of zeros.
    pub(crate) fn zeros(shape: &[usize], device: &B::Device) -> Self {
        Self(B::float_zeros(Shape::from(shape.to_vec()), device, FloatDType::F32))
    }

    /// Its dimensions.
    pub fn shape(&self) -> Vec<usize> {
        self.0.shape().iter().copied().collect()
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.0.shape().num_elements()
    }

    /// Its device.
    pub(crate) fn device(&self) -> B::Device {
        self.0.device()
    }

    pub(crate) fn reshape(self, shape: &[usize]) -> Self {
        Self(B::float_reshape(self.0, Shape::from(shape.to_vec())))
    }

    pub(crate) fn permute(self, axes: &[usize]) -> Self {
        Self(B::float_permute(self.0, axes))
    }

    /// The last two dimensions exchanged.
    pub(crate) fn transpose(self) -> Self {
        Self(B::float_transpose(self.0))
    }

    pub(crate) fn matmul(&self, right: &Self) -> Self {
        Self(B::float_matmul(self.primitive(), right.primitive()))
    }

    pub(crate) fn add(self, right: &Self) -> Self {
        Self(B::float_add(self.0, right.primitive()))
    }

    pub(crate) fn sub(self, right: &Self) -> Self {
        Self(B::float_sub(self.0, right.primitive()))
    }

    pub(crate) fn mul(self, right: &Self) -> Self {
        Self(B::float_mul(self.0, right.primitive()))
    }

    pub(crate) fn div(self, right: &Self) -> Self {
        Self(B::float_div(self.0, right.primitive()))
    }

    pub(crate) fn neg(self) -> Self {
        Self(B::float_neg(self.0))
    }

    pub(crate) fn add_scalar(self, value: f32) -> Self {
        Self(B::float_add_scalar(self.0, scalar(value)))
    }

    pub(crate) fn mul_scalar(self, value: f32) -> Self {
        Self(B::float_mul_scalar(self.0, scalar(value)))
    }

    pub(crate) fn sqrt(self) -> Self {
        Self(B::float_sqrt(self.0))
    }

    pub(crate) fn recip(self) -> Self {
        Self(B::float_recip(self.0))
    }

    pub(crate) fn exp(self) -> Self {
        Self(B::float_exp(self.0))
    }

    pub(crate) fn log1p(self) -> Self {
        Self(B::float_log1p(self.0))
    }

    pub(crate) fn erf(self) -> Self {
        Self(B::float_erf(self.0))
    }

    pub(crate) fn tanh(self) -> Self {
        Self(B::float_tanh(self.0))
    }

    pub(crate) fn abs(self) -> Self {
        Self(B::float_abs(self.0))
    }

    pub(crate) fn clamp(self, low: f32, high: f32) -> Self {
        Self(B::float_clamp(self.0, scalar(low), scalar(high)))
    }

    /// Sums over `dim`, which stays with size 1.
    pub(crate) fn sum_dim(self, dim: usize) -> Self {
        Self(B::float_sum_dim(self.0, dim))
    }

    /// Means over `dim`, which stays with size 1.
    pub(crate) fn mean_dim(self, dim: usize) -> Self {
        Self(B::float_mean_dim(self.0, dim))
    }

    /// Sums over the last dimension, which stays with size 1.
    pub(crate) fn sum_last(self) -> Self {
        let last = self.shape().len() - 1;
        self.sum_dim(last)
    }

    /// Means over the last dimension, which stays with size 1.
    pub(crate) fn mean_last(self) -> Self {
        let last = self.shape().len() - 1;
        self.mean_dim(last)
    }

    /// Sums over all dimensions but the last: `[..., n]` to `[n]`.
    pub(crate) fn sum_rows(self) -> Self {
        let shape = self.shape();
        let last = shape[shape.len() - 1];
        let rows = shape[..shape.len() - 1].iter().product();
        self.reshape(&[rows, last]).sum_dim(0).reshape(&[last])
    }

    /// Maxima over `dim`, which stays with size 1.
    pub(crate) fn max_dim(self, dim: usize) -> Self {
        Self(B::float_max_dim(self.0, dim))
    }

    /// `len` entries of dimension `dim` from `start` on.
    pub(crate) fn slice(&self, dim: usize, start: usize, len: usize) -> Self {
        let shape = self.shape();
        let slices: Vec<Slice> = shape
            .iter()
            .enumerate()
            .map(|(axis, &size)| {
                let (from, to) = if axis == dim { (start, start + len) } else { (0, size) };
                Slice::new(from as isize, Some(to as isize), 1)
            })
            .collect();
        Self(B::float_slice(self.primitive(), &slices))
    }

    pub(crate) fn concat(parts: Vec<Self>, dim: usize) -> Self {
        Self(B::float_cat(parts.into_iter().map(|p| p.0).collect(), dim))
    }

    /// 1 where the values are above `bound`, 0 elsewhere.
    pub(crate) fn above(&self, bound: f32) -> Self {
        let mask = B::float_greater_elem(self.primitive(), scalar(bound), bool_dtype());
        Self(B::bool_into_float(mask, FloatDType::F32))
    }

    /// `self` where `mask` is above zero, `other` elsewhere.
    pub(crate) fn where_above_zero(self, mask: &Self, other: Self) -> Self {
        let mask = B::float_greater_elem(mask.primitive(), scalar(0.0), bool_dtype());
        Self(B::float_mask_where(other.0, mask, self.0))
    }

    /// A `[batch, channels, height, width]` tensor with the window's padding around each plane.
    pub(crate) fn pad_planes(&self, window: &Window, value: f32) -> Self {
        if window.before == [0, 0] && window.after == [0, 0] {
            return self.clone();
        }
        let shape = self.shape();
        let padded = [
            shape[0],
            shape[1],
            shape[2] + window.before[0] + window.after[0],
            shape[3] + window.before[1] + window.after[1],
        ];
        let full = B::float_full(
            Shape::from(padded.to_vec()),
            scalar(value),
            &self.device(),
            FloatDType::F32,
        );
        Self(B::float_slice_assign(full, &Self::plane_slices(window, &shape), self.primitive()))
    }

    /// The inverse of [`Tensor::pad_planes`].
    pub(crate) fn crop_planes(self, window: &Window) -> Self {
        if window.before == [0, 0] && window.after == [0, 0] {
            return self;
        }
        let shape = self.shape();
        let inner = [shape[0], shape[1], window.input[0], window.input[1]];
        Self(B::float_slice(self.0, &Self::plane_slices(window, &inner)))
    }

    fn plane_slices(window: &Window, shape: &[usize]) -> [Slice; 4] {
        let span =
            |start: usize, len: usize| Slice::new(start as isize, Some((start + len) as isize), 1);
        [
            span(0, shape[0]),
            span(0, shape[1]),
            span(window.before[0], shape[2]),
            span(window.before[1], shape[3]),
        ]
    }
}

impl<B: Compute> Tensor<B> {
    /// Its values, row-major.
    pub fn to_vec(&self) -> Vec<f32> {
        B::read(self, <[f32]>::to_vec)
    }
}

fn bool_dtype() -> burn_std::BoolDType {
    burn_std::BoolDType::Native
}
