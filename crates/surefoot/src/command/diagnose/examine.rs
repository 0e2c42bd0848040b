//! Runs the detectors on a recorded run or a log.

use super::settings::DiagnoseSettings;
use super::subject::Subject;
use crate::failure::Failure;
use crate::output::diagnosis::DiagnosisReport;
use surefoot_diagnose::{Detector, Diagnosis, Finding};

/// Replays all steps and evaluations to the detectors, as in live training.
pub(super) fn examine(
    mut subject: Subject,
    settings: DiagnoseSettings,
    detectors: Vec<Box<dyn Detector>>,
) -> Result<DiagnosisReport, Failure> {
    subject.complete(&settings.stated);
    let facts = subject.facts().clone();
    let mut diagnosis = Diagnosis::with(facts, settings.thresholds, detectors);
    let not_observable = diagnosis.restrict_to(&subject.available()?);
    let checked = diagnosis.active_problems();
    let replay = subject.replay(&mut diagnosis)?;
    if replay.steps == 0 {
        let path = subject.path().display();
        return Err(Failure::input(format!("{path} has no steps")));
    }

    let own_numbers = |finding: &Finding| Finding {
        step: subject.at(finding.step),
        since: subject.at(finding.since),
        ..finding.clone()
    };
    Ok(DiagnosisReport {
        path: subject.name(),
        notes: subject.notes(),
        too_short: subject.is_too_short(),
        description: subject.description(replay)?,
        unit: subject.unit().name(),
        steps: replay.steps,
        findings: diagnosis.findings().iter().map(own_numbers).collect(),
        checked,
        not_observable,
    })
}

#[cfg(test)]
#[path = "examine_tests.rs"]
mod tests;
