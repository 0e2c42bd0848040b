//! Property test: a storage behaves like a simple model under any sequence of calls.

use super::sqlite::Sqlite;
use super::{
    Claim, ClaimLimits, Claimed, NewStudy, Start, Storage, StorageError, StoredStudy, TrialState,
    View,
};
use crate::Direction;
use crate::pruner::PruneReason;
use crate::space::{Point, Space, Value};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A call. The number picks one of all claims so far, including lost ones.
#[derive(Clone, Debug)]
enum Event {
    Claim,
    Enqueue,
    Start(usize),
    TrialReport(usize),
    Heartbeat(usize),
    Complete(usize),
    Prune(usize),
    Fail(usize),
    Release(usize),
    /// The heartbeat is overdue.
    Silence(usize),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let claim = || 0_usize..1000;
    let event = prop_oneof![
        3 => Just(Event::Claim),
        1 => Just(Event::Enqueue),
        3 => claim().prop_map(Event::Start),
        4 => claim().prop_map(Event::TrialReport),
        1 => claim().prop_map(Event::Heartbeat),
        2 => claim().prop_map(Event::Complete),
        2 => claim().prop_map(Event::Prune),
        1 => claim().prop_map(Event::Fail),
        1 => claim().prop_map(Event::Release),
        3 => claim().prop_map(Event::Silence),
    ];
    proptest::collection::vec(event, 1..60)
}

/// A trial in the model.
#[derive(Clone, Debug, Default)]
struct ModelTrial {
    state_name: &'static str,
    /// The claim that holds it.
    holder: Option<usize>,
    silent: bool,
    deaths: u32,
    has_point: bool,
    reports: u32,
}

const LIMITS: ClaimLimits = ClaimLimits {
    max_trials: Some(8),
    max_attempts: 2,
    heartbeat_timeout: std::time::Duration::from_secs(3600),
};

/// Trial for the next worker.
fn next(trials: &mut BTreeMap<u64, ModelTrial>) -> Result<u64, Claimed> {
    for trial in trials.values_mut().filter(|trial| trial.silent) {
        trial.silent = false;
        trial.holder = None;
        trial.deaths += 1;
        trial.state_name = if trial.deaths < LIMITS.max_attempts { "lost" } else { "failed" };
    }
    let first =
        |state_name| trials.iter().find(|(_, t)| t.state_name == state_name).map(|(n, _)| *n);
    if let Some(number) = first("lost").or_else(|| first("waiting")) {
        return Ok(number);
    }
    if trials.len() < 8 {
        return Ok(trials.len() as u64);
    }
    Err(match first("running") {
        Some(_) => Claimed::Wait,
        None => Claimed::Done,
    })
}

fn point(number: u64) -> Point {
    Point([("x".to_owned(), Value::Float(number as f64 / 7.0))].into())
}

struct World {
    storage: Storage,
    study: StoredStudy,
    claims: Vec<Claim>,
    trials: BTreeMap<u64, ModelTrial>,
}

impl World {
    fn new() -> World {
        let mut storage = Storage { database: Box::new(Sqlite::in_memory().expect("memory")) };
        let study = NewStudy {
            name: "digits".to_owned(),
            fingerprint: String::new(),
            document: String::new(),
            space: Space::new(Vec::new()).expect("a space"),
            direction: Direction::Maximize,
            seed: 1,
        };
        World {
            study: storage.join(&study).expect("a study"),
            storage,
            claims: Vec::new(),
            trials: BTreeMap::new(),
        }
    }

    fn happen(&mut self, event: &Event) {
        match *event {
            Event::Claim => self.claim(),
            Event::Enqueue => {
                let number = self.trials.len() as u64;
                let enqueued = self.storage.enqueue(self.study.id, &point(number));
                assert_eq!(enqueued, Ok(number));
                let trial =
                    ModelTrial { state_name: "waiting", has_point: true, ..ModelTrial::default() };
                self.trials.insert(number, trial);
            }
            Event::Start(pick) => self.with(pick, |storage, claim, trial| {
                let start =
                    Start { point: point(claim.number), seen: None, planned: Some(9), run: None };
                trial.has_point = true;
                trial.silent = false;
                storage.start(claim, &start)
            }),
            Event::TrialReport(pick) => self.with(pick, |storage, claim, trial| {
                trial.reports += 1;
                trial.silent = false;
                storage.report(claim, trial.reports, trial.reports.into(), 1.0)
            }),
            Event::Heartbeat(pick) => self.with(pick, |storage, claim, trial| {
                trial.silent = false;
                storage.heartbeat(claim)
            }),
            Event::Complete(pick) => self.with(pick, |storage, claim, trial| {
                trial.state_name = "complete";
                trial.holder = None;
                trial.silent = false;
                storage.finish(claim, &TrialState::Complete { value: 0.5 }, 1.0)
            }),
            Event::Prune(pick) => self.with(pick, |storage, claim, trial| {
                trial.state_name = "pruned";
                trial.holder = None;
                trial.silent = false;
                let end = TrialState::Pruned {
                    value: Some(0.25),
                    reason: PruneReason::new("prospect", "It leads nowhere."),
                };
                storage.finish(claim, &end, 1.0)
            }),
            Event::Fail(pick) => self.with(pick, |storage, claim, trial| {
                trial.state_name = "failed";
                trial.holder = None;
                trial.silent = false;
                let message = "it broke".to_owned();
                storage.finish(claim, &TrialState::Failed { message }, 1.0)
            }),
            Event::Release(pick) => self.with(pick, |storage, claim, trial| {
                trial.state_name = "waiting";
                trial.holder = None;
                trial.silent = false;
                storage.release(claim)
            }),
            Event::Silence(pick) => self.with(pick, |storage, claim, trial| {
                trial.silent = true;
                let sql = "UPDATE surefoot_trial SET heartbeat = 0 WHERE token = ?1";
                let token = super::database::cells![claim.token.as_str()];
                storage.write(|session| session.execute(sql, &token)).map(|_| ())
            }),
        }
    }

    fn claim(&mut self) {
        let claimed = self.storage.claim(self.study.id, "worker", &LIMITS);
        let claimed = claimed.expect("an answer");
        match (next(&mut self.trials), claimed) {
            (Ok(number), Claimed::Trial(claim)) => {
                let trial = self.trials.entry(number).or_default();
                trial.state_name = "running";
                trial.holder = Some(self.claims.len());
                assert_eq!(claim.number, number);
                assert_eq!(claim.point.is_some(), trial.has_point);
                assert_eq!(claim.reported, trial.reports);
                self.claims.push(claim);
            }
            (Err(expected), claimed) => assert_eq!(claimed, expected),
            (expected, claimed) => panic!("{claimed:?}, not {expected:?}"),
        }
    }

    /// Makes a call with a claim. A lost claim changes nothing.
    fn with(
        &mut self,
        pick: usize,
        call: impl Fn(&mut Storage, &Claim, &mut ModelTrial) -> Result<(), StorageError>,
    ) {
        if self.claims.is_empty() {
            return;
        }
        let pick = pick % self.claims.len();
        let claim = self.claims[pick].clone();
        let mut after = self.trials[&claim.number].clone();
        let holds = after.holder == Some(pick);
        let before = self.view();
        let result = call(&mut self.storage, &claim, &mut after);
        if holds {
            assert_eq!(result, Ok(()));
            self.trials.insert(claim.number, after);
        } else {
            // Repeated calls succeed; all others fail.
            assert_eq!(self.view().trials(), before.trials());
            assert_eq!(self.view().change(), before.change());
        }
    }

    fn view(&mut self) -> View {
        let mut view = View::new(&self.study);
        self.storage.refresh_reports(&mut view).expect("a view");
        view
    }
}

proptest! {
    #[test]
    fn storage_matches_its_model(events in events()) {
        let mut world = World::new();
        let mut growing = View::new(&world.study);
        let mut told = Vec::new();
        for event in &events {
            let over: Vec<_> = world.view().trials().iter()
                .filter(|trial| trial.state.is_final()).cloned().collect();
            world.happen(event);
            let now = world.view();
            let state_names: Vec<&str> = now.trials().iter().map(|t| t.state.name()).collect();
            let expected: Vec<&str> = world.trials.values().map(|t| t.state_name).collect();
            prop_assert_eq!(state_names, expected);
            for (number, trial) in &world.trials {
                prop_assert_eq!(now.trials()[*number as usize].number, *number);
                prop_assert_eq!(now.reports(*number).len(), trial.reports as usize);
            }
            for trial in &over {
                prop_assert_eq!(&now.trials()[trial.number as usize], trial);
            }
            world.storage.refresh_reports(&mut growing).expect("a view");
            prop_assert_eq!(growing.trials(), now.trials());
            let change = growing.change();
            prop_assert_eq!(growing.history(), now.history());
            for (then, history) in &told {
                prop_assert_eq!(&now.history_at(*then), history);
            }
            told.push((change, now.history()));
        }
    }
}
