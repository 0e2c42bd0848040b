//! Trials that train a plan in this process, each with a run directory of its own.

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
use surefoot_tune::checker::Checker;
use surefoot_tune::runner::{Assignment, Ended, Order, Progress, Runner, Supervisor, Trouble};
use surefoot_tune::study::ObjectiveKind;
use surefoot_tune::{PruneReason, Study};

/// Trains the plan of a trial.
pub(super) struct Trainer<'a, B: Compute> {
    pub(super) study: &'a Study,
    /// The folder that the plan's files are relative to.
    pub(super) base: PathBuf,
    /// Threads that share the work of a step.
    pub(super) threads: usize,
    pub(super) device: Device,
    pub(super) place: B::Device,
    /// Makes the diagnosis of a trial; `None` if there is to be none.
    pub(super) diagnosis: &'a dyn Fn(Facts) -> Option<Diagnosis>,
    /// What the last trial learned from. Most studies leave the data as they are.
    pub(super) data: Option<(Data, u64, Arc<Dataset>)>,
}

impl<B: Compute> Runner for Trainer<'_, B> {
    fn run(
        &mut self,
        trial: &Assignment<'_>,
        supervisor: &mut dyn Supervisor,
    ) -> Result<Ended, Trouble> {
        let job = match self.job(trial) {
            Ok(job) => job,
            Err(failure) => return Ok(Ended::Failed(failure.message().to_owned())),
        };
        self.train(&job, trial, supervisor)
    }
}

impl<B: Compute> Trainer<'_, B> {
    /// What the trial trains.
    fn job(&mut self, trial: &Assignment<'_>) -> Result<Job, Failure> {
        let text = self.study.plan_text(trial.point).unwrap_or_default();
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

    fn train(
        &self,
        job: &Job,
        trial: &Assignment<'_>,
        supervisor: &mut dyn Supervisor,
    ) -> Result<Ended, Trouble> {
        let run = Run::<B>::new(&job.plan, &job.data, &[], self.threads, self.place.clone());
        let mut run = match run {
            Ok(run) => run,
            Err(error) => return Ok(Ended::Failed(job.explain(error).message().to_owned())),
        };
        let outline = run.outline();
        let measure = Measure {
            objective: self.study.settings.objective,
            operations: outline.operations as f64,
            // Without a validation split the training split is judged, once, at the end.
            evaluations: match job.data.validation.len {
                0 => 1,
                _ => job.plan.training.epochs,
            },
        };
        let found = self.found(job, &outline, trial)?;
        // It ended, and whoever ran it died before that was in the store.
        if let Found::Finished(events) = &found {
            return measure.repeat(events, supervisor);
        }
        let Some((recorder, checkpoint)) =
            self.recorder(job, &outline, trial, &found, supervisor)?
        else {
            return Ok(Ended::Interrupted);
        };
        let diagnosis = (self.diagnosis)(outline.facts.clone());
        let checker = match diagnosis.map(Checker::new).transpose() {
            Ok(checker) => checker.map(RefCell::new).map(Rc::new),
            Err(error) => return Err(Trouble::Machine(format!("no thread to check in: {error}"))),
        };
        let mut journal = TrialJournal { recorder, checker: checker.clone() };
        let mut reported = 0;
        if let Some(checkpoint) = &checkpoint {
            if let Err(error) = run.restore(checkpoint) {
                return Ok(Ended::Failed(error.to_string()));
            }
            for (evaluation, findings) in journal.catch_up(checkpoint.step).map_err(broken)? {
                reported += 1;
                // What the store knows of was judged then.
                if reported <= trial.reported {
                    continue;
                }
                match supervisor.report(&measure.progress(reported, &evaluation, findings))? {
                    Order::GoOn => {}
                    Order::Stop(reason) => {
                        journal.note(&reason, evaluation.step).map_err(broken)?;
                        return Ok(Ended::Stopped(reason));
                    }
                    Order::Interrupt => return Ok(Ended::Interrupted),
                }
            }
        }
        let mut overseer = Overseer {
            supervisor,
            measure,
            reported,
            checker,
            flow: Cell::new(Flow::GoOn),
            order: None,
            trouble: None,
        };
        let begun = Instant::now();
        let report = run.train(&mut journal, &mut overseer);
        let (order, trouble) = (overseer.order, overseer.trouble);
        if let Some(trouble) = trouble {
            return Err(trouble);
        }
        let report = report.map_err(|error| Trouble::Machine(error.to_string()))?;
        match (report.end, order) {
            // It is not bad, only done, and may be the best: its model is what the search is for.
            (_, Some(Order::Stop(reason))) if reason.counts => {
                journal.note(&reason, report.steps).map_err(broken)?;
                let summary = summary(&outline, &report, begun, trial.dir);
                delivery::write(journal.recorder, &report, &job.text, &summary).map_err(broken)?;
                Ok(Ended::Stopped(reason))
            }
            (_, Some(Order::Stop(reason))) => {
                journal.note(&reason, report.steps).map_err(broken)?;
                Ok(Ended::Stopped(reason))
            }
            (End::Interrupted | End::Paused, _) => Ok(Ended::Interrupted),
            (End::Finished | End::Hopeless, _) => {
                let summary = summary(&outline, &report, begun, trial.dir);
                delivery::write(journal.recorder, &report, &job.text, &summary).map_err(broken)?;
                Ok(Ended::Complete(None))
            }
        }
    }

    /// What is in the directory of the trial. What is of another study is not touched.
    fn found(
        &self,
        job: &Job,
        outline: &Outline,
        trial: &Assignment<'_>,
    ) -> Result<Found, Trouble> {
        let dir = trial.dir;
        if !dir.exists() {
            return Ok(Found::Nothing);
        }
        // Only a worker that died before there was a record leaves such a directory.
        if trial.attempt > 1 && Recorder::is_hardly_begun(dir) {
            return Ok(Found::Rest);
        }
        let record = match Record::open(dir) {
            Ok(record) => record,
            Err(surefoot_record::Error::NotARun { .. }) => return Err(Trouble::taken(dir)),
            // What cannot be read now may be read by another version, or at another time.
            Err(error) => return Err(broken(error)),
        };
        if record.plan() != job.text || record.header().environment.data != Some(outline.data) {
            return Err(Trouble::taken(dir));
        }
        match record.summary().map_err(broken)? {
            Some(_) => Ok(Found::Finished(record.events().map_err(broken)?)),
            None => Ok(Found::Record),
        }
    }

    /// The record of the trial: a new one, or that of an earlier attempt to go on with. `None` if the
    /// worker is to leave first.
    fn recorder(
        &self,
        job: &Job,
        outline: &Outline,
        trial: &Assignment<'_>,
        found: &Found,
        supervisor: &dyn Supervisor,
    ) -> Result<Option<(Recorder, Option<Checkpoint>)>, Trouble> {
        let dir = trial.dir;
        let now = environment::of(outline.data, self.threads, self.device);
        if !matches!(found, Found::Record) {
            if matches!(found, Found::Rest) {
                let removed = std::fs::remove_dir_all(dir);
                let message = |e| Trouble::Machine(format!("cannot remove {}: {e}", dir.display()));
                removed.map_err(message)?;
            }
            let header = record::header(job, outline, now, Care::Off);
            let recorder = Recorder::create_at(dir, &job.text, header).map_err(broken)?;
            return Ok(Some((recorder, None)));
        }
        let begun = Instant::now();
        loop {
            match Recorder::resume(dir, &now) {
                // Whoever had it was thought dead and is not: after the machine slept, say. It finds
                // out with its next sign of life.
                Err(surefoot_record::Error::Locked { .. })
                    if begun.elapsed() < self.study.settings.patience =>
                {
                    if supervisor.interrupted() {
                        return Ok(None);
                    }
                    std::thread::sleep(LOCKED);
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

/// How long to wait for a record that somebody else has open.
const LOCKED: Duration = Duration::from_millis(200);

/// What is in the directory of a trial.
enum Found {
    /// It is not there.
    Nothing,
    /// What a worker left that died before there was a record.
    Rest,
    /// A record to go on with.
    Record,
    /// One that is finished, with what happened.
    Finished(Vec<Event>),
}

fn broken(error: surefoot_record::Error) -> Trouble {
    Trouble::Machine(error.to_string())
}

/// How an evaluation becomes a report.
#[derive(Clone, Copy)]
struct Measure {
    objective: ObjectiveKind,
    /// Of a step.
    operations: f64,
    /// How many there will be.
    evaluations: u64,
}

impl Measure {
    fn progress(&self, index: u64, evaluation: &Evaluation, findings: Vec<Finding>) -> Progress {
        Progress {
            index,
            planned: Some(self.evaluations),
            value: match self.objective {
                ObjectiveKind::Loss => evaluation.loss,
                _ => evaluation.metric.unwrap_or(f64::NAN),
            },
            operations: self.operations * evaluation.step as f64,
            findings,
        }
    }

    /// Reports what is recorded already.
    fn repeat(&self, events: &[Event], supervisor: &mut dyn Supervisor) -> Result<Ended, Trouble> {
        let evaluations = events.iter().filter_map(Event::evaluation);
        let judged = evaluations.filter(|e| e.split != Split::Test);
        for (index, evaluation) in (1..).zip(judged) {
            supervisor.report(&self.progress(index, &evaluation, Vec::new()))?;
        }
        // Of trials that were stopped only those are finished that were done.
        let done = events.iter().rev().find_map(|event| match event {
            Event::Finding(finding) => Some(finding.clone().warning()),
            _ => None,
        });
        Ok(match done {
            Some(done) => Ended::Stopped(PruneReason::from(&done)),
            None => Ended::Complete(None),
        })
    }
}

/// Takes a trial down and shows it to the checker.
struct TrialJournal {
    recorder: Recorder,
    checker: Option<Rc<RefCell<Checker>>>,
}

impl TrialJournal {
    /// Shows the checker what is recorded up to a step, as it saw it then. Gives the evaluations until then, each with what
    /// was found up to it. What was found after the last is told with the next.
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

    /// Records why the trial was ended.
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

/// Reports evaluations to the supervisor and does what it says.
struct Overseer<'a> {
    supervisor: &'a mut dyn Supervisor,
    measure: Measure,
    /// How many evaluations were reported.
    reported: u64,
    checker: Option<Rc<RefCell<Checker>>>,
    flow: Cell<Flow>,
    order: Option<Order>,
    trouble: Option<Trouble>,
}

impl Watcher for Overseer<'_> {
    fn step(&mut self, _: &surefoot_train::Progress) {}

    fn evaluated(&mut self, evaluation: &Evaluation) {
        // A trial that was told to stop is judged once more at its end.
        if self.flow.get() != Flow::GoOn || evaluation.split == Split::Test {
            return;
        }
        let checker = self.checker.as_ref();
        let found = checker.map(|checker| checker.borrow_mut().findings());
        let findings = found.unwrap_or_default();
        self.reported += 1;
        let progress = self.measure.progress(self.reported, evaluation, findings);
        match self.supervisor.report(&progress) {
            Ok(Order::GoOn) => {}
            Ok(Order::Interrupt) => self.flow.set(Flow::Interrupt),
            Ok(stop) => {
                self.order = Some(stop);
                self.flow.set(Flow::GiveUp);
            }
            Err(trouble) => {
                self.trouble = Some(trouble);
                self.flow.set(Flow::Interrupt);
            }
        }
    }

    fn flow(&self) -> Flow {
        if self.flow.get() == Flow::GoOn && self.supervisor.interrupted() {
            self.flow.set(Flow::Interrupt);
        }
        self.flow.get()
    }
}
