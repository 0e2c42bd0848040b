//! Recorded trials from stores and curve files.

use super::Arguments;
use crate::command::stored::{self, Stored};
use crate::failure::Failure;
use crate::output::Console;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use surefoot_diagnose::{Evaluation, Facts, Observation, Quantity};
use surefoot_record::Record;
use surefoot_tune::command::recorded_reports;
use surefoot_tune::simulate::{RecordedEpoch, RecordedTrial, Task, read_taskset};
use surefoot_tune::storage::{FrozenTrial, TrialReport, TrialState};
use surefoot_tune::{Space, Study};

/// Quantities recorded for a trial that trained a plan.
const SEEN: [Quantity; 7] = [
    Quantity::Loss,
    Quantity::Metric,
    Quantity::Gradients,
    Quantity::Weights,
    Quantity::Outputs,
    Quantity::Validation,
    Quantity::Model,
];

/// A recorded task.
pub(super) struct Recorded {
    pub(super) task: Task,
    /// Path as given, or the URL without its password.
    store: String,
    /// Search problem of a study.
    pub(super) problem: Option<SearchProblem>,
    /// True if the sampler learned from results.
    pub(super) learns: bool,
}

/// Trials of equal problems are comparable.
#[derive(PartialEq)]
pub(super) struct SearchProblem {
    text: String,
    pub(super) space: Space,
}

impl Recorded {
    /// Reads all stores and curve files.
    pub(super) fn read(arguments: &Arguments, console: &Console) -> Result<Vec<Recorded>, Failure> {
        let mut records = Vec::new();
        let mut places = BTreeSet::new();
        for store in &arguments.stores {
            let path = Path::new(store);
            if Record::open(path).is_ok() {
                let message = format!("{store} is a run, not a study");
                return Err(Failure::input(message).help("pass the study directory instead"));
            }
            let files = curve_files(path);
            if !files.is_empty() {
                let curves = curves(&files)?.into_iter();
                records.extend(curves.map(|task| Recorded {
                    task,
                    store: store.clone(),
                    problem: None,
                    learns: false,
                }));
                continue;
            }
            let url = stored::url(store).ok_or_else(|| not_there(path))?;
            let stored = stored::open(&url, arguments.study.as_deref())?;
            let file = stored.file.as_ref().and_then(|f| f.canonicalize().ok());
            let place = file.map_or_else(|| stored.name.clone(), |f| f.display().to_string());
            // The URL may contain a password; the name does not.
            let shown = match stored.file {
                Some(_) => store,
                None => &stored.name,
            };
            if !places.insert((place, stored.study.name.clone())) {
                return Err(Failure::input(format!("{shown} is given twice")));
            }
            records.push(Recorded::study(shown, &stored, arguments, console)?);
        }
        if records.iter().all(|record| record.task.trials.is_empty()) {
            let message = format!("{} has no trials", arguments.stores.join(", "));
            return Err(Failure::input(message));
        }
        tell_apart(&mut records);
        Ok(records)
    }

    fn study(
        store: &str,
        stored: &Stored,
        arguments: &Arguments,
        console: &Console,
    ) -> Result<Recorded, Failure> {
        let task = task(stored);
        if task.trials.is_empty() {
            let message = format!("{} has no trials with reports", stored.name);
            return Err(Failure::input(message));
        }
        warn_of_stopped(stored, arguments, console);
        warn_of_unseen(stored, &task, console);
        let document = &stored.study.document;
        let study = Study::parse(document, stored.name.as_str());
        if study.is_err() {
            console.warn(&format!(
                "{}: unknown sampler; assuming one that does not learn",
                stored.name
            ));
        }
        let learns = |study: &Study| study.settings.sampler.learns();
        Ok(Recorded {
            task,
            store: store.to_owned(),
            learns: study.as_ref().is_ok_and(learns),
            problem: Some(SearchProblem {
                text: study.map_or_else(|_| document.clone(), |study| study.comparable_text()),
                space: stored.study.space.clone(),
            }),
        })
    }
}

/// Adds the store to duplicate names.
fn tell_apart(records: &mut [Recorded]) {
    let mut names = BTreeSet::new();
    for Recorded { task, store, .. } in records {
        if !names.insert(task.name.clone()) {
            task.name = format!("{} of {store}", task.name);
        }
    }
}

/// Warns about pruned trials, whose final values are unknown.
fn warn_of_stopped(stored: &Stored, arguments: &Arguments, console: &Console) {
    let trials = stored.view.trials();
    let is_stopped =
        |trial: &&FrozenTrial| matches!(trial.final_state(), Some(TrialState::Pruned { .. }));
    let stopped = trials.iter().filter(is_stopped).count();
    if stopped > 0 {
        let so = match arguments.sampler {
            Some(_) => "they are excluded",
            None => "savings are underestimated",
        };
        console.warn(&format!(
            "{}: {stopped} of {} trials were pruned, so their final values are unknown and {so}; record a \
             study with --pruner none",
            stored.name,
            trials.len()
        ));
    }
}

/// Warns about trials without losses: indicators cannot inspect them.
fn warn_of_unseen(stored: &Stored, task: &Task, console: &Console) {
    let trials = task.trials.iter();
    let unseen = trials.filter(|trial| trial.available.is_empty()).count();
    if unseen > 0 {
        console.warn(&format!(
            "{}: {unseen} of {} trials reported no losses or have no directory here; indicators skip them",
            stored.name,
            task.trials.len()
        ));
    }
}

/// Error for a path without a record.
fn not_there(path: &Path) -> Failure {
    let shown = path.display();
    if !path.exists() {
        return Failure::input(format!("{shown} does not exist"));
    }
    let failure = Failure::input(format!("{shown} is not a store, study or curve file"));
    let within = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut studies: Vec<String> = within
        .map(|entry| entry.path().display().to_string())
        .filter(|path| stored::url(path).is_some())
        .collect();
    studies.sort();
    match studies.is_empty() {
        true => failure,
        false => failure.help(format!("it contains studies: {}", studies.join(", "))),
    }
}

/// The curve file at a path, or those in a directory.
fn curve_files(path: &Path) -> Vec<PathBuf> {
    let is_json = |path: &Path| path.extension().is_some_and(|extension| extension == "json");
    if path.is_file() && is_json(path) {
        return vec![path.to_owned()];
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| is_json(file));
    files.sort();
    files
}

/// Reads curve files.
fn curves(files: &[PathBuf]) -> Result<Vec<Task>, Failure> {
    let tasks = files.iter().map(|file| read_taskset(file));
    let tasks: Result<Vec<Task>, _> = tasks.collect();
    tasks.map_err(|error| Failure::input(error.to_string()))
}

/// The trials of a study that have reports.
fn task(stored: &Stored) -> Task {
    let view = &stored.view;
    let trials = view.trials().iter();
    let trials = trials.filter(|trial| !view.reports(trial.number).is_empty());
    Task {
        name: stored.study.name.clone(),
        trials: trials.map(|trial| recorded(trial, stored)).collect(),
    }
}

fn recorded(trial: &FrozenTrial, stored: &Stored) -> RecordedTrial {
    let (view, direction) = (&stored.view, stored.study.direction);
    let reports = view.reports(trial.number);
    let curve = view.curve(trial.number).unwrap_or_default();
    // Without the run directory only the reports in the store are available.
    let mut places = places(trial, stored).into_iter();
    let seen = places
        .find_map(|run| Seen::read(&run, reports).or_else(|| Seen::of_command(&run, reports)));
    let (facts, available, mut epochs) = match seen {
        Some(seen) => (seen.facts, seen.available, seen.epochs),
        None => (Facts::default(), BTreeSet::new(), Vec::new()),
    };
    epochs.resize_with(reports.len(), || RecordedEpoch {
        observations: Vec::new(),
        evaluations: Vec::new(),
        cost: 0.0,
        spent: 0.0,
    });
    for ((epoch, report), cost) in epochs.iter_mut().zip(reports).zip(&curve.costs) {
        epoch.cost = *cost;
        epoch.spent = match report.operations > 0.0 {
            true => report.operations,
            false => report.seconds,
        };
    }
    RecordedTrial {
        point: trial.point.clone(),
        facts,
        available,
        epochs,
        planned: curve.planned,
        truth: match trial.final_state() {
            Some(TrialState::Complete { value }) => Some(direction.cost(*value)),
            _ => None,
        },
    }
}

/// Possible directories of the run of a trial: as recorded, which may be relative to another directory, and beside its
/// store.
fn places(trial: &FrozenTrial, stored: &Stored) -> Vec<PathBuf> {
    let run = trial.run.as_deref().map(PathBuf::from);
    let beside = || Some(stored.file.as_ref()?.parent()?.join(run.as_ref()?.file_name()?));
    let beside = beside();
    run.into_iter().chain(beside).collect()
}

/// A trial as a run directory holds it.
struct Seen {
    facts: Facts,
    available: BTreeSet<Quantity>,
    epochs: Vec<RecordedEpoch>,
}

impl Seen {
    fn read(dir: &Path, reports: &[TrialReport]) -> Option<Seen> {
        let run = Record::open(dir).ok()?;
        let mut evaluations = run.evaluations().ok()?;
        evaluations.truncate(reports.len());
        // That of another study may be in its place.
        let is_reported = |(evaluation, report): (&Evaluation, &TrialReport)| {
            let values = [Some(evaluation.loss), evaluation.metric];
            let mut bits = values.iter().flatten().map(|value| value.to_bits());
            report.value.is_nan() || bits.any(|bits| bits == report.value.to_bits())
        };
        if !evaluations.iter().zip(reports).all(is_reported) {
            return None;
        }
        let mut epochs = Vec::with_capacity(reports.len());
        let mut observations = run.observations().ok()?.peekable();
        for evaluation in evaluations {
            let mut seen: Vec<Observation> = Vec::new();
            while let Some(next) = observations.next_if(|next| {
                next.as_ref().is_ok_and(|observation| observation.step <= evaluation.step)
            }) {
                seen.extend(next);
            }
            epochs.push(RecordedEpoch {
                observations: seen,
                evaluations: vec![evaluation],
                cost: 0.0,
                spent: 0.0,
            });
        }
        Some(Seen { facts: run.header().facts.clone(), available: BTreeSet::from(SEEN), epochs })
    }

    /// Losses and layers that a command reported.
    fn of_command(dir: &Path, reports: &[TrialReport]) -> Option<Seen> {
        let lines = recorded_reports(dir).ok()?;
        lines.iter().find(|line| line.observation.is_some())?;
        let layers = lines.last().map(|line| line.layers.clone()).unwrap_or_default();
        let mut available = BTreeSet::from([Quantity::Loss]);
        if !layers.is_empty() {
            available.extend([Quantity::Gradients, Quantity::Outputs]);
        }
        let observed = lines.iter().filter(|line| line.observation.is_some()).count();
        let facts = Facts {
            layers,
            epochs: lines.iter().rev().find_map(|line| line.epochs),
            // One loss an epoch, or one a step.
            steps_per_epoch: Some((observed / reports.len().max(1)).max(1) as u64),
            ..Facts::default()
        };
        let mut epochs: Vec<RecordedEpoch> = Vec::new();
        let mut observations = Vec::new();
        for line in lines {
            observations.extend(line.observation);
            if line.step.is_some() {
                epochs.push(RecordedEpoch {
                    observations: std::mem::take(&mut observations),
                    evaluations: Vec::new(),
                    cost: 0.0,
                    spent: 0.0,
                });
            }
        }
        // The directory may be that of another study.
        (epochs.len() == reports.len()).then_some(Seen { facts, available, epochs })
    }
}
