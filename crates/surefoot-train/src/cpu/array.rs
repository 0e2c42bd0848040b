//! Arrays of any rank in memory.

use crate::kernel::parallel;
use crate::kernel::{Matrix, blocked, vectorized};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Multiplications from which products of several matrices are shared.
const SHARED: usize = 1 << 20;

/// A strided view of shared values. Operations reuse the memory of values that are not shared.
#[derive(Clone)]
pub struct Array {
    values: Arc<Vec<f32>>,
    start: usize,
    axes: Vec<Axis>,
}

/// A dimension, and the distance in memory from one of its entries to the next.
#[derive(Clone, Copy)]
struct Axis {
    len: usize,
    stride: usize,
}

impl Array {
    /// An array of `values`, row-major.
    pub(super) fn new(values: Vec<f32>, shape: &[usize]) -> Self {
        assert_eq!(
            values.len(),
            shape.iter().product::<usize>(),
            "the number of values must match the shape"
        );
        Self { values: Arc::new(values), start: 0, axes: row_major(shape) }
    }

    pub(super) fn shape(&self) -> Vec<usize> {
        self.axes.iter().map(|axis| axis.len).collect()
    }

    /// Size of the last dimension.
    pub(super) fn width(&self) -> usize {
        self.axes.last().map_or(1, |axis| axis.len)
    }

    fn len(&self) -> usize {
        self.axes.iter().map(|axis| axis.len).product()
    }

    /// Returns true if the values lie in memory in row-major order.
    fn is_contiguous(&self) -> bool {
        let mut step = 1;
        self.axes.iter().rev().filter(|axis| axis.len != 1).all(|axis| {
            let fits = axis.stride == step;
            step *= axis.len;
            fits
        })
    }

    /// The values in row-major order, copied only if they are stored in another order.
    pub(super) fn values(&self) -> Cow<'_, [f32]> {
        if self.is_contiguous() {
            Cow::Borrowed(&self.values[self.start..][..self.len()])
        } else {
            Cow::Owned(self.copied())
        }
    }

    /// The values in row-major order, copied only if they are shared or stored in another order.
    pub(super) fn into_values(self) -> Vec<f32> {
        if self.is_contiguous() && self.len() == self.values.len() {
            Arc::unwrap_or_clone(self.values)
        } else {
            self.values().into_owned()
        }
    }

    fn copied(&self) -> Vec<f32> {
        let walk = Walk::new(self.start, &self.axes);
        let Axis { len, stride } = walk.run;
        let mut out = Vec::with_capacity(self.len());
        let values = &mut out.spare_capacity_mut()[..self.len()];
        let size = parallel::part(values.len(), len);
        parallel::chunks_mut(values, size, |index, part| {
            let mut runs = part.chunks_exact_mut(len.max(1));
            let first = index * size / len.max(1);
            walk.each_run(first..first + runs.len(), |at| {
                let Some(run) = runs.next() else { return };
                match stride {
                    1 => _ = run.write_copy_of_slice(&self.values[at..][..len]),
                    _ => {
                        for (i, to) in run.iter_mut().enumerate() {
                            to.write(self.values[at + i * stride]);
                        }
                    }
                }
            });
        });
        // SAFETY: the runs are as many and as long as the values, and each was written.
        unsafe { out.set_len(self.len()) };
        out
    }

    pub(super) fn reshape(self, shape: &[usize]) -> Self {
        if self.is_contiguous() {
            assert_eq!(
                self.len(),
                shape.iter().product::<usize>(),
                "the number of values must match the shape"
            );
            Self { axes: row_major(shape), ..self }
        } else {
            Self::new(self.copied(), shape)
        }
    }

    pub(super) fn permute(self, axes: &[usize]) -> Self {
        let axes = axes.iter().map(|&axis| self.axes[axis]).collect();
        Self { axes, ..self }
    }

    pub(super) fn slice(&self, dim: usize, start: usize, len: usize) -> Self {
        let mut out = self.clone();
        let axis = &mut out.axes[dim];
        assert!(start + len <= axis.len, "a slice must lie inside its dimension");
        out.start += start * axis.stride;
        axis.len = len;
        out
    }

    pub(super) fn concat(mut parts: Vec<Self>, dim: usize) -> Self {
        if parts.len() == 1 {
            return parts.remove(0);
        }
        let mut shape = parts[0].shape();
        shape[dim] = parts.iter().map(|part| part.axes[dim].len).sum();
        let blocks: usize = shape[..dim].iter().product();
        let values: Vec<Cow<'_, [f32]>> = parts.iter().map(Self::values).collect();
        let mut out = Vec::with_capacity(shape.iter().product());
        for block in 0..blocks {
            for part in &values {
                let len = part.len() / blocks;
                out.extend_from_slice(&part[block * len..][..len]);
            }
        }
        Self::new(out, &shape)
    }

    /// Applies `function` to each value.
    #[inline(always)]
    pub(super) fn map(self, function: impl Fn(f32) -> f32 + Sync) -> Self {
        let shape = self.shape();
        let mut values = self.into_values();
        let size = parallel::part(values.len(), 1);
        parallel::chunks_mut(&mut values, size, |_, part| {
            vectorized(
                #[inline(always)]
                || part.iter_mut().for_each(|x| *x = function(*x)),
            );
        });
        Self::new(values, &shape)
    }

    /// Applies `function` to each pair of values; dimensions of `other` with size 1 are repeated.
    #[inline(always)]
    pub(super) fn zip(self, other: &Self, function: impl Fn(f32, f32) -> f32 + Sync) -> Self {
        let shape = self.shape();
        let axes = other.axes.iter().zip(&shape).map(|(axis, &len)| {
            assert!(axis.len == len || axis.len == 1, "dimensions must agree or be 1");
            Axis { len, stride: if axis.len == 1 { 0 } else { axis.stride } }
        });
        let axes: Vec<Axis> = axes.collect();
        assert_eq!(axes.len(), shape.len(), "ranks must agree");
        let walk = Walk::new(other.start, &axes);
        let mut values = self.into_values();
        let runs = walk.outer.iter().map(|axis| axis.len).product::<usize>();
        if runs == 1 && walk.run.stride == 1 {
            let ys = &other.values[other.start..][..values.len()];
            let size = parallel::part(values.len(), 1);
            parallel::chunks_mut(&mut values, size, |index, part| {
                zip_slices(part, &ys[index * size..], &function);
            });
        } else {
            let len = walk.run.len.max(1);
            let size = parallel::part(values.len(), len);
            parallel::chunks_mut(&mut values, size, |index, part| {
                let first = index * size / len;
                zip_runs(part, &other.values, &walk, first, &function);
            });
        }
        Self::new(values, &shape)
    }

    /// Products of the matrices in the last two dimensions.
    pub(super) fn matmul(&self, right: &Self) -> Self {
        let [batch, m, k] = self.matrices();
        let [right_batch, right_k, n] = right.matrices();
        assert!(batch == right_batch && k == right_k, "shapes of a product must agree");
        let mut shape = self.shape();
        shape[self.axes.len() - 1] = n;
        let mut out = vec![0.0; batch * m * n];
        let starts: Vec<_> = self.matrix_starts().zip(right.matrix_starts()).collect();
        let product = |out: &mut [f32], (x, y): (usize, usize)| {
            blocked(out, self.matrix(x), right.matrix(y), false);
        };
        let size = (m * n).max(1);
        if out.len() * k < SHARED {
            out.chunks_exact_mut(size).zip(starts).for_each(|(out, start)| product(out, start));
        } else {
            parallel::chunks_mut(&mut out, size, |index, out| product(out, starts[index]));
        }
        Self::new(out, &shape)
    }

    /// Number of matrices in the last two dimensions, their rows and columns.
    fn matrices(&self) -> [usize; 3] {
        let (outer, inner) = self.axes.split_at(self.axes.len() - 2);
        [outer.iter().map(|axis| axis.len).product(), inner[0].len, inner[1].len]
    }

    fn matrix(&self, start: usize) -> Matrix<'_> {
        let [.., rows, columns] = &self.axes[..] else {
            unreachable!("a matrix has two dimensions")
        };
        Matrix::strided(
            &self.values[start..],
            [rows.len, columns.len],
            [rows.stride, columns.stride],
        )
    }

    fn matrix_starts(&self) -> impl Iterator<Item = usize> {
        let outer = &self.axes[..self.axes.len() - 2];
        let count: usize = outer.iter().map(|axis| axis.len).product();
        (0..count).map(move |mut index| {
            let mut at = self.start;
            for axis in outer.iter().rev() {
                at += index % axis.len * axis.stride;
                index /= axis.len;
            }
            at
        })
    }
}

#[inline(always)]
fn zip_slices(xs: &mut [f32], ys: &[f32], function: &impl Fn(f32, f32) -> f32) {
    vectorized(
        #[inline(always)]
        || xs.iter_mut().zip(ys).for_each(|(x, &y)| *x = function(*x, y)),
    );
}

/// Applies `function` to `xs` and the runs of `ys` from number `first` on.
#[inline(always)]
fn zip_runs(
    xs: &mut [f32],
    ys: &[f32],
    walk: &Walk,
    first: usize,
    function: &impl Fn(f32, f32) -> f32,
) {
    let Axis { len, stride } = walk.run;
    let mut runs = xs.chunks_exact_mut(len.max(1));
    vectorized(
        #[inline(always)]
        || {
            walk.each_run(
                first..first + runs.len(),
                #[inline(always)]
                |at| {
                    let Some(run) = runs.next() else { return };
                    match stride {
                        0 => {
                            let y = ys[at];
                            run.iter_mut().for_each(|x| *x = function(*x, y));
                        }
                        1 => {
                            let ys = &ys[at..][..len];
                            run.iter_mut().zip(ys).for_each(|(x, &y)| *x = function(*x, y));
                        }
                        _ => {
                            for (i, x) in run.iter_mut().enumerate() {
                                *x = function(*x, ys[at + i * stride]);
                            }
                        }
                    }
                },
            );
        },
    );
}

fn row_major(shape: &[usize]) -> Vec<Axis> {
    let mut axes: Vec<Axis> = shape.iter().map(|&len| Axis { len, stride: 1 }).collect();
    for i in (1..axes.len()).rev() {
        axes[i - 1].stride = axes[i].stride * axes[i].len;
    }
    axes
}

/// A walk over a view in row-major order: runs of the same length and stride.
struct Walk {
    start: usize,
    outer: Vec<Axis>,
    run: Axis,
}

impl Walk {
    fn new(start: usize, axes: &[Axis]) -> Self {
        let mut outer: Vec<Axis> = Vec::with_capacity(axes.len());
        for &axis in axes.iter().filter(|axis| axis.len != 1) {
            match outer.last_mut() {
                // The inner dimension fills one stride of the outer one: both are one run.
                Some(last) if last.stride == axis.len * axis.stride => {
                    *last = Axis { len: last.len * axis.len, stride: axis.stride };
                }
                _ => outer.push(axis),
            }
        }
        let run = outer.pop().unwrap_or(Axis { len: 1, stride: 1 });
        Self { start, outer, run }
    }

    /// Calls `visit` with the index of the first value of each of these runs.
    #[inline(always)]
    fn each_run(&self, runs: Range<usize>, mut visit: impl FnMut(usize)) {
        let mut index = vec![0; self.outer.len()];
        let mut at = self.start;
        let mut before = runs.start;
        for (index, axis) in index.iter_mut().zip(&self.outer).rev() {
            *index = before % axis.len.max(1);
            before /= axis.len.max(1);
            at += *index * axis.stride;
        }
        for _ in runs {
            visit(at);
            for (index, axis) in index.iter_mut().zip(&self.outer).rev() {
                *index += 1;
                at += axis.stride;
                if *index < axis.len {
                    break;
                }
                at -= axis.len * axis.stride;
                *index = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(shape: &[usize]) -> Array {
        let len: usize = shape.iter().product();
        Array::new((0..len).map(|i| i as f32).collect(), shape)
    }

    #[test]
    fn a_permuted_array_is_read_in_the_new_order() {
        let array = counted(&[2, 3, 4]).permute(&[2, 0, 1]);
        assert_eq!(array.shape(), [4, 2, 3]);
        let values = array.values();
        for (i, &value) in values.iter().enumerate() {
            let [a, b, c] = [i / 6, i / 3 % 2, i % 3];
            assert_eq!(value, (b * 12 + c * 4 + a) as f32);
        }
        let flat = array.clone().reshape(&[24]);
        assert_eq!(flat.values(), values);
    }

    #[test]
    fn slices_and_concatenation_are_inverse() {
        let array = counted(&[2, 5, 3]);
        for (dim, cut) in [(0, 1), (1, 2), (2, 1)] {
            let size = array.shape()[dim];
            let parts = vec![array.slice(dim, 0, cut), array.slice(dim, cut, size - cut)];
            let whole = Array::concat(parts, dim);
            assert_eq!(whole.shape(), array.shape());
            assert_eq!(whole.values(), array.values());
        }
    }

    #[test]
    fn dimensions_of_size_1_are_repeated() {
        let x = counted(&[2, 3, 4]);
        for shape in [[1, 1, 4], [2, 3, 1], [1, 3, 1], [2, 1, 4], [1, 1, 1], [2, 3, 4]] {
            let y = counted(&shape);
            let sum = x.clone().zip(&y, |x, y| x + 100.0 * y);
            for (i, &value) in sum.values().iter().enumerate() {
                let at = [i / 12, i / 4 % 3, i % 4];
                let index = (0..3)
                    .fold(0, |index, d| index * shape[d] + if shape[d] == 1 { 0 } else { at[d] });
                assert_eq!(value, (i + 100 * index) as f32, "{shape:?}");
            }
        }
    }

    #[test]
    fn an_operand_in_another_order_is_read_by_its_indices() {
        let x = counted(&[3, 2]);
        let y = counted(&[2, 3]).permute(&[1, 0]);
        let difference = x.clone().zip(&y, |x, y| x - y);
        assert_eq!(&*difference.values(), [0.0, -2.0, 1.0, -1.0, 2.0, 0.0]);
        let reverse = y.zip(&x, |x, y| x - y);
        assert_eq!(&*reverse.values(), [0.0, 2.0, -1.0, 1.0, -2.0, 0.0]);
    }

    #[test]
    fn shared_values_do_not_change() {
        let array = counted(&[4]);
        let copy = array.clone();
        let doubled = array.map(|x| 2.0 * x);
        assert_eq!(&*copy.values(), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(&*doubled.values(), [0.0, 2.0, 4.0, 6.0]);
    }

    #[test]
    fn unshared_values_change_in_place() {
        let array = counted(&[4]);
        let place = array.values.as_ptr();
        assert_eq!(array.map(|x| 2.0 * x).values.as_ptr(), place);
    }

    #[test]
    fn products_are_those_of_each_pair_of_matrices() {
        let x = counted(&[2, 3, 2, 4]);
        let y = counted(&[2, 3, 5, 4]).permute(&[0, 1, 3, 2]);
        let product = x.matmul(&y);
        assert_eq!(product.shape(), [2, 3, 2, 5]);
        for (i, &value) in product.values().iter().enumerate() {
            let [batch, row, column] = [i / 10, i / 5 % 2, i % 5];
            let want: usize =
                (0..4).map(|k| (batch * 8 + row * 4 + k) * (batch * 20 + column * 4 + k)).sum();
            assert_eq!(value, want as f32);
        }
    }
}
