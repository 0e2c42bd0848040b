//! Reports of commands, read back from the directory of a trial.

use super::report::ReportLine;
use super::reports::REPORTS;
use std::path::Path;
use surefoot_diagnose::{LayerInfo, Observation};

/// A report of a command, as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedReport {
    /// The step of the trial that it reported a value for; `None` without a value.
    pub step: Option<u64>,
    /// Losses and layers, if it has a loss.
    pub observation: Option<Observation>,
    /// Layers as of this report.
    pub layers: Vec<LayerInfo>,
    /// Total number of epochs, as of this report.
    pub epochs: Option<u64>,
}

/// Reads the reports of a trial. Reports that a later attempt repeated are left out, and so is a last line that was cut
/// by the death of a worker.
pub fn recorded_reports(dir: &Path) -> std::io::Result<Vec<RecordedReport>> {
    let text = std::fs::read_to_string(dir.join(REPORTS))?;
    let mut reports: Vec<RecordedReport> = Vec::new();
    let (mut observed, mut layers) = (0, Vec::new());
    for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        let Some((step, line)) = line.split_once('\t') else { continue };
        let Some(Ok(line)) = ReportLine::read(line) else { continue };
        let step: Option<u64> = step.parse().ok();
        if let Some(repeated) = step {
            let known = reports.iter().position(|r| r.step.is_some_and(|s| s >= repeated));
            reports.truncate(known.unwrap_or(reports.len()));
        }
        if layers.is_empty() && !line.layers.0.is_empty() {
            layers = line.layer_infos();
        }
        if line.loss.is_some() {
            observed = line.step.or(line.epoch).unwrap_or(0).max(observed + 1);
        }
        reports.push(RecordedReport {
            step,
            observation: line.observation(observed, &layers),
            layers: layers.clone(),
            epochs: line.epochs,
        });
    }
    Ok(reports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_and_cut_reports_are_left_out() {
        let dir = tempfile::tempdir().expect("a directory");
        let lines = [
            "1\t{\"epoch\": 1, \"loss\": 0.9, \"value\": 0.9}",
            "null\t{\"loss\": 0.8}",
            "2\t{\"epoch\": 2, \"loss\": 0.7, \"value\": 0.7}",
            "2\t{\"epoch\": 2, \"loss\": 0.6, \"value\": 0.6}",
            "3\t{\"epoch\": 3, \"lo",
        ];
        std::fs::write(dir.path().join(REPORTS), lines.join("\n")).expect("a file");
        let reports = recorded_reports(dir.path()).expect("reports");
        let steps: Vec<Option<u64>> = reports.iter().map(|report| report.step).collect();
        assert_eq!(steps, [Some(1), None, Some(2)]);
        let losses = reports.iter().filter_map(|report| report.observation.as_ref());
        assert_eq!(losses.map(|seen| seen.loss).collect::<Vec<_>>(), [0.9, 0.8, 0.6]);
    }
}
