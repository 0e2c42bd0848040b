//! A worker: claims trials from a storage, runs them and stores how they end.

use crate::learning_curve::LearningCurve;
use crate::objective::{Objective, WorkerError};
use crate::pruner::{PruneReason, Pruner, PrunerSet};
use crate::sampler::{SampleRequest, Sampler, SamplerConfig};
use crate::scheduler::SchedulerConfig;
use crate::scheduling::Scheduling;
use crate::space::Point;
use crate::storage::{
    Claim, ClaimLimits, Claimed, HeartbeatThread, Start, Storage, StorageError, StoredStudy,
    TrialState, View,
};
use crate::study::StudyConfig;
use crate::trial::Trial;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use surefoot_diagnose::{Finding, panic_message};

/// Pause between two claims while other workers run the remaining trials.
const IDLE: Duration = Duration::from_millis(200);

/// A worker of a study.
pub struct Worker<'a> {
    /// Name in the storage.
    pub name: String,
    /// Suggests the point of each trial, unless the scheduler does.
    pub sampler: Box<dyn Sampler>,
    /// Pauses and continues trials.
    pub scheduler: Option<SchedulerConfig>,
    /// True if the sampler suggests points although there is a scheduler.
    pub sampler_is_named: bool,
    /// The pruners of the study, with their protection of the best trials.
    pub pruners: PrunerSet,
    /// Additional pruners, asked in order about trials that are not protected.
    pub custom_pruners: Vec<Box<dyn Pruner>>,
    /// Limits on claims.
    pub limits: ClaimLimits,
    /// Budget of multiplications for all trials of the study.
    pub max_operations: Option<f64>,
    /// Parent of the trial directories; empty if trials have none.
    pub runs: PathBuf,
    /// Returns true once the worker should release its trial and return.
    pub stop_requested: &'a dyn Fn() -> bool,
    /// Time to release the trial and return.
    pub deadline: Option<Instant>,
    /// Sends heartbeats. `None` for a study that no other worker shares.
    pub heartbeat: Option<HeartbeatThread>,
}

/// Why a worker returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerExit {
    /// All trials have ended.
    StudyDone,
    /// The time or the operations are spent.
    BudgetSpent,
    /// A stop was requested.
    Interrupted,
}

impl<'a> Worker<'a> {
    /// A worker that searches as a study file says. `url` is for its heartbeats.
    pub fn new(
        name: &str,
        config: &StudyConfig,
        url: &str,
        runs: &Path,
        stop_requested: &'a dyn Fn() -> bool,
    ) -> Result<Worker<'a>, WorkerError> {
        Ok(Worker {
            name: name.to_owned(),
            sampler: Box::new(config.sampler.clone()),
            scheduler: config.scheduler.clone(),
            sampler_is_named: config.sampler_is_named,
            pruners: config.rules().pruner_set(),
            custom_pruners: Vec::new(),
            limits: config.limits(),
            max_operations: config.operations,
            runs: runs.to_owned(),
            stop_requested,
            deadline: config.time.and_then(|time| Instant::now().checked_add(time)),
            heartbeat: Some(HeartbeatThread::open(url)?),
        })
    }

    /// Runs trials until the study is done, the budget is spent or a stop is requested.
    pub fn run(
        &self,
        storage: &mut Storage,
        study: &StoredStudy,
        objective: &mut dyn Objective,
    ) -> Result<WorkerExit, WorkerError> {
        let mut view = View::new(study);
        let mut scheduling = self.scheduler.as_ref().map(|scheduler| {
            let limit = self.limits.max_trials;
            Scheduling::new(scheduler, study, self.sampler_is_named, limit)
        });
        loop {
            if (self.stop_requested)() {
                return Ok(WorkerExit::Interrupted);
            }
            if self.is_late() || self.is_spent(storage, &mut view)? {
                return Ok(WorkerExit::BudgetSpent);
            }
            let claimed = match &mut scheduling {
                None => storage.claim(study.id, &self.name, &self.limits)?,
                Some(scheduling) => {
                    storage.refresh_reports(&mut view)?;
                    scheduling.set_space(storage.space_at(study, view.change())?);
                    let scheduled = scheduling.decide(&view);
                    storage.claim_scheduled(study.id, &self.name, &self.limits, &scheduled)?
                }
            };
            match claimed {
                Claimed::Done => return Ok(WorkerExit::StudyDone),
                Claimed::Wait => std::thread::sleep(IDLE),
                Claimed::Stale => {}
                Claimed::Trial(claim) => {
                    let scheduling = scheduling.as_mut();
                    self.run_trial(storage, study, &mut view, &claim, scheduling, objective)?;
                }
            }
        }
    }

    /// Directory of a trial.
    pub fn dir(&self, number: u64) -> PathBuf {
        self.runs.join(format!("trial-{number:05}"))
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        (self.stop_requested)() || self.is_late()
    }

    pub(crate) fn prune(
        &self,
        trial: &LearningCurve,
        others: &[LearningCurve],
        earlier: &[Finding],
        new: &[Finding],
    ) -> Option<PruneReason> {
        let reason = self.pruners.decide(trial, others, earlier, new);
        if reason.is_some() || self.custom_pruners.is_empty() {
            return reason;
        }
        if self.pruners.is_protected(trial, others) {
            return None;
        }
        self.custom_pruners.iter().find_map(|pruner| pruner.prune(trial, others))
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn is_spent(&self, storage: &mut Storage, view: &mut View) -> Result<bool, StorageError> {
        let Some(budget) = self.max_operations else {
            return Ok(false);
        };
        storage.refresh_reports(view)?;
        Ok(view.operations() >= budget)
    }

    fn run_trial(
        &self,
        storage: &mut Storage,
        study: &StoredStudy,
        view: &mut View,
        claim: &Claim,
        scheduling: Option<&mut Scheduling>,
        objective: &mut dyn Objective,
    ) -> Result<(), WorkerError> {
        let begun = Instant::now();
        let state = self.attempt(storage, study, view, claim, scheduling, objective);
        let stored = state.and_then(|state| finish(storage, view, claim, &state, begun.elapsed()));
        match stored {
            // Another worker continues the trial.
            Err(WorkerError::Storage(StorageError::ClaimLost { .. })) => Ok(()),
            Err(error) => {
                // If this fails too, the overdue heartbeat frees the trial.
                let _ = storage.release(claim);
                Err(error)
            }
            Ok(()) => Ok(()),
        }
    }

    fn attempt(
        &self,
        storage: &mut Storage,
        study: &StoredStudy,
        view: &mut View,
        claim: &Claim,
        scheduling: Option<&mut Scheduling>,
        objective: &mut dyn Objective,
    ) -> Result<TrialState, WorkerError> {
        // Before anything else: reading a long history and sampling take a while.
        let interval = self.limits.heartbeat_timeout / 4;
        let heartbeat = self.heartbeat.as_ref().map(|thread| thread.start(claim, interval));
        let dir = self.dir(claim.number);
        let point = self.start(storage, study, view, claim, &dir)?;
        storage.refresh_reports(view)?;
        let stored = view.trials().get(claim.number as usize);
        let planned = stored.and_then(|trial| trial.planned).map(u64::from);
        let mut trial = Trial {
            worker: self,
            storage,
            view,
            study,
            claim,
            heartbeat: heartbeat.unwrap_or_default(),
            until: claim.until.map_or(u64::MAX, u64::from),
            scheduling,
            point,
            dir,
            planned,
            step_began: Instant::now(),
            findings: Vec::new(),
            requested: None,
            is_stopping: false,
        };
        let state = catch_unwind(AssertUnwindSafe(|| objective.run(&mut trial)));
        state.unwrap_or_else(|panic| {
            let message = format!("panicked: {}", panic_message(panic.as_ref()));
            Ok(TrialState::Failed { message })
        })
    }

    /// Samples the point of a trial, unless it has one, and publishes it.
    fn start(
        &self,
        storage: &mut Storage,
        study: &StoredStudy,
        view: &mut View,
        claim: &Claim,
        dir: &Path,
    ) -> Result<Point, WorkerError> {
        let (point, seen) = match &claim.point {
            Some(point) => (point.clone(), None),
            None => {
                storage.refresh_reports(view)?;
                let space = storage.space_at(study, view.change())?;
                let request = SampleRequest {
                    space: &space,
                    seed: study.seed,
                    number: claim.number,
                    history: &view.history(),
                };
                match space.parameters().is_empty() {
                    true => (Point::default(), None),
                    false => (self.sampler.suggest(&request), Some(view.change())),
                }
            }
        };
        let has_dir = !self.runs.as_os_str().is_empty();
        let run = has_dir.then(|| dir.display().to_string());
        let start = Start { point: point.clone(), seen, planned: None, run };
        storage.start(claim, &start)?;
        Ok(point)
    }
}

fn finish(
    storage: &mut Storage,
    view: &mut View,
    claim: &Claim,
    state: &TrialState,
    elapsed: Duration,
) -> Result<(), WorkerError> {
    match state {
        TrialState::Paused => return Ok(storage.pause(claim)?),
        state if !state.is_final() => return Ok(storage.release(claim)?),
        _ => {}
    }
    storage.refresh_reports(view)?;
    let seconds = match view.reports(claim.number) {
        [] => elapsed.as_secs_f64(),
        reports => reports.iter().map(|report| report.seconds).sum(),
    };
    Ok(storage.finish(claim, state, seconds)?)
}

impl Sampler for SamplerConfig {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn learns(&self) -> bool {
        (**self).learns()
    }

    fn suggest(&self, request: &SampleRequest<'_>) -> Point {
        (**self).suggest(request)
    }
}

impl std::fmt::Debug for Worker<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("name", &self.name).finish_non_exhaustive()
    }
}
