//! `surefoot completions`: what a shell needs to complete commands and options.

use crate::cli::Cli;
use crate::exit::Exit;
use crate::output::to_stdout;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

const EXAMPLES: &str = "\
Examples:
  surefoot completions bash > ~/.local/share/bash-completion/completions/surefoot
  surefoot completions zsh > ~/.zfunc/_surefoot
  surefoot completions fish > ~/.config/fish/completions/surefoot.fish";

/// Print a script that completes commands and options in a shell
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The shell to print the script for
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "surefoot", &mut script);
    to_stdout(String::from_utf8_lossy(&script).trim_end());
    Exit::Done
}
