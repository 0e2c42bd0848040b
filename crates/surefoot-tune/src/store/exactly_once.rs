//! Tests: a commit whose answer is lost is made again and counts once.

use super::database::{Database, Work};
use super::fixture::digits;
use super::sqlite::Sqlite;
use super::{Attempt, Claimed, End, Error, Limits, Report, Start, Store, Trial, View};
use crate::PruneReason;
use crate::space::Point;

/// A database that commits every write and then forgets that it did.
struct Forgetful(Sqlite);

impl Database for Forgetful {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn read(&mut self, work: Work<'_>) -> Result<(), Error> {
        self.0.read(work)
    }

    fn write(&mut self, work: Work<'_>) -> Result<(), Error> {
        self.0.write(work)?;
        self.0.write(work)
    }

    fn make(&mut self) -> Result<(), Error> {
        self.0.make()
    }
}

/// A study in which every call was made, and what is known of it at the end.
fn study(store: &mut Store) -> View {
    let study = store.join(&digits()).expect("a study");
    store.enqueue(study.id, &Point::default()).expect("a trial");
    let limits = Limits { trials: Some(3), ..Limits::default() };
    let mut first = true;
    while let Claimed::Trial(claim) = store.claim(study.id, "w", &limits).expect("an answer") {
        let start = Start { point: Point::default(), seen: Some(0), planned: Some(2), run: None };
        store.start(&claim, &start).expect("a start");
        store.heartbeat(&claim).expect("a sign of life");
        if std::mem::take(&mut first) {
            store.release(&claim).expect("given back");
            continue;
        }
        store.report(&claim, 1, f64::NAN, 1.0).expect("a report");
        store.report(&claim, 2, 0.5, 1.0).expect("a report");
        let end = match claim.number {
            0 => End::Complete { value: f64::NAN },
            1 => End::Stopped {
                value: Some(0.5),
                reason: PruneReason {
                    by: "median".to_owned(),
                    message: "It is worse.".to_owned(),
                    evidence: Vec::new(),
                    counts: false,
                },
            },
            _ => End::Failed { message: "it broke".to_owned() },
        };
        store.finish(&claim, &end, 2.0).expect("an end");
    }
    let mut view = View::new(&study);
    store.refresh_reports(&mut view).expect("a view");
    view
}

#[test]
fn a_commit_whose_answer_is_lost_counts_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let open = |name: &str| Sqlite::open(&dir.path().join(name), true).expect("a store");
    let mut plain = Store { database: Box::new(open("plain.db")) };
    let mut forgetful = Store { database: Box::new(Forgetful(open("forgetful.db"))) };
    let (plain, forgetful) = (study(&mut plain), study(&mut forgetful));
    assert_eq!(plain.trials().len(), 3);
    assert_eq!(timeless(&forgetful), timeless(&plain));
    for number in 0..3 {
        assert_eq!(plain.reports(number).len(), 2);
    }
}

/// All that is known of a study but times, and the numbers of its changes: one that is made again has another. As a
/// text, for NaN is not NaN.
fn timeless(view: &View) -> String {
    let trials = view.trials().iter().map(|trial| {
        let attempts = trial.attempts.iter().map(|attempt| Attempt {
            began: 0,
            ended: attempt.ended.map(|_| 0),
            ..attempt.clone()
        });
        Trial {
            attempts: attempts.collect(),
            created: 0,
            ended: trial.ended.map(|_| 0),
            pointed: trial.pointed.map(|_| 0),
            told: trial.told.map(|_| 0),
            ..trial.clone()
        }
    });
    let reports = view.trials().iter().map(|trial| {
        let reports = view.reports(trial.number).iter();
        let reports = reports.map(|report| Report { at: 0, ..*report });
        reports.collect::<Vec<Report>>()
    });
    format!("{:#?}", trials.zip(reports).collect::<Vec<(Trial, Vec<Report>)>>())
}
