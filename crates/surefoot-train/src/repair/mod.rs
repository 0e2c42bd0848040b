//! Trains what a repair proposes: a round of attempts on probation side by side, then the best of
//! them to its end.
//!
//! If the problem is only likely, the plan as given keeps training alongside as one of the
//! contestants, so that an attempt is compared with what the plan reaches by itself. It advances in
//! step with the attempts, by shares of its training and never by the clock.
//!
//! [`RepairSearch`] decides which remedies are tried, in which order, and what the result of an
//! attempt means. The number of attempts side by side is part of the plan, so the result is the same
//! on any number of cores; the number of threads is not.

mod attempt;
mod original;
mod plan_subject;

use crate::callback::{
    AttemptEvent, Callback, Callbacks, DiagnosisCallback, OnProblem, RecordCallback, RunContext,
    StopReason, StopSignal,
};
use crate::compute::Compute;
use crate::error::TrainError;
use crate::run::{TrainingResult, TrainingRun, better};
use crate::trainer::{Approval, AttemptRecorder, PreparedPlan, RepairMode};
use std::cell::OnceCell;
use std::sync::Arc;
use std::time::{Duration, Instant};
use surefoot_data::Dataset;
use surefoot_diagnose::{
    Detector, Diagnosis, Evaluation, Facts, Finding, Severity, TaskKind, Thresholds,
};
use surefoot_plan::{Plan, Rules};
use surefoot_record::{Attempt, AttemptOutcome, AttemptState, Event};
use surefoot_repair::{AttemptVerdict, Remedy, RepairConfig, RepairSearch};

use attempt::{RunningAttempt, running_callbacks};
pub(crate) use original::{Original, is_unharmed};
pub use plan_subject::PlanSubject;

/// A change of a plan to be tried.
pub type Proposal = surefoot_repair::Proposal<PlanSubject>;
type AttemptResult = surefoot_repair::AttemptResult<PlanSubject>;

/// Bounds on the share of its steps that an attempt is on probation. Within them it is the share
/// after which the problem was found, so that a persistent problem shows again.
const PROBATION: [f64; 2] = [0.06, 0.15];
/// Share of its steps after which an attempt that has learned nothing is postponed.
const CHECK: f64 = 0.35;
/// Steps of all attempts after which no other is started: as a multiple of the plan's own, and at least.
const BUDGET: u64 = 12;
const LEAST_BUDGET: u64 = 50_000;
/// Largest number of attempts that wait to be trained further.
const DEFERRED: usize = 3;
/// Skill of a plan that has learned in spite of a likely problem.
const LEARNED: f64 = 0.15;
/// Skill at which one attempt that is not better is enough to call the plan as given normal.
const LEARNED_WELL: f64 = 0.8;

/// Inputs of a repair.
pub(crate) struct RepairRequest<'a> {
    pub(crate) prepared: &'a PreparedPlan,
    pub(crate) finding: Finding,
    pub(crate) facts: Facts,
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
    /// True if an attempt is delivered: it beats what the plan as given reached at its end by more
    /// than the validation noise, and is better than a constant prediction.
    pub solved: bool,
    /// True if the plan as given learned in spite of its problem and no attempt was better.
    pub dismissed: bool,
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
    /// Steps of the plan as given before the repair began.
    pub begun_at: u64,
    /// Cost of all attempts, and of the plan as given since the repair began; see
    /// [`Outline::step_cost`](crate::Outline::step_cost).
    pub cost: u64,
    /// The same along the longest chain of trainings that wait for each other, on as many cores as
    /// there are workers.
    pub critical_path: u64,
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

/// Searches for a remedy. Attempts are entered into `record` and passed to `callbacks`. Returns the
/// final result of the plan as given as well.
pub(crate) fn repair_run<'c, B: Compute>(
    request: &RepairRequest<'_>,
    original: Original<'_, '_, B>,
    remedies: Vec<Box<dyn Remedy>>,
    mode: RepairMode<'_>,
    device: &B::Device,
    mut record: Option<&'c mut RecordCallback>,
    callbacks: Vec<&'c mut dyn Callback>,
) -> Result<(RepairResult, TrainingResult), TrainError> {
    let plan = request.prepared.plan.clone();
    let (finding, facts) = (request.finding.clone(), request.facts.clone());
    let found = original.diagnosis.diagnosis().findings();
    let others: Vec<Finding> = found
        .iter()
        .filter(|other| other.severity == Severity::Problem && **other != finding)
        .cloned()
        .collect();
    let config = RepairConfig {
        forbid: plan.repair.forbid.clone(),
        order: plan.repair.order.clone(),
        parallel: plan.repair.parallel,
        attempts: plan.repair.attempts,
        published: plan.rules == Rules::AutoTrainer,
    };
    // An interrupted repair starts over where the problem was found.
    if let Some(record) = &mut record {
        record.stop_saving();
    }
    let found_at = original.result.steps;
    let inputs: Vec<OnceCell<AttemptInput>> = vec![OnceCell::new(); config.attempts];
    let mut repair = Repair {
        request,
        inputs: &inputs,
        deferred: Vec::new(),
        search: RepairSearch::new(PlanSubject(plan), finding, &others, facts, remedies, config),
        original,
        found_at,
        mode,
        device,
        record,
        callbacks,
        result: RepairResult { begun_at: found_at, ..RepairResult::default() },
        completed: 0,
        quits: false,
    };
    repair.search()?;
    repair.finish()?;
    Ok((repair.result, repair.original.result))
}

impl RepairRequest<'_> {
    /// Returns true if `new` is better than `old` by more than the validation noise, and better than
    /// a constant prediction. Compares the delivered models, which are those of the best epochs. If
    /// `has_relapsed`, the end of `old` is compared as well: there, an attempt that is no worse and
    /// keeps what it learned is better.
    fn is_improved(&self, new: &TrainingResult, old: &TrainingResult, has_relapsed: bool) -> bool {
        let (new_last, old_last) = (&new.last, &old.last);
        let Some(new) = &new.best else {
            return false;
        };
        let Some(old) = &old.best else {
            return true;
        };
        let known = |evaluation: &Evaluation| evaluation.metric.filter(|it| it.is_finite());
        let Some(metric) = known(new) else {
            return old.metric.is_none() && new.loss.is_finite() && better(new, old);
        };
        let Some(old) = known(old) else {
            return self.is_above_chance(metric);
        };
        let exceeds = |new: f64, old: f64| new > old + self.noise(new, old);
        let keeps = || {
            let ends = new_last.as_ref().and_then(known).zip(old_last.as_ref().and_then(known));
            has_relapsed && metric >= old && ends.is_some_and(|(new, old)| exceeds(new, old))
        };
        self.is_above_chance(metric) && (exceeds(metric, old) || keeps())
    }

    fn is_above_chance(&self, metric: f64) -> bool {
        self.facts.chance.is_none_or(|chance| metric > chance)
    }

    /// Returns true if not even a perfect metric would count as an improvement.
    fn is_unbeatable(&self, result: &TrainingResult) -> bool {
        let metric = result.best.as_ref().and_then(|best| best.metric);
        metric.is_some_and(|metric| 1.0 <= metric + self.noise(1.0, metric))
    }

    /// Standard error of the difference between two metrics on the validation split; 0 if the
    /// training split is evaluated.
    fn noise(&self, new: f64, old: f64) -> f64 {
        let samples = self.prepared.data.validation.len as f64;
        if samples == 0.0 {
            return 0.0;
        }
        let variance = |metric: f64| match self.facts.task {
            // Of a mean of squared errors, relative to the variance of the targets.
            Some(TaskKind::Regression) => 2.0 * (1.0 - metric).powi(2),
            _ => metric * (1.0 - metric),
        };
        ((variance(new) + variance(old)) / samples).sqrt()
    }

    fn attempt(&self, proposal: &Proposal, step: u64) -> Attempt {
        let place = || AttemptRecorder::place(proposal.number);
        Attempt {
            step,
            number: proposal.number,
            parent: proposal.parent,
            problem: proposal.finding.problem.clone(),
            remedies: proposal.remedies.clone(),
            change: proposal.message.clone(),
            diff: proposal.diff.clone(),
            run: self.attempts.map(|_| place()).unwrap_or_default(),
        }
    }

    /// Steps that an attempt of `total` steps is on probation, if the problem showed at `found_at`.
    fn probation(&self, found_at: u64, total: u64) -> u64 {
        let planned = self.facts.total_steps().unwrap_or(total).max(1);
        let share = found_at as f64 / planned as f64;
        let share = share.clamp(PROBATION[0], PROBATION[1]);
        // At least the dozen blocks that the slowest detectors look back.
        ((total as f64 * share).ceil() as u64).max(16)
    }
}

/// Plan and data of an attempt.
type AttemptInput = (Plan, Arc<Dataset>);

/// A repair in progress.
struct Repair<'r, 'o, 'd, 'c, B: Compute> {
    request: &'r RepairRequest<'r>,
    /// Plan and data of each attempt, by its number.
    inputs: &'r [OnceCell<AttemptInput>],
    /// Attempts that may be trained further once other remedies were tried, with their state if not.
    deferred: Vec<(RunningAttempt<'r, B>, AttemptState)>,
    search: RepairSearch<PlanSubject>,
    original: Original<'o, 'd, B>,
    /// Steps of the plan as given when its problem was found.
    found_at: u64,
    mode: RepairMode<'r>,
    device: &'r B::Device,
    record: Option<&'c mut RecordCallback>,
    callbacks: Vec<&'c mut dyn Callback>,
    result: RepairResult,
    /// Attempts that were trained to their end.
    completed: u32,
    /// True once an approval answered [`Approval::Quit`].
    quits: bool,
}

impl<'r, B: Compute> Repair<'r, '_, '_, '_, B> {
    fn search(&mut self) -> Result<(), TrainError> {
        if self.original.result.reason == StopReason::Problem {
            self.note_stop()?;
        }
        let budget = (BUDGET * self.original.run.steps()).max(LEAST_BUDGET);
        while !(self.result.solved
            || self.quits
            || self.result.steps >= budget
            || self.interrupted()
            || self.request.is_unbeatable(&self.original.result)
            || self.original_is_fine())
        {
            // Attempts without a problem are trained further before remedies are tried in variants.
            let untried = self.search.has_untried_remedy();
            let mut deferred = if untried { None } else { self.take_deferred(false) };
            let mut round = Vec::new();
            if deferred.is_none() {
                round = self.search.next_round();
                if round.is_empty() {
                    deferred = self.take_deferred(true);
                }
            }
            match deferred {
                Some(running) => self.complete(running, true)?,
                None if round.is_empty() => break,
                None => {
                    round.retain(|proposal| self.approves(proposal));
                    if !self.interrupted() {
                        self.round(round)?;
                    }
                }
            }
        }
        self.close_deferred()
    }

    fn close_deferred(&mut self) -> Result<(), TrainError> {
        for (running, state) in std::mem::take(&mut self.deferred) {
            self.close(running, state)?;
        }
        Ok(())
    }

    /// Takes the deferred attempt with the most skill; those with a likely problem only if
    /// `with_problem`.
    fn take_deferred(&mut self, with_problem: bool) -> Option<RunningAttempt<'r, B>> {
        let candidates = self.deferred.iter().enumerate();
        let candidates = candidates
            .filter(|(_, (running, _))| with_problem || running.diagnosis.problem().is_none());
        let best = candidates.reduce(|a, b| if b.1.0.skill() > a.1.0.skill() { b } else { a })?.0;
        Some(self.deferred.remove(best).0)
    }

    /// Sets an attempt aside. If there are too many, the one with the least skill is closed.
    fn defer(
        &mut self,
        running: RunningAttempt<'r, B>,
        state: AttemptState,
    ) -> Result<(), TrainError> {
        self.deferred.push((running, state));
        if self.deferred.len() <= DEFERRED {
            return Ok(());
        }
        let all = self.deferred.iter().enumerate();
        let least = all.reduce(|a, b| if b.1.0.skill() <= a.1.0.skill() { b } else { a });
        let least = least.map_or(0, |(i, _)| i);
        let (running, state) = self.deferred.remove(least);
        self.close(running, state)
    }

    /// Trains the plan as given to its end, and decides what is delivered.
    fn finish(&mut self) -> Result<(), TrainError> {
        // It was given up for an attempt that did not become a repair.
        self.original.given_up &= self.result.solved;
        if !self.interrupted() && self.original.is_running() {
            let before = self.original.cost();
            let mut list: Vec<&mut dyn Callback> = Vec::new();
            if let Some(record) = &mut self.record {
                list.push(&mut **record);
            }
            list.push(&mut *self.original.diagnosis);
            for callback in &mut self.callbacks {
                list.push(&mut **callback);
            }
            let mut callbacks = Callbacks::new(list, (self.request.context)());
            self.original.result = self.original.run.train_with(u64::MAX, &mut callbacks)?;
            self.spend(&[self.original.cost() - before]);
            self.interrupted();
        }
        if self.original.given_up {
            self.original.result.reason = StopReason::Problem;
        }
        // A repair never delivers something worse than the plan as given.
        let delivered = self.result.delivered.take();
        self.result.delivered = delivered.filter(|it| self.beats_original(&it.result));
        let request = self.request;
        let original = &self.original.result;
        let delivered = self.result.delivered.as_ref();
        self.result.solved = delivered.is_some();
        self.result.dismissed = !self.result.solved && self.original.has_ended_well();
        let step = original.steps;
        let event = match self.result.interrupted {
            true => Event::Interrupted { step },
            false => Event::Delivered {
                step,
                attempt: delivered.map_or(0, |delivered| delivered.number),
                metric: delivered
                    .map_or(original, |delivered| &delivered.result)
                    .best
                    .as_ref()
                    .and_then(|best| best.metric),
            },
        };
        if self.result.dismissed && !self.result.interrupted {
            let problem = request.finding.problem.clone();
            self.ledger().event(&Event::Dismissed { step, problem })?;
        }
        self.ledger().event(&event)?;
        if let Some(record) = &mut self.record {
            record.recorder().sync()?;
        }
        Ok(())
    }

    /// Returns true if an attempt is better than what the plan as given has reached so far.
    fn beats_original(&self, attempt: &TrainingResult) -> bool {
        let original = &self.original;
        let finished = original.result.reason == StopReason::Finished;
        let has_relapsed = finished && !original.has_ended_well();
        self.request.is_improved(attempt, &original.result, has_relapsed)
    }

    /// Gives the plan as given up if an attempt is better already and it cannot catch up.
    fn give_up_original(&mut self, attempt: &RunningAttempt<'_, B>) -> Result<(), TrainError> {
        let is_better = attempt.result.as_ref().is_some_and(|result| self.beats_original(result));
        if is_better && self.original.cannot_catch_up(&attempt.diagnosis) {
            self.original.given_up = true;
            self.note_stop()?;
        }
        Ok(())
    }

    /// Counts the cost of trainings side by side.
    fn spend(&mut self, side_by_side: &[u64]) {
        let sum: u64 = side_by_side.iter().sum();
        let longest = side_by_side.iter().copied().max().unwrap_or(0);
        self.result.cost += sum;
        self.result.critical_path += longest.max(sum.div_ceil(self.request.workers as u64));
    }

    fn note_stop(&mut self) -> Result<(), TrainError> {
        let step = self.original.result.steps;
        let problem = self.request.finding.problem.clone();
        self.ledger().event(&Event::Stopped { step, problem })
    }

    /// Returns true if the plan as given has ended well and attempts that were trained to their end
    /// did not beat it.
    fn original_is_fine(&self) -> bool {
        let enough = if self.original.skill() >= LEARNED_WELL { 1 } else { 2 };
        self.original.has_ended_well() && self.completed >= enough
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

    fn round(&mut self, round: Vec<Proposal>) -> Result<(), TrainError> {
        let request = self.request;
        let workers = (request.workers / round.len().max(1)).max(1);
        let mut running = Vec::new();
        for proposal in round {
            // A plan whose data cannot be loaded, or whose layers do not fit, is not a remedy.
            let Ok(data) = request.prepared.data_of(&proposal.subject.0) else {
                continue;
            };
            let place = proposal.number as usize - 1;
            let (plan, data) =
                self.inputs[place].get_or_init(|| (proposal.subject.0.clone(), data));
            let device = self.device.clone();
            let Ok(mut run) = TrainingRun::<B>::new(plan, data, &[], workers, device) else {
                continue;
            };
            if !proposal.reinitializes {
                run.adopt(&request.prepared.weights);
            }
            let attempt = request.attempt(&proposal, self.found_at);
            let outline = Arc::clone(run.outline());
            let keeps_weights = !proposal.reinitializes;
            let record = request
                .attempts
                .map(|attempts| attempts.create(&attempt, plan, &outline, keeps_weights));
            self.note(&AttemptEvent::Start(&attempt))?;
            self.result.attempts += 1;
            let thresholds = request.thresholds.clone();
            let facts = outline.facts.clone();
            let diagnosis = Diagnosis::with(facts, thresholds, (request.detectors)());
            running.push(RunningAttempt {
                proposal,
                attempt,
                run,
                record: record.transpose()?.map(RecordCallback::new),
                diagnosis: DiagnosisCallback::new(diagnosis, OnProblem::Pause),
                result: None,
                begun: Instant::now(),
            });
        }
        if !self.interrupted() {
            self.probe(&mut running)?;
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
            match attempt.is_over() {
                true => self.close(attempt, state)?,
                false => self.defer(attempt, state)?,
            }
        }
        let Some(best) = best else {
            return Ok(());
        };
        self.give_up_original(&best)?;
        self.complete(best, false)
    }

    /// Trains an attempt to its end, in step with the plan as given. Unless `to_the_end`, it is deferred
    /// when it shows a likely problem, or has learned nothing by the time that others would have.
    fn complete(
        &mut self,
        mut running: RunningAttempt<'r, B>,
        to_the_end: bool,
    ) -> Result<(), TrainError> {
        while !running.is_over() {
            let share = running.next_stop(self.original.is_running());
            let result = self.train(&mut running, share)?;
            running.result = Some(result);
            if self.interrupted() {
                return Ok(());
            }
            let problem = running.diagnosis.problem().is_some();
            let learns = share != CHECK || running.is_learning();
            if !(running.is_over() || to_the_end) && (problem || !learns) {
                let attempt = running.attempt_result();
                let state = running.state();
                self.defer(running, state)?;
                // An attempt without a problem is trained to its end before it counts as too slow.
                if problem {
                    self.search.report_problem(&attempt);
                }
                return Ok(());
            }
            self.give_up_original(&running)?;
        }
        let attempt = running.attempt_result();
        let result = running.result.as_ref();
        let finished = result.filter(|result| result.reason == StopReason::Finished);
        self.completed += u32::from(finished.is_some());
        self.result.solved = finished.is_some_and(|result| self.beats_original(result));
        let state = if self.result.solved { AttemptState::Repaired } else { running.state() };
        if self.result.solved {
            // The repaired attempt ends last.
            self.close_deferred()?;
        }
        self.close(running, state)?;
        if !self.result.solved {
            self.search.report_problem(&attempt);
        }
        Ok(())
    }

    /// Trains an attempt up to a share of its steps, followed by all callbacks, and the plan as given
    /// to the same share of its own.
    fn train(
        &mut self,
        running: &mut RunningAttempt<'_, B>,
        share: f64,
    ) -> Result<TrainingResult, TrainError> {
        let alongside = self.original.is_running();
        let workers = self.request.workers;
        running.run.set_workers(if alongside { workers.div_ceil(2) } else { workers });
        let context = running.context(self.request);
        let until = steps_at(share, running.run.steps());
        let mut list = running_callbacks(&mut running.record, &mut running.diagnosis);
        for callback in &mut self.callbacks {
            list.push(&mut **callback);
        }
        let done = running.result.as_ref().map_or(0, |result| result.steps);
        let run = &mut running.run;
        let original_until = steps_at(share, self.original.run.steps());
        let (original, record) = (&mut self.original, self.record.as_deref_mut());
        let before = original.cost();
        let original_context = (self.request.context)();
        let result = std::thread::scope(|scope| {
            let thread = alongside.then(|| {
                scope.spawn(move || original.train(original_until, record, original_context))
            });
            let result = run.train_with(until, &mut Callbacks::new(list, context));
            thread.map_or(Ok(()), joined)?;
            result
        })?;
        let attempt = (result.steps - done).saturating_mul(run.outline().step_cost());
        self.spend(&[attempt, self.original.cost() - before]);
        Ok(result)
    }

    /// Enters an attempt that has ended into the ledger, and keeps it if it is the best so far.
    fn close(
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
        if state != AttemptState::Repaired {
            self.result.found.extend(finding);
        }
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

impl<B: Compute> Repair<'_, '_, '_, '_, B> {
    /// Trains all attempts of a round for their probation, and the plan as given as long, at the same
    /// time.
    fn probe(&mut self, round: &mut [RunningAttempt<'_, B>]) -> Result<(), TrainError> {
        let (request, found_at) = (self.request, self.found_at);
        let (original, record) = (&mut self.original, self.record.as_deref_mut());
        let before = original.cost();
        let context = (request.context)();
        let results = std::thread::scope(|scope| {
            let threads: Vec<_> = round
                .iter_mut()
                .map(|running| {
                    let context = running.context(request);
                    let until = request.probation(found_at, running.run.steps());
                    let RunningAttempt { run, record, diagnosis, .. } = running;
                    scope.spawn(move || {
                        let list = running_callbacks(record, diagnosis);
                        run.train_with(until, &mut Callbacks::new(list, context))
                    })
                })
                .collect();
            let until = original.result.steps + request.probation(found_at, original.run.steps());
            let trained = match original.is_running() {
                true => original.train(until, record, context),
                false => Ok(()),
            };
            let results: Vec<_> = threads.into_iter().map(joined).collect();
            trained.map(|()| results)
        })?;
        let mut spent = vec![self.original.cost() - before];
        for (running, result) in round.iter_mut().zip(results) {
            let result = result?;
            spent.push(result.steps.saturating_mul(running.run.outline().step_cost()));
            running.result = Some(result);
        }
        self.spend(&spent);
        Ok(())
    }
}

/// The number of steps after which `share` of `steps` is done.
fn steps_at(share: f64, steps: u64) -> u64 {
    ((steps as f64 * share).ceil() as u64).min(steps)
}

fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
