//! The list of commands.

use crate::command::{
    board, capsule, check, compare, completions, diagnose, export, init, predict, replay, report,
    run, simulate, train, tune,
};
use crate::exit::Exit;
use crate::failure::Failure;
use clap::builder::Styles;
use clap::builder::styling::{AnsiColor, Style};
use clap::{Parser, Subcommand};

const STYLES: Styles = Styles::styled()
    .header(Style::new().bold())
    .usage(Style::new().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default())
    .error(AnsiColor::Red.on_default().bold())
    .valid(AnsiColor::Green.on_default())
    .invalid(AnsiColor::Yellow.on_default());

const AFTER: &str = "\
Exit codes: 0 done, 1 the answer is no (failed repair, findings, mismatch), 2 wrong input,
3 internal or system error.

`surefoot COMMAND --help` shows examples.";

/// Neural-network training that does not stumble.
#[derive(Debug, Parser)]
#[command(name = "surefoot", version, styles = STYLES, after_help = AFTER)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// A command with its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(init::Arguments),
    Train(train::Arguments),
    Diagnose(diagnose::Arguments),
    Run(run::Arguments),
    Replay(replay::Arguments),
    Compare(compare::Arguments),
    Capsule(capsule::Arguments),
    Check(check::Arguments),
    Tune(tune::Arguments),
    Simulate(simulate::Arguments),
    Report(report::Arguments),
    Board(board::Arguments),
    Predict(predict::Arguments),
    Export(export::Arguments),
    Completions(completions::Arguments),
}

impl Command {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Init(arguments) => init::run(&arguments),
            Self::Train(arguments) => train::run(&arguments),
            Self::Diagnose(arguments) => diagnose::run(&arguments),
            Self::Run(arguments) => run::run(&arguments),
            Self::Replay(arguments) => replay::run(&arguments),
            Self::Compare(arguments) => compare::run(&arguments),
            Self::Capsule(arguments) => capsule::run(&arguments),
            Self::Check(arguments) => check::run(&arguments),
            Self::Tune(arguments) => tune::run(&arguments),
            Self::Simulate(arguments) => simulate::run(&arguments),
            Self::Report(arguments) => report::run(&arguments),
            Self::Board(arguments) => board::run(&arguments),
            Self::Predict(arguments) => predict::run(&arguments),
            Self::Export(arguments) => export::run(&arguments),
            Self::Completions(arguments) => Ok(completions::run(&arguments)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
