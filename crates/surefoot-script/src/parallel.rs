//! Work spread over the cores, with results in order and stacks deep enough for any nesting.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Trees of syntax are walked and dropped by recursion. Memory that is never touched costs nothing.
const STACK: usize = 1 << 30;

/// Calls `function` on a thread with a deep stack.
pub(crate) fn with_deep_stack<T: Send>(function: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let worker = thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, function);
        match worker.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(value)) => value,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => panic!("no thread can be started: {error}"),
        }
    })
}

/// `function` of every item, in the order of the items.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], function: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let workers = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(items.len());
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    thread::scope(|scope| {
        for _ in 0..workers {
            let work = || {
                let mut mine = Vec::new();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    mine.push((index, function(item)));
                }
                if let Ok(mut done) = done.lock() {
                    done.append(&mut mine);
                }
            };
            let worker = thread::Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, work);
            worker.expect("a system that reads files can start a thread");
        }
    });
    let mut done = done
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u32> = (0..1000).collect();
        assert_eq!(
            super::map(&items, |item| item * 2),
            items.iter().map(|it| it * 2).collect::<Vec<_>>()
        );
    }
}
