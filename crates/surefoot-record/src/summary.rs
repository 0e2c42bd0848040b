//! Summary of a finished run: `summary.json`, and the last line of `surefoot train --json`.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// The summary of a run. Programs rely on its fields and their order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename = "summary")]
pub struct RunSummary {
    /// Status of the run.
    pub status: Status,
    /// The ids of the problems that were found, in the order of their finding.
    pub problems: Vec<String>,
    /// The ids of the remedies in the delivered plan, in the order of their application.
    pub remedies: Vec<String>,
    /// The ids of the problems whose detectors panicked and were switched off; absent if none did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_detectors: Vec<String>,
    /// Metric of the run.
    pub metric: MetricSummary,
    /// Optimizer steps done, all attempts together.
    pub steps: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// The hash of the delivered state.
    pub digest: Digest,
    /// The run directory.
    pub run: String,
}

impl RunSummary {
    /// The one line of JSON that the command line prints.
    pub fn to_json_line(&self) -> String {
        // A struct of strings and numbers has no way to fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Status of a finished run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// No problem was found.
    Normal,
    /// A problem was found and not repaired, because repair was off or declined.
    Problem,
    /// A problem was found and repaired.
    Repaired,
    /// A problem was found and no remedy helped, the result is not finite, or a watched program was
    /// interrupted.
    Failed,
}

impl Status {
    /// The name used in records and output.
    pub fn name(self) -> &'static str {
        match self {
            Status::Normal => "normal",
            Status::Problem => "problem",
            Status::Repaired => "repaired",
            Status::Failed => "failed",
        }
    }

    /// Returns true if the delivered model has no known problem.
    pub fn is_success(self) -> bool {
        matches!(self, Status::Normal | Status::Repaired)
    }
}

/// The metric of a run on the validation split.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricSummary {
    /// Its name.
    pub name: String,
    /// Metric of the original plan at its end, or where it was stopped.
    #[serde(with = "surefoot_diagnose::number::optional")]
    pub before: Option<f64>,
    /// Metric of the delivered model.
    #[serde(with = "surefoot_diagnose::number::optional")]
    pub after: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_fixed_fields_in_a_fixed_order() {
        let mut summary = RunSummary {
            status: Status::Repaired,
            problems: vec!["dying_relu".to_owned()],
            remedies: vec!["activation".to_owned()],
            failed_detectors: Vec::new(),
            metric: MetricSummary {
                name: "accuracy".to_owned(),
                before: Some(0.5),
                after: Some(f64::NAN),
            },
            steps: 1600,
            seconds: 0.25,
            digest: Digest(0xab),
            run: "runs/circles-001".to_owned(),
        };
        let line = summary.to_json_line();
        assert_eq!(
            line,
            concat!(
                r#"{"event":"summary","status":"repaired","problems":["dying_relu"],"#,
                r#""remedies":["activation"],"metric":{"name":"accuracy","before":0.5,"after":"NaN"},"#,
                r#""steps":1600,"seconds":0.25,"digest":"000000000000000000000000000000ab","#,
                r#""run":"runs/circles-001"}"#
            )
        );
        let read: RunSummary = serde_json::from_str(&line).unwrap();
        assert_eq!(read.to_json_line(), line);
        summary.failed_detectors.push("dying_relu".to_owned());
        assert!(summary.to_json_line().contains(r#""failed_detectors":["dying_relu"],"metric""#));
    }

    #[test]
    fn a_status_is_its_name() {
        for status in [Status::Normal, Status::Problem, Status::Repaired, Status::Failed] {
            assert_eq!(serde_json::to_value(status).unwrap(), status.name());
        }
    }
}
