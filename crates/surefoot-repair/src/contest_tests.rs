use super::*;
use crate::action::Action;
use crate::remedies;
use crate::search::RepairConfig;
use std::collections::BTreeMap;
use surefoot_diagnose::{Facts, Finding, Problem, TaskKind};

/// A list of applied actions.
#[derive(Clone, PartialEq)]
struct Actions(Vec<Action>);

impl Subject for Actions {
    fn supports(&self, _action: &Action) -> bool {
        true
    }

    fn apply(&mut self, action: &Action) -> Result<String, String> {
        self.0.push(action.clone());
        Ok(action.to_string())
    }

    fn diff(&self, _changed: &Self) -> String {
        String::new()
    }
}

/// Contestants whose metric grows linearly to a known end.
struct Track {
    /// Metric at the end, by contestant; that of attempts that are not listed is 0.5.
    ends: BTreeMap<u32, f64>,
    /// Number of epochs of the contestants that do not have 10.
    epochs: BTreeMap<u32, u64>,
    shares: BTreeMap<u32, f64>,
    endings: Vec<(u32, Ending)>,
}

impl Track {
    fn new(ends: &[(u32, f64)]) -> Track {
        let ends = ends.iter().copied().collect();
        Track { ends, epochs: BTreeMap::new(), shares: BTreeMap::new(), endings: Vec::new() }
    }

    fn standing(&self, number: u32) -> Standing {
        let share = self.shares.get(&number).copied().unwrap_or(0.0);
        let end = self.ends.get(&number).copied().unwrap_or(0.5);
        let metric = 0.5 + (end - 0.5) * share;
        let blocks = (200.0 * share) as usize;
        let skill = |block: usize| (end - 0.5) / 0.5 * block as f64 / 200.0;
        Standing {
            skills: Some((1..=blocks).map(skill).collect()),
            planned_blocks: 200,
            share,
            finished: share >= 1.0,
            facts: Facts {
                chance: Some(0.5),
                task: Some(TaskKind::Binary),
                optimizer: Some("sgd".to_owned()),
                learning_rate: Some(0.1),
                epochs: Some(self.epochs.get(&number).copied().unwrap_or(10)),
                steps_per_epoch: Some(10),
                ..Facts::default()
            },
            skill: Some((metric - 0.5) / 0.5),
            steady_skill: Some((metric - 0.5) / 0.5),
            metric: Some(metric),
            last_metric: Some(metric),
            is_falling: true,
            ..Standing::default()
        }
    }
}

impl AttemptTrainer<Actions> for Track {
    type Error = ();

    fn start(&mut self, _proposal: &Proposal<Actions>) -> Result<bool, ()> {
        Ok(true)
    }

    fn train(&mut self, tasks: &[(u32, f64)]) -> Result<Vec<Standing>, ()> {
        for (number, share) in tasks {
            self.shares.insert(*number, *share);
        }
        Ok(tasks.iter().map(|(number, _)| self.standing(*number)).collect())
    }

    fn close(&mut self, number: u32, ending: Ending, _: &Standing, _: bool) -> Result<(), ()> {
        self.endings.push((number, ending));
        Ok(())
    }
}

fn compete(track: &mut Track, is_certain: bool) -> ContestResult {
    compete_with(track, is_certain, ContestConfig { samples: 1000, ..ContestConfig::default() })
}

fn compete_with(track: &mut Track, is_certain: bool, config: ContestConfig) -> ContestResult {
    let finding = Finding::new(Problem::VANISHING_GRADIENT, 10, "The gradient vanishes.");
    track.shares.insert(ORIGINAL, 0.05);
    let original = Standing {
        problem: Some(finding.clone()),
        ended_by_problem: is_certain,
        ..track.standing(ORIGINAL)
    };
    let facts = original.facts.clone();
    let (subject, options) = (Actions(Vec::new()), RepairConfig::default());
    let search = RepairSearch::new(subject, finding, &[], facts, remedies::all(), options);
    contest(track, search, original, config).unwrap()
}

#[test]
fn an_attempt_that_beats_the_end_of_the_original_is_a_repair() {
    let mut track = Track::new(&[(ORIGINAL, 0.6), (1, 0.95)]);
    assert_eq!(compete(&mut track, false), ContestResult::Repaired(1));
    assert_eq!(track.endings.last(), Some(&(1, Ending::Repaired)));
}

#[test]
fn an_attempt_below_the_end_of_the_original_is_never_a_repair() {
    let mut track = Track::new(&[(ORIGINAL, 0.97), (1, 0.95), (2, 0.96)]);
    assert_eq!(compete(&mut track, false), ContestResult::Dismissed);
    assert_eq!(track.shares[&ORIGINAL], 1.0);
    assert!(track.endings.iter().all(|(_, ending)| *ending != Ending::Repaired));
}

#[test]
fn an_original_that_ends_well_needs_no_repair() {
    let mut track = Track::new(&[(ORIGINAL, 0.96), (1, 1.0)]);
    assert_eq!(compete(&mut track, false), ContestResult::Dismissed);
    assert_eq!(track.shares[&ORIGINAL], 1.0);
}

#[test]
fn one_after_the_other_the_original_waits_for_an_attempt_ahead_of_it() {
    let trained = |sequential| {
        let mut track = Track::new(&[(ORIGINAL, 0.5), (1, 0.95)]);
        let config = ContestConfig { samples: 1000, sequential, ..ContestConfig::default() };
        assert_eq!(compete_with(&mut track, false, config), ContestResult::Repaired(1));
        track.shares[&ORIGINAL]
    };
    assert!(trained(true) < trained(false) && trained(false) < 1.0);
}

#[test]
fn an_attempt_longer_than_the_budget_is_closed() {
    let mut track = Track::new(&[(ORIGINAL, 0.5), (1, 0.95), (3, 0.9)]);
    track.epochs.insert(1, 200);
    assert_eq!(compete(&mut track, true), ContestResult::Repaired(3));
    assert!(track.shares[&1] < 0.2);
}

#[test]
fn a_certain_problem_ends_the_original() {
    let mut track = Track::new(&[(ORIGINAL, 0.97), (1, 0.9)]);
    assert_eq!(compete(&mut track, true), ContestResult::Repaired(1));
    assert_eq!(track.shares[&ORIGINAL], 0.05);
}

#[test]
fn without_a_better_attempt_the_repair_fails() {
    let mut track = Track::new(&[(ORIGINAL, 0.5)]);
    assert_eq!(compete(&mut track, true), ContestResult::Failed);
    assert!(track.endings.len() > 2, "several remedies were tried");
}
