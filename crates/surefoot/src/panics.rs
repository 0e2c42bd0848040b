//! Panics: a bug, said shortly, with the exit code for what broke.

use crate::exit::Exit;
use crate::output::{Role, to_stderr};

/// Makes a panic of any thread end the process, unless it is one that is caught and ends less.
///
/// A record needs no tidying up: it can be resumed from wherever a process ended.
pub(crate) fn install() {
    let verbose = std::env::var_os("RUST_BACKTRACE").is_some();
    let standard = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if verbose {
            standard(panic);
        }
        let place = panic
            .location()
            .map_or(String::new(), |place| format!(" ({place})"));
        let message = panic.payload_as_str().unwrap_or("no message");
        if let Some(consequence) = surefoot_panic::consequence() {
            if !consequence.is_empty() {
                let warning = Role::Warning.paint("warning:");
                to_stderr(&format!("{warning} {consequence}: {message}{place}"));
            }
            return;
        }
        to_stderr(&format!(
            "{} surefoot broke: {message}{place}\n  {} this is a bug; please report it with your \
             plan at {}/issues",
            Role::Error.paint("error:"),
            Role::Help.paint("help:"),
            env!("CARGO_PKG_REPOSITORY"),
        ));
        std::process::exit(Exit::Broken as i32);
    }));
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_caught_does_not_end_the_process() {
        super::install();
        let caught = surefoot_panic::caught(|| -> () { panic!("a damaged file, say") });
        // Otherwise there would be nobody left to say so.
        assert_eq!(caught, Err("a damaged file, say".to_owned()));
        drop(std::panic::take_hook());
    }
}
