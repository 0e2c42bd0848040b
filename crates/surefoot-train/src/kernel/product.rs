//! Products of matrices.
//!
//! Large ones are shared by threads ([`tiles`]). Medium ones go to `gemm`, which first copies its
//! operands into blocks. Where the right matrix is small enough to stay in cache and lies row by row,
//! as the kernel of a dense or recurrent layer does, that copy is a good part of the cost; [`Narrow`]
//! reads it where it is. `gemm-f32` is the part of `gemm` for one type; the other types take a minute
//! to build.

use super::parallel::Shared;
use super::tiles::{self, Left, PANEL, Sink};
use super::{Vectors, dispatch};
use pulp::{Simd, WithSimd};
use std::mem::MaybeUninit;
use std::ops::Range;

/// A matrix with strides between its rows and columns.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a> {
    pub(super) values: &'a [f32],
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) row_stride: usize,
    pub(super) column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// A matrix over `values`, rows one after the other.
    pub(crate) fn new(values: &'a [f32], rows: usize, columns: usize) -> Self {
        assert_eq!(values.len(), rows * columns, "a matrix fills its slice");
        Self { values, rows, columns, row_stride: columns, column_stride: 1 }
    }

    /// A matrix that starts with `values` and has these strides between its rows and columns.
    pub(crate) fn strided(
        values: &'a [f32],
        [rows, columns]: [usize; 2],
        [row_stride, column_stride]: [usize; 2],
    ) -> Self {
        let last = rows.saturating_sub(1) * row_stride + columns.saturating_sub(1) * column_stride;
        assert!(rows * columns == 0 || last < values.len(), "a matrix lies inside its slice");
        Self { values, rows, columns, row_stride, column_stride }
    }

    /// The same values with rows and columns exchanged.
    pub(crate) fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }
}

/// Values of a right matrix that is read in place.
const SMALL: usize = 32 * 1024;
/// Columns below which whole vectors do not pay.
const NARROWEST: usize = 32;
/// Rows above which a copy into blocks pays.
const FEW_ROWS: usize = 128;

/// Multiplications from which a product is computed by tiles.
const LARGE: usize = 1 << 23;

/// Returns true if a product of these sizes is computed by tiles.
fn is_large(left: &Matrix<'_>, right: &Matrix<'_>) -> bool {
    left.rows >= 8 && left.rows * right.columns * left.columns >= LARGE
}

/// `left * right`, row-major, plus `bias` in every row.
pub(crate) fn product(left: Matrix<'_>, right: Matrix<'_>, bias: Option<&[f32]>) -> Vec<f32> {
    if is_large(&left, &right) {
        return by_tiles(left, right, bias);
    }
    let mut out = match bias {
        Some(bias) => bias.repeat(left.rows),
        None => vec![0.0; left.rows * right.columns],
    };
    multiply(&mut out, left, right, bias.is_some());
    out
}

fn by_tiles(left: Matrix<'_>, right: Matrix<'_>, bias: Option<&[f32]>) -> Vec<f32> {
    assert_eq!(left.columns, right.rows, "inner dimensions agree");
    assert!(bias.is_none_or(|bias| bias.len() == right.columns), "a bias for each column");
    let columns = right.columns;
    let len = left.rows * columns;
    let mut out = Vec::with_capacity(len);
    let rows = Shared::new(&mut out.spare_capacity_mut()[..len]);
    tiles::multiply(&Left::matrix(left), &right, columns, &Rows { rows, columns, bias });
    // SAFETY: `tiles::multiply` has given every value to `Rows::finish`, which wrote it.
    unsafe { out.set_len(len) };
    out
}

/// The rows of a new matrix.
struct Rows<'a> {
    rows: Shared<'a, MaybeUninit<f32>>,
    columns: usize,
    bias: Option<&'a [f32]>,
}

impl Sink for Rows<'_> {
    #[inline(always)]
    fn start(&self, _row: usize, columns: Range<usize>, sums: &mut [f32]) {
        if let Some(bias) = self.bias {
            sums.copy_from_slice(&bias[columns]);
        }
    }

    #[inline(always)]
    fn finish(&self, row: usize, columns: Range<usize>, sums: &[f32]) {
        // SAFETY: these columns of this row are given once.
        let to = unsafe { self.rows.slice(row * self.columns + columns.start, columns.len()) };
        // A copy of known length needs no function call.
        match (to.as_mut_array::<PANEL>(), sums.as_array::<PANEL>()) {
            (Some(to), Some(sums)) => _ = to.write_copy_of_slice(sums),
            _ => _ = to.write_copy_of_slice(sums),
        }
    }
}

/// `out = left * right`, or `out += left * right` if `accumulate`; `out` is row-major.
pub(crate) fn multiply(out: &mut [f32], left: Matrix<'_>, right: Matrix<'_>, accumulate: bool) {
    let in_place = right.column_stride == 1
        && right.row_stride == right.columns
        && right.values.len() <= SMALL
        && right.columns >= NARROWEST
        && left.rows <= FEW_ROWS;
    if in_place {
        assert_eq!(left.columns, right.rows, "inner dimensions agree");
        assert_eq!(out.len(), left.rows * right.columns, "the product fills its slice");
        dispatch(Narrow { out, left, right: right.values, columns: right.columns, accumulate });
    } else {
        blocked(out, left, right, accumulate);
    }
}

/// [`multiply`] by way of blocks, whatever the size.
pub(crate) fn blocked(out: &mut [f32], left: Matrix<'_>, right: Matrix<'_>, accumulate: bool) {
    assert_eq!(left.columns, right.rows, "inner dimensions agree");
    assert_eq!(out.len(), left.rows * right.columns, "the product fills its slice");
    if Vectors::current() != Vectors::Widest {
        return by_panels(out, left, right, accumulate);
    }
    let mut rows = left.rows;
    let mut columns = right.columns;
    let (mut left, mut right) = (left, right);
    let mut strides = [columns, 1];
    // `gemm` prefers columns that lie in memory one value after the other: the transposed product.
    if columns > 1 {
        (left, right) = (right.transposed(), left.transposed());
        (rows, columns) = (columns, rows);
        strides.reverse();
    }
    // SAFETY: `Matrix` has checked that every access to an operand is inside its slice, and `out`,
    // whose length is checked above, is borrowed exclusively, so it overlaps neither operand.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            rows,
            columns,
            left.columns,
            out.as_mut_ptr(),
            strides[1] as isize,
            strides[0] as isize,
            accumulate,
            left.values.as_ptr(),
            left.column_stride as isize,
            left.row_stride as isize,
            right.values.as_ptr(),
            right.column_stride as isize,
            right.row_stride as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            gemm_common::Parallelism::None,
        );
    }
}

/// Columns and inner values that are copied at once: they stay in the second cache.
const COLUMNS: usize = 96;
const DEPTH: usize = 256;

/// [`multiply`] with the same bits on every machine: each value is one chain of fused
/// multiplications and additions over the inner dimension, which [`Narrow`] computes whatever its
/// vectors are. Neither the panels nor the parts of the inner dimension show in the result.
fn by_panels(out: &mut [f32], left: Matrix<'_>, right: Matrix<'_>, accumulate: bool) {
    let (columns, inner) = (right.columns, right.rows);
    let mut panel = Vec::with_capacity(COLUMNS * DEPTH);
    let mut sums = Vec::with_capacity(COLUMNS * left.rows);
    for first in (0..columns).step_by(COLUMNS) {
        let width = COLUMNS.min(columns - first);
        sums.clear();
        match accumulate {
            true => out.chunks_exact(columns).for_each(|row| sums.extend(&row[first..][..width])),
            false => sums.resize(left.rows * width, 0.0),
        }
        for depth in (0..inner).step_by(DEPTH) {
            let length = DEPTH.min(inner - depth);
            panel.clear();
            for row in depth..depth + length {
                let start = row * right.row_stride + first * right.column_stride;
                let values = right.values[start..].iter().step_by(right.column_stride.max(1));
                panel.extend(values.take(width));
            }
            let left = Matrix {
                values: &left.values[depth * left.column_stride..],
                columns: length,
                ..left
            };
            let right = &panel;
            dispatch(Narrow { out: &mut sums, left, right, columns: width, accumulate: true });
        }
        for (row, sums) in out.chunks_exact_mut(columns).zip(sums.chunks_exact(width)) {
            row[first..][..width].copy_from_slice(sums);
        }
    }
}

/// A product with a right matrix that is read in place.
struct Narrow<'a> {
    out: &'a mut [f32],
    left: Matrix<'a>,
    right: &'a [f32],
    columns: usize,
    accumulate: bool,
}

/// Rows and vectors of columns computed at once: their sums fill the registers of AVX-512.
const ROWS: usize = 8;
const VECTORS: usize = 3;

impl WithSimd for Narrow<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let mut row = 0;
        if S::F32_LANES >= 16 {
            while row + ROWS <= self.left.rows {
                self.rows::<S, ROWS>(simd, row);
                row += ROWS;
            }
        }
        while row + ROWS / 2 <= self.left.rows {
            self.rows::<S, { ROWS / 2 }>(simd, row);
            row += ROWS / 2;
        }
        while row < self.left.rows {
            self.rows::<S, 1>(simd, row);
            row += 1;
        }
    }
}

impl Narrow<'_> {
    /// All columns of `N` rows from `row` on.
    #[inline(always)]
    fn rows<S: Simd, const N: usize>(&mut self, simd: S, row: usize) {
        let mut column = 0;
        while column + VECTORS * S::F32_LANES <= self.columns {
            self.block::<S, N, VECTORS>(simd, row, column);
            column += VECTORS * S::F32_LANES;
        }
        while column + S::F32_LANES <= self.columns {
            self.block::<S, N, 1>(simd, row, column);
            column += S::F32_LANES;
        }
        if column < self.columns {
            self.edge::<S, N>(simd, row, column);
        }
    }

    #[inline(always)]
    fn block<S: Simd, const N: usize, const V: usize>(
        &mut self,
        simd: S,
        row: usize,
        column: usize,
    ) {
        let width = V * S::F32_LANES;
        let mut sums = [[simd.splat_f32s(0.0); V]; N];
        if self.accumulate {
            for (sums, row) in sums.iter_mut().zip(row..) {
                let from = &self.out[row * self.columns + column..][..width];
                sums.copy_from_slice(S::as_simd_f32s(from).0);
            }
        }
        for k in 0..self.left.columns {
            let (right, _) = S::as_simd_f32s(&self.right[k * self.columns + column..][..width]);
            for (sums, row) in sums.iter_mut().zip(row..) {
                let scalar = simd.splat_f32s(self.left_at(row, k));
                for v in 0..V {
                    sums[v] = simd.mul_add_e_f32s(right[v], scalar, sums[v]);
                }
            }
        }
        for (sums, row) in sums.iter().zip(row..) {
            let to = &mut self.out[row * self.columns + column..][..width];
            S::as_mut_simd_f32s(to).0.copy_from_slice(sums);
        }
    }

    /// The last columns, fewer than a vector.
    #[inline(always)]
    fn edge<S: Simd, const N: usize>(&mut self, simd: S, row: usize, column: usize) {
        let width = self.columns - column;
        let mut sums = [simd.splat_f32s(0.0); N];
        if self.accumulate {
            for (sum, row) in sums.iter_mut().zip(row..) {
                let from = &self.out[row * self.columns + column..][..width];
                *sum = simd.partial_load_f32s(from);
            }
        }
        for k in 0..self.left.columns {
            let from = &self.right[k * self.columns + column..][..width];
            let right = simd.partial_load_f32s(from);
            for (sum, row) in sums.iter_mut().zip(row..) {
                let scalar = simd.splat_f32s(self.left_at(row, k));
                *sum = simd.mul_add_e_f32s(right, scalar, *sum);
            }
        }
        for (sum, row) in sums.iter().zip(row..) {
            let to = &mut self.out[row * self.columns + column..][..width];
            simd.partial_store_f32s(to, *sum);
        }
    }

    #[inline(always)]
    fn left_at(&self, row: usize, k: usize) -> f32 {
        self.left.values[row * self.left.row_stride + k * self.left.column_stride]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(len: usize, salt: usize) -> Vec<f32> {
        (0..len).map(|i| ((i * 23 + salt * 7) % 13) as f32 - 6.0).collect()
    }

    #[test]
    fn tiles_give_one_chain_of_fused_additions_for_each_value() {
        for [rows, inner, columns] in [[8, 1, 1], [9, 600, 50], [70, 33, 131], [8, 1100, 16]] {
            let (a, b) = (values(rows * inner, 1), values(inner * columns, 2));
            let scale = |values: Vec<f32>| values.iter().map(|v| v * 0.37).collect::<Vec<_>>();
            let (a, b, bias) = (scale(a), scale(b), scale(values(columns, 3)));
            let (mut at, mut bt) = (vec![0.0; a.len()], vec![0.0; b.len()]);
            (0..a.len()).for_each(|i| at[i % inner * rows + i / inner] = a[i]);
            (0..b.len()).for_each(|i| bt[i % columns * inner + i / columns] = b[i]);
            let lefts = [Matrix::new(&a, rows, inner), Matrix::new(&at, inner, rows).transposed()];
            let rights =
                [Matrix::new(&b, inner, columns), Matrix::new(&bt, columns, inner).transposed()];
            let want: Vec<u32> = (0..rows * columns)
                .map(|i| {
                    let (row, column) = (i / columns, i % columns);
                    (0..inner)
                        .fold(bias[column], |sum, k| {
                            a[row * inner + k].mul_add(b[k * columns + column], sum)
                        })
                        .to_bits()
                })
                .collect();
            for vectors in [Vectors::Widest, Vectors::PortableAvx2] {
                for threads in [1, 2, 3] {
                    let pool = crate::worker_pool::WorkerPool::new(threads).with(vectors);
                    for (left, right) in lefts.into_iter().flat_map(|l| rights.map(|r| (l, r))) {
                        let out = pool.enter(|| by_tiles(left, right, Some(&bias)));
                        let bits: Vec<u32> = out.iter().map(|v| v.to_bits()).collect();
                        assert_eq!(bits, want, "{rows} {inner} {columns}");
                    }
                }
            }
        }
    }

    #[test]
    fn products_are_those_of_the_definition() {
        for [rows, inner, columns] in [
            [1, 1, 1],
            [3, 5, 7],
            [13, 9, 32],
            [8, 64, 256],
            [21, 17, 75],
            [150, 6, 40],
            [5, 300, 130],
        ] {
            let (a, b, c) =
                (values(rows * inner, 1), values(inner * columns, 2), values(rows * columns, 3));
            for accumulate in [false, true] {
                for transposed in [false, true] {
                    let left = if transposed {
                        Matrix::new(&a, inner, rows).transposed()
                    } else {
                        Matrix::new(&a, rows, inner)
                    };
                    let mut out = c.clone();
                    multiply(&mut out, left, Matrix::new(&b, inner, columns), accumulate);
                    for i in 0..rows {
                        for j in 0..columns {
                            let start = if accumulate { c[i * columns + j] } else { 0.0 };
                            let want = (0..inner).fold(start, |sum, k| {
                                let left =
                                    if transposed { a[k * rows + i] } else { a[i * inner + k] };
                                sum + left * b[k * columns + j]
                            });
                            assert_eq!(out[i * columns + j], want, "{rows} x {inner} x {columns}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_portable_product_is_one_chain_per_value() {
        let irrational = |len: usize, salt: u32| -> Vec<f32> {
            (0..len).map(|i| ((i as f32 + 1.0).sqrt() * (salt as f32 + 0.3)).sin()).collect()
        };
        for [rows, inner, columns] in [[1, 1, 1], [21, 17, 75], [150, 6, 40], [5, 600, 130]] {
            let (a, b) = (irrational(rows * inner, 1), irrational(inner * columns, 2));
            let start = irrational(rows * columns, 3);
            for transposed in [false, true] {
                let right = match transposed {
                    true => Matrix::new(&b, columns, inner).transposed(),
                    false => Matrix::new(&b, inner, columns),
                };
                let mut out = start.clone();
                let left = Matrix::new(&a, rows, inner);
                Vectors::Portable.within(|| blocked(&mut out, left, right, true));
                for (at, found) in out.iter().enumerate() {
                    let (i, j) = (at / columns, at % columns);
                    let want = (0..inner).fold(start[at], |sum, k| {
                        let right = if transposed { b[j * inner + k] } else { b[k * columns + j] };
                        right.mul_add(a[i * inner + k], sum)
                    });
                    assert_eq!(found.to_bits(), want.to_bits(), "{rows} x {inner} x {columns}");
                }
            }
        }
    }
}
