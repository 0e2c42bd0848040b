//! `surefoot report`: an HTML page about a run or a study.

use super::stored;
use super::tune::folder_name;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Console, Role, to_stdout};
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};
use surefoot_record::{Error as RecordError, Record};
use surefoot_report::StudyPage;

const EXAMPLES: &str = "\
Examples:
  surefoot report runs/circles-001
      Writes runs/circles-001/report.html.

  surefoot report runs/circles-001 -o circles.html
      Writes the page to another file. It is self-contained.

  surefoot report runs/circles-001 -o - > circles.html
      Writes the page to stdout.

  surefoot report runs/circles
      Reports a study: writes runs/circles/report.html next to the store study.db.

  surefoot report postgres://me@host/tune --study circles
      Reports a study on a server: writes circles.html.

Unfinished runs and studies have a report of what has been recorded so far.

Exit codes: 0 success, 2 PATH is not a run or a store, 3 internal error.";

/// File name that stands for stdout.
const STDOUT: &str = "-";

/// Write an HTML report of a run or a study
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Run directory, study directory, or store (study.db, sqlite:PATH, postgres://...)
    path: String,

    /// Name of the study, if the store has several
    #[arg(long, value_name = "NAME")]
    study: Option<String>,

    /// File to write, or - for stdout [default: report.html in the run directory or next to the
    /// store]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print the file name as a JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// JSON event for the written file.
#[derive(Serialize)]
struct Written {
    event: &'static str,
    file: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let use_stdout = arguments.output.as_deref() == Some(Path::new(STDOUT));
    if use_stdout && arguments.json {
        let message = "cannot write both the page and JSON to stdout";
        return Err(Failure::input(message).help("name a file with -o, or omit --json"));
    }
    let (page, default) = match stored::url(&arguments.path) {
        Some(url) => of_study(&url, arguments)?,
        None => of_run(arguments)?,
    };
    if use_stdout {
        to_stdout(page.trim_end());
        return Ok(Exit::Done);
    }
    let file = arguments.output.clone().unwrap_or(default);
    output::file::write(&file, page.as_bytes())?;
    let console = Console::new(arguments.json, false);
    let file = file.display().to_string();
    console.say(&format!("  report   {}", Role::Strong.paint(&file)));
    console.event(&Written { event: "report", file });
    Ok(Exit::Done)
}

/// The page of a run and its default file.
fn of_run(arguments: &Arguments) -> Result<(String, PathBuf), Failure> {
    let dir = Path::new(&arguments.path);
    if !dir.is_dir() {
        let message = format!("{}: not a run and not a store", dir.display());
        return Err(Failure::input(message));
    }
    if arguments.study.is_some() {
        let message = format!("{}: --study requires a store", dir.display());
        return Err(Failure::input(message));
    }
    let run = Record::open(dir).map_err(|error| match error {
        RecordError::NotARun { .. } => {
            Failure::from(error).help("it is not a study directory either: it has no study.db")
        }
        error => error.into(),
    })?;
    let page = surefoot_report::report(&run)?;
    Ok((page, dir.join("report.html")))
}

/// The page of a study and its default file.
fn of_study(url: &str, arguments: &Arguments) -> Result<(String, PathBuf), Failure> {
    let stored = stored::open(url, arguments.study.as_deref())?;
    if let Some(file) = &arguments.output {
        stored.check_output(file)?;
    }
    let page = StudyPage::new(&stored.study, &stored.view, &stored.name);
    let default = match &stored.file {
        Some(file) => file.with_file_name("report.html"),
        None => PathBuf::from(format!("{}.html", folder_name(&stored.study.name))),
    };
    Ok((surefoot_report::study_report(&page), default))
}
