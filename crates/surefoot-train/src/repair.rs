//! Trains what a repair proposes: side by side, on probation, then the best of them to its end.
//!
//! Which remedies are tried, in which order, and what a trial's outcome means is the business of
//! [`RepairSearch`]. Here plans are trained. How many run side by side is part of the plan, so the result
//! is the same on any number of cores; how many threads they get is not.

use crate::compute::Compute;
use crate::error::TrainError;
use crate::journal::Journal;
use crate::run::{End, Flow, Outline, Progress, Report, Run, Watcher, better};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use surefoot_data::Dataset;
use surefoot_diagnose::{
    Block, Detector, Diagnosis, Evaluation, Facts, Finding, Observation, Severity, Thresholds,
};
use surefoot_plan::{Plan, Weight};
use surefoot_record::{Attempt, AttemptOutcome, AttemptState};
use surefoot_repair::{AttemptResult, AttemptVerdict, Proposal, RepairSearch};

/// The share of its steps that an attempt is on probation for: as many as it took to find the
/// problem, so that it shows again if it persists, within these bounds.
const PROBATION: [f64; 2] = [0.06, 0.15];

/// The share of its steps after which an attempt that has not learned anything makes room for
/// others.
const CHECK: f64 = 0.35;
/// The skill that counts as having learned something.
const SOME_SKILL: f64 = 0.2;
/// What is left of a loss that is on its way down.
const FALLING: f64 = 0.85;
/// How often it is asked whether to stop while attempts are on probation.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// What is to be repaired.
pub struct Patient<'a> {
    /// The plan as given.
    pub plan: &'a Plan,
    /// What was found in it.
    pub finding: Finding,
    /// What is known of it.
    pub facts: Facts,
    /// Steps done when it was stopped.
    pub stopped: u64,
    /// What it came to.
    pub report: &'a Report,
    /// The data of a plan.
    pub load: &'a (dyn Fn(&Plan) -> Result<Arc<Dataset>, String> + Sync),
    /// The detectors that look at an attempt, made anew for each:
    /// [`detectors::all`](surefoot_diagnose::detectors::all), and others from elsewhere.
    pub detectors: &'a (dyn Fn() -> Vec<Box<dyn Detector>> + Sync),
    /// What to start from instead of random weights.
    pub weights: &'a [Weight],
    /// Threads to share.
    pub workers: usize,
}

/// Keeps the ledger of a repair, and says whether to go on.
pub trait Clerk {
    /// A remedy is to be tried; `false` if it may not be.
    fn propose(&mut self, proposal: &Proposal) -> bool;

    /// Opens the journal of an attempt.
    fn open(
        &mut self,
        attempt: &Attempt,
        plan: &Plan,
        outline: &Outline,
    ) -> surefoot_record::Result<Box<dyn Journal + Send>>;

    /// Closes the journal of an attempt that is over, with what it came to.
    fn close(
        &mut self,
        attempt: &Attempt,
        outcome: &AttemptOutcome,
        plan: &Plan,
        report: &Report,
        journal: Box<dyn Journal + Send>,
    ) -> surefoot_record::Result<()>;

    /// A step of the attempt that goes on.
    fn step(&mut self, _number: u32, _progress: &Progress) {}

    /// An evaluation of the attempt that goes on.
    fn evaluated(&mut self, _number: u32, _evaluation: &Evaluation) {}

    /// Whether somebody asks to stop.
    fn interrupted(&self) -> bool;
}

/// What a repair came to.
pub struct Repaired {
    /// Whether an attempt was trained to its end without a problem and is better than the plan as
    /// given.
    pub solved: bool,
    /// Whether somebody asked to stop.
    pub interrupted: bool,
    /// The best attempt, if one is better than the plan as given.
    pub delivered: Option<Delivered>,
    /// Problems that were found in attempts, in order.
    pub found: Vec<Finding>,
    /// Optimizer steps of all attempts.
    pub steps: u64,
}

/// An attempt that is better than the plan as given.
pub struct Delivered {
    /// Its number.
    pub number: u32,
    /// Its remedies.
    pub remedies: Vec<String>,
    /// Its plan.
    pub plan: Plan,
    /// What it came to.
    pub report: Report,
}

/// Looks for a remedy for `patient`.
pub fn repair<B: Compute>(
    patient: &Patient<'_>,
    mut search: RepairSearch,
    thresholds: &Thresholds,
    device: &B::Device,
    clerk: &mut dyn Clerk,
) -> Result<Repaired, TrainError> {
    let mut result = Repaired {
        solved: false,
        interrupted: false,
        delivered: None,
        found: Vec::new(),
        steps: 0,
    };
    let bench = Bench { patient, thresholds, device };
    while !(result.solved || result.interrupted) {
        let mut round = search.next_round();
        if round.is_empty() {
            break;
        }
        round.retain(|proposal| clerk.propose(proposal));
        result.interrupted = clerk.interrupted();
        if !result.interrupted {
            bench.round::<B>(round, &mut search, clerk, &mut result)?;
        }
    }
    // A repair never delivers something worse than it was given.
    let better = |delivered: &Delivered| bench.beats_the_given(&delivered.report);
    result.delivered = result.delivered.filter(better);
    Ok(result)
}

/// Where attempts are made.
struct Bench<'a, D> {
    patient: &'a Patient<'a>,
    thresholds: &'a Thresholds,
    device: &'a D,
}

/// An attempt under way.
struct Running<'a, B: Compute> {
    proposal: Proposal,
    attempt: Attempt,
    run: Run<'a, B>,
    journal: Box<dyn Journal + Send>,
    examiner: Examiner,
    report: Option<Report>,
}

impl<D: Clone> Bench<'_, D> {
    fn round<B: Compute<Device = D>>(
        &self,
        round: Vec<Proposal>,
        search: &mut RepairSearch,
        clerk: &mut dyn Clerk,
        result: &mut Repaired,
    ) -> Result<(), TrainError> {
        // A plan whose data cannot be had, or whose layers do not fit, is no remedy.
        let prepared: Vec<(Proposal, Arc<Dataset>)> = round
            .into_iter()
            .filter_map(|proposal| {
                let data = (self.patient.load)(&proposal.plan).ok()?;
                Some((proposal, data))
            })
            .collect();
        let workers = (self.patient.workers / prepared.len().max(1)).max(1);
        let mut running = Vec::new();
        for (proposal, data) in &prepared {
            let device = self.device.clone();
            let Ok(mut run) = Run::<B>::new(&proposal.plan, data, &[], workers, device) else {
                continue;
            };
            if !proposal.reinitializes {
                run.adopt(self.patient.weights);
            }
            let outline = run.outline();
            let attempt = self.attempt(proposal);
            let journal = clerk.open(&attempt, &proposal.plan, &outline)?;
            let total = outline.steps_per_epoch.saturating_mul(proposal.plan.training.epochs);
            running.push(Running {
                proposal: proposal.clone(),
                attempt,
                examiner: Examiner {
                    diagnosis: Diagnosis::with(
                        outline.facts.clone(),
                        self.thresholds.clone(),
                        (self.patient.detectors)(),
                    ),
                    found: None,
                    pause_at: self.probation(total),
                    step: 0,
                },
                run,
                journal,
                report: None,
            });
        }
        probe(&mut running, clerk)?;
        result.interrupted = clerk.interrupted();
        if result.interrupted {
            return Ok(());
        }
        let trials: Vec<AttemptResult> = running.iter().map(Running::trial).collect();
        let verdicts = search.judge(&trials);
        let mut best = None;
        for (running, verdict) in running.into_iter().zip(verdicts) {
            let state = match verdict {
                AttemptVerdict::Continue => {
                    best = Some(running);
                    continue;
                }
                AttemptVerdict::Superseded => AttemptState::Outperformed,
                AttemptVerdict::Persists => AttemptState::Persists,
                AttemptVerdict::NewProblem => AttemptState::NewProblem,
            };
            close(running, state, clerk, result)?;
        }
        match best {
            None => Ok(()),
            Some(best) => self.to_the_end(best, search, clerk, result),
        }
    }

    /// Trains the best of a round to its end.
    fn to_the_end<B: Compute<Device = D>>(
        &self,
        mut running: Running<'_, B>,
        search: &mut RepairSearch,
        clerk: &mut dyn Clerk,
        result: &mut Repaired,
    ) -> Result<(), TrainError> {
        running.run.set_workers(self.patient.workers);
        let total = running.examiner.diagnosis.facts().total_steps();
        let check = (total.unwrap_or(u64::MAX) as f64 * CHECK) as u64;
        let mut report = running.go_on(check, clerk)?;
        if report.end == End::Paused {
            let trial = running.trial();
            if !running.proposal.run_to_end && !running.examiner.is_getting_somewhere() {
                running.report = Some(report);
                close(running, AttemptState::NoBetter, clerk, result)?;
                search.defer(trial);
                return Ok(());
            }
            report = running.go_on(u64::MAX, clerk)?;
        }
        if report.end == End::Interrupted {
            result.interrupted = true;
            return Ok(());
        }
        if report.end == End::Finished {
            running.examiner.finish();
        }
        let trial = running.trial();
        let state = match &trial.finding {
            None if self.beats_the_given(&report) => AttemptState::Repaired,
            None => AttemptState::NoBetter,
            Some(found) if found.problem == running.proposal.finding.problem => {
                AttemptState::Persists
            }
            Some(_) => AttemptState::NewProblem,
        };
        running.report = Some(report);
        result.solved = state == AttemptState::Repaired;
        close(running, state, clerk, result)?;
        if !result.solved {
            search.report_problem(&trial);
        }
        Ok(())
    }

    /// Whether an attempt is better than the plan as given.
    fn beats_the_given(&self, report: &Report) -> bool {
        match (&report.best, &self.patient.report.best) {
            (Some(new), Some(old)) => {
                let soundly = new.loss.is_finite() || new.metric.is_some();
                soundly && better(new, old)
            }
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    fn attempt(&self, proposal: &Proposal) -> Attempt {
        Attempt {
            step: self.patient.stopped,
            number: proposal.number,
            parent: proposal.parent,
            problem: proposal.finding.problem.clone(),
            remedies: proposal.remedies.clone(),
            change: proposal.message.clone(),
            diff: proposal.diff.clone(),
            run: String::new(),
        }
    }

    /// For how many of `total` steps an attempt is on probation.
    fn probation(&self, total: u64) -> u64 {
        let planned = self.patient.facts.total_steps().unwrap_or(total).max(1);
        let share = self.patient.stopped as f64 / planned as f64;
        let share = share.clamp(PROBATION[0], PROBATION[1]);
        // At least the dozen blocks that the slowest detectors look back.
        ((total as f64 * share).ceil() as u64).max(16)
    }
}

/// Trains all of a round for their probation, at the same time.
fn probe<B: Compute>(
    running: &mut [Running<'_, B>],
    clerk: &mut dyn Clerk,
) -> Result<(), TrainError> {
    let stop = AtomicBool::new(false);
    let reports = std::thread::scope(|scope| {
        let (alive, ended) = channel::<()>();
        let threads: Vec<_> = running
            .iter_mut()
            .map(|running| {
                let Running { run, journal, examiner, .. } = running;
                let mut probation = Probation { examiner, stop: &stop };
                let alive = alive.clone();
                scope.spawn(move || {
                    let report = run.train(journal.as_mut(), &mut probation);
                    drop(alive);
                    report
                })
            })
            .collect();
        drop(alive);
        // The clerk is this thread's, so it is asked from here until all have ended.
        while ended.recv_timeout(ASK_EVERY) == Err(RecvTimeoutError::Timeout) {
            stop.store(clerk.interrupted(), Ordering::Relaxed);
        }
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.collect::<Vec<_>>()
    });
    for (running, report) in running.iter_mut().zip(reports) {
        let report = report?;
        if report.end == End::Finished {
            running.examiner.finish();
        }
        running.report = Some(report);
    }
    Ok(())
}

/// Enters an attempt that is over into the ledger, and keeps it if it is the best so far.
fn close<B: Compute>(
    running: Running<'_, B>,
    state: AttemptState,
    clerk: &mut dyn Clerk,
    result: &mut Repaired,
) -> Result<(), TrainError> {
    let Some(report) = running.report else {
        return Ok(());
    };
    let finding = running.examiner.found;
    let outcome = AttemptOutcome {
        step: running.attempt.step,
        number: running.attempt.number,
        state,
        finding: finding.clone(),
        metric: report.best.as_ref().and_then(|best| best.metric),
        steps: report.steps,
    };
    result.steps += report.steps;
    clerk.close(&running.attempt, &outcome, &running.proposal.plan, &report, running.journal)?;
    result.found.extend(finding);
    let best_so_far = match &result.delivered {
        None => true,
        Some(delivered) => match (&report.best, &delivered.report.best) {
            (Some(new), Some(old)) => better(new, old),
            (new, _) => new.is_some(),
        },
    };
    if state == AttemptState::Repaired || (best_so_far && report.best.is_some()) {
        result.delivered = Some(Delivered {
            number: running.proposal.number,
            remedies: running.proposal.remedies,
            plan: running.proposal.plan,
            report,
        });
    }
    Ok(())
}

impl<B: Compute> Running<'_, B> {
    /// Trains to step `until`, or to the end.
    fn go_on(&mut self, until: u64, clerk: &mut dyn Clerk) -> Result<Report, TrainError> {
        self.examiner.pause_at = until;
        let mut onlooker =
            Onlooker { examiner: &mut self.examiner, clerk, number: self.proposal.number };
        self.run.train(self.journal.as_mut(), &mut onlooker)
    }

    fn trial(&self) -> AttemptResult {
        AttemptResult {
            proposal: self.proposal.clone(),
            finding: self.examiner.found.clone(),
            facts: self.examiner.diagnosis.facts().clone(),
            skill: self.examiner.diagnosis.curve().recent_skill(4),
        }
    }
}

/// Diagnoses an attempt, and stops it when a problem is found or its probation is over.
struct Examiner {
    diagnosis: Diagnosis,
    found: Option<Finding>,
    pause_at: u64,
    step: u64,
}

impl Examiner {
    /// Whether the attempt has learned something, or its loss is on its way down.
    fn is_getting_somewhere(&self) -> bool {
        let curve = self.diagnosis.curve();
        let skilled = curve.recent_skill(8).is_none_or(|skill| skill >= SOME_SKILL);
        let blocks = curve.blocks();
        let quarter = (blocks.len() / 4).max(1);
        let mean = |part: &[Block]| part.iter().map(|b| b.loss).sum::<f64>() / part.len() as f64;
        let first = mean(&blocks[..quarter.min(blocks.len())]);
        let last = mean(&blocks[blocks.len().saturating_sub(quarter)..]);
        skilled || last < FALLING * first
    }

    fn note(&mut self, before: usize) {
        let new = &self.diagnosis.findings()[before..];
        let problem = new.iter().find(|finding| finding.severity == Severity::Problem);
        if self.found.is_none() {
            self.found = problem.cloned();
        }
    }

    fn finish(&mut self) {
        let before = self.diagnosis.findings().len();
        self.diagnosis.finish();
        self.note(before);
    }
}

impl Watcher for Examiner {
    fn step(&mut self, progress: &Progress) {
        self.step = progress.step;
    }

    fn observed(&mut self, observation: &Observation) {
        let before = self.diagnosis.findings().len();
        self.diagnosis.observe(observation);
        self.note(before);
    }

    fn evaluated(&mut self, evaluation: &Evaluation) {
        let before = self.diagnosis.findings().len();
        self.diagnosis.evaluate(evaluation);
        self.note(before);
    }

    fn flow(&self) -> Flow {
        if self.found.is_some() {
            Flow::GiveUp
        } else if self.step >= self.pause_at {
            Flow::Pause
        } else {
            Flow::GoOn
        }
    }
}

/// An examiner of one of several attempts at the same time, all of which may be stopped.
struct Probation<'a> {
    examiner: &'a mut Examiner,
    stop: &'a AtomicBool,
}

impl Watcher for Probation<'_> {
    fn step(&mut self, progress: &Progress) {
        self.examiner.step(progress);
    }

    fn observed(&mut self, observation: &Observation) {
        self.examiner.observed(observation);
    }

    fn evaluated(&mut self, evaluation: &Evaluation) {
        self.examiner.evaluated(evaluation);
    }

    fn flow(&self) -> Flow {
        match self.stop.load(Ordering::Relaxed) {
            true => Flow::Pause,
            false => self.examiner.flow(),
        }
    }
}

/// An examiner who also tells the clerk how far the attempt is.
struct Onlooker<'a> {
    examiner: &'a mut Examiner,
    clerk: &'a mut dyn Clerk,
    number: u32,
}

impl Watcher for Onlooker<'_> {
    fn step(&mut self, progress: &Progress) {
        self.examiner.step(progress);
        self.clerk.step(self.number, progress);
    }

    fn observed(&mut self, observation: &Observation) {
        self.examiner.observed(observation);
    }

    fn evaluated(&mut self, evaluation: &Evaluation) {
        self.examiner.evaluated(evaluation);
        self.clerk.evaluated(self.number, evaluation);
    }

    fn flow(&self) -> Flow {
        if self.clerk.interrupted() { Flow::Interrupt } else { self.examiner.flow() }
    }
}
