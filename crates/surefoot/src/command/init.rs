//! `surefoot init`: drafts a plan for a CSV file.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Console, Role};
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};
use surefoot_data::{Draft, draft};

const EXAMPLES: &str = "\
Examples:
  surefoot init patients.csv
      Writes plan.toml: target, task, encoded and excluded columns, and a small model, with comments.

  surefoot init patients.csv --target ill -o patients.toml
      Names the target and the file.

  surefoot train plan.toml
      Trains the plan.

The target is the column that --target names, or one with a usual name (target, label, class, y,
outcome, output), or the last one. Columns that number the rows, are constant, are mostly empty or
hold too many different texts are excluded; other text columns are encoded.

Exit codes: 0 success, 2 invalid input, 3 internal error.";

/// Write a commented plan for a CSV file
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// CSV file with a header
    data: PathBuf,

    /// Column to predict [default: by its name, or the last column]
    #[arg(long, value_name = "COLUMN")]
    target: Option<String>,

    /// Plan to write; must not exist
    #[arg(long, short, value_name = "FILE", default_value = "plan.toml")]
    output: PathBuf,

    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// JSON event of a drafted plan.
#[derive(Serialize)]
struct Written<'a> {
    event: &'static str,
    plan: String,
    target: &'a str,
    task: &'a str,
    samples: usize,
    inputs: usize,
    categorical: Vec<&'a str>,
    excluded: Vec<Excluded<'a>>,
}

#[derive(Serialize)]
struct Excluded<'a> {
    column: &'a str,
    reason: &'a str,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let console = Console::new(arguments.json, false);
    let plan = &arguments.output;
    if plan.exists() {
        let message = format!("{} exists already", plan.display());
        return Err(Failure::input(message).help("choose another file with -o, or remove it"));
    }
    let name = from_plan(&arguments.data, plan)?;
    let draft = draft(&arguments.data, &name, arguments.target.as_deref())?;
    output::file::write(plan, draft.text.as_bytes())?;
    console.say(&summary(&draft, plan));
    console.event(&Written {
        event: "init",
        plan: plan.display().to_string(),
        target: &draft.target,
        task: draft.task.name(),
        samples: draft.samples,
        inputs: draft.inputs,
        categorical: draft.categorical.iter().map(|(column, _)| column.as_str()).collect(),
        excluded: draft
            .excluded
            .iter()
            .map(|(column, reason)| Excluded { column, reason })
            .collect(),
    });
    Ok(Exit::Done)
}

/// The data as a plan in another folder refers to them.
fn from_plan(data: &Path, plan: &Path) -> Result<PathBuf, Failure> {
    let folder = |path: &Path| path.parent().map(Path::to_owned).unwrap_or_default();
    if folder(plan).as_os_str().is_empty() {
        return Ok(data.to_owned());
    }
    match data.file_name() {
        Some(name) if folder(plan) == folder(data) => Ok(name.into()),
        _ => std::path::absolute(data)
            .map_err(|error| Failure::input(format!("cannot resolve {}: {error}", data.display()))),
    }
}

fn summary(draft: &Draft, plan: &Path) -> String {
    let mut lines = vec![
        ("plan", Role::Strong.paint(plan.display())),
        ("target", format!("{} ({})", draft.target, draft.task.name())),
        ("data", format!("{} samples, {} inputs", draft.samples, draft.inputs)),
    ];
    if !draft.categorical.is_empty() {
        let names: Vec<&str> = draft.categorical.iter().map(|(name, _)| name.as_str()).collect();
        lines.push(("encoded", names.join(", ")));
    }
    if !draft.excluded.is_empty() {
        let excluded = draft.excluded.iter();
        let names: Vec<String> =
            excluded.map(|(name, reason)| format!("{name} ({reason})")).collect();
        lines.push(("excluded", names.join(", ")));
    }
    lines.push(("next", format!("surefoot train {}", plan.display())));
    let lines: Vec<String> =
        lines.into_iter().map(|(key, value)| format!("  {key:<10} {value}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_refers_to_the_data_from_its_own_folder() {
        let of = |data: &str, plan: &str| from_plan(Path::new(data), Path::new(plan)).unwrap();
        assert_eq!(of("data/a.csv", "plan.toml"), Path::new("data/a.csv"));
        assert_eq!(of("data/a.csv", "data/plan.toml"), Path::new("a.csv"));
        assert!(of("data/a.csv", "plans/plan.toml").is_absolute());
    }
}
