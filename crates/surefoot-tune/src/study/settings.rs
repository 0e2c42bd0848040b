//! `[tune]`: how to search, and for how long.

use crate::direction::Direction;
use crate::store::Limits;
use crate::{pruner, sampler};
use std::time::Duration;

/// The keys that say how long a search takes and with how many hands. They may differ between those
/// who work at the same study.
pub(super) const BUDGET: [&str; 4] = ["trials", "time", "workers", "operations"];
/// The keys that say how to search. Trials that were found in different ways can be compared.
pub(super) const SEARCH: [&str; 6] =
    ["sampler", "seed", "pruner", "protect", "attempts", "patience"];

/// What keys stand for that are not written. To say them aloud changes nothing.
pub(crate) const DEFAULTS: [(&str, &str); 7] = [
    ("version", "1"),
    ("seed", "0"),
    ("sampler", r#""tpe""#),
    ("pruner", r#"["diagnosis","prospect"]"#),
    ("protect", "3"),
    ("attempts", "3"),
    ("patience", r#""60s""#),
];

/// What a trial is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectiveKind {
    /// The metric of the validation split: accuracy, or R² for a regression.
    Metric,
    /// The loss of the validation split.
    Loss,
    /// What a command reports.
    Value,
}

impl ObjectiveKind {
    /// The name it has in studies.
    pub fn name(self) -> &'static str {
        match self {
            ObjectiveKind::Metric => "metric",
            ObjectiveKind::Loss => "loss",
            ObjectiveKind::Value => "value",
        }
    }
}

/// How to search, and for how long.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyConfig {
    /// What a trial is judged by.
    pub objective: ObjectiveKind,
    /// Which way is better.
    pub direction: Direction,
    /// The seed of every draw of the sampler. Trials are trained with the plan's own.
    pub seed: u64,
    /// Who says which point to try next.
    pub sampler: sampler::SamplerConfig,
    /// Who ends trials.
    pub pruners: pruner::PruningConfig,
    /// How many trials there are at most.
    pub trials: Option<u64>,
    /// How long to search. What runs then is interrupted.
    pub time: Option<Duration>,
    /// How many multiplications all trials together may take: a budget that is the same on every
    /// machine. Only trials that train a plan count theirs.
    pub operations: Option<f64>,
    /// How many trials run side by side on this machine.
    pub workers: Option<usize>,
    /// How many workers may die of a trial before it has failed.
    pub attempts: u32,
    /// How long a worker may be silent before it is taken for dead.
    pub patience: Duration,
}

impl StudyConfig {
    /// The settings of a study that says nothing but its objective and direction.
    pub fn new(objective: ObjectiveKind, direction: Direction) -> StudyConfig {
        StudyConfig {
            objective,
            direction,
            seed: 0,
            sampler: sampler::SamplerConfig::default(),
            pruners: pruner::PruningConfig::default(),
            trials: None,
            time: None,
            operations: None,
            workers: None,
            // Twice is bad luck, three times is the trial.
            attempts: 3,
            // A worker tells that it lives four times as often.
            patience: Duration::from_secs(60),
        }
    }

    /// Who ends trials, with all that depends on the sampler.
    pub fn rules(&self) -> pruner::PruningConfig {
        self.pruners.clone().for_sampler(self.sampler.learns())
    }

    /// What a store has to know to give out trials.
    pub fn limits(&self) -> Limits {
        Limits { trials: self.trials, deaths: self.attempts, grace: self.patience }
    }
}
