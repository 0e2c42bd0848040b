//! The `surefoot` command as a library: [`run`] takes arguments and returns an exit code.
//!
//! The binary and the console script of the Python package both call it. A command is a file in
//! `command`: its arguments, and the library call that does the work. Text for people goes through
//! `output`.
//!
//! ```
//! assert_eq!(surefoot::run(["surefoot", "--version"]), 0);
//! assert_eq!(surefoot::run(["surefoot", "no-such-command"]), 2);
//! ```

mod cli;
mod command;
mod exit;
mod failure;
mod interrupt;
mod output;
mod panics;

use clap::Parser;
use cli::Cli;
use exit::Exit;
use std::ffi::OsString;
use std::sync::OnceLock;

/// Program and first arguments that start a worker process, if not the current executable.
static WORKER_COMMAND: OnceLock<Vec<OsString>> = OnceLock::new();

/// Runs the command line `arguments`, the name of the program first, and returns its exit code.
pub fn run(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> u8 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        // Help and version are such errors too, with exit code 0. A closed pipe is of no interest.
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { Exit::WrongInput } else { Exit::Done } as u8;
        }
    };
    let exit = panics::report(|| {
        cli.command.run().unwrap_or_else(|failure| {
            failure.print();
            failure.exit()
        })
    });
    exit as u8
}

/// Sets the program and first arguments that start this command in a new process, for hosts whose
/// executable is not `surefoot`: `["python", "-m", "surefoot"]`. Only the first call has an effect.
pub fn set_worker_command(command: Vec<OsString>) {
    let _ = WORKER_COMMAND.set(command);
}

/// A process that runs this command with the arguments to come.
fn worker_command() -> std::io::Result<std::process::Command> {
    match WORKER_COMMAND.get().map(Vec::as_slice) {
        Some([program, arguments @ ..]) => {
            let mut command = std::process::Command::new(program);
            command.args(arguments);
            Ok(command)
        }
        _ => std::env::current_exe().map(std::process::Command::new),
    }
}
