//! Work of one operation shared by the threads of a pool.
//!
//! Each value is computed by one thread in a fixed order, and nothing is summed across threads. So
//! the bits depend neither on the number of threads nor on which of them does a part.

use super::Vectors;
use std::marker::PhantomData;

/// Values below which an operation that only reads and writes memory is not shared.
const PART: usize = 32 * 1024;

/// Calls `work` once for each of `0..count`, on the threads of the pool that the caller belongs to.
/// Outside of a pool the caller does all the work.
pub(crate) fn each(count: usize, work: impl Fn(usize) + Sync) {
    if count > 1 && is_shared() {
        let vectors = Vectors::current();
        halves(0, count, &|index| vectors.within(|| work(index)));
    } else {
        (0..count).for_each(work);
    }
}

/// Returns true if other threads can take a part.
fn is_shared() -> bool {
    rayon_core::current_thread_index().is_some() && rayon_core::current_num_threads() > 1
}

fn halves(first: usize, end: usize, work: &(impl Fn(usize) + Sync)) {
    match end - first {
        0 => {}
        1 => work(first),
        count => {
            let middle = first + count / 2;
            rayon_core::join(|| halves(first, middle, work), || halves(middle, end, work));
        }
    }
}

/// Calls `work` with the number and the values of each chunk of `size` values; the last may be shorter.
pub(crate) fn chunks_mut<T: Send>(
    values: &mut [T],
    size: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    let size = size.max(1);
    let shared = Shared::new(values);
    each(shared.len.div_ceil(size), |index| {
        let start = index * size;
        // SAFETY: chunks do not overlap, and each index is used once.
        let chunk = unsafe { shared.slice(start, size.min(shared.len - start)) };
        work(index, chunk);
    });
}

/// Length of the parts in which an operation on `len` values in rows of `width` is shared: whole rows.
pub(crate) fn part(len: usize, width: usize) -> usize {
    let width = width.max(1);
    if len < 2 * PART { len.max(1) } else { PART.div_ceil(width) * width }
}

/// A mutable slice whose parts are written by different threads.
pub(crate) struct Shared<'a, T> {
    start: *mut T,
    len: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: `Shared` stands for an exclusive borrow; its only access is `slice`, whose callers guarantee
// that parts used at the same time do not overlap.
unsafe impl<T: Send> Send for Shared<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    pub(crate) fn new(values: &'a mut [T]) -> Self {
        Self { start: values.as_mut_ptr(), len: values.len(), slice: PhantomData }
    }

    /// The `len` values from `start` on.
    ///
    /// # Safety
    ///
    /// No other slice in use may overlap with it.
    #[allow(clippy::mut_from_ref, reason = "the caller guarantees that parts are disjoint")]
    #[inline(always)]
    pub(crate) unsafe fn slice(&self, start: usize, len: usize) -> &mut [T] {
        assert!(start <= self.len && len <= self.len - start, "a part must lie inside its slice");
        // SAFETY: inside the borrowed slice as checked above; the caller guarantees that it is disjoint.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker_pool::WorkerPool;

    #[test]
    fn every_chunk_is_visited_once() {
        for threads in [1, 2, 3] {
            let pool = WorkerPool::new(threads);
            for (len, size) in [(0, 3), (1, 3), (7, 3), (9, 3), (100, 1)] {
                let mut values = vec![0; len];
                pool.enter(|| {
                    chunks_mut(&mut values, size, |index, chunk| {
                        chunk.iter_mut().for_each(|value| *value += index + 1);
                    });
                });
                let expected: Vec<usize> = (0..len).map(|i| i / size + 1).collect();
                assert_eq!(values, expected);
            }
        }
    }

    #[test]
    fn threads_compute_with_the_vectors_of_the_caller() {
        let pool = WorkerPool::new(2).with(Vectors::Portable);
        pool.enter(|| each(64, |_| assert_eq!(Vectors::current(), Vectors::Portable)));
    }
}
