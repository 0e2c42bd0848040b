//! Callbacks: everything that follows a training run implements one trait.
//!
//! Recording ([`RecordCallback`]), diagnosis ([`DiagnosisCallback`]), progress bars and pruning are
//! callbacks. A [`Trainer`](crate::Trainer) calls them in a fixed order: the record first, then the
//! diagnosis, then those added with [`Trainer::callback`](crate::Trainer::callback).

mod diagnosis;
mod record;

pub use diagnosis::{DiagnosisCallback, OnProblem};
pub use record::RecordCallback;

use crate::error::TrainError;
use crate::run::{Outline, Progress, TrainingResult};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use surefoot_diagnose::{Evaluation, Finding, Observation};
use surefoot_record::{Attempt, AttemptOutcome, Checkpoint, Event, Record, StepDigest};

/// Follows a training run. Every method has a default that does nothing.
///
/// Methods receive the [`RunContext`] of the run, through which a callback reports findings and
/// requests a stop. A stop takes effect after the current step.
///
/// # Examples
///
/// ```
/// use surefoot_train::{Callback, RunContext, Step, StopReason, TrainError};
///
/// /// Stops as soon as the training loss is low enough.
/// struct StopAtLoss(f64);
///
/// impl Callback for StopAtLoss {
///     fn on_step(&mut self, step: &Step<'_>, run: &mut RunContext) -> Result<(), TrainError> {
///         if step.progress.loss < self.0 {
///             run.stop(StopReason::Early);
///         }
///         Ok(())
///     }
/// }
/// ```
pub trait Callback {
    /// Returns true if this callback uses [`on_digest`](Self::on_digest) or
    /// [`on_checkpoint`](Self::on_checkpoint). Both cost a pass over parameters and optimizer state.
    fn needs_state(&self) -> bool {
        false
    }

    /// Training starts, or continues after a pause.
    fn on_start(&mut self, _run: &mut RunContext) -> Result<(), TrainError> {
        Ok(())
    }

    /// A recorded run is about to continue after `step`; `record` holds everything up to it.
    fn on_resume(
        &mut self,
        _record: &Record,
        _step: u64,
        _run: &mut RunContext,
    ) -> Result<(), TrainError> {
        Ok(())
    }

    /// A step is done.
    fn on_step(&mut self, _step: &Step<'_>, _run: &mut RunContext) -> Result<(), TrainError> {
        Ok(())
    }

    /// The digest of the state before the first step or after a step.
    fn on_digest(&mut self, _digest: &StepDigest, _run: &mut RunContext) -> Result<(), TrainError> {
        Ok(())
    }

    /// The model was evaluated.
    fn on_evaluation(
        &mut self,
        _evaluation: &Evaluation,
        _run: &mut RunContext,
    ) -> Result<(), TrainError> {
        Ok(())
    }

    /// A callback [reported](RunContext::report) a finding.
    fn on_finding(&mut self, _finding: &Finding, _run: &mut RunContext) -> Result<(), TrainError> {
        Ok(())
    }

    /// The state to resume from.
    fn on_checkpoint(
        &mut self,
        _checkpoint: &Checkpoint,
        _run: &mut RunContext,
    ) -> Result<(), TrainError> {
        Ok(())
    }

    /// A repair attempt starts or ends.
    fn on_attempt(
        &mut self,
        _attempt: &AttemptEvent<'_>,
        _run: &mut RunContext,
    ) -> Result<(), TrainError> {
        Ok(())
    }

    /// An entry of the event log. Follows the specific method for evaluations, findings and
    /// attempts.
    fn on_event(&mut self, _event: &Event, _run: &mut RunContext) -> Result<(), TrainError> {
        Ok(())
    }

    /// Training has ended; not called for a pause.
    fn on_end(
        &mut self,
        _result: &TrainingResult,
        _run: &mut RunContext,
    ) -> Result<(), TrainError> {
        Ok(())
    }
}

/// One training step.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Position, loss and metric.
    pub progress: Progress,
    /// The observation, with layer statistics if the schedule includes this step.
    pub observation: &'a Observation,
}

/// Start or end of a repair attempt.
#[derive(Clone, Copy, Debug)]
pub enum AttemptEvent<'a> {
    /// The attempt starts.
    Start(&'a Attempt),
    /// The attempt has ended.
    End {
        /// The attempt.
        attempt: &'a Attempt,
        /// Its verdict.
        outcome: &'a AttemptOutcome,
        /// Its training result.
        result: &'a TrainingResult,
    },
}

/// Reason why a training run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// All steps are done, or the metric has reached the plan's `stop_at`.
    Finished,
    /// The run waits in memory and can continue.
    Paused,
    /// A stop was requested; a checkpoint was written and the run can be resumed.
    Interrupted,
    /// A problem was found.
    Problem,
    /// Training ended early with a result that counts.
    Early,
    /// A pruner ended the run; it delivers no model.
    Pruned,
}

impl StopReason {
    /// Returns true if the run can continue.
    pub fn is_resumable(self) -> bool {
        matches!(self, Self::Paused | Self::Interrupted)
    }
}

/// A shared flag that asks a run to stop at its next step, with a checkpoint.
#[derive(Clone, Debug, Default)]
pub struct StopSignal(Arc<AtomicBool>);

impl StopSignal {
    /// Requests the stop. Returns true if it was requested before.
    pub fn request(&self) -> bool {
        self.0.swap(true, Ordering::Relaxed)
    }

    /// Returns true once a stop was requested. Costs a read from memory.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The run that a callback follows.
#[derive(Debug)]
pub struct RunContext {
    outline: Arc<Outline>,
    attempt: u32,
    dir: Option<PathBuf>,
    signal: StopSignal,
    resumed_at: Option<u64>,
    stop: Option<StopReason>,
    /// Events that callbacks reported and that were not passed on yet.
    reported: Vec<Event>,
}

impl RunContext {
    pub(crate) fn new(outline: Arc<Outline>) -> Self {
        Self {
            outline,
            attempt: 0,
            dir: None,
            signal: StopSignal::default(),
            resumed_at: None,
            stop: None,
            reported: Vec::new(),
        }
    }

    pub(crate) fn attempt_number(mut self, number: u32) -> Self {
        self.attempt = number;
        self
    }

    pub(crate) fn recorded_in(mut self, dir: Option<&Path>) -> Self {
        self.dir = dir.map(Path::to_owned);
        self
    }

    pub(crate) fn stopped_by(mut self, signal: &StopSignal) -> Self {
        self.signal = signal.clone();
        self
    }

    pub(crate) fn resumed_at(mut self, step: Option<u64>) -> Self {
        self.resumed_at = step;
        self
    }

    /// Facts about the run that are fixed before its first step.
    pub fn outline(&self) -> &Outline {
        &self.outline
    }

    /// Number of the repair attempt; 0 for the plan as given.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The run directory, if the run is recorded.
    pub fn dir(&self) -> Option<&Path> {
        self.dir.as_deref()
    }

    /// The step after which a recorded run was resumed.
    pub fn resume_step(&self) -> Option<u64> {
        self.resumed_at
    }

    /// Reports a finding to all callbacks.
    pub fn report(&mut self, finding: Finding) {
        self.log(Event::Finding(finding));
    }

    /// Adds an entry to the event log.
    pub fn log(&mut self, event: Event) {
        self.reported.push(event);
    }

    /// Requests that the run stops after the current step.
    ///
    /// The first final reason wins over later ones and over an interruption, so that no checkpoint
    /// is written beyond a problem.
    pub fn stop(&mut self, reason: StopReason) {
        if self.stop.is_none_or(StopReason::is_resumable) {
            self.stop = Some(reason);
        }
    }

    /// The requested stop, if any.
    pub fn stop_requested(&self) -> Option<StopReason> {
        let interrupted = || self.signal.is_requested().then_some(StopReason::Interrupted);
        self.stop.or_else(interrupted)
    }
}

/// Calls a list of callbacks in order.
pub(crate) struct Callbacks<'a> {
    list: Vec<&'a mut dyn Callback>,
    pub(crate) run: RunContext,
}

impl<'a> Callbacks<'a> {
    pub(crate) fn new(list: Vec<&'a mut dyn Callback>, run: RunContext) -> Self {
        Self { list, run }
    }

    pub(crate) fn need_state(&self) -> bool {
        self.list.iter().any(|callback| callback.needs_state())
    }

    fn each(
        &mut self,
        mut call: impl FnMut(&mut dyn Callback, &mut RunContext) -> Result<(), TrainError>,
    ) -> Result<(), TrainError> {
        self.list.iter_mut().try_for_each(|callback| call(&mut **callback, &mut self.run))
    }

    /// Passes on the events that were reported.
    fn pass_reported(&mut self) -> Result<(), TrainError> {
        for event in std::mem::take(&mut self.run.reported) {
            if let Event::Finding(finding) = &event {
                self.each(|callback, run| callback.on_finding(finding, run))?;
            }
            self.event(&event)?;
        }
        Ok(())
    }

    pub(crate) fn start(&mut self) -> Result<(), TrainError> {
        self.each(|callback, run| callback.on_start(run))
    }

    pub(crate) fn resume(&mut self, record: &Record, step: u64) -> Result<(), TrainError> {
        self.each(|callback, run| callback.on_resume(record, step, run))?;
        self.pass_reported()
    }

    pub(crate) fn step(&mut self, step: &Step<'_>) -> Result<(), TrainError> {
        self.each(|callback, run| callback.on_step(step, run))?;
        self.pass_reported()
    }

    pub(crate) fn digest(&mut self, digest: &StepDigest) -> Result<(), TrainError> {
        self.each(|callback, run| callback.on_digest(digest, run))
    }

    pub(crate) fn evaluation(&mut self, evaluation: &Evaluation) -> Result<(), TrainError> {
        self.each(|callback, run| callback.on_evaluation(evaluation, run))?;
        self.event(&Event::from(evaluation))?;
        self.pass_reported()
    }

    pub(crate) fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), TrainError> {
        self.each(|callback, run| callback.on_checkpoint(checkpoint, run))
    }

    pub(crate) fn attempt(&mut self, attempt: &AttemptEvent<'_>) -> Result<(), TrainError> {
        self.each(|callback, run| callback.on_attempt(attempt, run))?;
        self.event(&match *attempt {
            AttemptEvent::Start(attempt) => Event::Attempt(attempt.clone()),
            AttemptEvent::End { outcome, .. } => Event::Outcome(outcome.clone()),
        })
    }

    pub(crate) fn event(&mut self, event: &Event) -> Result<(), TrainError> {
        self.each(|callback, run| callback.on_event(event, run))
    }

    pub(crate) fn end(&mut self, result: &TrainingResult) -> Result<(), TrainError> {
        self.each(|callback, run| callback.on_end(result, run))?;
        self.pass_reported()
    }
}
