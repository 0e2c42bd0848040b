//! Tests: whatever workers do in whatever order, a store does what a simple model of it does.

use super::sqlite::Sqlite;
use super::{Claim, Claimed, End, Error, Limits, NewStudy, Start, State, Store, Study, View};
use crate::Direction;
use crate::pruner::PruneReason;
use crate::space::{Point, Space, Value};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// What happens. A number picks one of all claims there ever were, those that are lost too.
#[derive(Clone, Debug)]
enum Event {
    Claim,
    Enqueue,
    Start(usize),
    Report(usize),
    Heartbeat(usize),
    Complete(usize),
    Stop(usize),
    Fail(usize),
    Release(usize),
    /// The worker has given no sign of life for years.
    FallSilent(usize),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let claim = || 0_usize..1000;
    let event = prop_oneof![
        3 => Just(Event::Claim),
        1 => Just(Event::Enqueue),
        3 => claim().prop_map(Event::Start),
        4 => claim().prop_map(Event::Report),
        1 => claim().prop_map(Event::Heartbeat),
        2 => claim().prop_map(Event::Complete),
        2 => claim().prop_map(Event::Stop),
        1 => claim().prop_map(Event::Fail),
        1 => claim().prop_map(Event::Release),
        3 => claim().prop_map(Event::FallSilent),
    ];
    proptest::collection::vec(event, 1..60)
}

/// A trial in the model.
#[derive(Clone, Debug, Default)]
struct Modelled {
    word: &'static str,
    /// The claim that holds it.
    holder: Option<usize>,
    silent: bool,
    deaths: u32,
    has_point: bool,
    reports: u32,
}

const LIMITS: Limits =
    Limits { trials: Some(8), deaths: 2, grace: std::time::Duration::from_secs(3600) };

/// The trial that the next worker gets.
fn next(trials: &mut BTreeMap<u64, Modelled>) -> Result<u64, Claimed> {
    for trial in trials.values_mut().filter(|trial| trial.silent) {
        trial.silent = false;
        trial.holder = None;
        trial.deaths += 1;
        trial.word = if trial.deaths < LIMITS.deaths { "lost" } else { "failed" };
    }
    let first = |word| trials.iter().find(|(_, t)| t.word == word).map(|(n, _)| *n);
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
    store: Store,
    study: Study,
    claims: Vec<Claim>,
    trials: BTreeMap<u64, Modelled>,
}

impl World {
    fn new() -> World {
        let mut store = Store { database: Box::new(Sqlite::in_memory()) };
        let study = NewStudy {
            name: "digits".to_owned(),
            fingerprint: String::new(),
            document: String::new(),
            space: Space::new(Vec::new()).expect("a space"),
            direction: Direction::Maximize,
            seed: 1,
        };
        World {
            study: store.join(&study).expect("a study"),
            store,
            claims: Vec::new(),
            trials: BTreeMap::new(),
        }
    }

    fn happen(&mut self, event: &Event) {
        match *event {
            Event::Claim => self.claim(),
            Event::Enqueue => {
                let number = self.trials.len() as u64;
                let enqueued = self.store.enqueue(self.study.id, &point(number));
                assert_eq!(enqueued, Ok(number));
                let trial = Modelled { word: "waiting", has_point: true, ..Modelled::default() };
                self.trials.insert(number, trial);
            }
            Event::Start(pick) => self.with(pick, |store, claim, trial| {
                let start =
                    Start { point: point(claim.number), seen: None, planned: Some(9), run: None };
                trial.has_point = true;
                trial.silent = false;
                store.start(claim, &start)
            }),
            Event::Report(pick) => self.with(pick, |store, claim, trial| {
                trial.reports += 1;
                trial.silent = false;
                store.report(claim, trial.reports, trial.reports.into(), 1.0)
            }),
            Event::Heartbeat(pick) => self.with(pick, |store, claim, trial| {
                trial.silent = false;
                store.heartbeat(claim)
            }),
            Event::Complete(pick) => self.with(pick, |store, claim, trial| {
                trial.word = "complete";
                trial.holder = None;
                trial.silent = false;
                store.finish(claim, &End::Complete { value: 0.5 }, 1.0)
            }),
            Event::Stop(pick) => self.with(pick, |store, claim, trial| {
                trial.word = "stopped";
                trial.holder = None;
                trial.silent = false;
                let end = End::Stopped {
                    value: Some(0.25),
                    reason: PruneReason::new("prospect", "It leads nowhere."),
                };
                store.finish(claim, &end, 1.0)
            }),
            Event::Fail(pick) => self.with(pick, |store, claim, trial| {
                trial.word = "failed";
                trial.holder = None;
                trial.silent = false;
                let message = "it broke".to_owned();
                store.finish(claim, &End::Failed { message }, 1.0)
            }),
            Event::Release(pick) => self.with(pick, |store, claim, trial| {
                trial.word = "waiting";
                trial.holder = None;
                trial.silent = false;
                store.release(claim)
            }),
            Event::FallSilent(pick) => self.with(pick, |store, claim, trial| {
                trial.silent = true;
                let sql = "UPDATE surefoot_trial SET heartbeat = 0 WHERE token = ?1";
                let token = super::database::cells![claim.token.as_str()];
                store.write(|session| session.execute(sql, &token)).map(|_| ())
            }),
        }
    }

    fn claim(&mut self) {
        let claimed = self.store.claim(self.study.id, "worker", &LIMITS);
        let claimed = claimed.expect("an answer");
        match (next(&mut self.trials), claimed) {
            (Ok(number), Claimed::Trial(claim)) => {
                let trial = self.trials.entry(number).or_default();
                trial.word = "running";
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

    /// Does something in the name of a claim. One that holds no more changes nothing.
    fn with(
        &mut self,
        pick: usize,
        call: impl Fn(&mut Store, &Claim, &mut Modelled) -> Result<(), Error>,
    ) {
        if self.claims.is_empty() {
            return;
        }
        let pick = pick % self.claims.len();
        let claim = self.claims[pick].clone();
        let mut after = self.trials[&claim.number].clone();
        let holds = after.holder == Some(pick);
        let before = self.view();
        let result = call(&mut self.store, &claim, &mut after);
        if holds {
            assert_eq!(result, Ok(()));
            self.trials.insert(claim.number, after);
        } else {
            // What was said before may be said again; whatever else is refused.
            assert_eq!(self.view().trials(), before.trials());
            assert_eq!(self.view().change(), before.change());
        }
    }

    fn view(&mut self) -> View {
        let mut view = View::new(&self.study);
        self.store.refresh_reports(&mut view).expect("a view");
        view
    }
}

proptest! {
    #[test]
    fn a_store_does_what_its_model_does(events in events()) {
        let mut world = World::new();
        let mut growing = View::new(&world.study);
        let mut told = Vec::new();
        for event in &events {
            let over: Vec<_> = world.view().trials().iter()
                .filter(|trial| matches!(trial.state, State::Over(_))).cloned().collect();
            world.happen(event);
            let now = world.view();
            let words: Vec<&str> = now.trials().iter().map(|t| t.state.word()).collect();
            let expected: Vec<&str> = world.trials.values().map(|t| t.word).collect();
            prop_assert_eq!(words, expected);
            for (number, trial) in &world.trials {
                prop_assert_eq!(now.trials()[*number as usize].number, *number);
                prop_assert_eq!(now.reports(*number).len(), trial.reports as usize);
            }
            for trial in &over {
                prop_assert_eq!(&now.trials()[trial.number as usize], trial);
            }
            world.store.refresh_reports(&mut growing).expect("a view");
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
