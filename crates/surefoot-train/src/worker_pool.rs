//! Threads that share a step.

use crate::kernel::Vectors;
use std::sync::Arc;

/// Threads that live as long as the run and keep their memory from step to step.
#[derive(Clone)]
pub(crate) struct WorkerPool {
    /// `None` if a single worker uses the caller's thread.
    pool: Option<Arc<rayon_core::ThreadPool>>,
    /// Vectors that all work computes with.
    pub(crate) vectors: Vectors,
}

impl WorkerPool {
    /// A pool of `size` threads; a single worker if threads cannot be started.
    pub(crate) fn new(size: usize) -> Self {
        let pool = (size > 1).then(|| {
            rayon_core::ThreadPoolBuilder::new()
                .num_threads(size)
                .thread_name(|i| format!("worker-{i}"))
                .build()
        });
        Self { pool: pool.and_then(Result::ok).map(Arc::new), vectors: Vectors::default() }
    }

    /// Computes with these vectors.
    pub(crate) fn with(self, vectors: Vectors) -> Self {
        Self { vectors, ..self }
    }

    /// Number of workers.
    pub(crate) fn size(&self) -> usize {
        self.pool.as_ref().map_or(1, |pool| pool.current_num_threads())
    }

    /// Calls `body` on a thread of the pool, where operations share their work with the others.
    pub(crate) fn enter<R: Send>(&self, body: impl FnOnce() -> R + Send) -> R {
        let body = || self.vectors.within(body);
        match &self.pool {
            Some(pool) => pool.install(body),
            None => body(),
        }
    }

    /// Calls `work` once for each of `0..workers`, in parallel, and returns the results. At most [`WorkerPool::size`] can work at a time.
    pub(crate) fn work<T: Send>(&self, workers: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
        let work = |worker| self.vectors.within(|| work(worker));
        match &self.pool {
            Some(pool) if workers > 1 => pool
                .broadcast(|thread| (thread.index() < workers).then(|| work(thread.index())))
                .into_iter()
                .flatten()
                .collect(),
            _ => (0..workers).map(work).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_worker_works_once() {
        for size in [1, 2, 5] {
            let worker_pool = WorkerPool::new(size);
            assert_eq!(worker_pool.size(), size);
            for workers in 1..=size {
                let mut done = worker_pool.work(workers, |worker| worker);
                done.sort_unstable();
                assert_eq!(done, (0..workers).collect::<Vec<_>>());
            }
        }
    }
}
