//! Repairs a plan: trains what [`RepairSearch`] proposes in a [`contest`] with the plan as given.
//!
//! The number of attempts side by side is part of the plan, so the result is the same on any number of
//! cores; the number of threads is not.

mod attempt;
mod original;
mod plan_subject;

use crate::callback::{
    AttemptEvent, Callback, Callbacks, DiagnosisCallback, OnProblem, RecordCallback, RunContext,
    StopReason, StopSignal,
};
use crate::compute::Compute;
use crate::error::TrainError;
use crate::run::{TrainingResult, TrainingRun};
use crate::trainer::{Approval, AttemptRecorder, PreparedPlan, RepairMode};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use surefoot_data::Dataset;
use surefoot_diagnose::{Detector, Diagnosis, Facts, Finding, Severity, Thresholds};
use surefoot_plan::{Plan, Rules};
use surefoot_record::{Attempt, AttemptOutcome, AttemptState, Event};
use surefoot_repair::{
    AttemptTrainer, ContestConfig, ContestResult, Ending, ORIGINAL, Remedy, RepairConfig,
    RepairSearch, Standing, contest,
};

use attempt::RunningAttempt;
pub(crate) use original::{Original, is_unharmed};
pub use plan_subject::PlanSubject;

/// A change of a plan to be tried.
pub type Proposal = surefoot_repair::Proposal<PlanSubject>;

/// Fewest steps that an attempt trains before it is judged: the slowest detectors look back a dozen
/// blocks.
const LEAST_STEPS: u64 = 16;
/// Steps of attempts that are always allowed.
const LEAST_BUDGET: u64 = 50_000;

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
    let samples = request.prepared.data.validation.len;
    let inputs: Vec<OnceCell<AttemptInput>> = vec![OnceCell::new(); config.attempts];
    let search = RepairSearch::new(PlanSubject(plan), finding, &others, facts, remedies, config);
    let mut repair = Repair {
        request,
        inputs: &inputs,
        running: BTreeMap::new(),
        original,
        found_at,
        mode,
        device,
        record,
        callbacks,
        result: RepairResult { begun_at: found_at, ..RepairResult::default() },
        quits: false,
    };
    if repair.original.result.reason == StopReason::Problem {
        repair.note_stop()?;
    }
    let standing = repair.original.standing();
    let config = ContestConfig { samples, least_budget: LEAST_BUDGET, sequential: false };
    let result = contest(&mut repair, search, standing, config)?;
    repair.finish(result)?;
    Ok((repair.result, repair.original.result))
}

impl RepairRequest<'_> {
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
}

/// Plan and data of an attempt.
type AttemptInput = (Plan, Arc<Dataset>);

/// A repair in progress.
struct Repair<'r, 'o, 'd, 'c, B: Compute> {
    request: &'r RepairRequest<'r>,
    /// Plan and data of each attempt, by its number.
    inputs: &'r [OnceCell<AttemptInput>],
    running: BTreeMap<u32, RunningAttempt<'r, B>>,
    original: Original<'o, 'd, B>,
    /// Steps of the plan as given when its problem was found.
    found_at: u64,
    mode: RepairMode<'r>,
    device: &'r B::Device,
    record: Option<&'c mut RecordCallback>,
    callbacks: Vec<&'c mut dyn Callback>,
    result: RepairResult,
    /// True once an approval answered [`Approval::Quit`].
    quits: bool,
}

impl<B: Compute> AttemptTrainer<PlanSubject> for Repair<'_, '_, '_, '_, B> {
    type Error = TrainError;

    fn start(&mut self, proposal: &Proposal) -> Result<bool, TrainError> {
        if !self.approves(proposal) {
            return Ok(false);
        }
        let request = self.request;
        // A plan whose data cannot be loaded, or whose layers do not fit, is not a remedy.
        let Ok(data) = request.prepared.data_of(&proposal.subject.0) else {
            return Ok(false);
        };
        let place = proposal.number as usize - 1;
        let (plan, data) = self.inputs[place].get_or_init(|| (proposal.subject.0.clone(), data));
        let device = self.device.clone();
        let Ok(mut run) = TrainingRun::<B>::new(plan, data, &[], request.workers, device) else {
            return Ok(false);
        };
        let keeps_weights = !proposal.reinitializes;
        if keeps_weights {
            run.adopt(&request.prepared.weights);
        }
        let attempt = request.attempt(proposal, self.found_at);
        let outline = Arc::clone(run.outline());
        let record = request
            .attempts
            .map(|attempts| attempts.create(&attempt, plan, &outline, keeps_weights));
        self.note(&AttemptEvent::Start(&attempt))?;
        self.result.attempts += 1;
        let thresholds = request.thresholds.clone();
        let diagnosis = Diagnosis::with(outline.facts.clone(), thresholds, (request.detectors)());
        let running = RunningAttempt {
            remedies: proposal.remedies.clone(),
            attempt,
            run,
            record: record.transpose()?.map(RecordCallback::new),
            diagnosis: DiagnosisCallback::new(diagnosis, OnProblem::Pause),
            result: None,
            begun: Instant::now(),
        };
        self.running.insert(proposal.number, running);
        Ok(true)
    }

    /// Trains contestants at the same time. Callbacks follow a single attempt, or the plan as given if
    /// it trains alone.
    fn train(&mut self, tasks: &[(u32, f64)]) -> Result<Vec<Standing>, TrainError> {
        let request = self.request;
        let share = |number: u32| tasks.iter().find(|task| task.0 == number).map(|task| task.1);
        let workers = request.workers.div_ceil(tasks.len().max(1));
        let (original, record) = (&mut self.original, self.record.as_deref_mut());
        let original_before = original.cost();
        let original_until = share(ORIGINAL).map(|share| steps_at(share, original.run.steps()));
        let (context, signal) = ((request.context)(), request.signal);
        let trained =
            self.running.iter_mut().filter_map(|(number, it)| Some((share(*number)?, it)));
        let mut trained: Vec<(f64, &mut RunningAttempt<'_, B>)> = trained.collect();
        let before: Vec<u64> = trained.iter().map(|(_, running)| running.cost()).collect();
        trained.iter_mut().for_each(|(_, running)| running.run.set_workers(workers));
        let callbacks = self.callbacks.as_mut_slice();
        std::thread::scope(|scope| match trained.as_mut_slice() {
            [(share, running)] => {
                let thread = original_until.map(|until| {
                    scope.spawn(move || original.train(until, record, &mut [], context))
                });
                let trained = running.train(*share, callbacks, signal);
                thread.map_or(Ok(()), joined).and(trained)
            }
            attempts => {
                let followers = if attempts.is_empty() { callbacks } else { &mut [] };
                let mut threads = Vec::new();
                for (share, running) in attempts {
                    threads.push(scope.spawn(move || running.train(*share, &mut [], signal)));
                }
                let trained = original_until
                    .map_or(Ok(()), |until| original.train(until, record, followers, context));
                threads.into_iter().try_for_each(joined).and(trained)
            }
        })?;
        let costs =
            trained.iter().zip(before).map(|((_, running), before)| running.cost() - before);
        let mut spent: Vec<u64> = costs.collect();
        spent.push(self.original.cost() - original_before);
        self.spend(&spent);
        let standing = |(number, _): &(u32, f64)| match self.running.get(number) {
            Some(running) => running.standing(),
            None => self.original.standing(),
        };
        Ok(tasks.iter().map(standing).collect())
    }

    /// Enters an attempt that has ended into the ledger, and keeps it if it is the best so far.
    fn close(
        &mut self,
        number: u32,
        ending: Ending,
        standing: &Standing,
        is_best: bool,
    ) -> Result<(), TrainError> {
        let Some(RunningAttempt { remedies, attempt, run, record, result, begun, .. }) =
            self.running.remove(&number)
        else {
            return Ok(());
        };
        let Some(result) = result else {
            return Ok(());
        };
        let outcome = AttemptOutcome {
            step: attempt.step,
            number,
            state: state(ending),
            finding: standing.problem.clone(),
            metric: standing.metric,
            steps: result.steps,
        };
        self.result.steps += result.steps;
        let plan = self.inputs[number as usize - 1].get().map(|(plan, _)| plan.clone());
        let plan = plan.unwrap_or_else(|| self.request.prepared.plan.clone());
        if let Some(record) = record {
            let seconds = begun.elapsed().as_secs_f64();
            let metric = run.outline().metric;
            let recorder = record.into_recorder();
            AttemptRecorder::finish(recorder, &outcome, &plan, &result, (metric, seconds))?;
        }
        self.note(&AttemptEvent::End { attempt: &attempt, outcome: &outcome, result: &result })?;
        if ending != Ending::Repaired {
            self.result.found.extend(standing.problem.clone());
        }
        if is_best {
            self.result.delivered = Some(DeliveredAttempt { number, remedies, plan, result });
        }
        Ok(())
    }

    fn give_up_original(&mut self) -> Result<(), TrainError> {
        self.original.given_up = true;
        self.note_stop()
    }

    fn is_interrupted(&mut self) -> bool {
        self.result.interrupted |= self.request.signal.is_requested();
        self.result.interrupted
    }

    fn is_declined(&self) -> bool {
        self.quits
    }
}

impl<B: Compute> Repair<'_, '_, '_, '_, B> {
    /// Keeps the attempt that is delivered, and records the result of the repair.
    fn finish(&mut self, result: ContestResult) -> Result<(), TrainError> {
        let number = match result {
            ContestResult::Repaired(number) => Some(number),
            _ => None,
        };
        let delivered = self.result.delivered.take();
        self.result.delivered = delivered.filter(|it| Some(it.number) == number);
        self.result.solved = self.result.delivered.is_some();
        self.result.dismissed = result == ContestResult::Dismissed;
        let original = &mut self.original.result;
        if self.original.given_up && original.reason == StopReason::Paused {
            original.reason = StopReason::Problem;
        }
        let (step, delivered) = (original.steps, self.result.delivered.as_ref());
        let model = delivered.map_or(&*original, |delivered| &delivered.result);
        let event = match self.result.interrupted {
            true => Event::Interrupted { step },
            false => Event::Delivered {
                step,
                attempt: delivered.map_or(0, |delivered| delivered.number),
                metric: model.best.as_ref().and_then(|best| best.metric),
            },
        };
        if self.result.dismissed {
            let problem = self.request.finding.problem.clone();
            self.ledger().event(&Event::Dismissed { step, problem })?;
        }
        self.ledger().event(&event)?;
        if let Some(record) = &mut self.record {
            record.recorder().sync()?;
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

    fn approves(&mut self, proposal: &Proposal) -> bool {
        if self.quits || self.is_interrupted() {
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
}

/// Progress and quality of a training of `steps` steps.
fn standing(result: Option<&TrainingResult>, steps: u64, diagnosis: &Diagnosis) -> Standing {
    let known = Standing::of(diagnosis);
    let Some(result) = result else {
        return known;
    };
    let best = result.best.as_ref();
    Standing {
        share: result.steps as f64 / steps.max(1) as f64,
        finished: result.reason == StopReason::Finished,
        ended_by_problem: !matches!(result.reason, StopReason::Finished | StopReason::Paused),
        metric: best.and_then(|best| best.metric),
        loss: best.map(|best| best.loss),
        last_metric: result.last.as_ref().and_then(|last| last.metric),
        ..known
    }
}

/// The number of steps after which `share` of `steps` is done.
fn steps_at(share: f64, steps: u64) -> u64 {
    ((steps as f64 * share).ceil() as u64).max(LEAST_STEPS).min(steps)
}

fn state(ending: Ending) -> AttemptState {
    match ending {
        Ending::Repaired => AttemptState::Repaired,
        Ending::Persists => AttemptState::Persists,
        Ending::NewProblem => AttemptState::NewProblem,
        Ending::NoBetter => AttemptState::NoBetter,
        Ending::Outperformed => AttemptState::Outperformed,
    }
}

fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
