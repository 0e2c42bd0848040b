//! `surefoot check`: determinism and checkpoints of training scripts.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::check::{CheckOutput, Spot, UnreadableFile, explain, sarif};
use crate::output::{Console, to_stderr, to_stdout};
use clap::Args;
use std::path::{Component, Path, PathBuf};
use surefoot_check::{CheckConfig, Rule, TorchOperations, UnknownRule, Unreadable};

const EXAMPLES: &str = "\
Examples:
  surefoot check train.py
      Find what prevents the script from being repeated or resumed bit for bit.

  surefoot check
      Check all Python files below the current directory.

  surefoot check train.py --checkpoint
      Print what each training loop must save, why, and the code to save and restore it.

  surefoot check --explain missing_state
      Print the documentation of a rule. Without a rule, list all rules.

  surefoot check src --sarif > findings.sarif
      Write findings for GitHub code scanning.

A comment suppresses findings on its line, or on a separate line, on the next:
  seed = int(time.time())  # surefoot: ignore[clock]

Exit codes: 0 no findings, 1 findings, 2 a given path cannot be checked, 3 internal error.";

/// Check Python training scripts for determinism and complete checkpoints
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Python files and directories [default: the current directory]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Print what each training loop must save, and the code to write, instead of the findings
    #[arg(long, conflicts_with = "sarif")]
    checkpoint: bool,

    /// Print the documentation of a rule; without RULE, list all rules
    #[arg(
        long,
        value_name = "RULE",
        num_args = 0..=1,
        exclusive = true,
        default_missing_value = EVERY_RULE
    )]
    explain: Option<String>,

    /// Folder of the PyTorch installation whose list of nondeterministic operations is used [default: the
    /// active environment, or the list of PyTorch 2.15]
    #[arg(long, value_name = "DIR")]
    torch: Option<PathBuf>,

    /// Print one JSON object per line on stdout, the summary last
    #[arg(long)]
    json: bool,

    /// Print the findings on stdout as SARIF 2.1.0
    #[arg(long, conflicts_with = "json")]
    sarif: bool,

    /// Print only errors (and JSON or SARIF if requested)
    #[arg(long, short)]
    quiet: bool,
}

/// Value of `--explain` without a rule.
const EVERY_RULE: &str = "";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if let Some(rule) = &arguments.explain {
        return explained(rule);
    }
    // With JSON and SARIF, text for people goes to stderr.
    let console = Console::new(arguments.json || arguments.sarif, arguments.quiet);
    let named = match arguments.paths.is_empty() {
        true => vec![PathBuf::from(".")],
        false => arguments.paths.clone(),
    };
    let config = CheckConfig { torch: operations(arguments)? };
    let mut checked = surefoot_check::check(&named, &config);
    let unreadable = std::mem::take(&mut checked.unreadable);
    let report = CheckOutput {
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

/// Nondeterministic operations of the given or the installed PyTorch.
fn operations(arguments: &Arguments) -> Result<Option<TorchOperations>, Failure> {
    if let Some(folder) = &arguments.torch {
        return match TorchOperations::read(folder) {
            Ok(operations) => Ok(Some(operations)),
            Err(error) => Err(Failure::input(error.to_string())
                .help("pass the folder `torch` in the site-packages of your environment")),
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
    let rule: Rule = rule.parse().map_err(|error: UnknownRule| {
        Failure::input(error.to_string()).help(format!("the rules are\n{}", explain::list()))
    })?;
    to_stdout(&explain::page(rule));
    Ok(Exit::Done)
}

/// Returns the exit code. An argument that cannot be checked is wrong input, whatever was found
/// elsewhere; a file in a directory is not, unless nothing could be checked.
fn exit(report: &CheckOutput) -> Exit {
    let refused = report.unread.iter().any(|unread| unread.named);
    match report.counted_findings().next() {
        _ if refused || report.checked.files == 0 => Exit::WrongInput,
        Some(_) => Exit::No,
        None => Exit::Done,
    }
}

/// Adds the line with the error to a file that cannot be checked.
fn unread(unreadable: Unreadable, named: &[PathBuf]) -> UnreadableFile {
    UnreadableFile {
        named: named.iter().any(|path| is_same(path, &unreadable.path)),
        spot: unreadable.at.and_then(|at| spot(&unreadable.path, at)),
        unreadable,
    }
}

/// Returns the line with the error, if the file is text. The end of a file counts to its last line.
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

/// True if two paths are equal except for `.` components.
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
    fn dot_components_are_ignored() {
        let same = |one: &str, other: &str| is_same(Path::new(one), Path::new(other));
        assert!(same("./a.py", "a.py"));
        assert!(same(".", ""));
        assert!(!same("a.py", "b/a.py"));
    }
}
