//! Parallel map with ordered results, on threads with deep stacks.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Stack sizes to try. Syntax trees are walked and dropped by recursion; untouched memory costs nothing, but
/// systems may limit the address space.
const STACKS: [usize; 3] = [1 << 30, 1 << 28, 1 << 24];

/// Calls `function` on a thread with a deep stack.
pub(crate) fn with_deep_stack<T: Send>(function: impl FnOnce() -> T + Send) -> T {
    let function = Mutex::new(Some(function));
    let call = || {
        let function = function.lock().ok().and_then(|mut it| it.take());
        function.map(|function| function())
    };
    thread::scope(|scope| {
        let joined = spawn(scope, call).map(thread::ScopedJoinHandle::join);
        match joined {
            Some(Ok(value)) => value,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            // No thread could be started.
            None => call(),
        }
    })
    .expect("called once")
}

/// Starts a thread with the deepest stack that the system allows.
fn spawn<'s, T: Send + 's>(
    scope: &'s thread::Scope<'s, '_>,
    work: impl Fn() -> T + Copy + Send + 's,
) -> Option<thread::ScopedJoinHandle<'s, T>> {
    STACKS.into_iter().find_map(|stack| {
        let thread = thread::Builder::new().stack_size(stack);
        thread.spawn_scoped(scope, work).ok()
    })
}

/// Applies `function` to every item; results are in the order of the items.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], function: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let workers = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
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
    let work = &work;
    thread::scope(|scope| {
        let started = (0..workers).filter_map(|_| spawn(scope, work));
        if started.count() == 0 {
            work();
        }
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
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
