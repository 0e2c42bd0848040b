//! Replay of recorded trials under pruning rules.

use super::record::RecordedTrial;
use crate::learning_curve::LearningCurve;
use crate::pruner::{PruneReason, PrunerSet, PruningConfig};
use surefoot_diagnose::{Diagnosis, Finding, Thresholds};

/// A finding of an indicator in a recorded trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Alert {
    /// Number of completed epochs.
    pub epoch: usize,
    /// The finding.
    pub finding: Finding,
}

/// End of a replayed trial.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// Number of epochs that ran.
    pub epochs: usize,
    /// Reason, if it was pruned.
    pub reason: Option<PruneReason>,
}

/// Findings of the indicators in a full trial. They do not depend on other trials, so one computation
/// serves all replays.
pub fn alerts(trial: &RecordedTrial, settings: &PruningConfig) -> Vec<Alert> {
    let detectors = settings.detectors();
    let mut diagnosis = Diagnosis::with(trial.facts.clone(), Thresholds::default(), detectors);
    diagnosis.restrict_to(&trial.available);
    let mut alerts = Vec::new();
    for (done, epoch) in trial.epochs.iter().enumerate() {
        let before = diagnosis.findings().len();
        for seen in &epoch.observations {
            diagnosis.observe(seen);
        }
        for evaluation in &epoch.evaluations {
            diagnosis.evaluate(evaluation);
        }
        let new = diagnosis.findings()[before..].iter().cloned();
        alerts.extend(new.map(|finding| Alert { epoch: done + 1, finding }));
    }
    alerts
}

/// Replays trials in sequence. Later trials see a pruned trial only up to its end.
pub fn replay(trials: &[(&RecordedTrial, &[Alert])], settings: &PruningConfig) -> Vec<End> {
    let rules = settings.pruner_set();
    let mut others: Vec<LearningCurve> = Vec::with_capacity(trials.len());
    let mut ends = Vec::with_capacity(trials.len());
    for (number, (trial, alerts)) in trials.iter().enumerate() {
        let mut played = play(trial, alerts, number as u64, &others, &rules, f64::INFINITY);
        ends.push(End { epochs: played.curve.costs.len(), reason: played.reason });
        played.curve.over = true;
        others.push(played.curve);
    }
    ends
}

/// A partly replayed trial.
pub(super) struct Played {
    pub(super) curve: LearningCurve,
    pub(super) reason: Option<PruneReason>,
    pub(super) spent: f64,
}

/// Replays a trial until it is pruned or the budget is spent.
pub(super) fn play(
    trial: &RecordedTrial,
    alerts: &[Alert],
    number: u64,
    others: &[LearningCurve],
    rules: &PrunerSet,
    budget: f64,
) -> Played {
    let mut played = Played {
        curve: LearningCurve {
            number,
            costs: Vec::with_capacity(trial.epochs.len()),
            planned: trial.planned,
            over: false,
        },
        reason: None,
        spent: 0.0,
    };
    let mut found: Vec<Finding> = Vec::new();
    for epoch in &trial.epochs {
        played.spent += epoch.spent;
        played.curve.costs.push(epoch.cost);
        let epochs = played.curve.costs.len();
        let from = found.len();
        let now = alerts.iter().filter(|alert| alert.epoch == epochs);
        found.extend(now.map(|alert| alert.finding.clone()));
        let (earlier, new) = found.split_at(from);
        played.reason = rules.decide(&played.curve, others, earlier, new);
        if played.reason.is_some() || played.spent > budget {
            break;
        }
    }
    played
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pruner::{Median, PrunerConfig};
    use surefoot_diagnose::Problem;

    fn flat(level: f64) -> RecordedTrial {
        let losses = vec![level; 50];
        RecordedTrial::from_losses(&losses, &losses)
    }

    fn falling(to: f64) -> RecordedTrial {
        let losses: Vec<f64> = (0..50).map(|i| 1.0 - (1.0 - to) * f64::from(i) / 49.0).collect();
        RecordedTrial::from_losses(&losses, &losses)
    }

    fn run(trials: &[RecordedTrial], settings: &PruningConfig) -> Vec<End> {
        let alerts: Vec<_> = trials.iter().map(|trial| alerts(trial, settings)).collect();
        let watched: Vec<_> = trials.iter().zip(alerts.iter().map(Vec::as_slice)).collect();
        replay(&watched, settings)
    }

    #[test]
    fn without_rules_all_trials_complete() {
        let ends = run(&[flat(0.7), falling(0.1)], &PruningConfig::none());
        assert!(ends.iter().all(|end| end.epochs == 50 && end.reason.is_none()));
    }

    #[test]
    fn later_trials_see_a_pruned_trial_up_to_its_end() {
        let median =
            PruningConfig::only(PrunerConfig::new(Median { warmup: 0.2, n_startup_trials: 1 }));
        // The second trial is pruned at epoch 10, so later epochs compare with the first one only.
        let ends = run(&[falling(0.1), flat(1.5), falling(0.2)], &median);
        let epochs: Vec<usize> = ends.iter().map(|end| end.epochs).collect();
        assert_eq!(epochs, [50, 10, 11]);
    }

    #[test]
    fn loss_indicators_work_on_losses_alone() {
        let settings =
            PruningConfig { pruners: Vec::new(), protect: 0, ..PruningConfig::default() };
        let ends = run(&[flat(0.7), falling(0.1)], &settings);
        let by = ends[0].reason.as_ref().map(|reason| reason.by.as_str());
        assert_eq!(by, Some(Problem::PLC.id()));
        assert!(ends[0].epochs < 25);
        assert_eq!(ends[1].reason, None);
    }

    #[test]
    fn findings_in_protected_trials_are_dropped() {
        let settings =
            PruningConfig { pruners: Vec::new(), protect: 1, ..PruningConfig::default() };
        let ends = run(&[flat(0.7), flat(0.8)], &settings);
        assert_eq!(ends[0].reason, None);
        assert!(ends[1].reason.is_some());
    }
}
