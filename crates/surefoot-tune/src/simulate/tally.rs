//! Savings and kept trials of a replay.

use super::record::RecordedTrial;
use super::replay::End;
use crate::pruner::finite_or_worst;
use serde::Serialize;
use std::collections::BTreeMap;

/// Number of best trials that are tracked.
pub const TOP: usize = 10;

/// Result of a replay of one or more studies.
///
/// The best trials have the lowest final costs, earlier ones first among equals. A trial is *kept* if it
/// ran to its end. A converged trial (`nmg`) is counted in `top_done` instead.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tally {
    /// Replayed studies.
    pub studies: usize,
    /// Trials.
    pub trials: usize,
    /// Pruned trials.
    pub pruned: usize,
    /// Pruned trials by pruner or indicator.
    pub by: BTreeMap<String, usize>,
    /// Time of all trials without pruning, in any unit.
    pub planned: f64,
    /// Time spent.
    pub spent: f64,
    /// Best trials.
    pub top: usize,
    /// Best trials kept.
    pub top_kept: usize,
    /// Best trials that were stopped as converged.
    pub top_done: usize,
    /// Studies with a best trial.
    pub bests: usize,
    /// Studies that kept it.
    pub best_kept: usize,
}

impl Tally {
    /// Counts one study.
    pub fn of(trials: &[&RecordedTrial], ends: &[End]) -> Tally {
        let mut tally = Tally { studies: 1, trials: trials.len(), ..Tally::default() };
        for (trial, end) in trials.iter().zip(ends) {
            let spent = |n: usize| trial.epochs[..n].iter().map(|s| s.spent).sum::<f64>();
            tally.planned += spent(trial.epochs.len());
            tally.spent += spent(end.epochs);
            if let Some(reason) = &end.reason {
                tally.pruned += 1;
                *tally.by.entry(reason.by.clone()).or_default() += 1;
            }
        }
        let mut ranked: Vec<(f64, &End)> = trials
            .iter()
            .zip(ends)
            .filter_map(|(trial, end)| Some((finite_or_worst(trial.truth?), end)))
            .filter(|(truth, _)| truth.is_finite())
            .collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        let top = &ranked[..TOP.min(ranked.len())];
        tally.top = top.len();
        for (rank, (_, end)) in top.iter().enumerate() {
            let kept = end.reason.is_none();
            tally.bests += usize::from(rank == 0);
            tally.best_kept += usize::from(rank == 0 && kept);
            tally.top_kept += usize::from(kept);
            tally.top_done += usize::from(end.reason.as_ref().is_some_and(|r| r.counts));
        }
        tally
    }

    /// Adds another tally.
    pub fn add(&mut self, other: &Tally) {
        self.studies += other.studies;
        self.trials += other.trials;
        self.pruned += other.pruned;
        for (by, count) in &other.by {
            *self.by.entry(by.clone()).or_default() += count;
        }
        self.planned += other.planned;
        self.spent += other.spent;
        self.top += other.top;
        self.top_kept += other.top_kept;
        self.top_done += other.top_done;
        self.bests += other.bests;
        self.best_kept += other.best_kept;
    }

    /// Fraction of the time saved.
    pub fn saved(&self) -> f64 {
        share(self.planned - self.spent, self.planned, 0.0)
    }

    /// Fraction of the best trials kept.
    pub fn top_share(&self) -> f64 {
        share(self.top_kept as f64, self.top as f64, 1.0)
    }

    /// Fraction of the studies that kept their best trial.
    pub fn best_share(&self) -> f64 {
        share(self.best_kept as f64, self.bests as f64, 1.0)
    }
}

fn share(part: f64, whole: f64, of_nothing: f64) -> f64 {
    if whole > 0.0 { part / whole } else { of_nothing }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pruner::PruneReason;

    fn trial(last: f64) -> RecordedTrial {
        RecordedTrial::from_losses(&[1.0; 4], &[1.0, 1.0, 1.0, last])
    }

    fn end(epochs: usize, by: Option<&str>) -> End {
        End {
            epochs,
            reason: by
                .map(|by| PruneReason { counts: by == "nmg", ..PruneReason::new(by, "Because.") }),
        }
    }

    #[test]
    fn savings_and_kept_trials_are_counted() {
        let trials = [trial(0.5), trial(0.1), trial(f64::NAN), trial(0.3)];
        let ends = [end(4, None), end(2, Some("median")), end(1, Some("agv")), end(3, Some("nmg"))];
        let tally = Tally::of(&trials.iter().collect::<Vec<_>>(), &ends);
        assert_eq!((tally.trials, tally.pruned), (4, 3));
        assert_eq!((tally.saved(), tally.by["agv"]), (6.0 / 16.0, 1));
        assert_eq!((tally.top, tally.top_kept, tally.top_done), (3, 1, 1));
        assert_eq!((tally.bests, tally.best_kept), (1, 0));
        let mut twice = tally.clone();
        twice.add(&tally);
        assert_eq!((twice.studies, twice.saved()), (2, tally.saved()));
    }

    #[test]
    fn an_empty_study_loses_nothing() {
        let nothing = Tally::default();
        assert_eq!((nothing.saved(), nothing.top_share()), (0.0, 1.0));
    }
}
