//! A worker process of a search.

use super::training::PlanObjective;
use super::{Arguments, Project};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::{Role, to_stderr};
use std::time::Duration;
use surefoot_diagnose::{Diagnosis, Facts, Thresholds};
use surefoot_tune::command::{CommandObjective, KeepAlive};
use surefoot_tune::storage::{Storage, StoredStudy, vectors};
use surefoot_tune::study::Task;
use surefoot_tune::worker::{Worker, WorkerExit};

/// Time between SIGTERM and SIGKILL for a command.
const GRACE: Duration = Duration::from_secs(10);

pub(super) fn run(project: &Project, arguments: &Arguments, name: &str) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen_patiently()?;
    // Another parent means that the search has died. It may have died before this line, so its process
    // id is an argument.
    let parent = arguments.parent.and_then(rustix::process::Pid::from_raw);
    let stop_requested = || interrupt.asked() || rustix::process::getppid() != parent;
    let mut storage = Storage::open_existing(&project.store)?;
    let study = storage.join(&project.study.entry())?;
    if let Some(warning) = mixed(project, &study) {
        to_stderr(&format!("{} {warning}", Role::Warning.paint("warning:")));
    }
    let config = &project.study.settings;
    let worker = Worker::new(name, config, &project.store, &project.dir, &stop_requested);
    let worker = worker?;
    let diagnosis = |facts: Facts| {
        let detectors = config.pruners.detectors();
        let any = !detectors.is_empty();
        any.then(|| Diagnosis::with(facts, Thresholds::default(), detectors))
    };
    let exit = match &project.study.task {
        Task::Command(command) => {
            let mut objective = CommandObjective {
                command: command.clone(),
                folder: project.base.clone(),
                study: project.study.name.clone(),
                direction: config.direction,
                grace: GRACE,
                diagnosis,
                keep_alive: config.keep_alive.then(|| {
                    KeepAlive::new(project.dir.join("workers").join(super::folder_name(name)))
                }),
            };
            worker.run(&mut storage, &study, &mut objective)
        }
        // Refused by the process that starts workers.
        Task::Function(_) => return Ok(Exit::No),
        Task::Plan(_) => {
            let mut objective = PlanObjective {
                study: &project.study,
                base: project.base.clone(),
                threads: project.threads,
                device: arguments.device,
                diagnosis: &diagnosis,
                data: None,
            };
            worker.run(&mut storage, &study, &mut objective)
        }
    };
    Ok(match exit? {
        WorkerExit::StudyDone | WorkerExit::BudgetSpent => Exit::Done,
        WorkerExit::Interrupted => Exit::Interrupted,
    })
}

/// The warning on a machine whose trainings differ from those of the machine that created the study.
fn mixed(project: &Project, study: &StoredStudy) -> Option<String> {
    let point = study.space.point(|parameter| parameter.domain.at(0.0));
    let plan = project.study.plan(&point).ok().flatten()?;
    difference(vectors(), &study.vectors, plan.training.portable)
}

fn difference(here: &str, there: &str, is_portable: bool) -> Option<String> {
    (here != there && !is_portable).then(|| {
        format!(
            "this machine computes with {here}, and the one that created the study with {there}: the \
             same trial does not have the same bits on both; set training.portable = true"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_with_other_vectors_are_warned_unless_the_plan_is_portable() {
        let warning = difference("AVX2", "AVX-512", false).unwrap();
        assert!(warning.contains("with AVX2, and the one that created the study with AVX-512"));
        assert_eq!(difference("AVX2", "AVX2", false), None);
        assert_eq!(difference("AVX2", "AVX-512", true), None);
    }
}
