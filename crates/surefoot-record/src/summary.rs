//! Summary of a finished run: `summary.json`, and the last line of `surefoot train --json`.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// The summary of a run, in the fields and the order that are promised to those outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename = "summary")]
pub struct RunSummary {
    /// Status of the run.
    pub status: Status,
    /// The ids of the problems that were found, in the order of their finding.
    pub problems: Vec<String>,
    /// The ids of the remedies in the delivered plan, in the order of their application.
    pub remedies: Vec<String>,
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
    /// Problems were found and repaired.
    Repaired,
    /// Problems were found and none of the remedies helped.
    Failed,
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
    fn the_line_has_the_promised_fields_in_the_promised_order() {
        let summary = RunSummary {
            status: Status::Repaired,
            problems: vec!["dying_relu".to_owned()],
            remedies: vec!["activation".to_owned()],
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
    }
}
