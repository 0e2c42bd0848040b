//! Panics: a bug, reported in one line, with the exit code for what broke.

use crate::exit::Exit;
use crate::output::{Role, to_stderr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

/// Message and place of the latest panic.
static LATEST: Mutex<Option<String>> = Mutex::new(None);

/// Calls `run` and reports a panic that reaches it, on this thread or on one that it joins.
///
/// Every panic prints a warning. One that a library catches (a detector, a damaged file, a trial) ends
/// no more than that. With `RUST_BACKTRACE` set, it prints its backtrace too.
pub(crate) fn report(run: impl FnOnce() -> Exit) -> Exit {
    let verbose = std::env::var_os("RUST_BACKTRACE").is_some();
    let standard = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if verbose {
            standard(panic);
        }
        let place = panic.location().map_or(String::new(), |place| format!(" ({place})"));
        let message = panic.payload_as_str().unwrap_or("no message");
        let text = format!("{message}{place}");
        to_stderr(&format!("{} internal error: {text}", Role::Warning.paint("warning:")));
        if let Ok(mut latest) = LATEST.lock() {
            *latest = Some(text);
        }
    }));
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        let latest = LATEST.lock().ok().and_then(|mut latest| latest.take());
        to_stderr(&format!(
            "{} surefoot crashed: {}\n  {} this is a bug; please report it with your plan at \
             {}/issues",
            Role::Error.paint("error:"),
            latest.as_deref().unwrap_or("no message"),
            Role::Help.paint("help:"),
            env!("CARGO_PKG_REPOSITORY"),
        ));
        Exit::Broken
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_exit_code_3_and_a_caught_one_is_not() {
        let caught = report(|| {
            assert!(catch_unwind(|| panic!("a damaged file")).is_err());
            Exit::Done
        });
        assert_eq!(caught as i32, Exit::Done as i32);
        assert_eq!(report(|| panic!("a bug")) as i32, Exit::Broken as i32);
        drop(std::panic::take_hook());
    }
}
