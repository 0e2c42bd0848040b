//! Evaluates the cases: trained without, then with diagnosis and repair.
//!
//! Ground truth does not come from the detectors. Every case is trained without them on three seeds, with its
//! fault and without. It is *buggy* if a fault was injected and its final metric falls short of its
//! twin's by more than 5 points, in the mean of the seeds; its twin is *healthy* if it ends within 2
//! points of its own best epoch, in the mean of the seeds, and has learned on each of them. Only
//! cases with a healthy twin count.

use crate::case::{Case, Injected};
use crate::corruption::corrupt;
use crate::dataset::DatasetKind;
use crate::fault::{Degree, Fault};
use crate::watch::{Watch, Watched, Watchers};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use surefoot_diagnose::{Evaluation, Finding, Thresholds};
use surefoot_plan::{Plan, Repair, Rules};
use surefoot_train::Trainer;

/// The seeds of every case.
const SEEDS: [u64; 3] = [1, 2, 3];
/// Minimum difference between a buggy plan and its twin.
const SHORT: f64 = 0.05;
/// Maximum difference of a healthy plan to its best epoch.
const NEAR: f64 = 0.02;
/// Maximum difference of a healthy plan to its best seed.
const STEADY: f64 = 0.1;
/// Minimum skill of a healthy plan: 0 is guessing, 1 is perfect.
const LEARNED: f64 = 0.3;

/// Result of a case.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Always `case`.
    pub event: &'static str,
    /// Case number.
    pub case: u64,
    /// Its data.
    pub data: DatasetKind,
    /// The injected fault.
    pub fault: Option<Fault>,
    /// Degree of the fault.
    pub degree: Option<Degree>,
    /// True if its twin is healthy; other cases do not count.
    pub healthy: bool,
    /// Final metric of the twin, per seed.
    pub twin: Vec<f64>,
    /// First problems found in the healthy twin, with their messages, for each seed that has one: false
    /// alarms.
    pub alarms: Vec<String>,
    /// All findings in the twin on any seed, with warnings.
    pub findings: BTreeSet<String>,
    /// False alarms of AutoTrainer's rules, likewise.
    pub autotrainer_alarms: Vec<String>,
    /// Result of the plan with the fault.
    pub faulty: Option<Faulty>,
}

/// Result of a plan with a fault.
#[derive(Clone, Debug, Serialize)]
pub struct Faulty {
    /// Final metric without repair, per seed.
    pub plain: Vec<f64>,
    /// True if it is buggy.
    pub buggy: bool,
    /// Repair on the first seed that falls short; only for buggy plans.
    pub treated: Option<Treated>,
    /// The same with AutoTrainer's rules.
    pub autotrainer: Option<Treated>,
}

/// Result of diagnosis and repair.
#[derive(Clone, Debug, Serialize)]
pub struct Treated {
    /// The seed.
    pub seed: u64,
    /// The first problem found.
    pub problem: Option<String>,
    /// True if that problem matches the fault.
    pub right: bool,
    /// The step at which it was found, and the total steps.
    pub delay: Option<[u64; 2]>,
    /// True if it was repaired.
    pub repaired: bool,
    /// The remedies of the delivered plan.
    pub remedies: Vec<String>,
    /// Number of attempts.
    pub attempts: u64,
    /// Metric without repair.
    pub before: f64,
    /// Metric of the delivered model.
    pub after: f64,
    /// Metric of the twin with the same seed.
    pub twin: f64,
    /// Metric of the best epoch without repair, which would be delivered.
    pub alone: f64,
    /// Cost of all trainings with repair, relative to the plain training.
    pub work: f64,
    /// The same along the longest chain of trainings, on two cores.
    pub time: f64,
}

/// Cores that [`Treated::time`] assumes.
const CORES: usize = 2;

/// Trains all `cases` without repair and the buggy ones with diagnosis and repair by each of `rules`,
/// on `workers` threads. Calls `done` with each complete row.
pub fn evaluate(
    cases: &[Case],
    dir: &Path,
    workers: usize,
    rules: &[Rules],
    done: &(dyn Fn(&Row) + Sync),
) -> Result<Vec<Row>, String> {
    in_parallel(cases, workers, &|case| {
        let row = evaluate_case(case, dir, rules)?;
        done(&row);
        Ok(row)
    })
}

fn evaluate_case(case: &Case, dir: &Path, rules: &[Rules]) -> Result<Row, String> {
    let watched = Settings {
        healthy: [Thresholds::default(), Thresholds::autotrainer()].map(Watch::Detectors).into(),
        faulty: Vec::new(),
    };
    let Looked { mut row, short, .. } = look_at(case, dir, &watched)?;
    if let (Some(short), Some(faulty)) = (short, &mut row.faulty) {
        for &rules in rules {
            let mut treated = treat(&with_rules(&short.plan, rules), dir)?;
            treated.twin = short.twin;
            let right = |fault: Fault| treated.problem.as_ref().is_some_and(|id| fault.is(id));
            treated.right = row.fault.is_some_and(right);
            match rules {
                Rules::Surefoot => faulty.treated = Some(treated),
                Rules::AutoTrainer => faulty.autotrainer = Some(treated),
            }
        }
    }
    Ok(row)
}

/// Looks at all `cases` on `workers` threads.
pub(crate) fn look_at_all(
    cases: &[Case],
    dir: &Path,
    workers: usize,
    watched: &Settings,
) -> Result<Vec<Looked>, String> {
    in_parallel(cases, workers, &|case| look_at(case, dir, watched))
}

/// Results of `work` for each of `cases`, in their order.
fn in_parallel<T: Send>(
    cases: &[Case],
    workers: usize,
    work: &(dyn Fn(&Case) -> Result<T, String> + Sync),
) -> Result<Vec<T>, String> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(place) else {
                        return;
                    };
                    let result = work(case);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((place, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(place, _)| *place);
    results.into_iter().map(|(_, result)| result).collect()
}

/// `plan` with other rules of diagnosis and repair.
pub(crate) fn with_rules(plan: &Plan, rules: Rules) -> Plan {
    Plan { rules, repair: Repair::of(rules), ..plan.clone() }
}

/// Diagnoses of trainings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// Those of twins.
    pub(crate) healthy: Vec<Watch>,
    /// Those of plans with a fault.
    pub(crate) faulty: Vec<Watch>,
}

/// A case that was trained without repair.
pub(crate) struct Looked {
    pub(crate) row: Row,
    /// The run to repair, if the case is buggy.
    pub(crate) short: Option<Short>,
    /// The twin on each seed.
    pub(crate) twins: Vec<Plain>,
    /// The run that falls short.
    pub(crate) faulty: Option<Plain>,
}

/// A run that falls short of its twin.
pub(crate) struct Short {
    pub(crate) plan: Plan,
    pub(crate) twin: f64,
}

/// Trains a case without repair.
fn look_at(case: &Case, dir: &Path, watched: &Settings) -> Result<Looked, String> {
    let mut twins = Vec::new();
    for seed in SEEDS {
        twins.push(plain(&seeded(&case.twin, seed), dir, &watched.healthy)?);
    }
    // The first diagnosis is by Surefoot's rules, the second by AutoTrainer's.
    let alarms = |i: usize| {
        let results = twins.iter().filter_map(move |twin| twin.watched.get(i));
        let alarm =
            |it: &Watched| it.problems().next().map(|it| format!("{}: {}", id(it), it.message));
        results.filter_map(alarm).collect::<Vec<_>>()
    };
    let findings = twins.iter().filter_map(|twin| twin.watched.first());
    let healthy = is_healthy(&twins);
    let mut row = Row {
        event: "case",
        case: case.number,
        data: case.dataset,
        fault: case.injected.as_ref().map(|injected| injected.fault),
        degree: case.injected.as_ref().map(|injected| injected.degree),
        healthy,
        twin: twins.iter().map(|twin| twin.last).collect(),
        alarms: alarms(0),
        findings: findings.flat_map(|it| it.findings.iter().map(id)).collect(),
        autotrainer_alarms: alarms(1),
        faulty: None,
    };
    let Some(injected) = case.injected.as_ref().filter(|_| healthy) else {
        return Ok(Looked { row, short: None, twins, faulty: None });
    };
    let mut plains = Vec::new();
    let mut plans = Vec::new();
    for seed in SEEDS {
        let plan = with_fault(case.number, injected, seed, dir)?;
        plains.push(plain(&plan, dir, &watched.faulty)?);
        plans.push(plan);
    }
    let mean = |metrics: &[Plain]| metrics.iter().map(|m| m.last).sum::<f64>() / 3.0;
    let buggy = mean(&twins) - mean(&plains) > SHORT;
    row.faulty = Some(Faulty {
        plain: plains.iter().map(|plain| plain.last).collect(),
        buggy,
        treated: None,
        autotrainer: None,
    });
    let short = (0..SEEDS.len()).find(|&i| twins[i].last - plains[i].last > SHORT);
    let (short, faulty) = match short.filter(|_| buggy) {
        Some(i) => {
            let short = Short { plan: plans.swap_remove(i), twin: twins[i].last };
            (Some(short), Some(plains.swap_remove(i)))
        }
        None => (None, None),
    };
    Ok(Looked { row, short, twins, faulty })
}

fn id(finding: &Finding) -> String {
    finding.problem.id().to_owned()
}

fn is_healthy(twins: &[Plain]) -> bool {
    let count = twins.len() as f64;
    let gap = twins.iter().map(|twin| (twin.best - twin.last).max(0.0)).sum::<f64>() / count;
    let best = twins.iter().map(|twin| twin.last).fold(0.0, f64::max);
    let steady = twins.iter().all(|twin| twin.last >= best - STEADY && twin.skill() >= LEARNED);
    gap <= NEAR && steady
}

/// The plan of case `number` with its fault and this seed. Corrupted data are written to `dir`.
pub fn with_fault(number: u64, injected: &Injected, seed: u64, dir: &Path) -> Result<Plan, String> {
    let plan = seeded(&injected.plan, seed);
    match injected.corruption {
        Some(how) => corrupt(&plan, how, dir, &format!("case-{number}-{seed}")),
        None => Ok(plan),
    }
}

fn seeded(plan: &Plan, seed: u64) -> Plan {
    let mut plan = plan.clone();
    plan.seed = seed;
    // Cases are trained side by side, each on one thread.
    plan.training.shards = Some(1);
    plan
}

/// Result of a training without repair.
pub(crate) struct Plain {
    pub(crate) last: f64,
    best: f64,
    /// The metric of a guess.
    chance: f64,
    /// Number of steps, and of steps per epoch.
    pub(crate) steps: [u64; 2],
    /// Duration, without the diagnoses.
    pub(crate) time: Duration,
    /// Findings of each diagnosis.
    pub(crate) watched: Vec<Watched>,
}

impl Plain {
    /// Skill: 0 is guessing, 1 is perfect.
    fn skill(&self) -> f64 {
        (self.last - self.chance) / (1.0 - self.chance).max(1e-9)
    }
}

/// The metric; 0 if it is missing, NaN or negative.
pub(crate) fn share(evaluation: Option<&Evaluation>) -> f64 {
    let metric = evaluation.and_then(|evaluation| evaluation.metric);
    metric.filter(|metric| metric.is_finite()).unwrap_or(0.0).max(0.0)
}

fn plain(plan: &Plan, dir: &Path, watched: &[Watch]) -> Result<Plain, String> {
    let mut watchers = Watchers::new(watched.to_vec());
    let trainer = Trainer::new(plan.clone()).base(dir).workers(1).no_diagnosis();
    let trained = trainer.callback(&mut watchers).train().map_err(|error| error.to_string())?;
    let watched = watchers.into_results();
    let diagnoses: Duration = watched.iter().map(|it| it.time).sum();
    Ok(Plain {
        last: share(trained.given.last.as_ref()),
        best: share(trained.given.best.as_ref()),
        chance: trained.outline.facts.chance.unwrap_or(0.0),
        steps: [trained.given.steps, trained.outline.steps_per_epoch],
        time: trained.given.training.saturating_sub(diagnoses),
        watched,
    })
}

/// Trains `plan` without and then with diagnosis and repair, and compares. Files are relative to
/// `dir`.
///
/// Costs are [counted](surefoot_train::Outline::step_cost) instead of measured, so that they do not
/// depend on the machine and its load.
pub fn treat(plan: &Plan, dir: &Path) -> Result<Treated, String> {
    let before = plain(plan, dir, &[])?;
    let trainer = Trainer::new(plan.clone()).base(dir).workers(CORES);
    let trained = trainer.train().map_err(|error| error.to_string())?;
    let total = trained.outline.facts.total_steps();
    let problem = trained.problem();
    let repair = trained.repair.as_ref();
    let step = trained.outline.step_cost() as f64;
    let whole = step * total.unwrap_or(trained.given.steps).max(1) as f64;
    // The plan as given, up to where the repair began.
    let alone = step * repair.map_or(trained.given.steps, |repair| repair.begun_at) as f64;
    let relative = |cost: Option<u64>| (alone + cost.unwrap_or(0) as f64) / whole.max(1.0);
    Ok(Treated {
        seed: plan.seed,
        problem: problem.map(|finding| finding.problem.id().to_owned()),
        right: false,
        delay: problem.and_then(|finding| Some([finding.step, total?])),
        repaired: repair.is_some_and(|repair| repair.solved),
        remedies: trained.summary.remedies.clone(),
        attempts: repair.map_or(0, |repair| repair.attempts),
        before: before.last,
        after: share(trained.delivered().best.as_ref()),
        twin: 0.0,
        alone: before.best,
        work: relative(repair.map(|repair| repair.cost)),
        time: relative(repair.map(|repair| repair.critical_path)),
    })
}
