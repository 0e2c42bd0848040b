//! `surefoot tune`: hyperparameter search.
//!
//! The command spawns worker processes of the same program, which claim trials from the store
//! ([`worker`]), and shows their progress ([`search`]). A crashed worker affects only its trial, and workers
//! on other machines work alike.

mod pool;
mod search;
mod training;
mod worker;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Console;
use crate::output::tune::Outline;
use clap::Args;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use surefoot_plan::Document;
use surefoot_train::{Compute, Device, on_device, plan_folder};
use surefoot_tune::Study;
use surefoot_tune::storage::{Storage, StorageError, View};
use surefoot_tune::study::{Task, parse_duration};

/// Value of `--store` for a URL on standard input.
const FROM_STDIN: &str = "-";

const EXAMPLES: &str = "\
Examples:
  surefoot tune examples/tune/circles.toml
      Search, with the store study.db and a run directory per trial in runs/circles. Run the same
      command again to continue an interrupted search.

  surefoot tune circles.toml --trials 100 --workers 4
      Search with the epochs of 100 full trainings, four trials at a time.

  surefoot tune circles.toml --budget 30m --sampler gp --pruner diagnosis
      Search for half an hour with a Gaussian process; prune only trials with training problems.
      Naming a sampler or a pruner turns the default scheduler off; --scheduler turns one on.

  surefoot tune circles.toml --store postgres://me@host/tune
      Share the study among any number of machines.

  surefoot tune circles.toml --dry-run
      Check the study and the store, and show the search space and existing trials.

  surefoot tune circles.toml --json | tail -n 1
      Print the best trial as one line of JSON.

Exit codes: 0 success, 1 no trial produced a result, 2 invalid input, 3 internal error,
130 interrupted.";

/// Search for hyperparameters; pause or prune bad trials
#[derive(Clone, Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Study file: a plan in TOML with ranges in place of values
    study: PathBuf,

    /// Store: a file, postgres://USER@HOST/DATABASE, or - to read it from stdin [default: RUNS/NAME/study.db]
    #[arg(long, value_name = "URL")]
    store: Option<String>,

    /// Parent of the study directories
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,

    /// Number of trials, or with a scheduler the epochs of so many full trainings; same as --set
    /// tune.trials=N
    #[arg(long, value_name = "N")]
    trials: Option<NonZeroUsize>,

    /// Time budget: 90s, 30m, 1h30m; same as --set tune.time=TIME
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    budget: Option<Duration>,

    /// Parallel trials on this machine [default: from the study, or one per two cores]
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,

    /// Threads per trial [default: cores / workers]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Scheduler: freeze_thaw, asha, hyperband or none; same as --set tune.scheduler=NAME
    #[arg(long, value_name = "NAME")]
    scheduler: Option<String>,

    /// Sampler: random, sobol, tpe, gp or smac; same as --set tune.sampler=NAME
    #[arg(long, value_name = "NAME")]
    sampler: Option<String>,

    /// Pruner or indicator, or none; repeatable
    #[arg(long, value_name = "NAME")]
    pruner: Vec<String>,

    /// Seed of the sampler; same as --set tune.seed=N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,

    /// Override a key of the study, such as training.epochs=5; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = super::train::setting)]
    settings: Vec<(String, String)>,

    /// Device: cpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value_t)]
    device: Device,

    /// Print one JSON object per line on stdout, the summary last
    #[arg(long)]
    json: bool,

    /// Print only errors (and JSON with --json)
    #[arg(long, short)]
    quiet: bool,

    /// Check the study and the store without running trials
    #[arg(long)]
    dry_run: bool,

    /// Run as a worker of another process
    #[arg(long, value_name = "NAME", hide = true, requires = "parent")]
    worker: Option<String>,

    /// Parent process; the worker ends with it
    #[arg(long, value_name = "ID", hide = true, value_parser = clap::value_parser!(i32).range(1..))]
    parent: Option<i32>,
}

/// A loaded study with its directories and resources.
struct Project {
    study: Study,
    /// URL of the store.
    store: String,
    /// Directory of the trials.
    dir: PathBuf,
    /// Directory for relative paths in the plan.
    base: PathBuf,
    workers: usize,
    threads: usize,
}

impl Project {
    fn read(arguments: &Arguments) -> Result<Project, Failure> {
        let study = Study::of(document(arguments)?)?;
        let dir = arguments.runs.join(folder_name(&study.name));
        let cores = super::workers(None);
        let asked = arguments.workers.map(NonZeroUsize::get);
        let workers = asked.or(study.settings.workers).unwrap_or(cores.div_ceil(2));
        let threads = arguments.threads.map(NonZeroUsize::get);
        Ok(Project {
            store: match &arguments.store {
                Some(url) if url == FROM_STDIN => {
                    let mut line = String::new();
                    let read = std::io::stdin().read_line(&mut line);
                    read.map_err(|error| Failure::input(format!("cannot read stdin: {error}")))?;
                    line.trim().to_owned()
                }
                Some(url) => url.clone(),
                None => dir.join("study.db").display().to_string(),
            },
            dir,
            base: plan_folder(&arguments.study)?,
            workers,
            threads: threads.unwrap_or((cores / workers).max(1)),
            study,
        })
    }

    /// Loads the data once to report errors before the first trial.
    fn check_data(&self) -> Result<(), Failure> {
        let middle = self.study.space.point(|parameter| parameter.domain.at(0.5));
        if let Some(plan) = self.study.plan(&middle)? {
            surefoot_data::load(&plan.data, plan.seed, &self.base)?;
        }
        Ok(())
    }

    /// Display name of the store and the trials in it; `None` for a new study. Read-only.
    fn found(&self) -> Result<(String, Option<View>), Failure> {
        let mut store = match Storage::open_existing(&self.store) {
            Err(StorageError::Missing { storage }) => return Ok((storage, None)),
            store => store?,
        };
        let mut view = store.find(&self.study.entry())?.as_ref().map(View::new);
        if let Some(view) = &mut view {
            store.refresh(view)?;
        }
        Ok((store.name().to_owned(), view))
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let project = Project::read(arguments)?;
    if let Task::Function(name) = &project.study.task {
        let message = format!("the study calls the Python function `{name}`");
        return Err(Failure::input(message).help("run the program that calls `surefoot.tune`"));
    }
    if let Some(name) = &arguments.worker {
        return worker::run(&project, arguments, name);
    }
    let console = Console::new(arguments.json, arguments.quiet);
    if let Task::Plan(_) = project.study.task {
        on_device!(arguments.device, |B, device| found_device::<B>(&device))?;
    }
    project.check_data()?;
    if arguments.dry_run {
        let (store, found) = project.found()?;
        let outline = Outline {
            study: &project.study,
            store: &store,
            found: found.as_ref(),
            workers: project.workers,
            threads: project.threads,
        };
        outline.show(&console);
        return Ok(Exit::Done);
    }
    search::run(&project, arguments, &console)
}

/// `on_device!` has already rejected missing devices.
fn found_device<B: Compute>(_device: &B::Device) -> Result<(), Failure> {
    Ok(())
}

/// The study with the overrides of the command line.
fn document(arguments: &Arguments) -> Result<Document, Failure> {
    let mut document = Document::load(&arguments.study)?;
    let trials = arguments.trials.map(|n| n.to_string());
    let seed = arguments.seed.map(|n| n.to_string());
    let time = arguments.budget.map(|time| format!("'{}s'", time.as_secs_f64()));
    let pruners = match arguments.pruner.as_slice() {
        [] => None,
        names => Some(format!("{names:?}")),
    };
    let pruners = match pruners.as_deref() {
        Some(r#"["none"]"#) => Some("'none'".to_owned()),
        _ => pruners,
    };
    let quoted = |name: &Option<String>| name.as_ref().map(|name| format!("{name:?}"));
    let flags = [
        ("tune.trials", trials),
        ("tune.time", time),
        ("tune.seed", seed),
        ("tune.scheduler", quoted(&arguments.scheduler)),
        ("tune.sampler", quoted(&arguments.sampler)),
        ("tune.pruner", pruners),
    ];
    for (key, value) in &arguments.settings {
        document.set(key, value)?;
    }
    for (key, value) in flags {
        if let Some(value) = value {
            document.set(key, &value)?;
        }
    }
    Ok(document)
}

/// A study name as a file name.
pub(super) fn folder_name(name: &str) -> String {
    let plain = |c: char| match c.is_alphanumeric() || "-_.".contains(c) {
        true => c,
        false => '-',
    };
    let name: String = name.chars().map(plain).collect();
    // `..` must not leave the directory.
    match Path::new(&name).file_name() {
        Some(name) => name.to_string_lossy().into_owned(),
        None => "study".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn study_names_become_safe_file_names() {
        assert_eq!(folder_name("my study/2"), "my-study-2");
        assert_eq!(folder_name(".."), "study");
        assert_eq!(folder_name("circles"), "circles");
    }
}
