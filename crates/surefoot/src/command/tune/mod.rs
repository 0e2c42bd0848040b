//! `surefoot tune`: searches for the settings of a training.
//!
//! The command itself trains nothing: it starts workers, each this program again, which take trials
//! from the store ([`worker`]), and shows what becomes of them ([`search`]). A worker that is killed takes
//! nobody with it, and one on another machine is no different.

mod pool;
mod search;
mod training;
mod worker;

use crate::command::train::job::folder_of;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Console;
use crate::output::tune::Outline;
use clap::Args;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use surefoot_plan::Document;
use surefoot_train::{Compute, Device, on_device};
use surefoot_tune::Study;
use surefoot_tune::storage::{NewStudy, Storage, StorageError, View};
use surefoot_tune::study::{Task, parse_duration};

const EXAMPLES: &str = "\
Examples:
  surefoot tune examples/tune/circles.toml
      Searches, and keeps everything in runs/circles: the store study.db, and a run directory for
      each trial. The same command goes on with a search that was interrupted or killed.

  surefoot tune circles.toml --trials 100 --workers 4
      A hundred trials in all, four side by side.

  surefoot tune circles.toml --budget 30m --sampler gp --pruner diagnosis
      Half an hour, with a Gaussian process, and only hopeless trials ended.

  surefoot tune circles.toml --store postgres://me@host/tune
      On any number of machines: all of them work at the same study.

  surefoot tune circles.toml --dry-run
      Checks the study and the store, shows what would be searched and what is there already, and
      tries nothing.

  surefoot tune circles.toml --json | tail -n 1
      The best trial as one line of JSON.

Exit codes: 0 done, 1 no trial came to a result, 2 the input is wrong, 3 something broke,
130 interrupted.";

/// Search for the settings of a training, and end trials that are hopeless
#[derive(Clone, Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The study: a TOML file, a plan with ranges where values were
    study: PathBuf,

    /// Where the study is kept: a file, or postgres://USER@HOST/DATABASE [default: RUNS/NAME/study.db]
    #[arg(long, value_name = "URL")]
    store: Option<String>,

    /// Where the directories of studies are made
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,

    /// How many trials there are in all; the same as --set tune.trials=N
    #[arg(long, value_name = "N")]
    trials: Option<NonZeroUsize>,

    /// How long to search: 90s, 30m, 1h30m; the same as --set tune.time=TIME
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    budget: Option<Duration>,

    /// How many trials run side by side on this machine [default: the study's, or one for two cores]
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,

    /// Threads that share the work of a trial [default: the cores divided by the workers]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Which point to try next: random, sobol, tpe, gp or smac; the same as --set tune.sampler=NAME
    #[arg(long, value_name = "NAME")]
    sampler: Option<String>,

    /// Who ends trials, or none; may be given several times
    #[arg(long, value_name = "NAME")]
    pruner: Vec<String>,

    /// The seed of the sampler; the same as --set tune.seed=N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,

    /// Change a setting of the study, such as training.epochs=5; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = super::train::setting)]
    settings: Vec<(String, String)>,

    /// Where to compute: cpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value_t)]
    device: Device,

    /// Print one JSON object a line on stdout, the summary last
    #[arg(long)]
    json: bool,

    /// Print nothing but errors (and JSON if asked for)
    #[arg(long, short)]
    quiet: bool,

    /// Check the study and the store, show what would be searched and try nothing
    #[arg(long)]
    dry_run: bool,

    /// Be a worker of a search that another process looks after
    #[arg(long, value_name = "NAME", hide = true, requires = "parent")]
    worker: Option<String>,

    /// The process that looks after this worker, which ends without it
    #[arg(long, value_name = "ID", hide = true, value_parser = clap::value_parser!(i32).range(1..))]
    parent: Option<i32>,
}

/// A study that is ready to be worked at.
struct Project {
    study: Study,
    /// The URL of its store.
    store: String,
    /// Where its trials have their directories.
    dir: PathBuf,
    /// The folder that the plan's files are relative to.
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
                Some(url) => url.clone(),
                None => dir.join("study.db").display().to_string(),
            },
            dir,
            base: folder_of(&arguments.study)?,
            workers,
            threads: threads.unwrap_or((cores / workers).max(1)),
            study,
        })
    }

    /// Loads the data once, so that what is wrong with them is said before the first trial and not by
    /// every one.
    fn check_data(&self) -> Result<(), Failure> {
        let middle = self.study.space.point(|parameter| parameter.domain.at(0.5));
        if let Some(plan) = self.study.plan(&middle)? {
            surefoot_data::load(&plan.data, plan.seed, &self.base)?;
        }
        Ok(())
    }

    /// The store's name for people, and what it has of the study: `None` if the study is not there.
    /// Nothing is written.
    fn found(&self) -> Result<(String, Option<View>), Failure> {
        let mut store = match Storage::open_existing(&self.store) {
            Err(StorageError::Missing { storage }) => return Ok((storage, None)),
            store => store?,
        };
        let mut view = store.find(&self.entry())?.as_ref().map(View::new);
        if let Some(view) = &mut view {
            store.refresh(view)?;
        }
        Ok((store.name().to_owned(), view))
    }

    /// The study as the store takes it.
    fn entry(&self) -> NewStudy {
        NewStudy {
            name: self.study.name.clone(),
            fingerprint: self.study.fingerprint(),
            document: self.study.text().to_owned(),
            space: self.study.space.clone(),
            direction: self.study.settings.direction,
            seed: self.study.settings.seed,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let project = Project::read(arguments)?;
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

/// A device that is not there has been refused before it comes here.
fn found_device<B: Compute>(_device: &B::Device) -> Result<(), Failure> {
    Ok(())
}

/// The study's document with the settings of the command line.
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
    let sampler = arguments.sampler.as_ref().map(|name| format!("{name:?}"));
    let flags = [
        ("tune.trials", trials),
        ("tune.time", time),
        ("tune.seed", seed),
        ("tune.sampler", sampler),
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

/// The name of a study as a folder or a file can have it.
pub(super) fn folder_name(name: &str) -> String {
    let plain = |c: char| match c.is_alphanumeric() || "-_.".contains(c) {
        true => c,
        false => '-',
    };
    let name: String = name.chars().map(plain).collect();
    // Not one that leads elsewhere.
    match Path::new(&name).file_name() {
        Some(name) => name.to_string_lossy().into_owned(),
        None => "study".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_stays_in_the_folder_of_runs() {
        assert_eq!(folder_name("my study/2"), "my-study-2");
        assert_eq!(folder_name(".."), "study");
        assert_eq!(folder_name("circles"), "circles");
    }
}
