//! Panics that end less than the process.
//!
//! A detector that panics is left out, a file that a library panics on is damaged, a trial that panics has failed. Where a
//! panic hook ends the process, that alone would never come to be, because a hook is called before anything is caught. So
//! what is caught is announced here, and the hook asks.
//!
//! ```
//! use surefoot_panic::{caught, consequence};
//!
//! std::panic::set_hook(Box::new(|panic| {
//!     if consequence().is_none() {
//!         eprintln!("{panic}");
//!         std::process::exit(3);
//!     }
//! }));
//! assert_eq!(caught(|| 1), Ok(1));
//! assert_eq!(caught(|| -> u8 { panic!("no more") }), Err("no more".to_owned()));
//! ```

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

thread_local! {
    /// What a panic of this thread comes to.
    static HERE: Cell<Option<&'static str>> = const { Cell::new(None) };
    /// Whether this thread belongs to no call that is caught with its threads.
    static APART: Cell<bool> = const { Cell::new(false) };
}

/// How many calls there are whose threads may panic.
static ANYWHERE: AtomicUsize = AtomicUsize::new(0);

/// What a panic of one of their threads comes to.
const WITH_THREADS: &str = "what was being done is given up";

/// Calls, and gives what it panicked with as an error. Whoever gets it tells it.
///
/// What was being changed may be left half changed: the caller drops it, or does not mind.
pub fn caught<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    caught_with("", call)
}

/// The same where nobody else tells it: the hook says that this is the `consequence`.
pub fn caught_with<T>(consequence: &'static str, call: impl FnOnce() -> T) -> Result<T, String> {
    let before = HERE.replace(Some(consequence));
    let answer = catch_unwind(AssertUnwindSafe(call));
    HERE.set(before);
    answer.map_err(message)
}

/// The same for a call that has threads of its own, which may panic too and then make it panic. The hook tells where.
pub fn caught_with_threads<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    ANYWHERE.fetch_add(1, Ordering::Relaxed);
    let answer = caught_with(WITH_THREADS, call);
    ANYWHERE.fetch_sub(1, Ordering::Relaxed);
    answer
}

/// Calls on a thread that others rely on, whatever else is done meanwhile: its panic is that of the process.
pub fn apart<T>(call: impl FnOnce() -> T) -> T {
    let before = APART.replace(true);
    let answer = call();
    APART.set(before);
    answer
}

/// What a panic of this thread comes to, in words or without; `None` if nobody catches it.
pub fn consequence() -> Option<&'static str> {
    let anywhere = || {
        let is_caught = ANYWHERE.load(Ordering::Relaxed) > 0 && !APART.get();
        is_caught.then_some(WITH_THREADS)
    };
    HERE.get().or_else(anywhere)
}

fn message(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it panicked without a word".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_caught_is_known_while_it_may_panic_and_no_longer() {
        let inside = || {
            (
                consequence(),
                caught_with("the inner one ends", consequence),
            )
        };
        assert_eq!(
            caught_with("it ends", inside),
            Ok((Some("it ends"), Ok(Some("the inner one ends"))))
        );
        let panicked = caught(|| -> () { std::panic::panic_any(7) });
        assert_eq!(panicked, Err("it panicked without a word".to_owned()));
        assert_eq!(HERE.get(), None);
    }

    #[test]
    fn threads_are_caught_with_the_call_that_has_them() {
        let joined = |thread: std::thread::JoinHandle<Option<&'static str>>| match thread.join() {
            Ok(known) => known,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let known = caught_with_threads(|| joined(std::thread::spawn(consequence)));
        assert_eq!(known, Ok(Some(WITH_THREADS)));
        let apart = caught_with_threads(|| joined(std::thread::spawn(|| apart(consequence))));
        assert_eq!(apart, Ok(None));
        let panicked = caught_with_threads(|| joined(std::thread::spawn(|| panic!("no more"))));
        assert_eq!(panicked, Err("no more".to_owned()));
    }
}
