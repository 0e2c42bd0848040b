//! Repeats a recorded run of a script.

use super::super::compare::{Side, first_difference};
use super::super::run::{Options, python};
use super::Arguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Console;
use crate::output::compare::Comparison;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The parts of `program.json` that are executed again.
#[derive(Debug, Deserialize)]
struct Program {
    script: PathBuf,
    arguments: Vec<String>,
    directory: PathBuf,
    seed: u64,
    #[serde(default)]
    recover: bool,
    #[serde(default)]
    shards: Option<u64>,
}

/// Executes the script of the run in `dir` again, in a temporary run directory, and compares all steps.
pub(super) fn run(
    arguments: &Arguments,
    dir: &Path,
    program: &str,
    console: &Console,
) -> Result<Exit, Failure> {
    if arguments.from.is_some() || arguments.to.is_some() {
        return Err(Failure::input("--from and --to apply to plans; a script is replayed whole"));
    }
    let program: Program = serde_json::from_str(program).map_err(|error| {
        Failure::input(format!("{} was not recorded by `surefoot run`: {error}", dir.display()))
    })?;
    let broken = |error: std::io::Error| Failure::broken(format!("cannot replay: {error}"));
    let runs = std::env::temp_dir().join(format!("surefoot-replay-{}", std::process::id()));
    std::fs::create_dir(&runs).map_err(broken)?;
    let options = Options {
        script: Some(program.script),
        arguments: program.arguments,
        runs: runs.clone(),
        seed: program.seed,
        recover: program.recover,
        shards: program.shards,
        replay: true,
        ..Options::default()
    };
    let status = python(&options).and_then(|mut command| {
        command.current_dir(&program.directory).stdout(Stdio::null()).status().map_err(broken)
    });
    let compared = status.and_then(|_| {
        let run = std::fs::read_dir(&runs).map_err(broken)?.flatten().next();
        let run = run.ok_or_else(|| Failure::broken("the script did not start"))?.path();
        let (one, other) = (Side::open(dir)?, Side::open(&run)?);
        let divergence = first_difference(&one, &other)?;
        Ok(Comparison {
            sources: "programs",
            plan_diff: String::new(),
            environment: one.environment_differences(&other),
            last: [one.last(), other.last()],
            delivered: None,
            runs: [one.name(), "the replay".to_owned()],
            divergence,
        })
    });
    // A leftover does no harm.
    let _ = std::fs::remove_dir_all(&runs);
    let comparison = compared?;
    console.say(&comparison.text());
    console.event(&comparison.event());
    Ok(match comparison.is_equal() && comparison.last[0] <= comparison.last[1] {
        true => Exit::Done,
        false => Exit::No,
    })
}
