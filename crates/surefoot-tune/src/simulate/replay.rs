//! Recorded trials, run again as far as the rules let them.

use super::record::RecordedTrial;
use crate::course::Course;
use crate::pruner::{Combination, Reason, Settings};
use surefoot_diagnose::{Diagnosis, Finding, Thresholds};

/// Something that an indicator finds in a recorded trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Alert {
    /// How many stretches are done by then.
    pub stretch: usize,
    /// What it is.
    pub finding: Finding,
}

/// How far a trial came in a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// How many of its stretches it ran.
    pub stretches: usize,
    /// Why no more, if it was stopped.
    pub reason: Option<Reason>,
}

/// What the indicators of `settings` find in a trial that runs to its end. It does not depend on other
/// trials, so it need not be computed again for every replay.
pub fn alerts(trial: &RecordedTrial, settings: &Settings) -> Vec<Alert> {
    let detectors = settings.detectors();
    let mut diagnosis = Diagnosis::with(trial.facts.clone(), Thresholds::default(), detectors);
    diagnosis.see_only(&trial.available);
    let mut alerts = Vec::new();
    for (done, stretch) in trial.stretches.iter().enumerate() {
        let before = diagnosis.findings().len();
        for seen in &stretch.observations {
            diagnosis.observe(seen);
        }
        for evaluation in &stretch.evaluations {
            diagnosis.evaluate(evaluation);
        }
        let new = diagnosis.findings()[before..].iter().cloned();
        alerts.extend(new.map(|finding| Alert { stretch: done + 1, finding }));
    }
    alerts
}

/// Runs trials one after the other, each with what the indicators find in it, under the rules of
/// `settings`. Of a trial that is stopped the later ones see no more than it had shown by then.
pub fn replay(trials: &[(&RecordedTrial, &[Alert])], settings: &Settings) -> Vec<End> {
    let rules = settings.combination();
    let mut others: Vec<Course> = Vec::with_capacity(trials.len());
    let mut ends = Vec::with_capacity(trials.len());
    for (number, (trial, alerts)) in trials.iter().enumerate() {
        let mut played = play(trial, alerts, number as u64, &others, &rules, f64::INFINITY);
        ends.push(End { stretches: played.course.costs.len(), reason: played.reason });
        played.course.over = true;
        others.push(played.course);
    }
    ends
}

/// A recorded trial as far as it was run.
pub(super) struct Played {
    pub(super) course: Course,
    pub(super) reason: Option<Reason>,
    pub(super) spent: f64,
}

/// Runs a recorded trial until the rules end it or it has spent more than there is.
pub(super) fn play(
    trial: &RecordedTrial,
    alerts: &[Alert],
    number: u64,
    others: &[Course],
    rules: &Combination,
    budget: f64,
) -> Played {
    let mut played = Played {
        course: Course {
            number,
            costs: Vec::with_capacity(trial.stretches.len()),
            planned: trial.planned,
            over: false,
        },
        reason: None,
        spent: 0.0,
    };
    for stretch in &trial.stretches {
        played.spent += stretch.spent;
        played.course.costs.push(stretch.cost);
        let now = |alert: &&Alert| alert.stretch == played.course.costs.len();
        let now = alerts.iter().filter(now);
        let found: Vec<Finding> = now.map(|alert| alert.finding.clone()).collect();
        played.reason = rules.decide(&played.course, others, &found);
        if played.reason.is_some() || played.spent > budget {
            break;
        }
    }
    played
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pruner::{Choice, Median};
    use surefoot_diagnose::Problem;

    fn flat(level: f64) -> RecordedTrial {
        let losses = vec![level; 50];
        RecordedTrial::from_losses(&losses, &losses)
    }

    fn falling(to: f64) -> RecordedTrial {
        let losses: Vec<f64> = (0..50).map(|i| 1.0 - (1.0 - to) * f64::from(i) / 49.0).collect();
        RecordedTrial::from_losses(&losses, &losses)
    }

    fn run(trials: &[RecordedTrial], settings: &Settings) -> Vec<End> {
        let alerts: Vec<_> = trials.iter().map(|trial| alerts(trial, settings)).collect();
        let watched: Vec<_> = trials.iter().zip(alerts.iter().map(Vec::as_slice)).collect();
        replay(&watched, settings)
    }

    #[test]
    fn without_rules_all_run_to_their_end() {
        let ends = run(&[flat(0.7), falling(0.1)], &Settings::none());
        assert!(ends.iter().all(|end| end.stretches == 50 && end.reason.is_none()));
    }

    #[test]
    fn a_stopped_trial_is_seen_only_up_to_its_end() {
        let median = Settings::only(Choice::Median(Median { from: 0.2, trials: 1 }));
        // The second is stopped at ten stretches, so that after more of them only the first is left to
        // compare with; against both, the third would be no worse than the median.
        let ends = run(&[falling(0.1), flat(1.5), falling(0.2)], &median);
        let stretches: Vec<usize> = ends.iter().map(|end| end.stretches).collect();
        assert_eq!(stretches, [50, 10, 11]);
    }

    #[test]
    fn indicators_that_need_only_losses_look_at_losses() {
        let settings = Settings { pruners: Vec::new(), protect: 0, ..Settings::default() };
        let ends = run(&[flat(0.7), falling(0.1)], &settings);
        let by = ends[0].reason.as_ref().map(|reason| reason.by.as_str());
        assert_eq!(by, Some(Problem::PLC.id()));
        assert!(ends[0].stretches < 25);
        assert_eq!(ends[1].reason, None);
    }

    #[test]
    fn what_is_found_in_a_protected_trial_is_dismissed() {
        let settings = Settings { pruners: Vec::new(), protect: 1, ..Settings::default() };
        let ends = run(&[flat(0.7), flat(0.8)], &settings);
        assert_eq!(ends[0].reason, None);
        assert!(ends[1].reason.is_some());
    }
}
