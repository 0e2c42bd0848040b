//! Products of large matrices, tile by tile, shared by the threads of a pool.
//!
//! Each value is one chain of fused multiplications and additions over the depth, for any tiles,
//! vectors and threads, so the bits are the same on all machines with FMA. The right
//! matrix is copied into panels that stay in cache; it need not exist in memory ([`super::conv`]).

use super::{Matrix, dispatch, parallel};
use pulp::{Simd, WithSimd};
use std::cell::RefCell;
use std::ops::Range;

/// Columns of a panel: three vectors of AVX-512.
pub(super) const PANEL: usize = 48;
/// Depth of a panel in cache.
const DEPTH: usize = 512;
/// Rows of a block of the left matrix.
const ROWS: usize = 8;
/// Most rows of a task: its sums stay in cache.
const TASK_ROWS: usize = 1024;
/// Least number of tasks of a product, if it has enough rows.
const TASKS: usize = 16;

/// A range of the depth in which the values of a row of the left matrix are adjacent in memory.
#[derive(Clone, Copy)]
pub(crate) struct Segment {
    /// Number of the segment for [`Right::pack`]; for a matrix, its first row there.
    pub(crate) first: usize,
    /// Offset of its first value from the start of a row.
    pub(crate) start: usize,
    pub(crate) len: usize,
}

/// The left matrix.
pub(crate) struct Left<'a> {
    values: &'a [f32],
    layout: Layout,
    rows: usize,
    segments: Vec<Segment>,
}

enum Layout {
    /// Index of the first value of each row.
    Rows(Vec<usize>),
    /// Blocks of [`ROWS`] rows, in each of which the rows' values at one depth lie side by side.
    Blocks(Vec<f32>),
}

impl<'a> Left<'a> {
    /// Rows that start at `starts` in `values` and consist of `segments`.
    pub(crate) fn rows(values: &'a [f32], starts: Vec<usize>, segments: Vec<Segment>) -> Self {
        Self { values, rows: starts.len(), layout: Layout::Rows(starts), segments }
    }

    /// A matrix. Columns that lie side by side in memory are read in place, others are copied.
    pub(crate) fn matrix(matrix: Matrix<'a>) -> Self {
        let depth = matrix.columns;
        let segments = (0..depth)
            .step_by(DEPTH)
            .map(|k| Segment { first: k, start: k, len: DEPTH.min(depth - k) })
            .collect();
        if matrix.column_stride == 1 {
            let starts = (0..matrix.rows).map(|row| row * matrix.row_stride).collect();
            return Self::rows(matrix.values, starts, segments);
        }
        let mut blocks = vec![0.0; matrix.rows.next_multiple_of(ROWS) * depth];
        parallel::chunks_mut(&mut blocks, ROWS * depth, |block, to| {
            let first = block * ROWS;
            let count = ROWS.min(matrix.rows - first);
            for (k, to) in to.chunks_exact_mut(ROWS).enumerate() {
                let from = &matrix.values[k * matrix.column_stride + first * matrix.row_stride..];
                if matrix.row_stride == 1 && count == ROWS {
                    to.copy_from_slice(&from[..ROWS]);
                } else {
                    for (row, to) in to[..count].iter_mut().enumerate() {
                        *to = from[row * matrix.row_stride];
                    }
                }
            }
        });
        Self { values: &[], rows: matrix.rows, layout: Layout::Blocks(blocks), segments }
    }

    /// Groups of segments, each at most [`DEPTH`] deep unless it is a single one.
    fn groups(&self) -> Vec<Range<usize>> {
        let mut groups: Vec<Range<usize>> = Vec::new();
        let mut depth = 0;
        for (index, segment) in self.segments.iter().enumerate() {
            depth += segment.len;
            match groups.last_mut() {
                Some(group) if depth <= DEPTH => group.end += 1,
                _ => {
                    depth = segment.len;
                    groups.push(index..index + 1);
                }
            }
        }
        groups
    }
}

/// The right matrix.
pub(crate) trait Right: Sync {
    /// Copies the rows of `segment` and these columns to `panel`, in rows of `width` values, with zeros
    /// past the last column.
    fn pack(&self, segment: Segment, columns: Range<usize>, width: usize, panel: &mut [f32]);
}

/// The result.
pub(crate) trait Sink: Sync {
    /// Writes the initial values of these columns of a row to `sums`, which are zero.
    fn start(&self, row: usize, columns: Range<usize>, sums: &mut [f32]);

    /// Takes the final values of these columns of a row. Called once for each of them.
    fn finish(&self, row: usize, columns: Range<usize>, sums: &[f32]);
}

impl Right for Matrix<'_> {
    #[inline(always)]
    fn pack(&self, segment: Segment, columns: Range<usize>, width: usize, panel: &mut [f32]) {
        let Segment { first, len, .. } = segment;
        if self.column_stride == 1 {
            for (k, to) in panel.chunks_exact_mut(width).take(len).enumerate() {
                let from = &self.values[(first + k) * self.row_stride + columns.start..];
                to[..columns.len()].copy_from_slice(&from[..columns.len()]);
                to[columns.len()..].fill(0.0);
            }
            return;
        }
        if columns.len() < width {
            panel[..len * width].fill(0.0);
        }
        // Eight by eight values are transposed at a time, so that whole cache lines are read and written.
        const TURN: usize = 8;
        let turned = if self.row_stride == 1 { columns.len() / TURN * TURN } else { 0 };
        for column in (0..turned).step_by(TURN) {
            let from: [&[f32]; TURN] = std::array::from_fn(|i| {
                let start = (columns.start + column + i) * self.column_stride + first;
                &self.values[start..][..len]
            });
            let whole = len / TURN * TURN;
            for k in (0..whole).step_by(TURN) {
                let mut square = [[0.0; TURN]; TURN];
                for (i, from) in from.iter().enumerate() {
                    let from = &from[k..][..TURN];
                    (0..TURN).for_each(|j| square[j][i] = from[j]);
                }
                for (j, row) in square.iter().enumerate() {
                    panel[(k + j) * width + column..][..TURN].copy_from_slice(row);
                }
            }
            for k in whole..len {
                for (i, from) in from.iter().enumerate() {
                    panel[k * width + column + i] = from[k];
                }
            }
        }
        for column in turned..columns.len() {
            let start = (columns.start + column) * self.column_stride + first * self.row_stride;
            for k in 0..len {
                panel[k * width + column] = self.values[start + k * self.row_stride];
            }
        }
    }
}

/// Buffers of a thread.
#[derive(Default)]
struct Buffers {
    panel: Vec<f32>,
    sums: Vec<f32>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

/// `left * right` with `columns` columns, to `sink`.
pub(crate) fn multiply(left: &Left<'_>, right: &impl Right, columns: usize, sink: &impl Sink) {
    if columns == 0 || left.rows == 0 {
        return;
    }
    let groups = left.groups();
    let panels = columns.div_ceil(PANEL);
    let width = padded(columns.div_ceil(panels));
    let panels = columns.div_ceil(width);
    let parts = TASKS.div_ceil(panels).min(left.rows.div_ceil(8 * ROWS));
    let rows = left.rows.div_ceil(parts).next_multiple_of(ROWS).min(TASK_ROWS);
    let parts = left.rows.div_ceil(rows);
    parallel::each(panels * parts, |task| {
        let (row, column) = (task % parts * rows, task / parts * width);
        BUFFERS.with_borrow_mut(|buffers| {
            dispatch(Task {
                left,
                right,
                sink,
                groups: &groups,
                rows: row..(row + rows).min(left.rows),
                columns: column..(column + width).min(columns),
                buffers,
            });
        });
    });
}

/// A part of the result: some rows of a panel.
struct Task<'a, R, O> {
    left: &'a Left<'a>,
    right: &'a R,
    sink: &'a O,
    groups: &'a [Range<usize>],
    rows: Range<usize>,
    columns: Range<usize>,
    buffers: &'a mut Buffers,
}

/// Width of a panel with this many columns: whole vectors.
fn padded(columns: usize) -> usize {
    columns.next_multiple_of(PANEL / 3)
}

impl<R: Right, O: Sink> WithSimd for Task<'_, R, O> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { left, right, sink, groups, rows, columns, buffers } = self;
        let Buffers { panel, sums } = buffers;
        let width = padded(columns.len());
        sums.clear();
        sums.resize(rows.len().next_multiple_of(ROWS) * width, 0.0);
        for (row, sums) in rows.clone().zip(sums.chunks_exact_mut(width)) {
            sink.start(row, columns.clone(), &mut sums[..columns.len()]);
        }
        for group in groups {
            let segments = &left.segments[group.clone()];
            let depth: usize = segments.iter().map(|segment| segment.len).sum();
            panel.resize(depth * width, 0.0);
            let mut rest = &mut panel[..];
            for &segment in segments {
                let (part, later) = rest.split_at_mut(segment.len * width);
                right.pack(segment, columns.clone(), width, part);
                rest = later;
            }
            for (block, sums) in sums.chunks_exact_mut(ROWS * width).enumerate() {
                let row = rows.start + block * ROWS;
                Tile { left, segments, row, panel, sums, width }.run(simd);
            }
        }
        for (row, sums) in rows.zip(sums.chunks_exact(width)) {
            sink.finish(row, columns.clone(), &sums[..columns.len()]);
        }
    }
}

/// [`ROWS`] rows of a panel.
struct Tile<'a> {
    left: &'a Left<'a>,
    segments: &'a [Segment],
    row: usize,
    panel: &'a [f32],
    sums: &'a mut [f32],
    width: usize,
}

impl Tile<'_> {
    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        match (S::F32_LANES >= 16, self.width) {
            (true, PANEL) => self.blocks::<S, ROWS, 3>(simd),
            (true, 32) => self.blocks::<S, ROWS, 2>(simd),
            (true, _) => self.blocks::<S, ROWS, 1>(simd),
            (false, PANEL) => self.blocks::<S, { ROWS / 2 }, 3>(simd),
            (false, _) => self.blocks::<S, { ROWS / 2 }, 2>(simd),
        }
    }

    #[inline(always)]
    fn blocks<S: Simd, const M: usize, const V: usize>(&mut self, simd: S) {
        for row in (0..ROWS).step_by(M) {
            for column in (0..self.width).step_by(V * S::F32_LANES) {
                match &self.left.layout {
                    Layout::Rows(starts) => {
                        let last = starts.len() - 1;
                        // Rows past the last are computed like the last, and not used.
                        let starts: [usize; M] =
                            std::array::from_fn(|i| starts[(self.row + row + i).min(last)]);
                        self.by_rows::<S, M, V>(simd, row, column, starts);
                    }
                    Layout::Blocks(blocks) => {
                        self.by_blocks::<S, M, V>(simd, row, column, blocks);
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn by_rows<S: Simd, const M: usize, const V: usize>(
        &mut self,
        simd: S,
        row: usize,
        column: usize,
        starts: [usize; M],
    ) {
        let mut sums = self.load::<S, M, V>(simd, row, column);
        let mut panel = self.panel;
        for segment in self.segments {
            let left: [&[f32]; M] = std::array::from_fn(|i| {
                &self.left.values[starts[i] + segment.start..][..segment.len]
            });
            for (k, right) in (0..segment.len).zip(panel.chunks_exact(self.width)) {
                // SAFETY: each slice has `segment.len` values.
                let at = |i: usize| unsafe { *left[i].get_unchecked(k) };
                multiply_add::<S, M, V>(simd, &mut sums, at, &right[column..]);
            }
            panel = &panel[segment.len * self.width..];
        }
        self.store::<S, M, V>(row, column, sums);
    }

    #[inline(always)]
    fn by_blocks<S: Simd, const M: usize, const V: usize>(
        &mut self,
        simd: S,
        row: usize,
        column: usize,
        blocks: &[f32],
    ) {
        let depth: usize = self.left.segments.iter().map(|segment| segment.len).sum();
        let (blocks, _) = blocks[self.row * depth..][..ROWS * depth].as_chunks::<ROWS>();
        let mut sums = self.load::<S, M, V>(simd, row, column);
        let mut panel = self.panel;
        for segment in self.segments {
            let left = &blocks[segment.start..][..segment.len];
            for (left, right) in left.iter().zip(panel.chunks_exact(self.width)) {
                let left = &left[row..row + M];
                multiply_add::<S, M, V>(simd, &mut sums, |i| left[i], &right[column..]);
            }
            panel = &panel[segment.len * self.width..];
        }
        self.store::<S, M, V>(row, column, sums);
    }

    #[inline(always)]
    fn load<S: Simd, const M: usize, const V: usize>(
        &self,
        simd: S,
        row: usize,
        column: usize,
    ) -> [[S::f32s; V]; M] {
        let mut sums = [[simd.splat_f32s(0.0); V]; M];
        for (i, sums) in sums.iter_mut().enumerate() {
            let from = &self.sums[(row + i) * self.width + column..][..V * S::F32_LANES];
            sums.copy_from_slice(S::as_simd_f32s(from).0);
        }
        sums
    }

    #[inline(always)]
    fn store<S: Simd, const M: usize, const V: usize>(
        &mut self,
        row: usize,
        column: usize,
        sums: [[S::f32s; V]; M],
    ) {
        for (i, sums) in sums.iter().enumerate() {
            let to = &mut self.sums[(row + i) * self.width + column..][..V * S::F32_LANES];
            S::as_mut_simd_f32s(to).0.copy_from_slice(sums);
        }
    }
}

/// Adds the products of `M` values on the left and `V` vectors on the right.
#[inline(always)]
fn multiply_add<S: Simd, const M: usize, const V: usize>(
    simd: S,
    sums: &mut [[S::f32s; V]; M],
    left: impl Fn(usize) -> f32,
    right: &[f32],
) {
    let (vectors, _) = S::as_simd_f32s(&right[..V * S::F32_LANES]);
    let mut right = [simd.splat_f32s(0.0); V];
    right.copy_from_slice(vectors);
    for (i, sums) in sums.iter_mut().enumerate() {
        let left = simd.splat_f32s(left(i));
        for v in 0..V {
            sums[v] = simd.mul_add_e_f32s(right[v], left, sums[v]);
        }
    }
}
