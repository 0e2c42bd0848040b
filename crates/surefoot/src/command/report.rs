//! `surefoot report`: one HTML page that tells what happened in a run or a study.

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
      Writes runs/circles-001/report.html; open it in any browser, or print it.

  surefoot report runs/circles-001 -o circles.html
      Writes it elsewhere. The file needs nothing beside it and can be sent to others.

  surefoot report runs/circles-001 -o - > circles.html
      Writes it to stdout.

  surefoot report runs/circles
      Of a study: writes runs/circles/report.html beside the store runs/circles/study.db.

  surefoot report postgres://me@host/tune --study circles
      Of a study on a server: writes circles.html.

A run or a study that was killed or still goes on has a report too: of what is recorded so far.

Exit codes: 0 done, 2 that is no run and no store, 3 something broke.";

/// Where the page goes if that is said to be stdout.
const STDOUT: &str = "-";

/// Write a page that tells what happened in a run or a study
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The run directory, or a study: its directory, its store (a file or sqlite:PATH) or
    /// postgres://...
    path: String,

    /// Which study, if a store has several
    #[arg(long, value_name = "NAME")]
    study: Option<String>,

    /// The file to write, or - for stdout [default: report.html in the run directory or beside the
    /// store]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print one JSON object with the file's name on stdout
    #[arg(long)]
    json: bool,
}

/// What programs are told.
#[derive(Serialize)]
struct Written {
    event: &'static str,
    file: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let to_stdout_asked = arguments.output.as_deref() == Some(Path::new(STDOUT));
    if to_stdout_asked && arguments.json {
        let message = "stdout cannot have both the page and JSON";
        return Err(Failure::input(message).help("name a file with -o, or leave out --json"));
    }
    let (page, usual) = match stored::url(&arguments.path) {
        Some(url) => of_study(&url, arguments)?,
        None => of_run(arguments)?,
    };
    if to_stdout_asked {
        to_stdout(page.trim_end());
        return Ok(Exit::Done);
    }
    let file = arguments.output.clone().unwrap_or(usual);
    output::file::write(&file, page.as_bytes())?;
    let console = Console::new(arguments.json, false);
    let file = file.display().to_string();
    console.say(&format!("  report   {}", Role::Strong.paint(&file)));
    console.event(&Written { event: "report", file });
    Ok(Exit::Done)
}

/// The page of a run, and where it goes unless said otherwise.
fn of_run(arguments: &Arguments) -> Result<(String, PathBuf), Failure> {
    let dir = Path::new(&arguments.path);
    if !dir.is_dir() {
        let message = format!("{}: there is no run and no store here", dir.display());
        return Err(Failure::input(message));
    }
    if arguments.study.is_some() {
        let message = format!("{}: --study is for stores, and there is none here", dir.display());
        return Err(Failure::input(message));
    }
    let run = Record::open(dir).map_err(|error| match error {
        RecordError::NotARun { .. } => {
            Failure::from(error).help("nor is it the directory of a study: it has no study.db")
        }
        error => error.into(),
    })?;
    let page = surefoot_report::report(&run)?;
    Ok((page, dir.join("report.html")))
}

/// The page of a study, and where it goes unless said otherwise.
fn of_study(url: &str, arguments: &Arguments) -> Result<(String, PathBuf), Failure> {
    let stored = stored::open(url, arguments.study.as_deref())?;
    if let Some(file) = &arguments.output {
        stored.spare(file)?;
    }
    let page = StudyPage::new(&stored.study, &stored.view, &stored.name);
    let usual = match &stored.file {
        Some(file) => file.with_file_name("report.html"),
        None => PathBuf::from(format!("{}.html", folder_name(&stored.study.name))),
    };
    Ok((surefoot_report::study_report(&page), usual))
}
