//! `surefoot check`: what keeps a training script from being repeated or resumed.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::check::{Report, Spot, Unread, explain, sarif};
use crate::output::{Console, to_stderr, to_stdout};
use clap::Args;
use std::path::{Component, Path, PathBuf};
use surefoot_check::{CheckConfig, NoSuchRule, Rule, TorchOperations, Unreadable};

const EXAMPLES: &str = "\
Examples:
  surefoot check train.py
      What keeps the script from being repeated bit for bit, or resumed to the same result.

  surefoot check
      The same for all Python files below the current directory.

  surefoot check train.py --checkpoint
      What each training loop has to save, why, and the code that saves and restores it.

  surefoot check --explain missing_state
      What a rule means, with an example. Without a rule, all of them are listed.

  surefoot check src --sarif > findings.sarif
      For code scanning on GitHub and other viewers.

A comment silences findings on its line, or alone on a line, on the next:
  seed = int(time.time())  # surefoot: ignore[clock]

Exit codes: 0 nothing found, 1 findings, 2 a path that was named cannot be checked, 3 something
broke.";

/// Look for what keeps Python training scripts from being repeated or resumed
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Python files, and directories to look for them [default: the current directory]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Print what each training loop has to save, and the code to write, instead of the findings
    #[arg(long, conflicts_with = "sarif")]
    checkpoint: bool,

    /// Say what a rule means, with an example; without one, list them
    #[arg(
        long,
        value_name = "RULE",
        num_args = 0..=1,
        exclusive = true,
        default_missing_value = EVERY_RULE
    )]
    explain: Option<String>,

    /// The folder of the PyTorch whose nondeterministic operations count [default: that of the active
    /// environment, else those of PyTorch 2.15]
    #[arg(long, value_name = "DIR")]
    torch: Option<PathBuf>,

    /// Print one JSON object a line on stdout, the summary last
    #[arg(long)]
    json: bool,

    /// Print the findings on stdout in the format SARIF 2.1.0
    #[arg(long, conflicts_with = "json")]
    sarif: bool,

    /// Print nothing but errors (and JSON or SARIF if asked for)
    #[arg(long, short)]
    quiet: bool,
}

/// What `--explain` means without a rule.
const EVERY_RULE: &str = "";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if let Some(rule) = &arguments.explain {
        return explained(rule);
    }
    // With SARIF too, stdout is for programs and people read stderr.
    let console = Console::new(arguments.json || arguments.sarif, arguments.quiet);
    let named = match arguments.paths.is_empty() {
        true => vec![PathBuf::from(".")],
        false => arguments.paths.clone(),
    };
    let settings = CheckConfig { torch: operations(arguments)? };
    let mut checked = surefoot_check::check(&named, &settings);
    let unreadable = std::mem::take(&mut checked.unreadable);
    let report = Report {
        unread: unreadable.into_iter().map(|unreadable| unread(unreadable, &named)).collect(),
        checked,
        width: console.width(),
    };
    match arguments.sarif {
        true => to_stdout(&sarif::document(&report)),
        false => report.events().iter().for_each(|it| console.event(it)),
    }
    let body = match arguments.checkpoint {
        true => report.checkpoints(),
        false => report.findings(),
    };
    if !body.is_empty() {
        console.say(&format!("{body}\n"));
    }
    for unread in &report.unread {
        if unread.named || !arguments.quiet {
            to_stderr(&format!("{}\n", report.unread(unread)));
        }
    }
    console.say(&report.summary());
    Ok(exit(&report))
}

/// The nondeterministic operations of the PyTorch that was named, or that is installed.
fn operations(arguments: &Arguments) -> Result<Option<TorchOperations>, Failure> {
    if let Some(folder) = &arguments.torch {
        return match TorchOperations::read(folder) {
            Ok(operations) => Ok(Some(operations)),
            Err(error) => Err(Failure::input(error.to_string())
                .help("name the folder `torch` in the site-packages of your environment")),
        };
    }
    let environments = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter();
    let mut active = environments.filter_map(std::env::var_os).map(PathBuf::from);
    Ok(active.find_map(|environment| TorchOperations::of_environment(&environment)))
}

fn explained(rule: &str) -> Result<Exit, Failure> {
    if rule == EVERY_RULE {
        to_stdout(&explain::list());
        return Ok(Exit::Done);
    }
    let rule: Rule = rule.parse().map_err(|error: NoSuchRule| {
        Failure::input(error.to_string()).help(format!("the rules are\n{}", explain::list()))
    })?;
    to_stdout(&explain::page(rule));
    Ok(Exit::Done)
}

/// A path that was named and cannot be checked is wrong input, whatever was found elsewhere: who
/// asks for a file wants to know about that file. One that was met in a directory is not, unless
/// nothing else was there.
fn exit(report: &Report) -> Exit {
    let refused = report.unread.iter().any(|unread| unread.named);
    match report.counted_findings().next() {
        _ if refused || report.checked.files == 0 => Exit::WrongInput,
        Some(_) => Exit::No,
        None => Exit::Done,
    }
}

/// Adds what people want to see of a file that cannot be checked.
fn unread(unreadable: Unreadable, named: &[PathBuf]) -> Unread {
    Unread {
        named: named.iter().any(|path| is_same(path, &unreadable.path)),
        spot: unreadable.at.and_then(|at| spot(&unreadable.path, at)),
        unreadable,
    }
}

/// The line that is wrong, if the file can still be read. The end of a file is after its last line.
fn spot(path: &Path, (line, column): (usize, usize)) -> Option<Spot> {
    let text = std::fs::read_to_string(path).ok()?;
    let lines: Vec<&str> = text.lines().collect();
    let (line, column) = match line <= lines.len() {
        true => (line, column),
        false => (lines.len(), lines.last()?.chars().count() + 1),
    };
    let text = lines.get(line.checked_sub(1)?)?.to_string();
    Some(Spot { line, column, text })
}

/// Whether two paths are spelt alike but for `.` in them.
fn is_same(one: &Path, other: &Path) -> bool {
    let parts = |path: &Path| -> Vec<_> {
        let parts = path.components();
        let parts = parts.filter(|part| !matches!(part, Component::CurDir));
        parts.map(|part| part.as_os_str().to_owned()).collect()
    };
    parts(one) == parts(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_the_same_with_a_dot_before_it() {
        let same = |one: &str, other: &str| is_same(Path::new(one), Path::new(other));
        assert!(same("./a.py", "a.py"));
        assert!(same(".", ""));
        assert!(!same("a.py", "b/a.py"));
    }
}
