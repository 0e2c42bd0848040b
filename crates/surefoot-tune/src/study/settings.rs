//! Search configuration: `[tune]`.

use crate::direction::Direction;
use crate::storage::ClaimLimits;
use crate::{pruner, sampler, scheduler};
use std::time::Duration;

/// Budget keys, which may differ between workers of a study.
pub(super) const BUDGET: [&str; 4] = ["trials", "time", "workers", "operations"];
/// Search keys, which do not affect the comparability of trials.
pub(super) const SEARCH: [&str; 8] =
    ["scheduler", "sampler", "seed", "rules", "pruner", "protect", "attempts", "patience"];

/// Defaults of keys. Writing them out does not change a study, unlike a sampler or a pruner: a study that names one has no
/// scheduler by default.
pub(crate) const DEFAULTS: [(&str, &str); 6] = [
    ("version", "1"),
    ("seed", "0"),
    ("rules", r#""surefoot""#),
    ("protect", "3"),
    ("attempts", "3"),
    ("patience", r#""60s""#),
];

/// Kind of objective value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectiveKind {
    /// Validation metric: accuracy, or R² for regression.
    Metric,
    /// Validation loss.
    Loss,
    /// Value reported by a command.
    Value,
}

impl ObjectiveKind {
    /// Name in studies.
    pub fn name(self) -> &'static str {
        match self {
            ObjectiveKind::Metric => "metric",
            ObjectiveKind::Loss => "loss",
            ObjectiveKind::Value => "value",
        }
    }
}

/// Search configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyConfig {
    /// Objective.
    pub objective: ObjectiveKind,
    /// Direction of optimization.
    pub direction: Direction,
    /// Seed of the sampler. Trials train with the plan's seed.
    pub seed: u64,
    /// Sampler.
    pub sampler: sampler::SamplerConfig,
    /// Sampler for new trials if there is a scheduler too: true if the study names it, so that it suggests their
    /// points instead of the scheduler.
    pub sampler_is_named: bool,
    /// Scheduler, which pauses and continues trials.
    pub scheduler: Option<scheduler::SchedulerConfig>,
    /// True if a trial can continue from where it was stopped.
    pub resumes: bool,
    /// True if a command runs all trials of a worker in one process.
    pub keep_alive: bool,
    /// Pruners and indicators.
    pub pruners: pruner::PruningConfig,
    /// Number of trials.
    pub trials: Option<u64>,
    /// Time budget; running trials are then interrupted.
    pub time: Option<Duration>,
    /// Budget of multiplications over all trials, the same on every machine. Commands have none.
    pub operations: Option<f64>,
    /// Parallel trials on this machine.
    pub workers: Option<usize>,
    /// Worker deaths after which a trial has failed.
    pub attempts: u32,
    /// Time without a heartbeat after which a worker is considered dead.
    pub patience: Duration,
}

impl StudyConfig {
    /// Defaults for an objective and direction.
    pub fn new(objective: ObjectiveKind, direction: Direction) -> StudyConfig {
        StudyConfig {
            objective,
            direction,
            seed: 0,
            sampler: sampler::SamplerConfig::default(),
            sampler_is_named: false,
            scheduler: None,
            resumes: false,
            keep_alive: false,
            pruners: pruner::PruningConfig::default(),
            trials: None,
            time: None,
            operations: None,
            workers: None,
            // Two deaths may be bad luck; three are caused by the trial.
            attempts: 3,
            // Four heartbeat intervals.
            patience: Duration::from_secs(60),
        }
    }

    /// Pruning rules with the defaults that depend on the sampler.
    pub fn rules(&self) -> pruner::PruningConfig {
        self.pruners.clone().for_sampler(self.sampler.learns())
    }

    /// Limits on claims.
    pub fn limits(&self) -> ClaimLimits {
        ClaimLimits {
            max_trials: self.trials,
            max_attempts: self.attempts,
            heartbeat_timeout: self.patience,
        }
    }
}
