//! Pruners: rules that stop a trial early, one per file.
//!
//! # Adding a pruner
//!
//! Write one file with a struct for its options, a documented `Default`, an implementation of
//! [`Pruner`] and its tests; then add one line to `PRUNERS`.
//! Programs can also use a pruner that is not in the list:
//!
//! ```
//! use serde::Serialize;
//! use surefoot_tune::LearningCurve;
//! use surefoot_tune::pruner::{PruneReason, Pruner, PrunerConfig, PruningConfig};
//!
//! /// Prunes a trial whose cost is above a limit.
//! #[derive(Serialize)]
//! struct Limit {
//!     cost: f64,
//! }
//!
//! impl Pruner for Limit {
//!     fn name(&self) -> &'static str {
//!         "limit"
//!     }
//!
//!     fn prune(&self, trial: &LearningCurve, _others: &[LearningCurve]) -> Option<PruneReason> {
//!         let cost = trial.last().filter(|cost| *cost > self.cost)?;
//!         Some(PruneReason::new("limit", "above the limit").with("cost", cost, self.cost))
//!     }
//! }
//!
//! let config = PruningConfig::only(PrunerConfig::new(Limit { cost: 2.0 }));
//! let trial = LearningCurve { costs: vec![3.0], planned: 10, ..LearningCurve::default() };
//! assert!(config.pruner_set().decide(&trial, &[], &[], &[]).is_some());
//! ```

mod asha;
mod config;
mod extrapolation;
mod hyperband;
mod median;
mod percentile;
mod prospect;
mod rank;
mod set;

pub use asha::Asha;
pub use config::{DIAGNOSIS, NONE, PruningConfig, PruningConfigError};
pub use extrapolation::Extrapolation;
pub use hyperband::Hyperband;
pub use median::Median;
pub use percentile::Percentile;
pub use prospect::Prospect;
pub(crate) use rank::finite_or_worst;
pub use set::{NON_FINITE, PrunerSet};

use crate::learning_curve::LearningCurve;
use crate::registry::{Component, Configured, Options, Registered};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use surefoot_diagnose::{Evidence, Finding, Severity};

/// Stops a trial early by comparing its learning curve with those of other trials.
///
/// Pruners are stateless, so recorded studies can be replayed under other rules. Rules that inspect a
/// single trial layer by layer are indicators (`surefoot_diagnose::indicators`).
pub trait Pruner: Send + Sync {
    /// The name in studies.
    fn name(&self) -> &'static str;

    /// Returns the reason to prune the trial after its last report, or `None` to continue it.
    fn prune(&self, trial: &LearningCurve, others: &[LearningCurve]) -> Option<PruneReason>;
}

/// A pruner with its options, as a study writes it: `"median"` or
/// `{ name = "median", n_startup_trials = 10 }`.
pub type PrunerConfig = Configured<dyn Pruner>;

/// All pruners that studies can name.
const PRUNERS: &[Registered<dyn Pruner>] = &[
    registered::<Prospect>(),
    registered::<Median>(),
    registered::<Percentile>(),
    registered::<Extrapolation>(),
    registered::<Asha>(),
    registered::<Hyperband>(),
];

impl Component for dyn Pruner {
    const KIND: &'static str = "pruner";

    fn registered() -> &'static [Registered<dyn Pruner>] {
        PRUNERS
    }

    fn component_name(&self) -> &'static str {
        self.name()
    }
}

const fn registered<P: Pruner + Options>() -> Registered<dyn Pruner> {
    Registered(|options| serde_json::from_value::<P>(options.into()).map(PrunerConfig::new))
}

impl PrunerConfig {
    /// Wraps a pruner, registered or not.
    pub fn new<P: Pruner + Serialize + 'static>(pruner: P) -> PrunerConfig {
        let pruner = Arc::new(pruner);
        Configured::from_parts(pruner.clone(), &*pruner)
    }
}

/// The reason a trial was pruned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PruneReason {
    /// The pruner or indicator: `median`, `erg`.
    pub by: String,
    /// One sentence for people.
    pub message: String,
    /// The measurements behind it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// True if the trial's best value counts as a result: it was converged, not bad.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts: bool,
}

impl PruneReason {
    /// A reason without evidence, for a trial whose value does not count.
    pub fn new(by: &str, message: impl Into<String>) -> PruneReason {
        PruneReason {
            by: by.to_owned(),
            message: message.into(),
            evidence: Vec::new(),
            counts: false,
        }
    }

    /// A reason that starts with the trial's position: "Pruned at epoch 6 of 40: ...".
    fn at(by: &str, trial: &LearningCurve, why: impl std::fmt::Display) -> PruneReason {
        let (epoch, planned) = (trial.costs.len(), trial.planned);
        PruneReason::new(by, format!("Pruned at epoch {epoch} of {planned}: {why}."))
    }

    /// Adds a measurement and the limit it crossed.
    #[must_use]
    pub fn with(mut self, name: &str, value: f64, limit: impl Into<Option<f64>>) -> PruneReason {
        self.evidence.push(Evidence { measure: name.into(), value, limit: limit.into() });
        self
    }
}

/// A finding of an indicator is a reason. After a warning the trial's value still counts.
impl From<&Finding> for PruneReason {
    fn from(finding: &Finding) -> PruneReason {
        PruneReason {
            by: finding.problem.id().to_owned(),
            message: finding.message.clone(),
            evidence: finding.evidence.clone(),
            counts: finding.severity == Severity::Warning,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use surefoot_diagnose::Problem;

    #[test]
    fn a_trial_pruned_on_a_warning_counts() {
        let finding = Finding::new(Problem::NMG, 7, "Done.").with("lowest loss", 0.1, None);
        assert!(!PruneReason::from(&finding).counts);
        let reason = PruneReason::from(&finding.warning());
        assert!(reason.counts);
        assert_eq!((reason.by.as_str(), reason.evidence.len()), ("nmg", 1));
    }
}
