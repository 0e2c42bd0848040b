//! Schedulers: which trial runs next and for how long, one scheduler per file.
//!
//! A scheduler pauses trials instead of ending them. At every decision it starts a new trial or continues a
//! paused one for some epochs, so no trial is lost: one that looks bad stays paused and can be
//! continued later. The trials must be able to continue from a checkpoint.
//!
//! A decision is a pure function of the [`ScheduleHistory`], the space and the seed. Every decision is
//! stored with the last change that it saw, and can be repeated from there.
//!
//! # Adding a scheduler
//!
//! Write one file with a struct for its options, a documented `Default`, an implementation of
//! [`Scheduler`] and its tests; then add one line to `SCHEDULERS`.

mod asha;
mod freeze_thaw;
mod history;
mod hyperband;
#[cfg(test)]
mod laws;

pub use asha::AshaPromotion;
pub use freeze_thaw::FreezeThaw;
pub use history::{ScheduleHistory, ScheduledReport, ScheduledTrial};
pub use hyperband::HyperbandPromotion;

use crate::registry::{Component, Configured, Options, Registered};
use crate::space::{Point, Space};
use serde::Serialize;
use std::sync::Arc;

/// Chooses the trial to run next.
pub trait Scheduler: Send + Sync {
    /// The name in studies.
    fn name(&self) -> &'static str;

    /// Starts to schedule a search.
    fn schedule(&self, search: &Search<'_>) -> Box<dyn Schedule>;
}

/// The decisions of one search.
///
/// A schedule keeps only what it derived from the history, so a new one makes the same decision. Pass it
/// histories that only grow.
pub trait Schedule: Send {
    /// Returns what a free worker should do now.
    fn decide(&mut self, history: &ScheduleHistory) -> Decision;
}

/// The search that a scheduler decides for.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// The search space.
    pub space: &'a Space,
    /// The seed of the study.
    pub seed: u64,
    /// The only points that can be started; `None` for all of the space. An entry can be started once.
    pub candidates: Option<&'a [Point]>,
    /// True if the sampler of the study suggests the points of new trials.
    pub is_suggested: bool,
}

/// Decision for a free worker.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Start a trial and pause it after `until` epochs.
    Start {
        /// Its point; `None` if the sampler of the study suggests it.
        point: Option<Point>,
        /// Total number of epochs before it pauses.
        until: u64,
    },
    /// Continue a paused trial and pause it after `until` epochs in total.
    Continue {
        /// Number of the trial.
        trial: u64,
        /// Total number of epochs before it pauses.
        until: u64,
    },
    /// Wait for a report of a running trial.
    Wait,
}

/// A scheduler with its options, as a study writes it: `"freeze_thaw"` or
/// `{ name = "asha", reduction_factor = 3 }`.
pub type SchedulerConfig = Configured<dyn Scheduler>;

/// All schedulers that studies can name.
const SCHEDULERS: &[Registered<dyn Scheduler>] = &[
    registered::<FreezeThaw>(),
    registered::<AshaPromotion>(),
    registered::<HyperbandPromotion>(),
];

impl Component for dyn Scheduler {
    const KIND: &'static str = "scheduler";

    fn registered() -> &'static [Registered<dyn Scheduler>] {
        SCHEDULERS
    }

    fn component_name(&self) -> &'static str {
        self.name()
    }
}

const fn registered<S: Scheduler + Options>() -> Registered<dyn Scheduler> {
    Registered(|options| serde_json::from_value::<S>(options.into()).map(SchedulerConfig::new))
}

impl SchedulerConfig {
    /// Wraps a scheduler, registered or not.
    pub fn new<S: Scheduler + Serialize + 'static>(scheduler: S) -> SchedulerConfig {
        let scheduler = Arc::new(scheduler);
        Configured::from_parts(scheduler.clone(), &*scheduler)
    }
}
