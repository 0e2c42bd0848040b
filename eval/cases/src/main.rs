//! Evaluates Surefoot on logs and programs that others made.
//!
//! One subcommand for each collection, in a module of its own: it reads a directory with its labels and
//! prints a table, or JSON.

mod logs;
mod programs;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Evaluate Surefoot on logs and programs that others made
#[derive(Debug, Parser)]
#[command(name = "surefoot-cases")]
struct Arguments {
    #[command(subcommand)]
    collection: Collection,
}

#[derive(Debug, Subcommand)]
enum Collection {
    Logs(logs::Arguments),
    Programs(programs::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().collection {
        Collection::Logs(arguments) => logs::run(&arguments).map(|()| true),
        Collection::Programs(arguments) => programs::run(&arguments),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}
