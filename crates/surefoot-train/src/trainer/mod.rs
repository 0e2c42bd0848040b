//! The pipeline: trains, observes, diagnoses, repairs, records and resumes a plan.

mod attempts;
mod environment;
#[cfg(feature = "keras")]
mod keras;
#[cfg(not(feature = "keras"))]
#[path = "no_keras.rs"]
mod keras;
mod prepared;
mod summary;

pub(crate) use attempts::AttemptRecorder;
pub use environment::{current_environment, environment_differences, environment_warnings};
pub use prepared::{PreparedPlan, is_plan_of, plan_folder, recorded_document};
pub use summary::TrainSummary;

use crate::callback::{Callback, Callbacks, DiagnosisCallback, RecordCallback, RunContext};
use crate::callback::{OnProblem, StopReason, StopSignal};
use crate::compute::Compute;
use crate::device::Device;
use crate::error::TrainError;
use crate::memory::MemoryNeeds;
use crate::on_device;
use crate::repair::{Original, Proposal, RepairRequest, RepairResult, is_unharmed, repair_run};
use crate::run::{Blueprint, Outline, TrainingRun};
use crate::thresholds::remedies_of;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use surefoot_data::Dataset;
use surefoot_diagnose::{Confidence, Detector, Diagnosis, Finding, Severity, Thresholds};
use surefoot_plan::Plan;
use surefoot_record::{Checkpoint, Environment, Event, Header, Record, Recorder};
use surefoot_repair::Remedy;

/// Header entry: the repair mode of the run.
const REPAIR: &str = "repair";

/// Answer to a proposed remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Try it.
    Yes,
    /// Skip it.
    No,
    /// End the repair.
    Quit,
}

/// Handling of problems.
pub enum RepairMode<'a> {
    /// Tries remedies.
    Auto,
    /// Tries the remedies that the function approves.
    Approve(Box<dyn FnMut(&Proposal) -> Approval + 'a>),
    /// Reports problems and trains to the end.
    Off,
}

impl RepairMode<'_> {
    /// Returns true if `record` was started with [`RepairMode::Approve`].
    pub fn needs_approval(record: &Record) -> bool {
        RepairPolicy::of(record) == RepairPolicy::Approve
    }

    fn policy(&self) -> RepairPolicy {
        match self {
            Self::Auto => RepairPolicy::Auto,
            Self::Approve(_) => RepairPolicy::Approve,
            Self::Off => RepairPolicy::Off,
        }
    }
}

/// The repair mode as recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RepairPolicy {
    Auto,
    Approve,
    Off,
}

impl RepairPolicy {
    fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Approve => "approve",
            Self::Off => "off",
        }
    }

    fn of(record: &Record) -> Self {
        let name = record.header().more.get(REPAIR).and_then(|name| name.as_str());
        let all = [Self::Auto, Self::Approve, Self::Off];
        all.into_iter().find(|policy| Some(policy.name()) == name).unwrap_or(Self::Auto)
    }

    fn note(self, header: &mut Header) {
        header.more.insert(REPAIR.to_owned(), self.name().into());
    }
}

/// Detectors and remedies are made anew for every run and attempt.
type DetectorFactory<'a> = Box<dyn Fn() -> Vec<Box<dyn Detector>> + Sync + 'a>;
type RemedyFactory<'a> = Box<dyn Fn() -> Vec<Box<dyn Remedy>> + 'a>;

/// Place of the record.
enum Place {
    /// Not recorded.
    None,
    /// A new directory below this one, named after the plan.
    Below(PathBuf),
    /// This directory.
    At(PathBuf),
    /// The directory of a run that is resumed.
    Resume(Box<Record>),
}

/// Trains a plan: observes every layer, diagnoses problems, repairs them, records and resumes.
///
/// # Examples
///
/// ```
/// use surefoot_plan::Plan;
/// use surefoot_train::Trainer;
///
/// let plan = Plan::parse(
///     r#"
///     [data]
///     source = { kind = "circles", samples = 200 }
///     [[model]]
///     layer = "dense"
///     units = 8
///     activation = "relu"
///     [[model]]
///     layer = "dense"
///     units = 1
///     activation = "sigmoid"
///     [training]
///     epochs = 2
///     "#,
///     "plan.toml",
/// )?;
/// let result = Trainer::new(plan).train()?;
/// println!("{:?} after {} steps", result.summary.status, result.summary.steps);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Trainer<'a> {
    source: Source,
    base: PathBuf,
    data: Option<Arc<Dataset>>,
    place: Place,
    repair: Option<RepairMode<'a>>,
    diagnose: bool,
    /// Those of the plan's rules if absent.
    detectors: Option<DetectorFactory<'a>>,
    remedies: Option<RemedyFactory<'a>>,
    callbacks: Vec<&'a mut dyn Callback>,
    workers: usize,
    device: Device,
    signal: StopSignal,
}

enum Source {
    Plan(Box<Plan>),
    Prepared(Arc<PreparedPlan>),
}

impl<'a> Trainer<'a> {
    /// Trains `plan` without a record; its files are relative to the current directory.
    pub fn new(plan: Plan) -> Self {
        Self::from_source(Source::Plan(Box::new(plan)))
    }

    /// Trains a plan that is loaded already.
    pub fn prepared(plan: Arc<PreparedPlan>) -> Self {
        Self::from_source(Source::Prepared(plan))
    }

    /// Continues the run in `dir` after its last checkpoint, with the repair mode it was started
    /// with.
    pub fn resume(dir: &Path) -> Result<Self, TrainError> {
        let record = Record::open(dir)?;
        let prepared = Arc::new(PreparedPlan::from_record(&record, None)?);
        Ok(Self::prepared(prepared).continue_record(record))
    }

    fn from_source(source: Source) -> Self {
        Self {
            source,
            base: PathBuf::from("."),
            data: None,
            place: Place::None,
            repair: None,
            diagnose: true,
            detectors: None,
            remedies: None,
            callbacks: Vec::new(),
            workers: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
            device: Device::Cpu,
            signal: StopSignal::default(),
        }
    }

    /// Uses `data` instead of loading those of the plan.
    #[must_use]
    pub fn data(mut self, data: Arc<Dataset>) -> Self {
        self.data = Some(data);
        self
    }

    /// The folder that the plan's files are relative to.
    #[must_use]
    pub fn base(mut self, folder: &Path) -> Self {
        folder.clone_into(&mut self.base);
        self
    }

    /// Records the run in a new directory below `dir`.
    #[must_use]
    pub fn runs(mut self, dir: &Path) -> Self {
        self.place = Place::Below(dir.to_owned());
        self
    }

    /// Records the run in `dir`, which must not exist.
    #[must_use]
    pub fn record_at(mut self, dir: &Path) -> Self {
        self.place = Place::At(dir.to_owned());
        self
    }

    /// Continues `record`, whose inputs this trainer was prepared with.
    #[must_use]
    pub fn continue_record(mut self, record: Record) -> Self {
        self.place = Place::Resume(Box::new(record));
        self
    }

    /// Sets how problems are handled. Default: [`RepairMode::Auto`], or as recorded.
    #[must_use]
    pub fn repair(mut self, mode: RepairMode<'a>) -> Self {
        self.repair = Some(mode);
        self
    }

    /// Trains without detectors.
    #[must_use]
    pub fn no_diagnosis(mut self) -> Self {
        self.diagnose = false;
        self
    }

    /// Replaces the detectors of the plan's rules; the function is called for every run and attempt.
    #[must_use]
    pub fn detectors(mut self, make: impl Fn() -> Vec<Box<dyn Detector>> + Sync + 'a) -> Self {
        self.detectors = Some(Box::new(make));
        self
    }

    /// Replaces the remedies of the plan's rules.
    #[must_use]
    pub fn remedies(mut self, make: impl Fn() -> Vec<Box<dyn Remedy>> + 'a) -> Self {
        self.remedies = Some(Box::new(make));
        self
    }

    /// Adds a callback.
    #[must_use]
    pub fn callback(mut self, callback: &'a mut dyn Callback) -> Self {
        self.callbacks.push(callback);
        self
    }

    /// Number of threads that share a step. The result has the same bits for any number.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// The device to compute on.
    #[must_use]
    pub fn device(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// Stops the run, with a checkpoint, once `signal` is requested.
    #[must_use]
    pub fn stop_signal(mut self, signal: StopSignal) -> Self {
        self.signal = signal;
        self
    }

    /// Trains the plan.
    pub fn train(mut self) -> Result<TrainSummary, TrainError> {
        let prepared = match &self.source {
            Source::Prepared(prepared) => Arc::clone(prepared),
            Source::Plan(plan) => Arc::new(match self.data.take() {
                Some(data) => PreparedPlan::with_data((**plan).clone(), &self.base, data)?,
                None => PreparedPlan::new((**plan).clone(), &self.base)?,
            }),
        };
        if prepared.plan.training.portable && self.device != Device::Cpu {
            return Err(TrainError::NotPortable("only the CPU computes portable results"));
        }
        on_device!(self.device, |B, device| self.train_on::<B>(&prepared, device))
    }

    fn train_on<B: Compute>(
        mut self,
        prepared: &PreparedPlan,
        device: B::Device,
    ) -> Result<TrainSummary, TrainError> {
        let mode = self.repair_mode()?;
        let rules = crate::rules(&prepared.plan);
        let make_detectors =
            self.detectors.take().unwrap_or_else(|| Box::new(move || rules.detectors()));
        let remedies = match &self.remedies {
            Some(make) => make(),
            None => remedies_of(&prepared.plan),
        };
        let thresholds = thresholds(&prepared.plan, &remedies, &make_detectors())?;
        let mut run = prepared.start::<B>(self.workers, device.clone())?;
        let outline = Arc::clone(run.outline());
        let mut environment = current_environment(outline.data, self.workers, self.device);
        if prepared.plan.training.portable {
            environment.cpu_features = environment::portable_features();
        }
        let (recorder, checkpoint) =
            self.open_record(prepared, &outline, mode.policy(), &environment)?;
        let attempts = recorder.as_ref().map(|it| AttemptRecorder::new(it, environment));
        let dir = recorder.as_ref().map(|recorder| recorder.dir().to_owned());
        let mut record = recorder.map(RecordCallback::new);
        let mut diagnosis = self.diagnose.then(|| {
            let diagnosis =
                Diagnosis::with(outline.facts.clone(), thresholds.clone(), make_detectors());
            let repairs = mode.policy() != RepairPolicy::Off;
            let on_problem = if repairs { OnProblem::Pause } else { OnProblem::Continue };
            DiagnosisCallback::new(diagnosis, on_problem)
        });
        let resumed = match &self.place {
            Place::Resume(old) => Some((&**old, checkpoint.as_ref())),
            _ => None,
        };
        let step = |saved: Option<&Checkpoint>| saved.map_or(0, |checkpoint| checkpoint.step);
        let context = || {
            RunContext::new(Arc::clone(&outline))
                .recorded_in(dir.as_deref())
                .stopped_by(&self.signal)
        };
        let begun = Instant::now();
        let mut given = {
            let mut list: Vec<&mut dyn Callback> = Vec::new();
            list.extend(record.as_mut().map(|it| it as &mut dyn Callback));
            list.extend(diagnosis.as_mut().map(|it| it as &mut dyn Callback));
            for callback in &mut self.callbacks {
                list.push(&mut **callback);
            }
            let from = resumed.map(|(_, saved)| step(saved));
            let mut callbacks = Callbacks::new(list, context().resumed_at(from));
            if let Some((old, saved)) = resumed {
                attempts::remove_attempts(old.dir())?;
                if let Some(saved) = saved {
                    run.restore(saved)?;
                    callbacks.resume(old, saved.step)?;
                }
            }
            run.train_with(u64::MAX, &mut callbacks)?
        };
        let repair = match diagnosis.as_mut().and_then(|it| Some((it.problem().cloned()?, it))) {
            Some((finding, diagnosis))
                if given.reason != StopReason::Interrupted
                    && mode.policy() != RepairPolicy::Off =>
            {
                let request = RepairRequest {
                    prepared,
                    finding,
                    facts: outline.facts.clone(),
                    detectors: &*make_detectors,
                    thresholds: &thresholds,
                    workers: self.workers,
                    attempts: attempts.as_ref(),
                    signal: &self.signal,
                    context: &context,
                };
                let mut list: Vec<&mut dyn Callback> = Vec::new();
                for callback in &mut self.callbacks {
                    list.push(&mut **callback);
                }
                let original = Original { run, diagnosis, result: given, given_up: false };
                let (repair, result) = repair_run::<B>(
                    &request,
                    original,
                    remedies,
                    mode,
                    &device,
                    record.as_mut(),
                    list,
                )?;
                given = result;
                Some(repair)
            }
            _ => None,
        };
        let mut findings: Vec<Finding> =
            diagnosis.iter().flat_map(|it| it.diagnosis().findings()).cloned().collect();
        let is_problem = |finding: &&Finding| finding.severity == Severity::Problem;
        let first = findings.iter().find(is_problem).map(|finding| finding.problem.clone());
        let mut dismissed = repair.as_ref().is_some_and(|repair| repair.dismissed);
        if let (None, Some(diagnosis), Some(problem)) = (&repair, &diagnosis, first) {
            let certain = |finding: &Finding| finding.confidence == Confidence::Certain;
            let samples = prepared.data.validation.len;
            let unharmed = is_unharmed(&given, diagnosis.diagnosis(), samples);
            dismissed = unharmed && !findings.iter().filter(is_problem).any(certain);
            if dismissed {
                let mut list: Vec<&mut dyn Callback> = Vec::new();
                list.extend(record.as_mut().map(|it| it as &mut dyn Callback));
                for callback in &mut self.callbacks {
                    list.push(&mut **callback);
                }
                let event = Event::Dismissed { step: given.steps, problem };
                Callbacks::new(list, context()).event(&event)?;
            }
        }
        if dismissed {
            findings.iter_mut().for_each(|finding| finding.severity = Severity::Warning);
        }
        let name = dir.as_ref().map(|dir| dir.display().to_string()).unwrap_or_default();
        let waited = repair.as_ref().map_or(Duration::ZERO, |repair| repair.waited);
        let seconds = begun.elapsed().saturating_sub(waited).as_secs_f64();
        let facts = (outline.metric, seconds, name);
        let panics = diagnosis.as_ref().map_or(&[][..], |it| it.diagnosis().panics());
        let summary = TrainSummary {
            summary: summary::summarize(&given, &findings, panics, repair.as_ref(), facts),
            reason: match &repair {
                Some(repair) if repair.interrupted => StopReason::Interrupted,
                _ => given.reason,
            },
            findings,
            given,
            repair,
            outline: Arc::clone(&outline),
            plan: prepared.plan.clone(),
        };
        let delivers = !matches!(summary.reason, StopReason::Interrupted | StopReason::Pruned);
        if let Some(record) = record.filter(|_| delivers) {
            let plan = match &summary.repair {
                Some(RepairResult { delivered: Some(delivered), .. }) => delivered.plan.to_toml(),
                _ => prepared.text.clone(),
            };
            let mut recorder = record.into_recorder();
            let data = prepared.data_of(summary.plan())?;
            summary::write_preprocessing(&mut recorder, &data.preprocessing)?;
            summary::write_model(recorder, summary.delivered(), &plan, &summary.summary)?;
        }
        Ok(summary)
    }

    fn repair_mode(&mut self) -> Result<RepairMode<'a>, TrainError> {
        if let Some(mode) = self.repair.take() {
            return Ok(mode);
        }
        let Place::Resume(record) = &self.place else {
            return Ok(RepairMode::Auto);
        };
        match RepairPolicy::of(record) {
            RepairPolicy::Auto => Ok(RepairMode::Auto),
            RepairPolicy::Off => Ok(RepairMode::Off),
            RepairPolicy::Approve => Err(TrainError::NeedsApproval),
        }
    }

    fn open_record(
        &self,
        prepared: &PreparedPlan,
        outline: &Outline,
        policy: RepairPolicy,
        environment: &Environment,
    ) -> Result<(Option<Recorder>, Option<Checkpoint>), TrainError> {
        let new_header = || {
            let mut header = header(outline, environment.clone());
            policy.note(&mut header);
            let base = prepared.base.to_string_lossy().into_owned();
            header.more.insert(prepared::BASE.to_owned(), base.into());
            header
        };
        match &self.place {
            Place::None => Ok((None, None)),
            Place::Below(runs) => Ok((Some(create(prepared, runs, new_header())?), None)),
            Place::At(dir) => {
                Ok((Some(Recorder::create_at(dir, &prepared.text, new_header())?), None))
            }
            Place::Resume(record) => {
                if record.summary()?.is_some() {
                    return Err(TrainError::AlreadyFinished { run: record.dir().to_owned() });
                }
                let (recorder, checkpoint) = Recorder::resume(record.dir(), environment)?;
                Ok((Some(recorder), checkpoint))
            }
        }
    }
}

/// The thresholds of a plan whose `[repair]` and `[diagnose]` name existing remedies and problems.
fn thresholds(
    plan: &Plan,
    remedies: &[Box<dyn Remedy>],
    detectors: &[Box<dyn Detector>],
) -> Result<Thresholds, TrainError> {
    for (key, ids) in [("forbid", &plan.repair.forbid), ("order", &plan.repair.order)] {
        let known = |id: &&String| remedies.iter().any(|remedy| remedy.id() == *id);
        if let Some(id) = ids.iter().find(|id| !known(id)) {
            let known: Vec<&str> = remedies.iter().map(|remedy| remedy.id()).collect();
            return Err(TrainError::UnknownRemedy { key, id: id.clone(), known: known.join(", ") });
        }
    }
    crate::thresholds(plan, detectors).map_err(TrainError::Thresholds)
}

impl PreparedPlan {
    /// Builds the network with its initial weights.
    pub fn start<B: Compute>(
        &self,
        workers: usize,
        device: B::Device,
    ) -> Result<TrainingRun<'_, B>, TrainError> {
        self.memory().check()?;
        let run = TrainingRun::<B>::new(&self.plan, &self.data, &self.weights, workers, device);
        let mut run = run.map_err(|error| self.explain(error))?;
        run.adopt(&self.adopted);
        Ok(run)
    }

    /// Facts about the run that are fixed before its first step. Allocates no parameters.
    pub fn outline(&self, device: Device) -> Result<Outline, TrainError> {
        self.memory().check_size()?;
        on_device!(device, |B, handle| {
            let _: <B as Compute>::Device = handle;
            let blueprint = Blueprint::<B>::new(&self.plan, &self.data, &self.weights);
            blueprint.map(|it| it.outline).map_err(|error| self.explain(error))
        })
    }

    /// Estimated memory of the training.
    pub fn memory(&self) -> MemoryNeeds {
        MemoryNeeds::of(&self.plan, &self.shapes, &self.data)
    }
}

/// The header of a run.
pub(crate) fn header(outline: &Outline, environment: Environment) -> Header {
    let mut header = Header {
        facts: outline.facts.clone(),
        observe_every: outline.schedule.every.unwrap_or(0),
        digest_parts: outline.digest_parts.clone(),
        environment,
        ..Header::default()
    };
    let quartiles = outline.schedule.quartiles.unwrap_or(0);
    header.more.insert("quartiles_every".to_owned(), quartiles.into());
    header.more.insert("shards".to_owned(), outline.shards.into());
    header
}

/// Creates the record of a new run, with a copy of its Keras file.
fn create(
    prepared: &PreparedPlan,
    runs: &Path,
    mut header: Header,
) -> Result<Recorder, TrainError> {
    let copy = prepared.keras_file.as_deref().map(|file| {
        let extension = file.extension().map(|extension| extension.to_string_lossy());
        (file, format!("initial.{}", extension.as_deref().unwrap_or("keras")))
    });
    if let Some((_, name)) = &copy {
        header.more.insert(prepared::KERAS_COPY.to_owned(), name.clone().into());
    }
    let files: Vec<(&Path, String)> = copy.into_iter().collect();
    Ok(Recorder::create_with(runs, &prepared.name, &prepared.text, header, &files)?)
}
