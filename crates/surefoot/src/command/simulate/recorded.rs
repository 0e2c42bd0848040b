//! Trials that were recorded, by `surefoot tune` or in curve files.

use crate::command::stored::Stored;
use crate::failure::Failure;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use surefoot_diagnose::{Facts, Observation, Quantity};
use surefoot_record::Run;
use surefoot_tune::Direction;
use surefoot_tune::simulate::{RecordedTrial, Stretch, Task, read_taskset};
use surefoot_tune::store::{End, Trial, View};

/// What is seen of a trial that trained a plan.
const SEEN: [Quantity; 7] = [
    Quantity::Loss,
    Quantity::Metric,
    Quantity::Gradients,
    Quantity::Weights,
    Quantity::Outputs,
    Quantity::Validation,
    Quantity::Model,
];

/// The curve files that a path names: itself, or those in it.
pub(super) fn curve_files(path: &Path) -> Vec<PathBuf> {
    let is_json = |path: &Path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    };
    if path.is_file() && is_json(path) {
        return vec![path.to_owned()];
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| is_json(file));
    files.sort();
    files
}

/// The tasks of curve files.
pub(super) fn curves(files: &[PathBuf]) -> Result<Vec<Task>, Failure> {
    let tasks = files.iter().map(|file| read_taskset(file));
    let tasks: Result<Vec<Task>, _> = tasks.collect();
    tasks.map_err(|error| Failure::input(error.to_string()))
}

/// The trials of a study. Those that never reported are left out.
pub(super) fn study(stored: &Stored) -> Task {
    let view = &stored.view;
    let trials = view.trials().iter();
    let trials = trials.filter(|trial| !view.reports(trial.number).is_empty());
    Task {
        name: stored.study.name.clone(),
        trials: trials
            .map(|trial| recorded(trial, view, stored.study.direction))
            .collect(),
    }
}

fn recorded(trial: &Trial, view: &View, direction: Direction) -> RecordedTrial {
    let reports = view.reports(trial.number);
    let course = view.course(trial.number).unwrap_or_default();
    // A run that was deleted, or that is on another machine, leaves what is in the store.
    let run = trial.run.as_deref().map(Path::new);
    let seen = run.and_then(|run| Seen::read(run, reports.len()));
    let (facts, available, mut stretches) = match seen {
        Some(seen) => (seen.facts, BTreeSet::from(SEEN), seen.stretches),
        None => (Facts::default(), BTreeSet::new(), Vec::new()),
    };
    stretches.resize_with(reports.len(), || Stretch {
        observations: Vec::new(),
        evaluations: Vec::new(),
        cost: 0.0,
        spent: 0.0,
    });
    for ((stretch, report), cost) in stretches.iter_mut().zip(reports).zip(&course.costs) {
        stretch.cost = *cost;
        stretch.spent = match report.operations > 0.0 {
            true => report.operations,
            false => report.seconds,
        };
    }
    RecordedTrial {
        point: trial.point.clone(),
        facts,
        available,
        stretches,
        planned: course.planned,
        truth: match trial.end() {
            Some(End::Complete { value }) => Some(direction.cost(*value)),
            _ => None,
        },
    }
}

/// What a run directory has of a trial.
struct Seen {
    facts: Facts,
    stretches: Vec<Stretch>,
}

impl Seen {
    fn read(dir: &Path, reports: usize) -> Option<Seen> {
        let run = Run::open(dir).ok()?;
        let mut evaluations = run.evaluations().ok()?;
        evaluations.truncate(reports);
        let mut stretches = Vec::with_capacity(reports);
        let mut observations = run.observations().ok()?.peekable();
        for evaluation in evaluations {
            let mut seen: Vec<Observation> = Vec::new();
            while let Some(next) = observations.next_if(|next| {
                next.as_ref()
                    .is_ok_and(|observation| observation.step <= evaluation.step)
            }) {
                seen.extend(next);
            }
            stretches.push(Stretch {
                observations: seen,
                evaluations: vec![evaluation],
                cost: 0.0,
                spent: 0.0,
            });
        }
        Some(Seen {
            facts: run.header().facts.clone(),
            stretches,
        })
    }
}
