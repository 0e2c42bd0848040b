//! `surefoot report`: one HTML page that tells what happened in a run.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Console, Role, to_stdout};
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};
use surefoot_record::Run;

const EXAMPLES: &str = "\
Examples:
  surefoot report runs/circles-001
      Writes runs/circles-001/report.html; open it in any browser, or print it.

  surefoot report runs/circles-001 -o circles.html
      Writes it elsewhere. The file needs nothing beside it and can be sent to others.

  surefoot report runs/circles-001 -o - > circles.html
      Writes it to stdout.

A run that was killed or still goes on has a report too: of what is recorded so far.

Exit codes: 0 done, 2 that is no run, 3 something broke.";

/// Where the page goes if that is said to be stdout.
const STDOUT: &str = "-";

/// Write a page that tells what happened in a run
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The run directory
    run: PathBuf,

    /// The file to write, or - for stdout [default: RUN/report.html]
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
    let page = surefoot_board::report(&Run::open(&arguments.run)?)?;
    if to_stdout_asked {
        to_stdout(page.trim_end());
        return Ok(Exit::Done);
    }
    let beside = || arguments.run.join("report.html");
    let file = arguments.output.clone().unwrap_or_else(beside);
    std::fs::write(&file, page)
        .map_err(|error| Failure::broken(format!("cannot write {}: {error}", file.display())))?;
    let console = Console::new(arguments.json, false);
    let file = file.display().to_string();
    console.say(&format!("  report   {}", Role::Strong.paint(&file)));
    console.event(&Written {
        event: "report",
        file,
    });
    Ok(Exit::Done)
}
