//! The `surefoot` command.
//!
//! A command is a file in [`command`]: its arguments, and what it does with the other crates. What
//! it tells people goes through [`output`], what goes wrong is a [`Failure`](failure::Failure), printed here.

mod cli;
mod command;
mod exit;
mod failure;
mod interrupt;
mod output;
mod panics;

use clap::Parser;
use cli::Cli;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Usage errors end the process here, with exit code 2.
    let cli = Cli::parse();
    let exit = panics::report(|| {
        cli.command.run().unwrap_or_else(|failure| {
            failure.print();
            failure.exit()
        })
    });
    exit.into()
}
