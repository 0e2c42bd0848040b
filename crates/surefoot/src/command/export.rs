//! `surefoot export`: writes a model or a study for other programs.

use super::stored;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Console, Role};
use clap::Args;
use serde::Serialize;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use surefoot_train::Predictor;
use surefoot_tune::export::Format;

const EXAMPLES: &str = "\
Examples:
  surefoot export runs/circles-001 model.py
      The delivered model of a run as a PyTorch module with its preprocessing: Model()(samples).

  surefoot export runs/circles-001 model.onnx
      The same as an ONNX file, for ONNX Runtime and others: input `samples`, output `outputs`.

  surefoot export runs/circles -o circles.csv
      One row per trial: number, state, value, parameters, pruning reason, epochs, time and run
      directory.

  surefoot export runs/circles -o circles.parquet
      Typed columns, for pandas, Polars or DuckDB.

  surefoot export runs/circles -o circles.jsonl
      One JSON object per trial, with its learning curve.

  surefoot export runs/circles -o circles.log
      An Optuna journal: JournalStorage(JournalFileBackend(\"circles.log\")).

  surefoot export runs/circles -o - --format csv | head
      Write to stdout.

  surefoot export postgres://me@host/tune --study circles -o circles.csv
      One of several studies on a server.

Exit codes: 0 success, 2 invalid input, 3 internal error.";

/// Export a model to PyTorch or ONNX, or a study to CSV, Parquet, JSON lines or Optuna
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Run directory, or the store of a study: a file, sqlite:PATH, postgres://..., or a directory
    #[arg(value_name = "RUN|STORE")]
    store: String,

    /// Output file, overwritten if it exists: .py or .onnx for a run; the same as -o
    #[arg(value_name = "FILE", required_unless_present = "output", conflicts_with = "output")]
    file: Option<PathBuf>,

    /// Output file, overwritten if it exists; - for stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Study name, if the store has several
    #[arg(long, value_name = "NAME")]
    study: Option<String>,

    /// Format: csv, parquet, jsonl or optuna-journal [default: by extension: .csv, .parquet, .jsonl,
    /// .log]
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: Option<Format>,

    /// Print one JSON object with the file name on stdout
    #[arg(long)]
    json: bool,
}

/// The output file that stands for stdout.
const STDOUT: &str = "-";

/// JSON event of an export.
#[derive(Serialize)]
struct Written {
    event: &'static str,
    file: String,
    trials: usize,
}

fn format(name: &str) -> Result<Format, String> {
    Format::named(name).ok_or_else(|| format!("available: {}", names().join(", ")))
}

fn names() -> [&'static str; 4] {
    Format::ALL.map(Format::name)
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let file = arguments.output.as_ref().or(arguments.file.as_ref());
    let file = file.ok_or_else(|| Failure::input("no output file").help("pass one with -o"))?;
    if Path::new(&arguments.store).join("header.json").is_file() {
        return export_model(Path::new(&arguments.store), file, arguments.json);
    }
    let to_stdout_asked = file == Path::new(STDOUT);
    if to_stdout_asked && arguments.json {
        let message = "cannot write both the trials and JSON to stdout";
        return Err(Failure::input(message).help("pass a file with -o, or omit --json"));
    }
    let format = arguments.format.or_else(|| Format::of(file));
    let format = format.ok_or_else(|| {
        let message = format!("cannot infer the format of {}", file.display());
        Failure::input(message).help(format!("pass --format {}", names().join("|")))
    })?;
    has_directory(file)?;
    let url = stored::url(&arguments.store).ok_or_else(|| {
        let message = format!("{} is not a store", arguments.store);
        Failure::input(message).help("pass the file of a store, such as runs/circles/study.db")
    })?;
    let stored = stored::open(&url, arguments.study.as_deref())?;
    stored.check_output(file)?;
    let bytes = format
        .write(&stored.study, &stored.view)
        .map_err(|error| Failure::broken(error.to_string()))?;
    if to_stdout_asked {
        let mut stdout = std::io::stdout();
        return match stdout.write_all(&bytes).and_then(|()| stdout.flush()) {
            // The reader closed the pipe.
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

/// JSON event of an exported model.
#[derive(Serialize)]
struct ModelWritten {
    event: &'static str,
    file: String,
    format: &'static str,
}

/// Writes the delivered model of a run as a PyTorch module or an ONNX file.
fn export_model(run: &Path, file: &Path, json: bool) -> Result<Exit, Failure> {
    let extension = file.extension().and_then(|extension| extension.to_str());
    let format = match extension.map(str::to_ascii_lowercase).as_deref() {
        Some("py") => "pytorch",
        Some("onnx") => "onnx",
        _ => {
            let message = format!("cannot export the run {} to {}", run.display(), file.display());
            return Err(Failure::input(message).help("pass a .py file for PyTorch, or .onnx"));
        }
    };
    has_directory(file)?;
    let predictor = Predictor::open(run)?;
    let bytes = match format {
        "onnx" => predictor.to_onnx()?,
        _ => {
            let weights = run.join("model.safetensors");
            let weights = std::path::absolute(&weights).map_err(|error| {
                Failure::input(format!("cannot resolve {}: {error}", run.display()))
            })?;
            predictor.to_pytorch(&weights.to_string_lossy()).into_bytes()
        }
    };
    output::file::write(file, &bytes)?;
    let console = Console::new(json, false);
    let file = file.display().to_string();
    console.say(&format!("  {format:<14} {}", Role::Strong.paint(&file)));
    console.event(&ModelWritten { event: "export", file, format });
    Ok(Exit::Done)
}

/// Rejects a missing directory before a large study is read.
fn has_directory(file: &Path) -> Result<(), Failure> {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => {
            let (file, parent) = (file.display(), parent.display());
            let message = format!("cannot write {file}: directory {parent} does not exist");
            Err(Failure::input(message).help(format!("create it: mkdir -p {parent}")))
        }
        _ => Ok(()),
    }
}
