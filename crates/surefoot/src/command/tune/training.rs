//! Trials that train a plan in this process, each with its own run directory.

use crate::failure::Failure;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use surefoot_data::Dataset;
use surefoot_diagnose::{Diagnosis, Evaluation, Facts, Finding, Split};
use surefoot_plan::{Data, Document, Missing};
use surefoot_record::{Entry, Event, Record, Recorder};
use surefoot_train::{
    Callback, Device, PreparedPlan, RepairMode, RunContext, Step, StopReason, TrainError, Trainer,
};
use surefoot_tune::diagnosis::BackgroundDiagnosis;
use surefoot_tune::study::ObjectiveKind;
use surefoot_tune::{Objective, Progress, PruneReason, Study, Trial, TrialState, WorkerError};

/// Trains the plan of a trial.
pub(super) struct PlanObjective<'a> {
    pub(super) study: &'a Study,
    /// The folder that the plan's files are relative to.
    pub(super) base: PathBuf,
    /// Threads that share a step.
    pub(super) threads: usize,
    pub(super) device: Device,
    /// Makes the diagnosis of a trial; `None` to train without one.
    pub(super) diagnosis: &'a dyn Fn(Facts) -> Option<Diagnosis>,
    /// The data of the last trial. Most studies do not change them.
    pub(super) data: Option<(Data, u64, Arc<Dataset>)>,
}

impl Objective for PlanObjective<'_> {
    fn run(&mut self, trial: &mut Trial<'_>) -> Result<TrialState, WorkerError> {
        match self.prepare(trial) {
            Ok(prepared) => self.train(Arc::new(prepared), trial),
            Err(error) => Ok(failed(error)),
        }
    }
}

impl PlanObjective<'_> {
    fn prepare(&mut self, trial: &Trial<'_>) -> Result<PreparedPlan, TrainError> {
        let text = self.study.plan_text(trial.point()).unwrap_or_default();
        let document = Document::parse(text.as_str(), "the plan of the trial")?;
        let plan = document.plan()?;
        let data = match &self.data {
            Some((data, seed, loaded)) if *data == plan.data && *seed == plan.seed => {
                Arc::clone(loaded)
            }
            _ => {
                let mut data = plan.data.clone();
                // A trial is not repaired.
                if data.missing == Missing::Keep {
                    data.missing = Missing::Refuse;
                }
                Arc::new(surefoot_data::load(&data, plan.seed, &self.base)?)
            }
        };
        self.data = Some((plan.data.clone(), plan.seed, Arc::clone(&data)));
        PreparedPlan::from_document_with_data(document, &self.base, data)
    }

    fn train(
        &self,
        prepared: Arc<PreparedPlan>,
        trial: &mut Trial<'_>,
    ) -> Result<TrialState, WorkerError> {
        let dir = trial.dir().to_owned();
        let outline = match prepared.outline(self.device) {
            Ok(outline) => outline,
            Err(error) => return Ok(failed(error)),
        };
        let measure = Measure {
            objective: self.study.settings.objective,
            operations: outline.operations as f64,
            // Without a validation split the training split is evaluated once, at the end.
            evaluations: match prepared.data().validation.len {
                0 => 1,
                _ => prepared.plan().training.epochs,
            },
        };
        let found = self.found(&prepared, trial)?;
        // It ended, and its worker died before that was stored.
        if let Found::Finished(events) = &found {
            return measure.repeat(events, trial);
        }
        if let Found::Rest = found {
            let message = |e| WorkerError::Machine(format!("cannot remove {}: {e}", dir.display()));
            std::fs::remove_dir_all(&dir).map_err(message)?;
        }
        let checker =
            (self.diagnosis)(outline.facts.clone()).map(BackgroundDiagnosis::new).transpose();
        let checker = checker
            .map_err(|error| WorkerError::Machine(format!("cannot start a thread: {error}")))?;
        let mut pruning = PruningCallback {
            stored: trial.reported(),
            trial,
            measure,
            reported: 0,
            checker,
            state: None,
            error: None,
        };
        let begun = Instant::now();
        loop {
            let mut trainer = Trainer::prepared(Arc::clone(&prepared))
                .repair(RepairMode::Off)
                .no_diagnosis()
                .workers(self.threads)
                .device(self.device);
            trainer = match &found {
                Found::Record => trainer.continue_record(Record::open(&dir).map_err(broken)?),
                _ => trainer.record_at(&dir),
            };
            let trained = trainer.callback(&mut pruning).train();
            if let Some(error) = pruning.error.take() {
                return Err(error);
            }
            match trained {
                // The worker that has it open was taken for dead, after the machine slept for
                // example. It notices with its next heartbeat.
                Err(TrainError::Record(surefoot_record::Error::Locked { .. }))
                    if begun.elapsed() < self.study.settings.patience =>
                {
                    if pruning.trial.is_interrupted() {
                        return Ok(TrialState::Waiting);
                    }
                    std::thread::sleep(LOCKED);
                }
                Err(
                    error @ (TrainError::Record(_)
                    | TrainError::Io { .. }
                    | TrainError::Callback(_)),
                ) => return Err(WorkerError::Machine(error.to_string())),
                Err(error) => return Ok(failed(error)),
                Ok(trained) => {
                    return Ok(match (pruning.state.take(), trained.reason) {
                        (Some(state), _) => state,
                        (None, StopReason::Interrupted) => TrialState::Waiting,
                        (None, _) => pruning.trial.complete(None),
                    });
                }
            }
        }
    }

    /// Inspects the directory of the trial. A directory of another study is left alone.
    fn found(&self, prepared: &PreparedPlan, trial: &Trial<'_>) -> Result<Found, WorkerError> {
        let dir = trial.dir();
        if !dir.exists() {
            return Ok(Found::Nothing);
        }
        // Only a worker that died before there was a record leaves such a directory.
        if trial.attempt() > 1 && Recorder::is_hardly_begun(dir) {
            return Ok(Found::Rest);
        }
        let record = match Record::open(dir) {
            Ok(record) => record,
            Err(surefoot_record::Error::NotARun { .. }) => return Err(WorkerError::occupied(dir)),
            // Another version, or another attempt, may be able to read it.
            Err(error) => return Err(broken(error)),
        };
        let data = surefoot_record::Digest(prepared.data().digest);
        if record.plan() != prepared.text() || record.header().environment.data != Some(data) {
            return Err(WorkerError::occupied(dir));
        }
        match record.summary().map_err(broken)? {
            Some(_) => Ok(Found::Finished(record.events().map_err(broken)?)),
            None => Ok(Found::Record),
        }
    }
}

/// Interval of retries while another process has the record open.
const LOCKED: Duration = Duration::from_millis(200);

/// Content of the directory of a trial.
enum Found {
    /// The directory does not exist.
    Nothing,
    /// Leftovers of a worker that died before there was a record.
    Rest,
    /// An unfinished record.
    Record,
    /// The events of a finished record.
    Finished(Vec<Event>),
}

fn failed(error: TrainError) -> TrialState {
    TrialState::Failed { message: Failure::from(error).message().to_owned() }
}

fn broken(error: surefoot_record::Error) -> WorkerError {
    WorkerError::Machine(error.to_string())
}

/// Converts evaluations to reports.
#[derive(Clone, Copy)]
struct Measure {
    objective: ObjectiveKind,
    /// Multiplications per step.
    operations: f64,
    /// Planned evaluations.
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
        // A finished record with a finding is that of a trial that ended early.
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

/// Reports evaluations to the pruner and stops the trial when it says so.
struct PruningCallback<'a, 't> {
    trial: &'a mut Trial<'t>,
    measure: Measure,
    /// Evaluations in the store.
    stored: u64,
    /// Evaluations reported.
    reported: u64,
    checker: Option<BackgroundDiagnosis>,
    state: Option<TrialState>,
    error: Option<WorkerError>,
}

impl PruningCallback<'_, '_> {
    fn evaluate(&mut self, evaluation: &Evaluation, run: &mut RunContext) {
        let mut findings = Vec::new();
        if let Some(checker) = &mut self.checker {
            checker.evaluate(evaluation);
            findings = checker.findings();
        }
        self.reported += 1;
        if self.reported <= self.stored {
            self.trial.add_findings(&findings);
            return;
        }
        let progress = self.measure.progress(self.reported, evaluation, findings);
        match self.trial.update(&progress) {
            Ok(None) => {}
            Ok(Some(TrialState::Pruned { value, reason })) => {
                let message = reason.message.clone();
                let mut finding = Finding::new(reason.by.clone().into(), evaluation.step, message);
                finding.evidence.clone_from(&reason.evidence);
                run.report(finding);
                // A trial that is done delivers its model: it may be the best.
                run.stop(if reason.counts { StopReason::Early } else { StopReason::Pruned });
                self.state = Some(TrialState::Pruned { value, reason });
            }
            Ok(Some(state)) => {
                self.state = (state == TrialState::Paused).then_some(state);
                run.stop(StopReason::Interrupted);
            }
            Err(error) => {
                self.error = Some(error);
                run.stop(StopReason::Interrupted);
            }
        }
    }
}

impl Callback for PruningCallback<'_, '_> {
    /// Replays the record, and reports the evaluations that are not stored yet.
    fn on_resume(
        &mut self,
        record: &Record,
        step: u64,
        run: &mut RunContext,
    ) -> Result<(), TrainError> {
        record.visit(step, |entry| match entry {
            Entry::Step(observation) => {
                if let Some(checker) = &mut self.checker {
                    checker.observe(observation);
                }
            }
            Entry::Evaluation(evaluation) if run.stop_requested().is_none() => {
                self.evaluate(evaluation, run);
            }
            Entry::Evaluation(_) => {}
        })?;
        Ok(())
    }

    fn on_step(&mut self, step: &Step<'_>, run: &mut RunContext) -> Result<(), TrainError> {
        if let Some(checker) = &mut self.checker {
            checker.observe(step.observation);
        }
        if self.trial.is_interrupted() {
            run.stop(StopReason::Interrupted);
        }
        Ok(())
    }

    fn on_evaluation(
        &mut self,
        evaluation: &Evaluation,
        run: &mut RunContext,
    ) -> Result<(), TrainError> {
        // A trial that stops is evaluated once more at its end.
        if run.stop_requested().is_none() && evaluation.split != Split::Test {
            self.evaluate(evaluation, run);
        }
        Ok(())
    }
}
