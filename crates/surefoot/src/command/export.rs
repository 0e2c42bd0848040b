//! `surefoot export`: a study for other programs.

use super::stored;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Console, Role};
use clap::Args;
use serde::Serialize;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use surefoot_tune::export::Format;

const EXAMPLES: &str = "\
Examples:
  surefoot export runs/circles -o circles.csv
      One row a trial: number, state, value, a column for each parameter, the reason why it was
      stopped, epochs, time and run directory.

  surefoot export runs/circles -o circles.parquet
      The same with types, for pandas, Polars or DuckDB.

  surefoot export runs/circles -o circles.jsonl
      One JSON object a trial, with its whole curve.

  surefoot export runs/circles -o circles.log
      A journal that Optuna opens: JournalStorage(JournalFileBackend(\"circles.log\")).

  surefoot export runs/circles -o - --format csv | head
      To stdout.

  surefoot export postgres://me@host/tune --study circles -o circles.csv
      From a server, one of several studies.

Exit codes: 0 done, 2 that is no store, no format or no directory, 3 something broke.";

/// Write a study for other programs: CSV, Parquet, JSON lines or Optuna
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The store: a file, sqlite:PATH, postgres://..., or the directory of a study
    store: String,

    /// The file to write, over one that is there; - is stdout
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,

    /// Which study, if the store has several
    #[arg(long, value_name = "NAME")]
    study: Option<String>,

    /// What to write: csv, parquet, jsonl or optuna-journal [default: as FILE ends: .csv, .parquet,
    /// .jsonl, .log]
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: Option<Format>,

    /// Print one JSON object with the file's name on stdout
    #[arg(long)]
    json: bool,
}

/// What stands for stdout.
const STDOUT: &str = "-";

/// What programs are told.
#[derive(Serialize)]
struct Written {
    event: &'static str,
    file: String,
    trials: usize,
}

fn format(name: &str) -> Result<Format, String> {
    Format::named(name).ok_or_else(|| format!("there are {}", names().join(", ")))
}

fn names() -> [&'static str; 4] {
    Format::ALL.map(Format::name)
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let file = &arguments.output;
    let to_stdout_asked = file == Path::new(STDOUT);
    if to_stdout_asked && arguments.json {
        let message = "stdout cannot have both the trials and JSON";
        return Err(Failure::input(message).help("name a file with -o, or leave out --json"));
    }
    let format = arguments.format.or_else(|| Format::of(file));
    let format = format.ok_or_else(|| {
        let message = format!("{} does not tell what to write", file.display());
        Failure::input(message).help(format!("say it: --format {}", names().join("|")))
    })?;
    has_directory(file)?;
    let url = stored::url(&arguments.store).ok_or_else(|| {
        let message = format!("{}: there is no store here", arguments.store);
        Failure::input(message).help("name the file of a store, such as runs/circles/study.db")
    })?;
    let stored = stored::open(&url, arguments.study.as_deref())?;
    stored.spare(file)?;
    let bytes = format
        .write(&stored.study, &stored.view)
        .map_err(|error| Failure::broken(error.to_string()))?;
    if to_stdout_asked {
        let mut stdout = std::io::stdout();
        return match stdout.write_all(&bytes).and_then(|()| stdout.flush()) {
            // Whoever read it has enough.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(Failure::broken(format!("cannot print: {error}")))
            }
            _ => Ok(Exit::Done),
        };
    }
    output::file::write(file, &bytes)?;
    let trials = stored.view.trials().len();
    let console = Console::new(arguments.json, false);
    let file = file.display().to_string();
    let plural = if trials == 1 { "" } else { "s" };
    console.say(&format!(
        "  {:<14} {} ({trials} trial{plural})",
        format.name(),
        Role::Strong.paint(&file)
    ));
    console.event(&Written { event: "export", file, trials });
    Ok(Exit::Done)
}

/// Refuses a file whose directory is not there, before a large study is read.
fn has_directory(file: &Path) -> Result<(), Failure> {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => {
            let (file, parent) = (file.display(), parent.display());
            let message = format!("{file} cannot be written: there is no directory {parent}");
            Err(Failure::input(message).help(format!("make it: mkdir -p {parent}")))
        }
        _ => Ok(()),
    }
}
