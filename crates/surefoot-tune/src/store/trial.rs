//! Trials as they are kept.

use crate::direction::Direction;
use crate::history::TrialOutcome;
use crate::pruner::PruneReason;
use crate::space::Point;
use serde::Serialize;

/// A time by the clock of the database: milliseconds since 1970.
pub type Millis = i64;

/// A place in the order of all changes of a study. Each change has a number of its own, and whoever
/// sees one sees all before it.
pub type Change = u64;

/// Where a trial stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nobody runs it: it was enqueued, or given back by a worker that had to leave.
    Waiting,
    /// A worker runs it.
    Running,
    /// Its worker has given no sign of life for too long. The next worker goes on with it.
    Lost,
    /// It is over, and does not change any more.
    Over(End),
}

impl State {
    /// The word for it: `waiting`, `running`, `lost`, `complete`, `stopped`, `failed`.
    pub fn word(&self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Running => "running",
            State::Lost => "lost",
            State::Over(end) => end.word(),
        }
    }
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It ran to its end.
    Complete {
        /// What it reached, which may be any number.
        value: f64,
    },
    /// It was ended, because more of it was not worth its time.
    Stopped {
        /// What it had reached, if anything.
        value: Option<f64>,
        /// Why.
        reason: PruneReason,
    },
    /// It could not be run.
    Failed {
        /// What went wrong.
        message: String,
    },
}

impl End {
    /// The word for it: `complete`, `stopped`, `failed`.
    pub fn word(&self) -> &'static str {
        match self {
            End::Complete { .. } => "complete",
            End::Stopped { .. } => "stopped",
            End::Failed { .. } => "failed",
        }
    }

    /// What the trial reached, as it was reported.
    pub fn value(&self) -> Option<f64> {
        match *self {
            End::Complete { value } => Some(value),
            End::Stopped { value, .. } => value,
            End::Failed { .. } => None,
        }
    }
}

/// What became of a worker's attempt at a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It goes on.
    Running,
    /// The worker was thought dead.
    Lost,
    /// The worker gave the trial back.
    Released,
    /// It brought the trial to its end.
    Over,
}

impl Fate {
    /// All of them.
    const ALL: [Fate; 4] = [Fate::Running, Fate::Lost, Fate::Released, Fate::Over];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Fate::Running => "running",
            Fate::Lost => "lost",
            Fate::Released => "released",
            Fate::Over => "over",
        }
    }

    /// The fate of a word.
    pub(super) fn of(word: &str) -> Option<Fate> {
        Fate::ALL.into_iter().find(|fate| fate.word() == word)
    }
}

/// A worker's attempt at a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attempt {
    /// Its number among the attempts at this trial, from 1.
    pub number: u32,
    /// The name of the worker.
    pub worker: String,
    /// When the worker took the trial.
    pub began: Millis,
    /// When it ended; for a lost one, the last sign of life.
    pub ended: Option<Millis>,
    /// What became of it.
    pub fate: Fate,
}

/// What a trial reported after one of its stretches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The stretch, from 1.
    pub step: u32,
    /// The attempt that reported it.
    pub attempt: u32,
    /// What was reached, which may be any number.
    pub value: f64,
    /// The time that this stretch took.
    pub seconds: f64,
    /// The multiplications of this stretch, where they are counted.
    pub operations: f64,
    /// When it was reported.
    pub at: Millis,
}

/// A trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// Its number in the study: 0 for the first, and no number is left out.
    pub number: u64,
    /// Where it stands.
    pub state: State,
    /// What it is run with, once that is known.
    pub point: Option<Point>,
    /// The change up to which the sampler knew the study when it was asked for the point;
    /// `None` where no sampler was asked.
    pub seen: Option<Change>,
    /// How many stretches there will be, if it runs to its end.
    pub planned: Option<u32>,
    /// The directory of its run.
    pub run: Option<String>,
    /// What it took in all of whatever the study counts, once it is over.
    pub seconds: Option<f64>,
    /// Who ran it, in order.
    pub attempts: Vec<Attempt>,
    /// When it came to be.
    pub created: Millis,
    /// When it ended.
    pub ended: Option<Millis>,
    /// The change by which others knew its point.
    pub pointed: Option<Change>,
    /// The change by which others knew its end.
    pub told: Option<Change>,
}

impl Trial {
    /// How it ended, if it did.
    pub fn end(&self) -> Option<&End> {
        match &self.state {
            State::Over(end) => Some(end),
            _ => None,
        }
    }

    /// What it reached, as it was reported.
    pub fn value(&self) -> Option<f64> {
        self.end().and_then(End::value)
    }

    /// What a sampler is told of it that knew the study up to a change; nothing before it had a
    /// point.
    pub fn outcome_at(&self, change: Change, direction: Direction) -> Option<TrialOutcome> {
        if self.pointed.is_none_or(|pointed| pointed > change) {
            return None;
        }
        let told = self.told.is_some_and(|told| told <= change);
        Some(match self.end() {
            Some(end) if told => end
                .value()
                .map_or(TrialOutcome::Failed, |value| TrialOutcome::of(direction.cost(value))),
            _ => TrialOutcome::Running,
        })
    }
}
