//! A detector and a remedy from outside Surefoot, registered beside its own.
//!
//! The plan decays its learning rate far too early. Surefoot's detectors find no problem; the
//! detector of this example does, and its remedy repairs the plan.

mod premature_decay;
mod stretched_decay;
#[cfg(test)]
mod tests;

use premature_decay::PrematureDecay;
use stretched_decay::StretchedDecay;
use surefoot_diagnose::Detector;
use surefoot_plan::Plan;
use surefoot_repair::Remedy;
use surefoot_train::{AttemptEvent, Callback, RunContext, TrainError, Trainer};

fn detectors() -> Vec<Box<dyn Detector>> {
    let mut all = surefoot_diagnose::detectors::all();
    all.push(Box::new(PrematureDecay::default()));
    all
}

fn remedies() -> Vec<Box<dyn Remedy>> {
    let mut all = surefoot_repair::remedies::all();
    all.push(Box::new(StretchedDecay));
    all
}

/// Prints every repair attempt.
struct Print;

impl Callback for Print {
    fn on_attempt(
        &mut self,
        event: &AttemptEvent<'_>,
        _: &mut RunContext,
    ) -> Result<(), TrainError> {
        if let AttemptEvent::End { attempt, outcome, .. } = event {
            let (number, change) = (attempt.number, &attempt.change);
            println!("attempt {number}: {change} Result: {}.", outcome.state.title());
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let plan = Plan::parse(include_str!("../plan.toml"), "plan.toml")?;
    let mut print = Print;
    let trainer = Trainer::new(plan).detectors(detectors).remedies(remedies).callback(&mut print);
    let trained = trainer.train()?;
    for finding in &trained.findings {
        println!("found {} at step {}: {}", finding.problem, finding.step, finding.message);
    }
    let summary = &trained.summary;
    println!("{:?} with {:?} after {} steps", summary.status, summary.remedies, summary.steps);
    println!("delivered {:?}", trained.delivered().best);
    Ok(())
}
