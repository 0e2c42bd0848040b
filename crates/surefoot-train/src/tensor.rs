//! A tensor with a dynamic rank.

use crate::compute::{Binary, Compute, Reduction, Unary};

/// A tensor of f32 on a device. Cloning shares the values.
pub struct Tensor<B: Compute>(pub(crate) B::Array);

impl<B: Compute> Clone for Tensor<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<B: Compute> Tensor<B> {
    /// A tensor of `values`, row-major.
    pub fn from_values(values: Vec<f32>, shape: &[usize], device: &B::Device) -> Self {
        B::upload(values, shape, device)
    }

    /// A tensor of zeros.
    pub(crate) fn zeros(shape: &[usize], device: &B::Device) -> Self {
        Self::from_values(vec![0.0; shape.iter().product()], shape, device)
    }

    /// Its values, row-major.
    pub fn to_vec(&self) -> Vec<f32> {
        B::read(self, <[f32]>::to_vec)
    }

    /// Its dimensions.
    pub fn shape(&self) -> Vec<usize> {
        B::shape(self)
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.shape().iter().product()
    }

    pub(crate) fn reshape(self, shape: &[usize]) -> Self {
        B::reshape(self, shape)
    }

    pub(crate) fn permute(self, axes: &[usize]) -> Self {
        B::permute(self, axes)
    }

    /// The last two dimensions exchanged.
    pub(crate) fn transpose(self) -> Self {
        let rank = self.shape().len();
        let mut axes: Vec<usize> = (0..rank).collect();
        axes.swap(rank - 2, rank - 1);
        self.permute(&axes)
    }

    /// `len` entries of dimension `dim` from `start` on.
    pub(crate) fn slice(&self, dim: usize, start: usize, len: usize) -> Self {
        B::slice(self, dim, start, len)
    }

    pub(crate) fn concat(parts: Vec<Self>, dim: usize) -> Self {
        B::concat(parts, dim)
    }

    pub(crate) fn matmul(&self, right: &Self) -> Self {
        B::matmul(self, right)
    }

    pub(crate) fn add(self, right: &Self) -> Self {
        B::binary(Binary::Add, self, right)
    }

    pub(crate) fn sub(self, right: &Self) -> Self {
        B::binary(Binary::Subtract, self, right)
    }

    pub(crate) fn mul(self, right: &Self) -> Self {
        B::binary(Binary::Multiply, self, right)
    }

    pub(crate) fn neg(self) -> Self {
        B::unary(Unary::Negate, self)
    }

    pub(crate) fn add_scalar(self, value: f32) -> Self {
        B::unary(Unary::Add(value), self)
    }

    pub(crate) fn mul_scalar(self, value: f32) -> Self {
        B::unary(Unary::Multiply(value), self)
    }

    pub(crate) fn sqrt(self) -> Self {
        B::unary(Unary::SquareRoot, self)
    }

    pub(crate) fn recip(self) -> Self {
        B::unary(Unary::Reciprocal, self)
    }

    /// Means over the last dimension, which stays with size 1.
    pub(crate) fn mean_last(self) -> Self {
        B::reduce_last(Reduction::Mean, self)
    }

    /// Maxima over the last dimension, which stays with size 1.
    pub(crate) fn max_last(self) -> Self {
        B::reduce_last(Reduction::Max, self)
    }

    /// Sums over all dimensions but the last: `[..., n]` to `[n]`.
    pub(crate) fn sum_rows(self) -> Self {
        B::sum_rows(self)
    }
}
