//! Loops over plain slices for the CPU, where they beat composing Burn's operations.
//!
//! Burn's `flex` evaluates one tensor operation at a time; what is here does in one pass over
//! memory what would take several there (an activation and its gradient, a recurrent cell), or
//! orders the work so that it stays in cache (convolution by blocks). Every loop runs on one
//! thread in a fixed order, so its result has the same bits wherever it runs on a machine.

pub(crate) mod activation;
pub(crate) mod conv;
pub(crate) mod math;
pub(crate) mod pool;
pub(crate) mod recurrent;

use std::sync::OnceLock;

/// Runs `body` compiled for the widest vectors of this machine.
#[inline(always)]
pub(crate) fn vectorized<R>(body: impl FnOnce() -> R) -> R {
    static ARCH: OnceLock<pulp::Arch> = OnceLock::new();
    ARCH.get_or_init(pulp::Arch::new).dispatch(body)
}

/// A row-major matrix, or a column-major one seen through [`Matrix::transposed`].
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a> {
    values: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// A matrix over `values`, rows one after the other.
    pub(crate) fn new(values: &'a [f32], rows: usize, columns: usize) -> Self {
        assert_eq!(values.len(), rows * columns, "a matrix fills its slice");
        Self {
            values,
            rows,
            columns,
            row_stride: columns,
            column_stride: 1,
        }
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

/// `out = left * right`, or `out += left * right` if `accumulate`; `out` is row-major.
pub(crate) fn multiply(out: &mut [f32], left: Matrix<'_>, right: Matrix<'_>, accumulate: bool) {
    assert_eq!(left.columns, right.rows, "inner dimensions agree");
    assert_eq!(
        out.len(),
        left.rows * right.columns,
        "the product fills its slice"
    );
    let (rows, columns) = (left.rows, right.columns);
    // SAFETY: the assertions here and in `Matrix::new` keep every access inside its slice, and
    // `out` is borrowed exclusively, so it overlaps neither operand.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            left.columns,
            out.as_mut_ptr(),
            1,
            columns as isize,
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
            gemm::Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_transposed_matrices_accumulate() {
        let a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]; // 2 x 3
        let b = [1.0, 0.0, -1.0, 2.0]; // 2 x 2
        let mut out = vec![1.0; 6]; // 3 x 2
        multiply(
            &mut out,
            Matrix::new(&a, 2, 3).transposed(),
            Matrix::new(&b, 2, 2),
            true,
        );
        assert_eq!(out, [-2.0, 9.0, -2.0, 11.0, -2.0, 13.0]);
    }
}
