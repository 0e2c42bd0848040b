//! Pruners: when a trial is not worth going on with, one a file.

mod asha;
mod config;
mod extrapolation;
mod hyperband;
mod median;
mod percentile;
mod prospect;
mod set;
mod settings;
mod standing;

pub use asha::Asha;
pub use config::{NAMES, PrunerConfig, UnknownPruner};
pub use extrapolation::Extrapolation;
pub use hyperband::Hyperband;
pub use median::Median;
pub use percentile::Percentile;
pub use prospect::Prospect;
pub use set::{NON_FINITE, PrunerSet};
pub use settings::{DIAGNOSIS, NONE, PruningConfig, PruningConfigError};
pub(crate) use standing::sound;

use crate::learning_curve::LearningCurve;
use serde::{Deserialize, Serialize};
use surefoot_diagnose::{Evidence, Finding, Severity};

/// Ends a trial by comparing its curve with that of the others.
///
/// A pruner keeps nothing between calls, so that a recorded study can be judged again by other
/// rules and gives what it would have given live. What looks into a single trial, layer by layer, is an
/// indicator (`surefoot_diagnose::indicators`).
pub trait Pruner: Send + Sync {
    /// The name it has in studies.
    fn name(&self) -> &'static str;

    /// Whether to end the trial after what it reported last, and why.
    fn judge(&self, trial: &LearningCurve, others: &[LearningCurve]) -> Option<PruneReason>;
}

/// Why a trial was ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PruneReason {
    /// The pruner or indicator: `median`, `erg`.
    pub by: String,
    /// One sentence for people.
    pub sentence: String,
    /// The numbers that show it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// Whether what it reached counts as any other result: it was not bad, only done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts: bool,
}

impl PruneReason {
    /// A reason without evidence, of a trial that was bad.
    pub fn new(by: &str, sentence: impl Into<String>) -> PruneReason {
        PruneReason {
            by: by.to_owned(),
            sentence: sentence.into(),
            evidence: Vec::new(),
            counts: false,
        }
    }

    /// The same with a number that shows it.
    #[must_use]
    pub fn with(mut self, name: &str, value: f64, limit: impl Into<Option<f64>>) -> PruneReason {
        self.evidence.push(Evidence { name: name.to_owned(), value, limit: limit.into() });
        self
    }
}

/// What an indicator found is a reason. A warning ends a trial without blame.
impl From<&Finding> for PruneReason {
    fn from(finding: &Finding) -> PruneReason {
        PruneReason {
            by: finding.problem.id().to_owned(),
            sentence: finding.message.clone(),
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
    fn a_remark_ends_a_trial_that_counts() {
        let finding = Finding::new(Problem::NMG, 7, "Done.").with("lowest loss", 0.1, None);
        assert!(!PruneReason::from(&finding).counts);
        let reason = PruneReason::from(&finding.warning());
        assert!(reason.counts);
        assert_eq!((reason.by.as_str(), reason.evidence.len()), ("nmg", 1));
    }
}
