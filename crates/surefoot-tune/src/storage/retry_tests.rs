//! A commit whose answer is lost is repeated and counts once.

use super::database::{Database, Durability, Work};
use super::fixture::digits;
use super::sqlite::Sqlite;
use super::{
    ClaimLimits, Claimed, FrozenTrial, Start, Storage, StorageError, TrialAttempt, TrialReport,
    TrialState, View,
};
use crate::PruneReason;
use crate::space::Point;

/// A database that runs every write twice.
struct Repeating(Sqlite);

impl Database for Repeating {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn read(&mut self, work: Work<'_>) -> Result<(), StorageError> {
        self.0.read(work)
    }

    fn write(&mut self, durability: Durability, work: Work<'_>) -> Result<(), StorageError> {
        self.0.write(durability, work)?;
        self.0.write(durability, work)
    }

    fn create_tables(&mut self) -> Result<(), StorageError> {
        self.0.create_tables()
    }
}

/// Makes every call and returns the view.
fn study(storage: &mut Storage) -> View {
    let study = storage.join(&digits()).expect("a study");
    storage.enqueue(study.id, &Point::default()).expect("a trial");
    let limits = ClaimLimits { max_trials: Some(3), ..ClaimLimits::default() };
    let mut first = true;
    while let Claimed::Trial(claim) = storage.claim(study.id, "w", &limits).expect("an answer") {
        let start = Start { point: Point::default(), seen: Some(0), planned: Some(2), run: None };
        storage.start(&claim, &start).expect("a start");
        storage.heartbeat(&claim).expect("a sign of life");
        if std::mem::take(&mut first) {
            storage.release(&claim).expect("given back");
            continue;
        }
        storage.report(&claim, 1, f64::NAN, 1.0).expect("a report");
        storage.report(&claim, 2, 0.5, 1.0).expect("a report");
        let end = match claim.number {
            0 => TrialState::Complete { value: f64::NAN },
            1 => TrialState::Pruned {
                value: Some(0.5),
                reason: PruneReason {
                    by: "median".to_owned(),
                    message: "It is worse.".to_owned(),
                    evidence: Vec::new(),
                    counts: false,
                },
            },
            _ => TrialState::Failed { message: "it broke".to_owned() },
        };
        storage.finish(&claim, &end, 2.0).expect("an end");
    }
    let mut view = View::new(&study);
    storage.refresh_reports(&mut view).expect("a view");
    view
}

#[test]
fn a_repeated_commit_counts_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let open = |name: &str| Sqlite::open(&dir.path().join(name), true).expect("a store");
    let mut plain = Storage { database: Box::new(open("plain.db")) };
    let mut repeating = Storage { database: Box::new(Repeating(open("repeating.db"))) };
    let (plain, repeating) = (study(&mut plain), study(&mut repeating));
    assert_eq!(plain.trials().len(), 3);
    assert_eq!(timeless(&repeating), timeless(&plain));
    for number in 0..3 {
        assert_eq!(plain.reports(number).len(), 2);
    }
}

/// A study without times and change numbers, as text because NaN differs from NaN.
fn timeless(view: &View) -> String {
    let trials = view.trials().iter().map(|trial| {
        let attempts = trial.attempts.iter().map(|attempt| TrialAttempt {
            began: 0,
            ended: attempt.ended.map(|_| 0),
            ..attempt.clone()
        });
        FrozenTrial {
            attempts: attempts.collect(),
            created: 0,
            ended: trial.ended.map(|_| 0),
            point_change: trial.point_change.map(|_| 0),
            end_change: trial.end_change.map(|_| 0),
            ..trial.clone()
        }
    });
    let reports = view.trials().iter().map(|trial| {
        let reports = view.reports(trial.number).iter();
        let reports = reports.map(|report| TrialReport { at: 0, change: 0, ..*report });
        reports.collect::<Vec<TrialReport>>()
    });
    format!("{:#?}", trials.zip(reports).collect::<Vec<(FrozenTrial, Vec<TrialReport>)>>())
}
