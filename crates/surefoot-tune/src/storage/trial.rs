//! Stored trials and their states.

use crate::direction::Direction;
use crate::history::TrialOutcome;
use crate::pruner::PruneReason;
use crate::space::Point;
use serde::Serialize;

/// Milliseconds since 1970 by the database clock.
pub type Millis = i64;

/// Sequence number of a change to a study. A reader that sees a change sees all earlier ones.
pub type Change = u64;

/// State of a trial, as in Optuna, plus [`Paused`](TrialState::Paused) and [`Lost`](TrialState::Lost).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialState {
    /// Enqueued, or released by a worker that was interrupted.
    Waiting,
    /// Claimed by a worker.
    Running,
    /// Paused by the scheduler, which may continue it.
    Paused,
    /// The worker's heartbeat is overdue. The next worker continues the trial.
    Lost,
    /// Ran to its end. Final.
    Complete {
        /// Objective value, possibly NaN or infinite.
        value: f64,
    },
    /// Stopped early by a pruner or an indicator. Final.
    Pruned {
        /// Objective value when it was stopped, if any was reported.
        value: Option<f64>,
        /// The rule that stopped it, and why.
        reason: PruneReason,
    },
    /// Could not run. Final.
    Failed {
        /// Error message.
        message: String,
    },
}

impl TrialState {
    /// Name in storage, JSON and output: `waiting`, `running`, `paused`, `lost`, `complete`, `pruned`, `failed`.
    pub fn name(&self) -> &'static str {
        match self {
            TrialState::Waiting => "waiting",
            TrialState::Running => "running",
            TrialState::Paused => "paused",
            TrialState::Lost => "lost",
            TrialState::Complete { .. } => "complete",
            TrialState::Pruned { .. } => "pruned",
            TrialState::Failed { .. } => "failed",
        }
    }

    /// True for `complete`, `pruned` and `failed`: states that never change.
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            TrialState::Complete { .. } | TrialState::Pruned { .. } | TrialState::Failed { .. }
        )
    }

    /// Objective value of a final state.
    pub fn value(&self) -> Option<f64> {
        match *self {
            TrialState::Complete { value } => Some(value),
            TrialState::Pruned { value, .. } => value,
            _ => None,
        }
    }
}

/// State of one worker's claim on a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimState {
    /// The worker runs the trial.
    Running,
    /// The worker's heartbeat was overdue.
    Lost,
    /// The worker released the trial.
    Released,
    /// The scheduler paused the trial.
    Paused,
    /// The worker brought the trial to a final state.
    Finished,
}

impl ClaimState {
    const ALL: [ClaimState; 5] = [
        ClaimState::Running,
        ClaimState::Lost,
        ClaimState::Released,
        ClaimState::Paused,
        ClaimState::Finished,
    ];

    /// Name in storage and JSON.
    pub fn name(self) -> &'static str {
        match self {
            ClaimState::Running => "running",
            ClaimState::Lost => "lost",
            ClaimState::Released => "released",
            ClaimState::Paused => "paused",
            ClaimState::Finished => "finished",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<ClaimState> {
        ClaimState::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// One worker's attempt at a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrialAttempt {
    /// 1-based number among the attempts at this trial.
    pub number: u32,
    /// Name of the worker.
    pub worker: String,
    /// Time of the claim.
    pub began: Millis,
    /// End time; for a lost attempt, its last heartbeat.
    pub ended: Option<Millis>,
    /// State of the claim.
    pub state: ClaimState,
}

/// An intermediate value reported by a trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TrialReport {
    /// 1-based step, usually an epoch.
    pub step: u32,
    /// The attempt that reported it.
    pub attempt: u32,
    /// Objective value, possibly NaN or infinite.
    pub value: f64,
    /// Duration of this step.
    pub seconds: f64,
    /// Multiplications in this step, 0 if they are not counted.
    pub operations: f64,
    /// Time of the report.
    pub at: Millis,
    /// Change that published it.
    #[serde(skip)]
    pub change: Change,
}

/// A decision of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StoredDecision {
    /// The trial that was started or continued.
    pub number: u64,
    /// Total number of steps before it pauses; `None` for its end.
    pub until: Option<u32>,
    /// The limit on trials at that time.
    pub budget: Option<u64>,
    /// Last change the scheduler had seen.
    pub seen: Change,
    /// Change that published the decision.
    pub change: Change,
}

/// A trial as stored.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FrozenTrial {
    /// 0-based number in the study, without gaps.
    pub number: u64,
    /// Current state.
    pub state: TrialState,
    /// Parameter values, once sampled.
    pub point: Option<Point>,
    /// Last change the sampler had seen when it suggested the point; `None` for enqueued points.
    pub seen: Option<Change>,
    /// Number of steps if it runs to its end.
    pub planned: Option<u32>,
    /// Run directory.
    pub run: Option<String>,
    /// Total duration, once it has ended.
    pub seconds: Option<f64>,
    /// Attempts in order.
    pub attempts: Vec<TrialAttempt>,
    /// Creation time.
    pub created: Millis,
    /// End time.
    pub ended: Option<Millis>,
    /// Change that published the point.
    pub point_change: Option<Change>,
    /// Change that published the final state.
    pub end_change: Option<Change>,
}

impl FrozenTrial {
    /// The state, if it is final.
    pub fn final_state(&self) -> Option<&TrialState> {
        Some(&self.state).filter(|state| state.is_final())
    }

    /// Objective value of the final state.
    pub fn value(&self) -> Option<f64> {
        self.state.value()
    }

    /// The outcome a sampler saw at a change; `None` before the point was published.
    pub fn outcome_at(&self, change: Change, direction: Direction) -> Option<TrialOutcome> {
        if self.point_change.is_none_or(|published| published > change) {
            return None;
        }
        let ended = self.end_change.is_some_and(|published| published <= change);
        Some(match self.value() {
            Some(value) if ended => TrialOutcome::of(direction.cost(value)),
            None if ended => TrialOutcome::Failed,
            _ => TrialOutcome::Running,
        })
    }
}
