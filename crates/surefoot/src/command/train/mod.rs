//! `surefoot train`: trains a plan, every layer watched, repairs what goes wrong, and records it all.

mod approval;
mod bookkeeper;
pub(crate) mod care;
pub(crate) mod delivery;
pub(crate) mod environment;
mod examiner;
pub(crate) mod job;
mod mending;
pub(crate) mod record;
pub(crate) mod recorded;
mod resume;
mod session;
mod watcher;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Console;
use clap::Args;
use job::Job;
use resume::Reopened;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use surefoot_train::{Device, on_device};

const USAGE: &str = "\
surefoot train [OPTIONS] <PLAN>
       surefoot train [OPTIONS] [PLAN] --resume <RUN>";

const EXAMPLES: &str = "\
Examples:
  surefoot train examples/circles.toml
      Trains the plan; the record of the run is in runs/circles-001. If a problem is found, the
      training stops, remedies are tried, and the best model is delivered.

  surefoot train examples/circles.toml --no-repair
      Tells of problems and changes nothing.

  surefoot train examples/circles.toml --approve
      Shows what a remedy would change before it is tried, and asks.

  surefoot train examples/circles.toml --set training.epochs=5 --set model.0.units=32
      The same with some of its settings changed.

  surefoot train mnist.toml --model lenet.keras
      Takes the layers and weights from a Keras file instead of the plan.

  surefoot train --resume runs/circles-001
      Goes on with a run that was interrupted or killed, to the same result.

  surefoot train examples/circles.toml --dry-run
      Checks the plan and its data, shows the model and trains nothing.

  surefoot train examples/circles.toml --json | tail -n 1
      The summary as one line of JSON.

Exit codes: 0 done, 1 training failed and could not be repaired, 2 the input is wrong,
3 something broke, 130 interrupted.";

/// Train a plan, and repair what goes wrong; or go on with a run
#[derive(Debug, Args)]
#[command(override_usage = USAGE, after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The plan: a TOML file with data, model and training
    #[arg(required_unless_present = "resume")]
    plan: Option<PathBuf>,

    /// Take layers and weights from a Keras file (.h5 or .keras)
    ///
    /// The plan then needs no `[[model]]`. The loss and the optimizer the file was compiled with
    /// are used where the plan does not state its own.
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    model: Option<PathBuf>,

    /// Where run directories are made
    #[arg(long, value_name = "DIR", default_value = "runs", conflicts_with = "resume")]
    runs: PathBuf,

    /// Change a setting of the plan, such as training.epochs=5
    ///
    /// List entries are numbers from 0 (`model.0.units=16`); the value is TOML, or else a string.
    /// May be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,

    /// The seed of every random draw; the same as --set seed=N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,

    /// Threads that share the work of a step [default: all cores]
    ///
    /// The result has the same bits for any number.
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,

    /// Only tell of problems: train to the end and try no remedy
    #[arg(long)]
    no_repair: bool,

    /// Ask before a remedy is tried; needs a terminal
    ///
    /// Shows what it would change in the plan: y tries it, n goes on to the next, q ends the repair.
    #[arg(long, conflicts_with = "no_repair")]
    approve: bool,

    /// Go on with a run that was interrupted or killed
    #[arg(long, value_name = "RUN")]
    resume: Option<PathBuf>,

    /// Where to compute: cpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value_t)]
    device: Device,

    /// Print one JSON object a line on stdout, the summary last
    #[arg(long)]
    json: bool,

    /// Print nothing but errors (and JSON if asked for)
    #[arg(long, short)]
    quiet: bool,

    /// Check the plan and its data, show the model and train nothing
    #[arg(long, conflicts_with = "resume")]
    dry_run: bool,
}

impl Arguments {
    /// All settings, the seed last.
    fn settings(&self) -> impl Iterator<Item = (String, String)> {
        let seed = self.seed.map(|seed| ("seed".to_owned(), seed.to_string()));
        self.settings.clone().into_iter().chain(seed)
    }

    fn workers(&self) -> usize {
        super::workers(self.workers)
    }
}

pub(crate) fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.to_owned()))
        }
        _ => Err("expected KEY=VALUE, such as training.epochs=5".to_owned()),
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let console = Console::new(arguments.json, arguments.quiet);
    let job = match &arguments.resume {
        None => Job::read(arguments, &console)?,
        Some(dir) => match resume::reopen(dir, arguments, &console)? {
            Reopened::Job(job) => *job,
            Reopened::Finished(status) => return Ok(session::exit_of(status)),
        },
    };
    for note in &job.data.notes {
        console.note(note);
    }
    on_device!(arguments.device, |B, device| {
        session::run::<B>(&job, arguments, &console, device)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_cut_at_its_first_equals_sign() {
        let cut = setting("data.source.path = a=b.csv");
        assert_eq!(cut, Ok(("data.source.path".into(), " a=b.csv".into())));
        assert!(setting("training.epochs").is_err());
        assert!(setting("=5").is_err());
    }
}
