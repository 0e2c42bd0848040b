//! The detectors on a recorded run or a log, in the order in which it happened.

use super::settings::Settings;
use super::subject::Subject;
use crate::failure::Failure;
use crate::output::diagnosis::Report;
use surefoot_diagnose::{Detector, Diagnosis, Finding};

/// Lets the detectors look at all steps and evaluations, exactly as they would have live.
pub(super) fn examine(
    mut subject: Subject,
    settings: Settings,
    detectors: Vec<Box<dyn Detector>>,
) -> Result<Report, Failure> {
    subject.complete(&settings.given);
    let facts = subject.facts().clone();
    let planned = facts.total_steps();
    let mut diagnosis = Diagnosis::with(facts, settings.thresholds, detectors);
    let not_observable = diagnosis.restrict_to(&subject.available());
    let checked = diagnosis.active_problems();

    let (mut steps, mut epochs) = (0, None);
    let mut evaluations = subject.evaluations().iter().peekable();
    subject.each_step(|seen| {
        // An evaluation comes after the step it is of.
        while let Some(evaluation) = evaluations.next_if(|next| next.step < seen.step) {
            diagnosis.evaluate(evaluation);
        }
        diagnosis.observe(seen);
        steps = seen.step;
        let (first, _) = epochs.unwrap_or((seen.epoch, seen.epoch));
        epochs = Some((first, seen.epoch));
    })?;
    let Some((first, last)) = epochs else {
        let path = subject.path().display();
        return Err(Failure::input(format!("{path} has no step to look at")));
    };
    // Those of steps that a crash took are left out.
    while let Some(evaluation) = evaluations.next_if(|next| next.step <= steps) {
        diagnosis.evaluate(evaluation);
    }
    // A run that was given up did not come to its end, though it is over.
    if planned.is_some_and(|planned| steps >= planned) {
        diagnosis.finish();
    }

    let own_numbers = |finding: &Finding| Finding {
        step: subject.at(finding.step),
        since: subject.at(finding.since),
        ..finding.clone()
    };
    Ok(Report {
        path: subject.path().display().to_string(),
        description: subject.description(steps, last.saturating_sub(first) + 1),
        unit: subject.unit().name(),
        steps,
        findings: diagnosis.findings().iter().map(own_numbers).collect(),
        checked,
        not_observable,
    })
}

#[cfg(test)]
#[path = "examine_tests.rs"]
mod tests;
