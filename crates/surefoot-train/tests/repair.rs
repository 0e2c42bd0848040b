//! Plans with a fault are given up, judged and repaired.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::sync::Arc;
use surefoot_data::Dataset;
use surefoot_diagnose::{
    Diagnosis, Evaluation, Finding, Observation, Severity, Thresholds, detectors,
};
use surefoot_plan::Plan;
use surefoot_record::{Attempt, AttemptOutcome, AttemptState};
use surefoot_repair::{Proposal, RepairSearch, remedies, thresholds};
use surefoot_train::{
    Clerk, Cpu, End, Flow, Journal, Outline, Patient, Progress, Repaired, Report, Run, Unrecorded,
    Watcher, repair,
};

/// Sigmoids so deep that no gradient reaches the first of them.
fn plan() -> Plan {
    let layer = "[[model]]\nlayer = \"dense\"\nunits = 8\nactivation = \"sigmoid\"\n";
    let text = format!(
        "[data]\nsource = {{ kind = \"circles\", samples = 400 }}\n{}{}\n[training]\nepochs = 40\n",
        layer.repeat(8),
        layer.replace('8', "1")
    );
    Plan::parse(&text, "deep").unwrap()
}

fn data_of(plan: &Plan) -> Arc<Dataset> {
    Arc::new(surefoot_data::load(&plan.data, plan.seed, ".".as_ref()).unwrap())
}

/// Gives up at the first problem, or at a step.
struct Critic {
    diagnosis: Diagnosis,
    at: u64,
    step: u64,
}

impl Critic {
    fn problem(&self) -> Option<&Finding> {
        let mut findings = self.diagnosis.findings().iter();
        findings.find(|finding| finding.severity == Severity::Problem)
    }
}

impl Watcher for Critic {
    fn step(&mut self, progress: &Progress) {
        self.step = progress.step;
    }

    fn observed(&mut self, observation: &Observation) {
        self.diagnosis.observe(observation);
    }

    fn evaluated(&mut self, _: &Evaluation) {}

    fn flow(&self) -> Flow {
        match self.problem().is_some() || self.step == self.at {
            true => Flow::GiveUp,
            false => Flow::GoOn,
        }
    }
}

/// Trains until it is given up.
fn give_up(plan: &Plan, data: &Dataset, at: u64) -> (Report, Critic) {
    let mut run = Run::<Cpu>::new(plan, data, &[], 1, Default::default()).unwrap();
    let mut critic = Critic {
        diagnosis: Diagnosis::new(
            run.outline().facts,
            thresholds(plan, &detectors::all()).unwrap(),
        ),
        at,
        step: 0,
    };
    let report = run.train(&mut Unrecorded, &mut critic).unwrap();
    assert_eq!(report.end, End::Hopeless);
    (report, critic)
}

/// Notes how attempts end, and asks to stop when that many have begun.
struct Notes {
    outcomes: Vec<(u32, AttemptState)>,
    begun: u32,
    stop_after: u32,
}

impl Clerk for Notes {
    fn propose(&mut self, _: &Proposal) -> bool {
        true
    }

    fn open(
        &mut self,
        _: &Attempt,
        _: &Plan,
        _: &Outline,
    ) -> surefoot_record::Result<Box<dyn Journal + Send>> {
        self.begun += 1;
        Ok(Box::new(Unrecorded))
    }

    fn close(
        &mut self,
        _: &Attempt,
        outcome: &AttemptOutcome,
        _: &Plan,
        _: &Report,
        journal: Box<dyn Journal + Send>,
    ) -> surefoot_record::Result<()> {
        assert!(journal.into_recorder().is_none());
        self.outcomes.push((outcome.number, outcome.state));
        Ok(())
    }

    fn interrupted(&self) -> bool {
        self.begun >= self.stop_after
    }
}

fn repaired(plan: &Plan, stop_after: u32) -> (Repaired, Notes) {
    let data = data_of(plan);
    let (report, critic) = give_up(plan, &data, u64::MAX);
    let finding = critic.problem().unwrap().clone();
    let facts = critic.diagnosis.facts().clone();
    let search = RepairSearch::new(plan.clone(), finding.clone(), facts.clone(), remedies::all());
    let patient = Patient {
        plan,
        finding,
        facts,
        stopped: report.steps,
        report: &report,
        load: &|plan| Ok(data_of(plan)),
        detectors: &detectors::all,
        weights: &[],
        workers: 2,
    };
    let mut notes = Notes { outcomes: Vec::new(), begun: 0, stop_after };
    let thresholds = Thresholds::default();
    let device = Default::default();
    let repaired = repair::<Cpu>(&patient, search, &thresholds, &device, &mut notes).unwrap();
    (repaired, notes)
}

#[test]
fn the_one_that_goes_on_is_closed_after_those_it_outdid() {
    let (repaired, notes) = repaired(&plan(), u32::MAX);
    assert!(repaired.solved && !repaired.interrupted);
    let delivered = repaired.delivered.unwrap();
    let last = notes.outcomes.last().unwrap();
    assert_eq!(*last, (delivered.number, AttemptState::Repaired));
    assert!(delivered.report.best.unwrap().metric.unwrap() > 0.9);
}

#[test]
fn attempts_on_probation_stop_when_asked_to() {
    let mut long = plan();
    long.training.epochs = 2_000;
    let (repaired, notes) = repaired(&long, 2);
    assert!(repaired.interrupted && !repaired.solved);
    assert!(repaired.delivered.is_none() && notes.outcomes.is_empty());
}

#[test]
fn a_run_that_is_given_up_is_judged_even_without_a_validation_split() {
    let mut plan = plan();
    plan.data.split.validation = 0.0;
    plan.diagnose.off = vec!["vanishing_gradient".to_owned()];
    let data = data_of(&plan);
    // The end of the first epoch, at which nothing is judged otherwise.
    let (report, _) = give_up(&plan, &data, 13);
    assert_eq!(report.steps, 13);
    assert_eq!(report.last.map(|last| last.step), Some(13));
    assert!(report.best.is_some());
}
