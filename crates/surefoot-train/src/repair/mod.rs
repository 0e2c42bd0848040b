//! Trains what a repair proposes: a round of attempts on probation side by side, then the best of
//! them to its end.
//!
//! [`RepairSearch`] decides which remedies are tried, in which order, and what the result of an
//! attempt means. The number of attempts side by side is part of the plan, so the result is the same
//! on any number of cores; the number of threads is not.

mod plan_subject;

use crate::callback::{
    AttemptEvent, Callback, Callbacks, DiagnosisCallback, RecordCallback, RunContext, StopReason,
    StopSignal,
};
use crate::compute::Compute;
use crate::error::TrainError;
use crate::run::{TrainingResult, TrainingRun, better};
use crate::trainer::{Approval, AttemptRecorder, PreparedPlan, RepairMode};
use std::sync::Arc;
use std::time::{Duration, Instant};
use surefoot_data::Dataset;
use surefoot_diagnose::{Block, Detector, Diagnosis, Facts, Finding, Thresholds};
use surefoot_plan::Plan;
use surefoot_record::{Attempt, AttemptOutcome, AttemptState, Event};
use surefoot_repair::{AttemptVerdict, Remedy, RepairConfig, RepairSearch};

pub use plan_subject::PlanSubject;

/// A change of a plan to be tried.
pub type Proposal = surefoot_repair::Proposal<PlanSubject>;
type AttemptResult = surefoot_repair::AttemptResult<PlanSubject>;

/// Bounds on the share of its steps that an attempt is on probation. Within them it is the share
/// after which the problem was found, so that a persistent problem shows again.
const PROBATION: [f64; 2] = [0.06, 0.15];
/// Share of its steps after which an attempt that has learned nothing is postponed.
const CHECK: f64 = 0.35;
/// Skill of an attempt that has learned something.
const SOME_SKILL: f64 = 0.2;
/// Ratio of recent to initial loss below which the loss is falling.
const FALLING: f64 = 0.85;

/// Inputs of a repair.
pub(crate) struct RepairRequest<'a> {
    pub(crate) prepared: &'a PreparedPlan,
    pub(crate) finding: Finding,
    pub(crate) facts: Facts,
    /// Result of the plan as given.
    pub(crate) given: &'a TrainingResult,
    pub(crate) detectors: &'a (dyn Fn() -> Vec<Box<dyn Detector>> + Sync),
    pub(crate) thresholds: &'a Thresholds,
    pub(crate) workers: usize,
    /// Creates the records of attempts, if the run is recorded.
    pub(crate) attempts: Option<&'a AttemptRecorder>,
    pub(crate) signal: &'a StopSignal,
    /// The context of the run that is repaired.
    pub(crate) context: &'a dyn Fn() -> RunContext,
}

/// Result of a repair.
#[derive(Debug, Default)]
pub struct RepairResult {
    /// True if an attempt trained to its end without a problem and beats the plan as given.
    pub solved: bool,
    /// True if a stop was requested before the repair was done.
    pub interrupted: bool,
    /// True if a proposal was declined.
    pub declined: bool,
    /// Time spent waiting for approval.
    pub waited: Duration,
    /// The best attempt, if it beats the plan as given.
    pub delivered: Option<DeliveredAttempt>,
    /// Problems found in attempts, in order.
    pub found: Vec<Finding>,
    /// Optimizer steps of all attempts.
    pub steps: u64,
    /// Number of attempts that were started.
    pub attempts: u64,
}

/// An attempt that beats the plan as given.
#[derive(Debug)]
pub struct DeliveredAttempt {
    /// Attempt number.
    pub number: u32,
    /// Ids of its remedies.
    pub remedies: Vec<String>,
    /// Its plan.
    pub plan: Plan,
    /// Its result.
    pub result: TrainingResult,
}

/// Searches for a remedy. Attempts are entered into `record` and passed to `callbacks`.
pub(crate) fn repair_run<'c, B: Compute>(
    request: &RepairRequest<'_>,
    remedies: Vec<Box<dyn Remedy>>,
    mode: RepairMode<'_>,
    device: &B::Device,
    record: Option<&'c mut RecordCallback>,
    callbacks: Vec<&'c mut dyn Callback>,
) -> Result<RepairResult, TrainError> {
    let plan = request.prepared.plan.clone();
    let (finding, facts) = (request.finding.clone(), request.facts.clone());
    let config = RepairConfig {
        forbid: plan.repair.forbid.clone(),
        order: plan.repair.order.clone(),
        parallel: plan.repair.parallel,
        attempts: plan.repair.attempts,
    };
    let mut repair = Repair {
        request,
        search: RepairSearch::new(PlanSubject(plan), finding, facts, remedies, config),
        mode,
        device,
        record,
        callbacks,
        result: RepairResult::default(),
        quits: false,
    };
    let step = request.given.steps;
    let problem = request.finding.problem.clone();
    repair.ledger().event(&Event::Stopped { step, problem })?;
    repair.search::<B>()?;
    // A repair never delivers something worse than the plan as given.
    let delivered = repair.result.delivered.take();
    repair.result.delivered = delivered.filter(|it| request.is_improved_by(&it.result));
    let delivered = repair.result.delivered.as_ref();
    let event = match repair.result.interrupted {
        true => Event::Interrupted { step },
        false => Event::Delivered {
            step,
            attempt: delivered.map_or(0, |delivered| delivered.number),
            metric: delivered
                .map_or(request.given, |delivered| &delivered.result)
                .best
                .as_ref()
                .and_then(|best| best.metric),
        },
    };
    repair.ledger().event(&event)?;
    if let Some(record) = &mut repair.record {
        record.recorder().sync()?;
    }
    Ok(repair.result)
}

impl RepairRequest<'_> {
    fn is_improved_by(&self, result: &TrainingResult) -> bool {
        match (&result.best, &self.given.best) {
            (Some(new), Some(old)) => {
                let sound = new.loss.is_finite() || new.metric.is_some();
                sound && better(new, old)
            }
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    fn attempt(&self, proposal: &Proposal) -> Attempt {
        let place = || AttemptRecorder::place(proposal.number);
        Attempt {
            step: self.given.steps,
            number: proposal.number,
            parent: proposal.parent,
            problem: proposal.finding.problem.clone(),
            remedies: proposal.remedies.clone(),
            change: proposal.message.clone(),
            diff: proposal.diff.clone(),
            run: self.attempts.map(|_| place()).unwrap_or_default(),
        }
    }

    /// Steps that an attempt of `total` steps is on probation.
    fn probation(&self, total: u64) -> u64 {
        let planned = self.facts.total_steps().unwrap_or(total).max(1);
        let share = self.given.steps as f64 / planned as f64;
        let share = share.clamp(PROBATION[0], PROBATION[1]);
        // At least the dozen blocks that the slowest detectors look back.
        ((total as f64 * share).ceil() as u64).max(16)
    }
}

/// A repair in progress.
struct Repair<'r, 'c, D> {
    request: &'r RepairRequest<'r>,
    search: RepairSearch<PlanSubject>,
    mode: RepairMode<'r>,
    device: &'r D,
    record: Option<&'c mut RecordCallback>,
    callbacks: Vec<&'c mut dyn Callback>,
    result: RepairResult,
    /// True once an approval answered [`Approval::Quit`].
    quits: bool,
}

/// An attempt in progress.
struct RunningAttempt<'a, B: Compute> {
    proposal: Proposal,
    attempt: Attempt,
    run: TrainingRun<'a, B>,
    record: Option<RecordCallback>,
    diagnosis: DiagnosisCallback,
    result: Option<TrainingResult>,
    begun: Instant,
}

impl<D: Clone> Repair<'_, '_, D> {
    fn search<B: Compute<Device = D>>(&mut self) -> Result<(), TrainError> {
        while !(self.result.solved || self.quits || self.interrupted()) {
            let mut round = self.search.next_round();
            if round.is_empty() {
                break;
            }
            round.retain(|proposal| self.approves(proposal));
            if !self.interrupted() {
                self.round::<B>(round)?;
            }
        }
        Ok(())
    }

    fn interrupted(&mut self) -> bool {
        self.result.interrupted |= self.request.signal.is_requested();
        self.result.interrupted
    }

    fn approves(&mut self, proposal: &Proposal) -> bool {
        if self.quits || self.interrupted() {
            return false;
        }
        match &mut self.mode {
            RepairMode::Auto => true,
            RepairMode::Off => false,
            RepairMode::Approve(ask) => {
                let asked = Instant::now();
                let answer = ask(proposal);
                self.result.waited += asked.elapsed();
                self.quits = answer == Approval::Quit;
                self.result.declined |= answer != Approval::Yes;
                answer == Approval::Yes
            }
        }
    }

    /// The callbacks of the run that is repaired.
    fn ledger(&mut self) -> Callbacks<'_> {
        let mut list: Vec<&mut dyn Callback> = Vec::new();
        if let Some(record) = &mut self.record {
            list.push(&mut **record);
        }
        for callback in &mut self.callbacks {
            list.push(&mut **callback);
        }
        Callbacks::new(list, (self.request.context)())
    }

    fn note(&mut self, event: &AttemptEvent<'_>) -> Result<(), TrainError> {
        let mut ledger = self.ledger();
        ledger.attempt(event)?;
        self.result.interrupted |= ledger.run.stop_requested().is_some();
        Ok(())
    }

    fn round<B: Compute<Device = D>>(&mut self, round: Vec<Proposal>) -> Result<(), TrainError> {
        let request = self.request;
        // A plan whose data cannot be loaded, or whose layers do not fit, is not a remedy.
        let prepared: Vec<(Proposal, Arc<Dataset>)> = round
            .into_iter()
            .filter_map(|proposal| {
                let data = request.prepared.data_of(&proposal.subject.0).ok()?;
                Some((proposal, data))
            })
            .collect();
        let workers = (request.workers / prepared.len().max(1)).max(1);
        let mut running = Vec::new();
        for (proposal, data) in &prepared {
            let device = self.device.clone();
            let Ok(mut run) =
                TrainingRun::<B>::new(&proposal.subject.0, data, &[], workers, device)
            else {
                continue;
            };
            if !proposal.reinitializes {
                run.adopt(&request.prepared.weights);
            }
            let attempt = request.attempt(proposal);
            let outline = Arc::clone(run.outline());
            let keeps_weights = !proposal.reinitializes;
            let record = request.attempts.map(|attempts| {
                attempts.create(&attempt, &proposal.subject.0, &outline, keeps_weights)
            });
            self.note(&AttemptEvent::Start(&attempt))?;
            self.result.attempts += 1;
            let thresholds = request.thresholds.clone();
            let facts = outline.facts.clone();
            let diagnosis = Diagnosis::with(facts, thresholds, (request.detectors)());
            running.push(RunningAttempt {
                proposal: proposal.clone(),
                attempt,
                run,
                record: record.transpose()?.map(RecordCallback::new),
                diagnosis: DiagnosisCallback::new(diagnosis, true),
                result: None,
                begun: Instant::now(),
            });
        }
        if !self.interrupted() {
            request.probe(&mut running)?;
        }
        if self.interrupted() {
            return Ok(());
        }
        let results: Vec<AttemptResult> =
            running.iter().map(RunningAttempt::attempt_result).collect();
        let verdicts = self.search.judge(&results);
        let mut best = None;
        for (attempt, verdict) in running.into_iter().zip(verdicts) {
            let state = match verdict {
                AttemptVerdict::Continue => {
                    best = Some(attempt);
                    continue;
                }
                AttemptVerdict::Superseded => AttemptState::Outperformed,
                AttemptVerdict::Persists => AttemptState::Persists,
                AttemptVerdict::NewProblem => AttemptState::NewProblem,
            };
            self.close(attempt, state)?;
        }
        best.map_or(Ok(()), |best| self.complete(best))
    }

    /// Trains the best attempt of a round to its end.
    fn complete<B: Compute<Device = D>>(
        &mut self,
        mut running: RunningAttempt<'_, B>,
    ) -> Result<(), TrainError> {
        running.run.set_workers(self.request.workers);
        let total = running.diagnosis.diagnosis().facts().total_steps();
        let check = (total.unwrap_or(u64::MAX) as f64 * CHECK) as u64;
        let mut result = self.train(&mut running, check)?;
        if result.reason == StopReason::Paused {
            let attempt = running.attempt_result();
            if !running.proposal.run_to_end && !running.is_learning() {
                running.result = Some(result);
                self.close(running, AttemptState::NoBetter)?;
                self.search.defer(attempt);
                return Ok(());
            }
            result = self.train(&mut running, u64::MAX)?;
        }
        if result.reason == StopReason::Interrupted {
            self.result.interrupted = true;
            return Ok(());
        }
        let attempt = running.attempt_result();
        let problem = &running.proposal.finding.problem;
        let state = match &attempt.finding {
            None if self.request.is_improved_by(&result) => AttemptState::Repaired,
            None => AttemptState::NoBetter,
            Some(found) if found.problem == *problem => AttemptState::Persists,
            Some(_) => AttemptState::NewProblem,
        };
        running.result = Some(result);
        self.result.solved = state == AttemptState::Repaired;
        self.close(running, state)?;
        if !self.result.solved {
            self.search.report_problem(&attempt);
        }
        Ok(())
    }

    /// Trains an attempt to step `until`, followed by all callbacks.
    fn train<B: Compute<Device = D>>(
        &mut self,
        running: &mut RunningAttempt<'_, B>,
        until: u64,
    ) -> Result<TrainingResult, TrainError> {
        let context = running.context(self.request);
        let mut list = running_callbacks(&mut running.record, &mut running.diagnosis);
        for callback in &mut self.callbacks {
            list.push(&mut **callback);
        }
        running.run.train_with(until, &mut Callbacks::new(list, context))
    }

    /// Enters an attempt that has ended into the ledger, and keeps it if it is the best so far.
    fn close<B: Compute>(
        &mut self,
        running: RunningAttempt<'_, B>,
        state: AttemptState,
    ) -> Result<(), TrainError> {
        let Some(result) = running.result else {
            return Ok(());
        };
        let finding = running.diagnosis.problem().cloned();
        let outcome = AttemptOutcome {
            step: running.attempt.step,
            number: running.attempt.number,
            state,
            finding: finding.clone(),
            metric: result.best.as_ref().and_then(|best| best.metric),
            steps: result.steps,
        };
        self.result.steps += result.steps;
        let (plan, attempt) = (running.proposal.subject.0, &running.attempt);
        if let Some(record) = running.record {
            let seconds = running.begun.elapsed().as_secs_f64();
            let metric = running.run.outline().metric;
            let recorder = record.into_recorder();
            AttemptRecorder::finish(recorder, &outcome, &plan, &result, (metric, seconds))?;
        }
        self.note(&AttemptEvent::End { attempt, outcome: &outcome, result: &result })?;
        self.result.found.extend(finding);
        let best = self.result.delivered.as_ref().and_then(|best| best.result.best.as_ref());
        let is_best = match (&result.best, best) {
            (Some(new), Some(old)) => better(new, old),
            (new, _) => new.is_some(),
        };
        if state == AttemptState::Repaired || is_best {
            self.result.delivered = Some(DeliveredAttempt {
                number: running.proposal.number,
                remedies: running.proposal.remedies,
                plan,
                result,
            });
        }
        Ok(())
    }
}

impl RepairRequest<'_> {
    /// Trains all attempts of a round for their probation, at the same time.
    fn probe<B: Compute>(&self, round: &mut [RunningAttempt<'_, B>]) -> Result<(), TrainError> {
        let results = std::thread::scope(|scope| {
            let threads: Vec<_> = round
                .iter_mut()
                .map(|running| {
                    let context = running.context(self);
                    let until = self.probation(running.run.steps());
                    let RunningAttempt { run, record, diagnosis, .. } = running;
                    scope.spawn(move || {
                        let list = running_callbacks(record, diagnosis);
                        run.train_with(until, &mut Callbacks::new(list, context))
                    })
                })
                .collect();
            let joined = threads.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            joined.collect::<Vec<_>>()
        });
        for (running, result) in round.iter_mut().zip(results) {
            running.result = Some(result?);
        }
        Ok(())
    }
}

fn running_callbacks<'a>(
    record: &'a mut Option<RecordCallback>,
    diagnosis: &'a mut DiagnosisCallback,
) -> Vec<&'a mut dyn Callback> {
    let mut list: Vec<&mut dyn Callback> = Vec::new();
    if let Some(record) = record {
        list.push(record);
    }
    list.push(diagnosis);
    list
}

impl<B: Compute> RunningAttempt<'_, B> {
    fn context(&mut self, request: &RepairRequest<'_>) -> RunContext {
        let dir = self.record.as_mut().map(|record| record.recorder().dir().to_owned());
        RunContext::new(Arc::clone(self.run.outline()))
            .attempt_number(self.proposal.number)
            .recorded_in(dir.as_deref())
            .stopped_by(request.signal)
    }

    fn attempt_result(&self) -> AttemptResult {
        let diagnosis = self.diagnosis.diagnosis();
        AttemptResult {
            proposal: self.proposal.clone(),
            finding: self.diagnosis.problem().cloned(),
            facts: diagnosis.facts().clone(),
            skill: diagnosis.curve().recent_skill(4),
        }
    }

    /// Returns true if the attempt has learned something or its loss is falling.
    fn is_learning(&self) -> bool {
        let curve = self.diagnosis.diagnosis().curve();
        let skilled = curve.recent_skill(8).is_none_or(|skill| skill >= SOME_SKILL);
        let blocks = curve.blocks();
        let quarter = (blocks.len() / 4).max(1);
        let mean = |part: &[Block]| part.iter().map(|b| b.loss).sum::<f64>() / part.len() as f64;
        let first = mean(&blocks[..quarter.min(blocks.len())]);
        let last = mean(&blocks[blocks.len().saturating_sub(quarter)..]);
        skilled || last < FALLING * first
    }
}
