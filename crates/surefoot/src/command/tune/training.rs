//! Trials that train a plan in this process, each in its own run directory.

use crate::command::train::care::Care;
use crate::command::train::job::Job;
use crate::command::train::{delivery, environment, record};
use crate::failure::Failure;
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use surefoot_data::Dataset;
use surefoot_diagnose::{Diagnosis, Evaluation, Facts, Finding, Observation, Split};
use surefoot_plan::{Data, Document};
use surefoot_record::{
    Checkpoint, Entry, Event, MetricSummary, Record, Recorder, Result as Recorded, RunSummary,
    Status, StepDigest,
};
use surefoot_train::{Compute, Device, End, Flow, Journal, Outline, Report, Run, Watcher};
use surefoot_tune::diagnosis::BackgroundDiagnosis;
use surefoot_tune::study::ObjectiveKind;
use surefoot_tune::{Objective, Progress, PruneReason, Study, Trial, TrialState, WorkerError};

/// Trains the plan of a trial.
pub(super) struct PlanObjective<'a, B: Compute> {
    pub(super) study: &'a Study,
    /// Folder for relative paths in the plan.
    pub(super) base: PathBuf,
    /// Threads of a training step.
    pub(super) threads: usize,
    pub(super) device: Device,
    pub(super) place: B::Device,
    /// Creates the diagnosis of a trial; returns `None` for no diagnosis.
    pub(super) diagnosis: &'a dyn Fn(Facts) -> Option<Diagnosis>,
    /// Dataset of the last trial. Most studies use the same for all.
    pub(super) data: Option<(Data, u64, Arc<Dataset>)>,
}

impl<B: Compute> Objective for PlanObjective<'_, B> {
    fn run(&mut self, trial: &mut Trial<'_>) -> Result<TrialState, WorkerError> {
        let job = match self.job(trial) {
            Ok(job) => job,
            Err(failure) => return failed(failure.message()),
        };
        self.train(&job, trial)
    }
}

impl<B: Compute> PlanObjective<'_, B> {
    /// The plan and the data of a trial.
    fn job(&mut self, trial: &Trial<'_>) -> Result<Job, Failure> {
        let text = self.study.plan_text(trial.point()).unwrap_or_default();
        let document = Document::parse(text.as_str(), "the plan of the trial")?;
        let plan = document.plan()?;
        let data = match &self.data {
            Some((data, seed, loaded)) if *data == plan.data && *seed == plan.seed => {
                Arc::clone(loaded)
            }
            _ => Arc::new(surefoot_data::load(&plan.data, plan.seed, &self.base)?),
        };
        self.data = Some((plan.data.clone(), plan.seed, Arc::clone(&data)));
        let name = &self.study.name;
        Job::with_data(document, plan, text, self.base.clone(), name, None, data)
    }

    fn train(&self, job: &Job, trial: &mut Trial<'_>) -> Result<TrialState, WorkerError> {
        let dir = trial.dir().to_owned();
        let run = Run::<B>::new(&job.plan, &job.data, &[], self.threads, self.place.clone());
        let mut run = match run {
            Ok(run) => run,
            Err(error) => return failed(job.explain(error).message()),
        };
        let outline = run.outline();
        let measure = Measure {
            objective: self.study.settings.objective,
            operations: outline.operations as f64,
            // Without a validation split the training split is evaluated once, at the end.
            evaluations: match job.data.validation.len {
                0 => 1,
                _ => job.plan.training.epochs,
            },
        };
        let found = self.found(job, &outline, trial)?;
        // The run ended, but its worker died before it stored the result.
        if let Found::Finished(events) = &found {
            return measure.repeat(events, trial);
        }
        let Some((recorder, checkpoint)) = self.recorder(job, &outline, trial, &found)? else {
            return Ok(TrialState::Waiting);
        };
        let diagnosis = (self.diagnosis)(outline.facts.clone());
        let checker = diagnosis.map(BackgroundDiagnosis::new).transpose();
        let checker = checker.map_err(|error| {
            WorkerError::Machine(format!("cannot start the diagnosis thread: {error}"))
        })?;
        let checker = checker.map(RefCell::new).map(Rc::new);
        let mut journal = TrialJournal { recorder, checker: checker.clone() };
        let mut reported = 0;
        if let Some(checkpoint) = &checkpoint {
            if let Err(error) = run.restore(checkpoint) {
                return failed(&error.to_string());
            }
            for (evaluation, findings) in journal.catch_up(checkpoint.step).map_err(broken)? {
                reported += 1;
                // Reported by an earlier attempt.
                if reported <= trial.reported() {
                    continue;
                }
                let progress = measure.progress(reported, &evaluation, findings);
                if let Some(state) = trial.update(&progress)? {
                    if let TrialState::Pruned { reason, .. } = &state {
                        journal.note(reason, evaluation.step).map_err(broken)?;
                    }
                    return Ok(state);
                }
            }
        }
        let mut overseer = Overseer {
            trial,
            measure,
            reported,
            checker,
            flow: Cell::new(Flow::GoOn),
            requested: None,
            error: None,
        };
        let begun = Instant::now();
        let report = run.train(&mut journal, &mut overseer);
        let (requested, error) = (overseer.requested, overseer.error);
        if let Some(error) = error {
            return Err(error);
        }
        let report = report.map_err(|error| WorkerError::Machine(error.to_string()))?;
        let deliver = |recorder: Recorder| {
            let summary = summary(&outline, &report, begun, &dir);
            delivery::write(recorder, &report, &job.text, &summary).map_err(broken)
        };
        match (report.end, requested) {
            (_, Some(state)) => {
                if let TrialState::Pruned { reason, .. } = &state {
                    journal.note(reason, report.steps).map_err(broken)?;
                    // A trial that has converged may be the best, so its model is kept.
                    if reason.counts {
                        deliver(journal.recorder)?;
                    }
                }
                Ok(state)
            }
            (End::Interrupted | End::Paused, _) => Ok(TrialState::Waiting),
            (End::Finished | End::Hopeless, _) => {
                deliver(journal.recorder)?;
                Ok(overseer.trial.complete(None))
            }
        }
    }

    /// Content of the trial directory. Fails if it belongs to another study.
    fn found(&self, job: &Job, outline: &Outline, trial: &Trial<'_>) -> Result<Found, WorkerError> {
        let dir = trial.dir();
        if !dir.exists() {
            return Ok(Found::Nothing);
        }
        // Left by a worker that died before it created the record.
        if trial.attempt() > 1 && Recorder::is_hardly_begun(dir) {
            return Ok(Found::Remains);
        }
        let record = match Record::open(dir) {
            Ok(record) => record,
            Err(surefoot_record::Error::NotARun { .. }) => return Err(WorkerError::occupied(dir)),
            Err(error) => return Err(broken(error)),
        };
        if record.plan() != job.text || record.header().environment.data != Some(outline.data) {
            return Err(WorkerError::occupied(dir));
        }
        match record.summary().map_err(broken)? {
            Some(_) => Ok(Found::Finished(record.events().map_err(broken)?)),
            None => Ok(Found::Record),
        }
    }

    /// A new record, or that of an earlier attempt to continue. `None` if interrupted.
    fn recorder(
        &self,
        job: &Job,
        outline: &Outline,
        trial: &Trial<'_>,
        found: &Found,
    ) -> Result<Option<(Recorder, Option<Checkpoint>)>, WorkerError> {
        let dir = trial.dir();
        let now = environment::of(outline.data, self.threads, self.device);
        if !matches!(found, Found::Record) {
            if matches!(found, Found::Remains) {
                let removed = std::fs::remove_dir_all(dir);
                let message =
                    |e| WorkerError::Machine(format!("cannot remove {}: {e}", dir.display()));
                removed.map_err(message)?;
            }
            let header = record::header(job, outline, now, Care::Off);
            let recorder = Recorder::create_at(dir, &job.text, header).map_err(broken)?;
            return Ok(Some((recorder, None)));
        }
        let begun = Instant::now();
        loop {
            match Recorder::resume(dir, &now) {
                // A worker with an overdue heartbeat may still hold it, for example after the machine slept.
                // It stops at its next heartbeat.
                Err(surefoot_record::Error::Locked { .. })
                    if begun.elapsed() < self.study.settings.patience =>
                {
                    if trial.is_interrupted() {
                        return Ok(None);
                    }
                    std::thread::sleep(RETRY);
                }
                resumed => return resumed.map(Some).map_err(broken),
            }
        }
    }
}

fn summary(outline: &Outline, report: &Report, begun: Instant, dir: &Path) -> RunSummary {
    RunSummary {
        status: Status::Normal,
        problems: Vec::new(),
        remedies: Vec::new(),
        metric: MetricSummary {
            name: outline.metric.to_owned(),
            before: report.last.as_ref().and_then(|last| last.metric),
            after: report.best.as_ref().and_then(|best| best.metric),
        },
        steps: report.steps,
        seconds: begun.elapsed().as_secs_f64(),
        digest: report.digest,
        run: dir.display().to_string(),
    }
}

/// Interval at which a locked record is tried again.
const RETRY: Duration = Duration::from_millis(200);

/// Content of a trial directory.
enum Found {
    /// No directory.
    Nothing,
    /// Remains of a worker that died before it created the record.
    Remains,
    /// A record to continue.
    Record,
    /// A finished record, with its events.
    Finished(Vec<Event>),
}

fn failed(message: &str) -> Result<TrialState, WorkerError> {
    Ok(TrialState::Failed { message: message.to_owned() })
}

fn broken(error: surefoot_record::Error) -> WorkerError {
    WorkerError::Machine(error.to_string())
}

/// Converts evaluations to reports.
#[derive(Clone, Copy)]
struct Measure {
    objective: ObjectiveKind,
    /// Multiplications of one step.
    operations: f64,
    /// Total number of evaluations.
    evaluations: u64,
}

impl Measure {
    fn progress(&self, step: u64, evaluation: &Evaluation, findings: Vec<Finding>) -> Progress {
        Progress {
            step,
            planned: Some(self.evaluations),
            value: match self.objective {
                ObjectiveKind::Loss => evaluation.loss,
                _ => evaluation.metric.unwrap_or(f64::NAN),
            },
            operations: self.operations * evaluation.step as f64,
            findings,
        }
    }

    /// Reports the evaluations of a finished record.
    fn repeat(&self, events: &[Event], trial: &mut Trial<'_>) -> Result<TrialState, WorkerError> {
        let evaluations = events.iter().filter_map(Event::evaluation);
        let judged = evaluations.filter(|e| e.split != Split::Test);
        for (step, evaluation) in (1..).zip(judged) {
            trial.update(&self.progress(step, &evaluation, Vec::new()))?;
        }
        // Of pruned trials only converged ones have a finished record.
        let done = events.iter().rev().find_map(|event| match event {
            Event::Finding(finding) => Some(finding.clone().warning()),
            _ => None,
        });
        Ok(match done {
            Some(done) => trial.pruned(PruneReason::from(&done)),
            None => trial.complete(None),
        })
    }
}

/// Records a trial and passes it to the diagnosis.
struct TrialJournal {
    recorder: Recorder,
    checker: Option<Rc<RefCell<BackgroundDiagnosis>>>,
}

impl TrialJournal {
    /// Diagnoses the recorded steps up to a checkpoint. Returns the evaluations with the findings up to
    /// each.
    fn catch_up(&mut self, step: u64) -> Recorded<Vec<(Evaluation, Vec<Finding>)>> {
        let record = Record::open(self.recorder.dir())?;
        let mut evaluations = record.evaluations()?;
        evaluations.retain(|evaluation| evaluation.step <= step);
        let Some(checker) = &self.checker else {
            let unchecked = evaluations.into_iter().map(|e| (e, Vec::new()));
            return Ok(unchecked.collect());
        };
        let mut checker = checker.borrow_mut();
        let mut seen = Vec::with_capacity(evaluations.len());
        record.visit(step, |entry| match entry {
            Entry::Step(observation) => checker.observe(observation),
            Entry::Evaluation(evaluation) => {
                checker.evaluate(evaluation);
                seen.push((evaluation.clone(), checker.findings()));
            }
        })?;
        Ok(seen)
    }

    /// Records why the trial was pruned.
    fn note(&mut self, reason: &PruneReason, step: u64) -> Recorded<()> {
        let mut finding = Finding::new(reason.by.clone().into(), step, reason.message.clone());
        finding.evidence.clone_from(&reason.evidence);
        self.recorder.event(&Event::Finding(finding))?;
        self.recorder.sync()
    }
}

impl Journal for TrialJournal {
    fn wants_digests(&self) -> bool {
        true
    }

    fn observe(&mut self, observation: &Observation) {
        self.recorder.observe(observation);
        if let Some(checker) = &self.checker {
            checker.borrow_mut().observe(observation);
        }
    }

    fn digest(&mut self, step: &StepDigest) {
        self.recorder.digest(step);
    }

    fn event(&mut self, event: &Event) -> Recorded<()> {
        self.recorder.event(event)
    }

    fn evaluation(&mut self, evaluation: &Evaluation) -> Recorded<()> {
        if let Some(checker) = &self.checker {
            checker.borrow_mut().evaluate(evaluation);
        }
        self.recorder.evaluation(evaluation)
    }

    fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Recorded<()> {
        self.recorder.checkpoint(checkpoint).map(|_| ())
    }

    fn sync(&mut self) -> Recorded<()> {
        self.recorder.sync()
    }
}

/// Reports evaluations and stops the training when the trial is pruned.
struct Overseer<'a, 't> {
    trial: &'a mut Trial<'t>,
    measure: Measure,
    /// Number of reported evaluations.
    reported: u64,
    checker: Option<Rc<RefCell<BackgroundDiagnosis>>>,
    flow: Cell<Flow>,
    requested: Option<TrialState>,
    error: Option<WorkerError>,
}

impl Watcher for Overseer<'_, '_> {
    fn step(&mut self, _: &surefoot_train::Progress) {}

    fn evaluated(&mut self, evaluation: &Evaluation) {
        // A pruned trial is evaluated once more at its end.
        if self.flow.get() != Flow::GoOn || evaluation.split == Split::Test {
            return;
        }
        let checker = self.checker.as_ref();
        let found = checker.map(|checker| checker.borrow_mut().findings());
        let findings = found.unwrap_or_default();
        self.reported += 1;
        let progress = self.measure.progress(self.reported, evaluation, findings);
        match self.trial.update(&progress) {
            Ok(None) => {}
            Ok(Some(state)) => {
                let is_pruned = state.is_final();
                self.flow.set(if is_pruned { Flow::GiveUp } else { Flow::Interrupt });
                self.requested = is_pruned.then_some(state);
            }
            Err(error) => {
                self.error = Some(error);
                self.flow.set(Flow::Interrupt);
            }
        }
    }

    fn flow(&self) -> Flow {
        if self.flow.get() == Flow::GoOn && self.trial.is_interrupted() {
            self.flow.set(Flow::Interrupt);
        }
        self.flow.get()
    }
}
