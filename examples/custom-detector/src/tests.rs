use crate::{PrematureDecay, detectors, remedies};
use surefoot_plan::{Decay, Plan};
use surefoot_record::Status;
use surefoot_train::{Trainer, TrainingResult};

pub(crate) fn plan() -> Plan {
    Plan::parse(include_str!("../plan.toml"), "plan.toml").unwrap()
}

#[test]
fn surefoot_alone_finds_nothing_and_the_detector_leads_to_a_repair() {
    let alone = Trainer::new(plan()).train().unwrap();
    assert_eq!(alone.problem(), None);
    let trainer = Trainer::new(plan()).workers(2).detectors(detectors).remedies(remedies);
    let trained = trainer.train().unwrap();
    assert_eq!(trained.problem().unwrap().problem, PrematureDecay::PROBLEM);
    assert_eq!(trained.summary.status, Status::Repaired);
    assert_eq!(trained.summary.remedies, ["stretched_decay"]);
    // The plan as given, trained to its end, is worse too.
    let loss = |result: &TrainingResult| result.best.as_ref().unwrap().loss;
    let (before, after) = (loss(&alone.given), loss(trained.delivered()));
    assert!(after < 0.6 * before, "{after} after {before}");
}

#[test]
fn a_constant_learning_rate_is_not_a_problem() {
    let mut plan = plan();
    plan.training.schedule.decay = Decay::Constant;
    let trained = Trainer::new(plan).detectors(detectors).remedies(remedies).train().unwrap();
    assert_eq!(trained.problem(), None);
}
