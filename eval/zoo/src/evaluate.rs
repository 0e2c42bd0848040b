//! What becomes of the cases: trained plainly, then with diagnosis and repair.
//!
//! Ground truth is not our detectors. Every case is trained without them on three seeds, with its
//! fault and without. It is *buggy* if a fault was injected and its final metric falls short of its
//! twin's by more than 5 points, in the mean of the seeds; its twin is *healthy* if it ends within 2
//! points of its own best epoch, in the mean of the seeds, and has learned on each of them. Only
//! cases with a healthy twin count.

use crate::case::Case;
use crate::fault::{Degree, Fault};
use crate::habitat::Habitat;
use crate::spoil::spoil;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use surefoot_data::Dataset;
use surefoot_diagnose::{Diagnosis, Evaluation, Facts, Finding, Observation, Severity, Thresholds};
use surefoot_plan::Plan;
use surefoot_record::{Attempt, AttemptOutcome, Result as RecordResult};
use surefoot_repair::{Proposal, RepairSearch, remedies};
use surefoot_train::{
    Clerk, Cpu, End, Flow, Journal, Outline, Patient, Progress, Report, Run, Unrecorded, Watcher,
    repair,
};

/// The seeds of every case.
const SEEDS: [u64; 3] = [1, 2, 3];
/// By how much a buggy plan falls short of its twin, at least.
const SHORT: f64 = 0.05;
/// How near to its best epoch a healthy plan ends.
const NEAR: f64 = 0.02;
/// How near to its best seed a healthy plan ends on every seed.
const STEADY: f64 = 0.1;
/// What a healthy plan reaches at least, as a share of the way from guessing to perfection.
const LEARNED: f64 = 0.3;

/// What became of a case.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Always `case`.
    pub event: &'static str,
    /// Its number.
    pub case: u64,
    /// What it is about.
    pub data: Habitat,
    /// What was done to it.
    pub fault: Option<Fault>,
    /// How much.
    pub degree: Option<Degree>,
    /// Whether its twin is healthy; a case with a twin that is not does not count.
    pub healthy: bool,
    /// The twin's final metric, of each seed.
    pub twin: Vec<f64>,
    /// Problems that were found in the healthy twin, of each seed: false alarms.
    pub alarms: Vec<String>,
    /// Everything that was found in the twin on any seed, warnings too.
    pub findings: BTreeSet<String>,
    /// What is known of the plan with the fault.
    pub faulty: Option<Faulty>,
}

/// What became of a plan with a fault.
#[derive(Clone, Debug, Serialize)]
pub struct Faulty {
    /// Its final metric without repair, of each seed.
    pub plain: Vec<f64>,
    /// Whether it is buggy.
    pub buggy: bool,
    /// The treatment of the first seed that falls short; only for buggy plans.
    pub treated: Option<Treated>,
}

/// What diagnosis and repair made of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Treated {
    /// The seed.
    pub seed: u64,
    /// The first problem that was found.
    pub problem: Option<String>,
    /// Whether that is a right name for the fault.
    pub right: bool,
    /// The step it was found at, and of how many.
    pub delay: Option<[u64; 2]>,
    /// Whether it was repaired.
    pub repaired: bool,
    /// The remedies of the delivered plan.
    pub remedies: Vec<String>,
    /// How many remedies were tried.
    pub attempts: u64,
    /// The metric without repair, of the delivered model, and of the twin.
    pub before: f64,
    /// Of the delivered model.
    pub after: f64,
    /// Of the twin with the same seed.
    pub twin: f64,
    /// The time with diagnosis and repair by that of the plain training.
    pub time: f64,
}

/// Trains all `cases`, first plainly, on `workers` threads, then those that are buggy with diagnosis
/// and repair, one at a time: so that the times compare as they do for somebody who has the machine
/// to himself. `done` is called with each row when it is complete.
pub fn evaluate(
    cases: &[Case],
    dir: &Path,
    workers: usize,
    done: &(dyn Fn(&Row) + Sync),
) -> Result<Vec<Row>, String> {
    let next = AtomicUsize::new(0);
    let plain = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let looked_at = look_at(case, dir);
                    if let Ok((row, None)) = &looked_at {
                        done(row);
                    }
                    let mut plain = plain.lock().unwrap_or_else(PoisonError::into_inner);
                    plain.push(looked_at);
                }
            });
        }
    });
    let plain = plain.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut plain = plain.into_iter().collect::<Result<Vec<_>, _>>()?;
    plain.sort_by_key(|(row, _)| row.case);
    let mut rows = Vec::with_capacity(plain.len());
    for (mut row, short) in plain {
        if let (Some(short), Some(faulty)) = (short, &mut row.faulty) {
            let mut treated = treat(&short.plan, dir, workers)?;
            treated.twin = short.twin;
            let right = |fault: Fault| treated.problem.as_ref().is_some_and(|id| fault.is(id));
            treated.right = row.fault.is_some_and(right);
            faulty.treated = Some(treated);
            done(&row);
        }
        rows.push(row);
    }
    Ok(rows)
}

/// A run that falls short of its twin.
struct Short {
    plan: Plan,
    twin: f64,
}

/// Trains a case plainly: what it is, and the run that is to be treated if it is buggy.
fn look_at(case: &Case, dir: &Path) -> Result<(Row, Option<Short>), String> {
    let mut twins = Vec::new();
    for seed in SEEDS {
        twins.push(plain(&seeded(&case.twin, seed), dir, true)?);
    }
    let healthy = is_healthy(&twins);
    let mut row = Row {
        event: "case",
        case: case.number,
        data: case.habitat,
        fault: case.injected.as_ref().map(|injected| injected.fault),
        degree: case.injected.as_ref().map(|injected| injected.degree),
        healthy,
        twin: twins.iter().map(|twin| twin.last).collect(),
        alarms: twins.iter().filter_map(|twin| twin.alarm.clone()).collect(),
        findings: twins.iter().flat_map(|twin| twin.findings.clone()).collect(),
        faulty: None,
    };
    let Some(injected) = case.injected.as_ref().filter(|_| healthy) else {
        return Ok((row, None));
    };
    let mut plains = Vec::new();
    let mut plans = Vec::new();
    for seed in SEEDS {
        let mut plan = seeded(&injected.plan, seed);
        if let Some(how) = injected.spoiled {
            plan = spoil(&plan, how, dir, &format!("case-{}-{seed}", case.number))?;
        }
        plains.push(plain(&plan, dir, false)?);
        plans.push(plan);
    }
    let mean = |metrics: &[Plain]| metrics.iter().map(|m| m.last).sum::<f64>() / 3.0;
    let buggy = mean(&twins) - mean(&plains) > SHORT;
    row.faulty = Some(Faulty {
        plain: plains.iter().map(|plain| plain.last).collect(),
        buggy,
        treated: None,
    });
    let short = (0..SEEDS.len()).find(|&i| twins[i].last - plains[i].last > SHORT);
    let short =
        short.filter(|_| buggy).map(|i| Short { plan: plans.swap_remove(i), twin: twins[i].last });
    Ok((row, short))
}

fn is_healthy(twins: &[Plain]) -> bool {
    let count = twins.len() as f64;
    let gap = twins.iter().map(|twin| (twin.best - twin.last).max(0.0)).sum::<f64>() / count;
    let best = twins.iter().map(|twin| twin.last).fold(0.0, f64::max);
    let steady = twins.iter().all(|twin| twin.last >= best - STEADY && twin.skill() >= LEARNED);
    gap <= NEAR && steady
}

fn seeded(plan: &Plan, seed: u64) -> Plan {
    let mut plan = plan.clone();
    plan.seed = seed;
    // Cases are trained side by side, each on one thread.
    plan.training.shards = Some(1);
    plan
}

/// What a plain training came to.
struct Plain {
    last: f64,
    best: f64,
    /// The metric of a guess.
    chance: f64,
    /// The first problem found in it, if it was diagnosed.
    alarm: Option<String>,
    /// Everything found in it.
    findings: Vec<String>,
}

impl Plain {
    /// How far from guessing to perfection it came.
    fn skill(&self) -> f64 {
        (self.last - self.chance) / (1.0 - self.chance).max(1e-9)
    }
}

/// The metric as a share: what is no number, or below guessing, is nothing.
fn share(evaluation: Option<&Evaluation>) -> f64 {
    let metric = evaluation.and_then(|evaluation| evaluation.metric);
    metric.filter(|metric| metric.is_finite()).unwrap_or(0.0).max(0.0)
}

fn load(plan: &Plan, dir: &Path) -> Result<Dataset, String> {
    surefoot_data::load(&plan.data, plan.seed, dir).map_err(|error| error.to_string())
}

fn plain(plan: &Plan, dir: &Path, diagnose: bool) -> Result<Plain, String> {
    let data = load(plan, dir)?;
    let mut run = Run::<Cpu>::new(plan, &data, &[], 1, Default::default())
        .map_err(|error| error.to_string())?;
    let mut examiner = Examiner {
        diagnosis: diagnose.then(|| Diagnosis::new(run.outline().facts, Thresholds::default())),
        stops: false,
    };
    let report = run.train(&mut Unrecorded, &mut examiner).map_err(|error| error.to_string())?;
    if let Some(diagnosis) = &mut examiner.diagnosis {
        diagnosis.finish();
    }
    Ok(Plain {
        last: share(report.last.as_ref()),
        best: share(report.best.as_ref()),
        chance: run.outline().facts.chance.unwrap_or(0.0),
        alarm: examiner.problem().map(|finding| finding.problem.id().to_owned()),
        findings: examiner
            .diagnosis
            .iter()
            .flat_map(Diagnosis::findings)
            .map(|finding| finding.problem.id().to_owned())
            .collect(),
    })
}

/// Trains `plan` plainly and then with diagnosis and repair, and compares. Files are relative to
/// `dir`.
pub fn treat(plan: &Plan, dir: &Path, workers: usize) -> Result<Treated, String> {
    let begun = Instant::now();
    let before = plain(plan, dir, false)?.last;
    let plain_time = begun.elapsed();
    let begun = Instant::now();
    let data = Arc::new(load(plan, dir)?);
    let mut run = Run::<Cpu>::new(plan, &data, &[], 1, Default::default())
        .map_err(|error| error.to_string())?;
    let outline = run.outline();
    let facts: Facts = outline.facts.clone();
    let mut examiner = Examiner {
        diagnosis: Some(Diagnosis::new(facts.clone(), Thresholds::default())),
        stops: true,
    };
    let report = run.train(&mut Unrecorded, &mut examiner).map_err(|error| error.to_string())?;
    if report.end == End::Finished
        && let Some(diagnosis) = &mut examiner.diagnosis
    {
        diagnosis.finish();
    }
    let mut treated = Treated {
        seed: plan.seed,
        problem: None,
        right: false,
        delay: None,
        repaired: false,
        remedies: Vec::new(),
        attempts: 0,
        before,
        after: share(report.best.as_ref()),
        twin: 0.0,
        time: 1.0,
    };
    if let Some(finding) = examiner.problem().cloned() {
        treated.problem = Some(finding.problem.id().to_owned());
        treated.delay = facts.total_steps().map(|total| [finding.step, total]);
        let given = &data;
        let reload = |other: &Plan| -> Result<Arc<Dataset>, String> {
            if other.data == plan.data {
                return Ok(Arc::clone(given));
            }
            load(other, dir).map(Arc::new)
        };
        let patient = Patient {
            plan,
            finding: finding.clone(),
            facts: facts.clone(),
            stopped: report.steps,
            report: &report,
            load: &reload,
            detectors: &surefoot_diagnose::detectors::all,
            weights: &[],
            workers,
        };
        let search = RepairSearch::new(plan.clone(), finding, facts, remedies::all());
        let mut clerk = Silent { attempts: 0 };
        let device = Default::default();
        let repaired = repair::<Cpu>(&patient, search, &Thresholds::default(), &device, &mut clerk)
            .map_err(|error| error.to_string())?;
        treated.repaired = repaired.solved;
        treated.attempts = clerk.attempts;
        if let Some(delivered) = repaired.delivered {
            treated.remedies = delivered.remedies;
            treated.after = share(delivered.report.best.as_ref());
        }
    }
    treated.time = begun.elapsed().as_secs_f64() / plain_time.as_secs_f64().max(1e-9);
    Ok(treated)
}

/// Diagnoses a run, and stops it at a problem if it is to.
struct Examiner {
    diagnosis: Option<Diagnosis>,
    stops: bool,
}

impl Examiner {
    fn problem(&self) -> Option<&Finding> {
        let findings = self.diagnosis.as_ref()?.findings();
        findings.iter().find(|finding| finding.severity == Severity::Problem)
    }
}

impl Watcher for Examiner {
    fn step(&mut self, _: &Progress) {}

    fn observed(&mut self, observation: &Observation) {
        if let Some(diagnosis) = &mut self.diagnosis {
            diagnosis.observe(observation);
        }
    }

    fn evaluated(&mut self, evaluation: &Evaluation) {
        if let Some(diagnosis) = &mut self.diagnosis {
            diagnosis.evaluate(evaluation);
        }
    }

    fn flow(&self) -> Flow {
        if self.stops && self.problem().is_some() { Flow::GiveUp } else { Flow::GoOn }
    }
}

/// Counts attempts and keeps nothing.
struct Silent {
    attempts: u64,
}

impl Clerk for Silent {
    fn propose(&mut self, _: &Proposal) -> bool {
        true
    }

    fn open(
        &mut self,
        _: &Attempt,
        _: &Plan,
        _: &Outline,
    ) -> RecordResult<Box<dyn Journal + Send>> {
        self.attempts += 1;
        Ok(Box::new(Unrecorded))
    }

    fn close(
        &mut self,
        _: &Attempt,
        _: &AttemptOutcome,
        _: &Plan,
        _: &Report,
        _: Box<dyn Journal + Send>,
    ) -> RecordResult<()> {
        Ok(())
    }

    fn interrupted(&self) -> bool {
        false
    }
}
