//! `surefoot run`: executes a Python training script, recorded and resumable.

use crate::exit::Exit;
use crate::failure::Failure;
use clap::Args;
use serde::Serialize;
use std::ffi::OsString;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const USAGE: &str = "\
surefoot run [OPTIONS] <SCRIPT> [ARGS]...
       surefoot run [OPTIONS] --resume <RUN>";

const EXAMPLES: &str = "\
Examples:
  surefoot run train.py --epochs 10
      Executes train.py with its arguments and records the run in runs/train-001. A second run has
      the same digest at every step.

  surefoot run --every 500 train.py
      Writes a checkpoint every 500 optimizer steps. The script needs no code for it.

  surefoot run --resume runs/train-001
      Continues a run that was interrupted or killed. The result is the same.

  torchrun --nproc-per-node 2 -m surefoot run --shards 4 train.py
      Executes a script that uses DistributedDataParallel. With 1, 2 or 4 processes, the digests
      are the same, and --resume accepts another number of them.

  surefoot compare runs/train-001 runs/train-002
      Shows the first step where two runs differ.

Options for surefoot come before the script, arguments of the script after it. Needs Python with the
package surefoot: the program in the environment variable PYTHON, or python3.

The exit code is that of the script; 2 is wrong input and 3 an internal or system error.";

/// Run an unmodified Python training script: repeatable, recorded and resumable
#[derive(Debug, Args)]
#[command(override_usage = USAGE, after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Python script
    #[arg(required_unless_present = "resume")]
    script: Option<PathBuf>,

    /// Arguments of the script
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,

    /// Parent of the run directory
    #[arg(long, value_name = "DIR", default_value = "runs", conflicts_with = "resume")]
    runs: PathBuf,

    /// Interval of checkpoints in optimizer steps [default: costs at most 2% of the time]
    #[arg(long, value_name = "N")]
    every: Option<NonZeroU64>,

    /// Seed of every random draw
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "resume")]
    seed: u64,

    /// Split each batch into N shards (a power of two): equal bits for every number of processes that divides N
    #[arg(long, value_name = "N", value_parser = shards, conflicts_with = "resume")]
    shards: Option<u64>,

    /// Continue a run that was interrupted or killed
    #[arg(long, value_name = "RUN")]
    resume: Option<PathBuf>,

    /// Skip steps that are not finite, then reduce the learning rate, then return to a checkpoint
    #[arg(long)]
    recover: bool,
}

/// The request to the Python package, as one JSON argument.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Options {
    pub(crate) script: Option<PathBuf>,
    pub(crate) arguments: Vec<String>,
    pub(crate) runs: PathBuf,
    pub(crate) every: Option<u64>,
    pub(crate) seed: u64,
    pub(crate) resume: Option<PathBuf>,
    pub(crate) recover: bool,
    pub(crate) shards: Option<u64>,
    /// Writes no checkpoints.
    pub(crate) replay: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if let Some(script) = &arguments.script
        && arguments.resume.is_some()
    {
        let message =
            format!("--resume takes the script from the run; remove {}", script.display());
        return Err(Failure::input(message));
    }
    if let Some(script) = &arguments.script
        && !script.is_file()
    {
        let message = format!("there is no script {}", script.display());
        return Err(Failure::input(message));
    }
    let options = Options {
        script: arguments.script.clone(),
        arguments: arguments.arguments.clone(),
        runs: arguments.runs.clone(),
        every: arguments.every.map(NonZeroU64::get),
        seed: arguments.seed,
        resume: arguments.resume.clone(),
        recover: arguments.recover,
        shards: arguments.shards,
        replay: false,
    };
    replace_process(python(&options)?)
}

fn shards(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number: &u64| number.is_power_of_two());
    // Division by a power of two does not round, so the average does not depend on the number of processes.
    number.ok_or_else(|| "the number of shards must be a power of two: 1, 2, 4, ...".to_owned())
}

/// A Python process that executes a script.
pub(crate) fn python(options: &Options) -> Result<Command, Failure> {
    let program = match crate::WORKER_COMMAND.get().and_then(|command| command.first()) {
        Some(program) => program.clone(),
        None => {
            let program = std::env::var_os("PYTHON").filter(|python| !python.is_empty());
            let program = program.unwrap_or_else(|| OsString::from("python3"));
            check_package(Path::new(&program))?;
            program
        }
    };
    let json = serde_json::to_string(options)
        .map_err(|error| Failure::input(format!("a path is not valid Unicode: {error}")))?;
    let mut command = Command::new(program);
    command.args(["-m", "surefoot.run"]).arg(json);
    // These are read once, when the interpreter or a library starts.
    command.env("PYTHONHASHSEED", "0").env("TF_DETERMINISTIC_OPS", "1");
    if std::env::var_os("CUBLAS_WORKSPACE_CONFIG").is_none() {
        command.env("CUBLAS_WORKSPACE_CONFIG", ":4096:8");
    }
    Ok(command)
}

fn check_package(program: &Path) -> Result<(), Failure> {
    let name = program.display();
    let mut command = Command::new(program);
    command.args(["-c", "import surefoot.run"]).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Failure::input(format!("{name} cannot import the package surefoot"))
            .help("install it there: pip install surefoot")
            .help("or set PYTHON to the program that has it")),
        Err(error) => Err(Failure::input(format!("cannot start {name}: {error}"))
            .help("set PYTHON to the Python program that has the package surefoot")),
    }
}

/// Replaces this process, so that signals and the exit code are those of the script.
#[cfg(unix)]
fn replace_process(mut command: Command) -> Result<Exit, Failure> {
    use std::os::unix::process::CommandExt;
    let error = command.exec();
    Err(Failure::broken(format!("cannot start Python: {error}")))
}

#[cfg(not(unix))]
fn replace_process(mut command: Command) -> Result<Exit, Failure> {
    let status = command.status();
    let status =
        status.map_err(|error| Failure::broken(format!("cannot start Python: {error}")))?;
    std::process::exit(status.code().unwrap_or(Exit::Broken as i32))
}
