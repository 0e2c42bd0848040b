//! `surefoot train`: trains a plan, repairs problems and records the run.

mod approval;
mod progress;
mod resume;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::outline::Overview;
use crate::output::repair::no_repair;
use crate::output::summary::Ending;
use crate::output::{Console, Role, to_stderr};
use clap::Args;
use progress::{Opening, ProgressCallback};
use resume::Reopened;
use serde::Serialize;
use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use surefoot_plan::{Document, keras};
use surefoot_record::{Event, Record, Status};
use surefoot_train::{
    Device, PreparedPlan, RepairMode, StopReason, StopSignal, TrainSummary, Trainer, plan_folder,
};

const USAGE: &str = "\
surefoot train [OPTIONS] <PLAN>
       surefoot train [OPTIONS] [PLAN] --resume <RUN>";

const EXAMPLES: &str = "\
Examples:
  surefoot train examples/circles.toml
      Trains the plan and records the run in runs/circles-001. If a problem is found, training
      stops, remedies are tried and the best model is delivered.

  surefoot train examples/circles.toml --no-repair
      Reports problems and changes nothing.

  surefoot train examples/circles.toml --approve
      Shows the changes of each remedy and asks before it is tried.

  surefoot train examples/circles.toml --set training.epochs=5 --set model.0.units=32
      Changes some settings of the plan.

  surefoot train mnist.toml --model lenet.keras
      Takes the layers and weights from a Keras file instead of the plan.

  surefoot train --resume runs/circles-001
      Continues a run that was interrupted or killed. The result is the same.

  surefoot train examples/circles.toml --dry-run
      Checks the plan and its data and shows the model and the memory it needs, without training.

  surefoot train examples/circles.toml --json | tail -n 1
      Prints the summary as one line of JSON.

Exit codes: 0 done, 1 a problem was found and not repaired, 2 wrong input, 3 internal or system
error, 130 interrupted.";

/// Train a plan and repair problems, or resume a run
#[derive(Debug, Args)]
#[command(override_usage = USAGE, after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Plan file (TOML) with data, model and training
    #[arg(required_unless_present = "resume")]
    plan: Option<PathBuf>,

    /// Take layers and weights from a Keras file (.h5 or .keras)
    ///
    /// The plan then needs no `[[model]]`. The loss and optimizer that the model was compiled with
    /// are used where the plan has none.
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    model: Option<PathBuf>,

    /// Parent of the run directory
    #[arg(long, value_name = "DIR", default_value = "runs", conflicts_with = "resume")]
    runs: PathBuf,

    /// Change a setting of the plan, such as training.epochs=5
    ///
    /// List entries are numbered from 0 (`model.0.units=16`). The value is TOML, or else a string.
    /// Can be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,

    /// Seed of every random draw; the same as --set seed=N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,

    /// Threads that share a step [default: all cores]
    ///
    /// The result is bit-identical for any number.
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,

    /// Report problems without trying remedies
    #[arg(long)]
    no_repair: bool,

    /// Ask before a remedy is tried; needs an interactive terminal
    ///
    /// Shows the changes to the plan: y tries them, n skips to the next remedy, q ends the repair.
    #[arg(long, conflicts_with = "no_repair")]
    approve: bool,

    /// Continue a run that was interrupted or killed
    #[arg(long, value_name = "RUN")]
    resume: Option<PathBuf>,

    /// Device to compute on: cpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value_t)]
    device: Device,

    /// Print JSON lines on stdout, the summary last
    #[arg(long)]
    json: bool,

    /// Print only errors (and JSON with --json)
    #[arg(long, short)]
    quiet: bool,

    /// Check the plan and its data, show the model and the memory it needs, and stop
    #[arg(long, conflicts_with = "resume")]
    dry_run: bool,
}

impl Arguments {
    /// All settings, the seed last.
    fn settings(&self) -> impl Iterator<Item = (String, String)> {
        let seed = self.seed.map(|seed| ("seed".to_owned(), seed.to_string()));
        self.settings.clone().into_iter().chain(seed)
    }

    fn apply_settings(&self, document: &mut Document) -> Result<(), Failure> {
        for (key, value) in self.settings() {
            document.set(&key, &value)?;
        }
        Ok(())
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
    let (prepared, resumed) = match &arguments.resume {
        None => (read_plan(arguments, &console)?, None),
        Some(dir) => match resume::reopen(dir, arguments, &console)? {
            Reopened::Unfinished(record, prepared) => (*prepared, Some(*record)),
            Reopened::Finished(status) => return Ok(exit_of(status)),
        },
    };
    let prepared = Arc::new(prepared);
    for note in &prepared.data().notes {
        console.note(note);
    }
    if arguments.dry_run {
        return dry_run(arguments, &prepared, &console);
    }
    train(arguments, prepared, resumed, &console)
}

fn train(
    arguments: &Arguments,
    prepared: Arc<PreparedPlan>,
    resumed: Option<Record>,
    console: &Console,
) -> Result<Exit, Failure> {
    let (device, workers) = (arguments.device, arguments.workers());
    let mut progress = ProgressCallback::new(console, Arc::clone(&prepared), device, workers);
    let screen = progress.screen.clone();
    let signal = {
        let (screen, quiet) = (screen.clone(), arguments.quiet);
        Interrupt::listen(move || {
            if !quiet {
                screen.above(|| to_stderr("stopping after this step; Ctrl-C again stops at once"));
            }
        })?
        .signal()
    };
    let mode = repair_mode(arguments, resumed.as_ref(), &signal)?;
    let mut trainer = Trainer::prepared(prepared)
        .workers(workers)
        .device(device)
        .stop_signal(signal.clone())
        .callback(&mut progress);
    trainer = match resumed {
        None => trainer.runs(&arguments.runs),
        Some(record) => trainer.continue_record(record),
    };
    if let Some(mode) = mode {
        trainer = trainer.repair(mode);
    }
    let trained = trainer.train();
    screen.clear();
    let trained = trained.map_err(|error| match &progress.run {
        None => Failure::from(error),
        Some(run) => {
            Failure::from(error).help(format!("continue later with: surefoot train --resume {run}"))
        }
    })?;
    if trained.reason == StopReason::Interrupted {
        return Ok(print_interrupted(&trained, arguments, console));
    }
    if let Some(repair) = trained.repair.as_ref().filter(|repair| !repair.solved) {
        console.say(&no_repair(repair));
    }
    print_summary(&trained, console);
    Ok(exit_of(trained.summary.status))
}

/// The repair mode of the command line; `None` leaves that of a resumed run.
fn repair_mode<'a>(
    arguments: &Arguments,
    resumed: Option<&Record>,
    signal: &'a StopSignal,
) -> Result<Option<RepairMode<'a>>, Failure> {
    if arguments.no_repair {
        return Ok(Some(RepairMode::Off));
    }
    if !arguments.approve && !resumed.is_some_and(RepairMode::needs_approval) {
        return Ok(None);
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failure::input("--approve needs an interactive terminal").help(
            "run it in a terminal, omit --approve, or use --no-repair to only report problems",
        ));
    }
    Ok(Some(RepairMode::Approve(Box::new(|proposal| approval::ask(proposal, signal)))))
}

fn dry_run(
    arguments: &Arguments,
    prepared: &PreparedPlan,
    console: &Console,
) -> Result<Exit, Failure> {
    let outline = prepared.outline(arguments.device)?;
    let overview = Overview {
        plan: prepared.plan(),
        data: prepared.data(),
        shapes: prepared.shapes(),
        outline: &outline,
        memory: prepared.memory(),
        device: arguments.device,
        workers: arguments.workers(),
    };
    console.say(overview.text().trim_end());
    console.event(&Opening { event: "outline", step: None, run: None, facts: overview.facts() });
    prepared.memory().check()?;
    Ok(Exit::Done)
}

/// Reads the plan, its data and the Keras file.
fn read_plan(arguments: &Arguments, console: &Console) -> Result<PreparedPlan, Failure> {
    let Some(path) = &arguments.plan else {
        return Err(Failure::input("a plan is required"));
    };
    let document = read_document(path, arguments)?;
    let base = plan_folder(path)?;
    let prepared = match &arguments.model {
        None => PreparedPlan::from_document(document, &base)?,
        Some(file) => {
            let keras = keras::load(file)?;
            for warning in &keras.warnings {
                console.warn(warning);
            }
            PreparedPlan::from_keras(document, file, keras, &base)?
        }
    };
    Ok(prepared.named(&path.file_stem().unwrap_or_default().to_string_lossy()))
}

/// The plan's document with the settings of the command line.
fn read_document(path: &Path, arguments: &Arguments) -> Result<Document, Failure> {
    let mut document = Document::load(path)?;
    arguments.apply_settings(&mut document)?;
    Ok(document)
}

fn print_summary(trained: &TrainSummary, console: &Console) {
    let delivered = trained.delivered();
    if let Some(test) = &delivered.test {
        console.event(&Event::from(test));
    }
    let summary = &trained.summary;
    let ending = Ending {
        summary,
        epoch: delivered.best.as_ref().map(|best| best.epoch),
        test: delivered.test.as_ref().map(|test| test.metric),
    };
    if !summary.problems.is_empty() {
        console.mention("");
    }
    console.say(&ending.text());
    console.mention(&ending.next());
    console.event(summary);
}

fn exit_of(status: Status) -> Exit {
    if status.is_success() { Exit::Done } else { Exit::No }
}

/// The last JSON line of a run that was interrupted.
#[derive(Serialize)]
struct Interrupted<'a> {
    event: &'static str,
    step: u64,
    run: &'a str,
}

fn print_interrupted(trained: &TrainSummary, arguments: &Arguments, console: &Console) -> Exit {
    let (run, step) = (&trained.summary.run, trained.given.steps);
    if !arguments.quiet {
        let when = match &trained.repair {
            Some(_) => "during the repair".to_owned(),
            None => format!("after step {step}"),
        };
        let command = Role::Literal.paint(format!("surefoot train --resume {run}"));
        to_stderr(&format!("interrupted {when}; continue with\n  {command}"));
    }
    console.event(&Interrupted { event: "interrupted", step, run });
    Exit::Interrupted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_split_at_the_first_equals_sign() {
        let cut = setting("data.source.path = a=b.csv");
        assert_eq!(cut, Ok(("data.source.path".into(), " a=b.csv".into())));
        assert!(setting("training.epochs").is_err());
        assert!(setting("=5").is_err());
    }
}
