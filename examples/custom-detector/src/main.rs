//! A detector and a remedy from outside Surefoot, registered beside its own.
//!
//! `premature_decay.rs` is the detector and `stretched_decay.rs` the remedy. This file trains
//! `plan.toml` under all detectors, until one finds something, and has it repaired with all remedies.
//! To register one is to add it to a list: see [`detectors`] and [`remedies`].

mod premature_decay;
mod stretched_decay;

use premature_decay::PrematureDecay;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use stretched_decay::StretchedDecay;
use surefoot_data::Dataset;
use surefoot_diagnose::{Detector, Diagnosis, Evaluation, Finding, Observation, Severity};
use surefoot_plan::Plan;
use surefoot_record::{Attempt, AttemptOutcome};
use surefoot_repair::{Proposal, Remedy, RepairSearch, thresholds};
use surefoot_train::{
    Clerk, Cpu, End, Flow, Journal, Outline, Patient, Progress, Repaired, Report, Run, Unrecorded,
    Watcher, repair,
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Surefoot's detectors and our own.
fn detectors() -> Vec<Box<dyn Detector>> {
    let mut all = surefoot_diagnose::detectors::all();
    all.push(Box::new(PrematureDecay::default()));
    all
}

/// Surefoot's remedies and our own.
fn remedies() -> Vec<Box<dyn Remedy>> {
    let mut all = surefoot_repair::remedies::all();
    all.push(Box::new(StretchedDecay));
    all
}

fn main() -> Result<()> {
    let plan = plan()?;
    let own = surefoot_diagnose::detectors::all();
    println!("Surefoot's {} detectors alone", own.len());
    let alone = train(&plan, own)?;
    match &alone.finding {
        Some(finding) => println!("found     {}", finding.problem),
        None => println!("found     no problem; {}", told(&alone.report)),
    }
    println!("and one from outside");
    let given = train(&plan, detectors())?;
    let Some(finding) = &given.finding else {
        println!("nothing was found");
        return Ok(());
    };
    println!("found     {} at step {}", finding.problem, finding.step);
    println!("          {}", finding.message);
    let repaired = treat(&plan, &given, finding.clone())?;
    let Some(delivered) = &repaired.delivered else {
        println!("nothing that was tried is better");
        return Ok(());
    };
    println!("delivered {}", told(&delivered.report));
    Ok(())
}

/// The plan that is trained.
fn plan() -> Result<Plan> {
    Ok(Plan::parse(include_str!("../plan.toml"), "plan.toml")?)
}

/// What a plan came to.
fn told(report: &Report) -> String {
    let best = report.best.as_ref();
    let loss = best.map_or(f64::NAN, |best| best.loss);
    let accuracy = best.and_then(|best| best.metric).unwrap_or(f64::NAN);
    format!("loss {loss:.3}, accuracy {:.1}%, {} steps", 100.0 * accuracy, report.steps)
}

/// A plan that was trained, to its end or until a problem was found.
struct Trained {
    outline: Outline,
    report: Report,
    finding: Option<Finding>,
}

/// Trains `plan` while `detectors` look on.
fn train(plan: &Plan, detectors: Vec<Box<dyn Detector>>) -> Result<Trained> {
    let data = load(plan)?;
    let mut run = Run::<Cpu>::new(plan, &data, &[], 1, Default::default())?;
    let outline = run.outline();
    let thresholds = thresholds(plan, &detectors)?;
    let diagnosis = Diagnosis::with(outline.facts.clone(), thresholds, detectors);
    let mut doctor = Doctor(diagnosis);
    let report = run.train(&mut Unrecorded, &mut doctor)?;
    if report.end == End::Finished {
        doctor.0.finish();
    }
    Ok(Trained { outline, report, finding: doctor.problem().cloned() })
}

/// Looks for a remedy for `finding` in `given`.
fn treat(plan: &Plan, given: &Trained, finding: Finding) -> Result<Repaired> {
    let facts = given.outline.facts.clone();
    let search = RepairSearch::new(plan.clone(), finding.clone(), facts.clone(), remedies());
    let patient = Patient {
        plan,
        stopped: finding.step,
        finding,
        facts,
        report: &given.report,
        load: &load,
        detectors: &detectors,
        weights: &[],
        workers: 2,
    };
    let (thresholds, device) = (thresholds(plan, &detectors())?, Default::default());
    Ok(repair::<Cpu>(&patient, search, &thresholds, &device, &mut Teller)?)
}

fn load(plan: &Plan) -> std::result::Result<Arc<Dataset>, String> {
    let data = surefoot_data::load(&plan.data, plan.seed, Path::new("."));
    data.map(Arc::new).map_err(|error| error.to_string())
}

/// Diagnoses a run and stops it at the first problem.
struct Doctor(Diagnosis);

impl Doctor {
    fn problem(&self) -> Option<&Finding> {
        let mut findings = self.0.findings().iter();
        findings.find(|finding| finding.severity == Severity::Problem)
    }
}

impl Watcher for Doctor {
    fn step(&mut self, _: &Progress) {}

    fn observed(&mut self, observation: &Observation) {
        self.0.observe(observation);
    }

    fn evaluated(&mut self, evaluation: &Evaluation) {
        self.0.evaluate(evaluation);
    }

    fn flow(&self) -> Flow {
        match self.problem() {
            Some(_) => Flow::GiveUp,
            None => Flow::GoOn,
        }
    }
}

/// A clerk who tells what is tried and writes nothing down.
struct Teller;

impl Clerk for Teller {
    fn propose(&mut self, proposal: &Proposal) -> bool {
        println!("trying    {}: {}", proposal.number, proposal.message);
        true
    }

    fn open(
        &mut self,
        _: &Attempt,
        _: &Plan,
        _: &Outline,
    ) -> surefoot_record::Result<Box<dyn Journal + Send>> {
        Ok(Box::new(Unrecorded))
    }

    fn close(
        &mut self,
        _: &Attempt,
        outcome: &AttemptOutcome,
        _: &Plan,
        report: &Report,
        _: Box<dyn Journal + Send>,
    ) -> surefoot_record::Result<()> {
        let (number, verdict) = (outcome.number, outcome.state.title());
        println!("          {number}: {verdict}; {}", told(report));
        Ok(())
    }

    fn interrupted(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use surefoot_plan::Decay;

    #[test]
    fn what_surefoot_alone_lets_pass_is_found_and_repaired() {
        let plan = plan().unwrap();
        let alone = train(&plan, surefoot_diagnose::detectors::all()).unwrap();
        assert_eq!(alone.finding, None);
        let given = train(&plan, detectors()).unwrap();
        let finding = given.finding.clone().unwrap();
        assert_eq!(finding.problem, PrematureDecay::PROBLEM);
        let repaired = treat(&plan, &given, finding).unwrap();
        assert!(repaired.solved);
        let delivered = repaired.delivered.unwrap();
        assert_eq!(delivered.remedies, ["stretched_decay"]);
        // Not because it was stopped early: the plan as given, to its end, is no match either.
        let loss = |report: &Report| report.best.as_ref().unwrap().loss;
        let (before, after) = (loss(&alone.report), loss(&delivered.report));
        assert!(after < 0.6 * before, "{after} after {before}");
    }

    #[test]
    fn in_a_run_that_goes_well_nothing_is_found() {
        let mut plan = plan().unwrap();
        plan.training.schedule.decay = Decay::Constant;
        assert_eq!(train(&plan, detectors()).unwrap().finding, None);
    }
}
