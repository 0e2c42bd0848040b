//! A running trial: its parameters, its reports and the decision to prune it.

use crate::objective::{Progress, WorkerError};
use crate::pruner::PruneReason;
use crate::sampler::SampleRequest;
use crate::scheduler::Decision;
use crate::scheduling::Scheduling;
use crate::space::{Domain, Parameter, Point, Space, SpaceError, Value};
use crate::storage::{Claim, Heartbeat, StepCost, Storage, StoredStudy, TrialState, View};
use crate::worker::Worker;
use std::path::{Path, PathBuf};
use std::time::Instant;
use surefoot_diagnose::Finding;
use surefoot_random::{Key, Purpose};

/// A trial while it runs.
#[derive(Debug)]
pub struct Trial<'a> {
    pub(crate) worker: &'a Worker<'a>,
    pub(crate) storage: &'a mut Storage,
    pub(crate) view: &'a mut View,
    pub(crate) study: &'a StoredStudy,
    pub(crate) claim: &'a Claim,
    pub(crate) heartbeat: Heartbeat,
    /// Total number of steps before the trial pauses.
    pub(crate) until: u64,
    pub(crate) scheduling: Option<&'a mut Scheduling>,
    pub(crate) point: Point,
    pub(crate) dir: PathBuf,
    pub(crate) planned: Option<u64>,
    /// Start of the current step.
    pub(crate) step_began: Instant,
    /// Findings of this attempt.
    pub(crate) findings: Vec<Finding>,
    /// State requested by the last report.
    pub(crate) requested: Option<TrialState>,
    /// True once the objective has seen the request.
    pub(crate) is_stopping: bool,
}

impl Trial<'_> {
    /// 0-based number in the study.
    pub fn number(&self) -> u64 {
        self.claim.number
    }

    /// 1-based attempt number.
    pub fn attempt(&self) -> u32 {
        self.claim.attempt
    }

    /// Number of steps reported by earlier attempts.
    pub fn reported(&self) -> u64 {
        self.claim.reported.into()
    }

    /// Total number of steps, as announced by earlier attempts.
    pub fn planned(&self) -> Option<u64> {
        self.planned
    }

    /// Parameter values so far.
    pub fn point(&self) -> &Point {
        &self.point
    }

    /// Directory for this trial only, the same for every attempt.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Text that identifies the trial among all studies, to mark its directory with.
    pub fn owner(&self) -> String {
        let StoredStudy { name, created, .. } = self.study;
        format!("trial {} of {name}, created at {created}\n", self.number())
    }

    /// Returns a number from `low` to `high`.
    pub fn suggest_float(&mut self, name: &str, low: f64, high: f64) -> Result<f64, WorkerError> {
        self.number_of(name, Domain::Uniform(low, high))
    }

    /// Returns a number from `low` to `high`, sampled on a logarithmic scale.
    pub fn suggest_log_float(
        &mut self,
        name: &str,
        low: f64,
        high: f64,
    ) -> Result<f64, WorkerError> {
        self.number_of(name, Domain::LogUniform(low, high))
    }

    /// Returns an integer from `low` to `high`, both included.
    pub fn suggest_int(&mut self, name: &str, low: i64, high: i64) -> Result<i64, WorkerError> {
        match self.suggest(name, Domain::Int(low, high))? {
            Value::Int(value) => Ok(value),
            other => Err(unexpected(name, &other)),
        }
    }

    /// Returns one of `choices`.
    pub fn suggest_categorical(
        &mut self,
        name: &str,
        choices: &[&str],
    ) -> Result<String, WorkerError> {
        let choices = choices.iter().map(|&choice| Value::Text(choice.to_owned())).collect();
        match self.suggest(name, Domain::Choice(choices))? {
            Value::Text(value) => Ok(value),
            other => Err(unexpected(name, &other)),
        }
    }

    /// Returns a value of a parameter: that of the study's space or of an earlier call, else a new one.
    ///
    /// Parameters outside the study's space are sampled independently of each other, as Optuna's
    /// default sampler does.
    pub fn suggest(&mut self, name: &str, domain: Domain) -> Result<Value, WorkerError> {
        let known = self.point.get(name).map(|value| domain.converted(value));
        if let Some(value) = known.filter(|value| domain.contains(value)) {
            return Ok(value);
        }
        let invalid = |error: SpaceError| WorkerError::Machine(error.to_string());
        let parameter = Parameter { name: name.to_owned(), domain, conditions: Vec::new() };
        let space = Space::new(vec![parameter]).map_err(invalid)?;
        self.storage.refresh_reports(self.view)?;
        let point = self.worker.sampler.suggest(&SampleRequest {
            space: &space,
            seed: seed_of(self.study.seed, name),
            number: self.number(),
            history: &self.view.history().project(&space),
        });
        let value = point.get(name).cloned();
        let value = value.ok_or_else(|| WorkerError::Machine(format!("no value for `{name}`")))?;
        self.point.0.insert(name.to_owned(), value.clone());
        let [parameter] = space.parameters() else { return Ok(value) };
        let parameter = Some(parameter).filter(|_| self.study.grows());
        self.storage.extend_point(self.claim, &self.point, parameter)?;
        Ok(value)
    }

    /// Returns a value of a parameter that is `low` or a multiple of `step` above it.
    pub fn suggest_stepped(
        &mut self,
        name: &str,
        domain: Domain,
        step: f64,
    ) -> Result<Value, WorkerError> {
        let sampled = self.suggest(name, domain.clone())?;
        let value = domain.stepped(&sampled, step);
        if value != sampled {
            self.point.0.insert(name.to_owned(), value.clone());
            self.storage.extend_point(self.claim, &self.point, None)?;
        }
        Ok(value)
    }

    fn number_of(&mut self, name: &str, domain: Domain) -> Result<f64, WorkerError> {
        match self.suggest(name, domain)? {
            Value::Float(value) => Ok(value),
            Value::Int(value) => Ok(value as f64),
            other => Err(unexpected(name, &other)),
        }
    }

    /// Announces the total number of steps. Pruners that compare trials by their progress need it.
    pub fn set_steps(&mut self, steps: u64) {
        self.planned = Some(steps);
    }

    /// Reports the objective value after a step. Steps are numbered 1, 2, 3, ...
    pub fn report(&mut self, step: u64, value: f64) -> Result<(), WorkerError> {
        let planned = self.planned;
        self.update(&Progress { step, planned, value, ..Progress::default() }).map(|_| ())
    }

    /// Returns true if the trial should return now: it is pruned, paused or interrupted. Save what it takes to continue
    /// in [`dir`](Self::dir) first; the next attempt continues after [`reported`](Self::reported) steps.
    pub fn should_stop(&mut self) -> bool {
        if self.requested.is_none() && self.is_interrupted() {
            self.requested = Some(TrialState::Waiting);
        }
        self.is_stopping = self.requested.is_some();
        self.is_stopping
    }

    /// The state to end with, if [`should_stop`](Self::should_stop) has returned true.
    pub(crate) fn take_requested(&mut self) -> Option<TrialState> {
        self.requested.take().filter(|_| self.is_stopping)
    }

    /// Reports progress. Returns the state to end the trial with, or `None` to continue.
    pub fn update(&mut self, progress: &Progress) -> Result<Option<TrialState>, WorkerError> {
        let number = self.number();
        let planned = progress.planned.and_then(|n| u32::try_from(n).ok());
        let stored = self.view.trials().get(number as usize).and_then(|trial| trial.planned);
        if let Some(planned) = planned.filter(|&planned| stored != Some(planned)) {
            self.storage.set_planned(self.claim, planned)?;
        }
        let cost = StepCost {
            seconds: self.step_began.elapsed().as_secs_f64(),
            operations: progress.operations - self.operations_before(progress.step),
        };
        self.step_began = Instant::now();
        let step = u32::try_from(progress.step).unwrap_or(u32::MAX);
        self.storage.report(self.claim, step, progress.value, cost)?;
        self.storage.refresh_reports(self.view)?;
        self.requested = self.judge(&progress.findings);
        if self.requested.is_none() && progress.step >= self.until {
            self.requested = self.pause(progress.step)?;
        }
        self.add_findings(&progress.findings);
        Ok(self.requested.clone())
    }

    /// Adds findings of steps that an earlier attempt has reported. They do not prune the trial, but are the reason if
    /// it is pruned later.
    pub fn add_findings(&mut self, findings: &[Finding]) {
        self.findings.extend_from_slice(findings);
    }

    fn judge(&self, new: &[Finding]) -> Option<TrialState> {
        let curve = self.view.curve(self.number()).unwrap_or_default();
        // The last report of a trial does not prune it.
        if curve.costs.len() < curve.planned {
            let others = self.view.others(self.number());
            if let Some(reason) = self.worker.prune(&curve, &others, &self.findings, new) {
                return Some(self.pruned(reason));
            }
        }
        let budget = self.worker.max_operations;
        let is_spent = budget.is_some_and(|budget| self.view.operations() >= budget);
        is_spent.then_some(TrialState::Waiting)
    }

    /// Asks the scheduler about a trial that has reached its pause. Returns `None` if it continues at once.
    fn pause(&mut self, step: u64) -> Result<Option<TrialState>, WorkerError> {
        let planned = self.view.trials().get(self.number() as usize).and_then(|t| t.planned);
        // The length of a trial that does not announce it is unknown: it runs to its end, as after its last step.
        let Some(scheduling) = self
            .scheduling
            .as_deref_mut()
            .filter(|_| planned.is_some_and(|planned| step < planned.into()))
        else {
            return Ok(None);
        };
        loop {
            scheduling.set_space(self.storage.space_at(self.study, self.view.change())?);
            let scheduled = scheduling.decide(self.view);
            let until = match scheduled.decision {
                Decision::Continue { trial, until } if trial == self.claim.number => until,
                _ => return Ok(Some(TrialState::Paused)),
            };
            if self.storage.extend(self.claim, until, &scheduled)? {
                self.until = until;
                return Ok(None);
            }
            self.storage.refresh_reports(self.view)?;
        }
    }

    fn operations_before(&self, step: u64) -> f64 {
        let reports = self.view.reports(self.number()).iter();
        let before = reports.filter(|report| u64::from(report.step) < step);
        before.map(|report| report.operations).sum()
    }

    /// Returns true if the trial should return [`TrialState::Waiting`] now, to be continued later.
    pub fn is_interrupted(&self) -> bool {
        self.worker.is_interrupted() || self.heartbeat.claim_lost()
    }

    /// The complete state with `value`, or with the best reported value.
    pub fn complete(&self, value: Option<f64>) -> TrialState {
        let (best, last) = self.best_and_last();
        TrialState::Complete { value: value.or(best).or(last).unwrap_or(f64::NAN) }
    }

    /// The pruned state with the value that counts for this reason.
    pub fn pruned(&self, reason: PruneReason) -> TrialState {
        let (best, last) = self.best_and_last();
        let value = if reason.counts { best.or(last) } else { last };
        TrialState::Pruned { value, reason }
    }

    fn best_and_last(&self) -> (Option<f64>, Option<f64>) {
        let direction = self.study.direction;
        let curve = self.view.curve(self.number()).unwrap_or_default();
        let [best, last] =
            [curve.best(), curve.last()].map(|cost| cost.map(|cost| direction.value(cost)));
        (best, last)
    }
}

/// Seed for the draws of one parameter, so that parameters do not share their draws.
fn seed_of(seed: u64, name: &str) -> u64 {
    let bytes = name.bytes().enumerate();
    bytes.fold(seed, |seed, (index, byte)| {
        Key::new(seed, Purpose::Sample).site(u64::from(byte)).sample(index as u64).u64(0)
    })
}

fn unexpected(name: &str, value: &Value) -> WorkerError {
    WorkerError::Machine(format!("parameter `{name}` has the value {value} of another type"))
}
