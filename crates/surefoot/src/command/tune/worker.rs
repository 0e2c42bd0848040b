//! A worker process of a search.

use super::training::Trainer;
use super::{Arguments, Project};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use std::time::{Duration, Instant};
use surefoot_diagnose::{Diagnosis, Facts, Thresholds};
use surefoot_train::on_device;
use surefoot_tune::command::CommandRunner;
use surefoot_tune::runner::Runner;
use surefoot_tune::store::Store;
use surefoot_tune::study::Task;
use surefoot_tune::worker::{Rest, Worker};

/// How long a command that was asked to stop may take before it is killed.
const GRACE: Duration = Duration::from_secs(10);

pub(super) fn run(project: &Project, arguments: &Arguments, name: &str) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen_patiently()?;
    // If it is another one, whoever looked after this worker is dead. It may have died before this
    // line, so it has to be told who that was.
    let parent = arguments.parent.and_then(rustix::process::Pid::from_raw);
    let leave = || interrupt.asked() || rustix::process::getppid() != parent;
    let mut store = Store::open_existing(&project.store)?;
    let study = store.join(&project.entry())?;
    let settings = &project.study.settings;
    let worker = Worker {
        url: &project.store,
        name: name.to_owned(),
        settings,
        runs: &project.dir,
        leave: &leave,
        deadline: settings.time.and_then(|time| Instant::now().checked_add(time)),
    };
    let diagnosis = |facts: Facts| {
        let detectors = settings.pruners.detectors();
        let any = !detectors.is_empty();
        any.then(|| Diagnosis::with(facts, Thresholds::default(), detectors))
    };
    let rest = match &project.study.task {
        Task::Command(command) => {
            let mut runner = CommandRunner {
                command: command.clone(),
                folder: project.base.clone(),
                study: project.study.name.clone(),
                direction: settings.direction,
                grace: GRACE,
                diagnosis,
            };
            work(&worker, &mut store, &study, &mut runner)?
        }
        Task::Plan(_) => on_device!(arguments.device, |B, device| {
            let mut runner = Trainer::<B> {
                study: &project.study,
                base: project.base.clone(),
                threads: project.threads,
                device: arguments.device,
                place: device,
                diagnosis: &diagnosis,
                data: None,
            };
            work(&worker, &mut store, &study, &mut runner)
        })?,
    };
    Ok(match rest {
        Rest::Done | Rest::Spent => Exit::Done,
        Rest::Left => Exit::Interrupted,
    })
}

fn work(
    worker: &Worker<'_>,
    store: &mut Store,
    study: &surefoot_tune::store::Study,
    runner: &mut dyn Runner,
) -> Result<Rest, Failure> {
    let rest = worker.work(store, study, runner);
    rest.map_err(|trouble| Failure::broken(trouble.to_string()))
}
