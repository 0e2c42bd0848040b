//! A worker: takes trials from a store, runs them one after the other, and tells what became of them.

use crate::pruner::PrunerSet;
use crate::runner::{Assignment, Ended, Order, Progress, Runner, Supervisor, Trouble};
use crate::sampler::{SampleRequest, SamplerConfig};
use crate::space::Point;
use crate::store::{Claim, Claimed, Effort, End, Error, Heart, Pulse, Start, Store, Study, View};
use crate::study::StudyConfig;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use surefoot_diagnose::panic_message;

/// How long a worker that has nothing to do waits before it asks again.
const IDLE: Duration = Duration::from_millis(200);

/// A worker of a study.
pub struct Worker<'a> {
    /// The URL of the store.
    pub url: &'a str,
    /// What it is called in the store.
    pub name: String,
    /// How to search, and for how long.
    pub settings: &'a StudyConfig,
    /// Where the directories of trials are.
    pub runs: &'a Path,
    /// Whether to leave: the trial under way is given back and can be gone on with.
    pub leave: &'a dyn Fn() -> bool,
    /// When to leave.
    pub deadline: Option<Instant>,
}

/// What a worker searches by, from its first trial to its last.
struct Rules<'a> {
    sampler: SamplerConfig,
    pruners: PrunerSet,
    heart: &'a Heart,
}

/// Why a worker is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// All trials are over.
    Done,
    /// The time or the operations are used up.
    Spent,
    /// It was asked to leave.
    Left,
}

impl Worker<'_> {
    /// Works until the study is done, the budget is used up, or it is asked to leave.
    pub fn work(
        &self,
        store: &mut Store,
        study: &Study,
        runner: &mut dyn Runner,
    ) -> Result<Rest, Trouble> {
        let mut view = View::new(study);
        let heart = Heart::open(self.url)?;
        let rules = Rules {
            sampler: self.settings.sampler.clone(),
            pruners: self.settings.rules().pruner_set(),
            heart: &heart,
        };
        let limits = self.settings.limits();
        loop {
            if (self.leave)() {
                return Ok(Rest::Left);
            }
            if self.out_of_time() || self.out_of_operations(store, &mut view)? {
                return Ok(Rest::Spent);
            }
            match store.claim(study.id, &self.name, &limits)? {
                Claimed::Done => return Ok(Rest::Done),
                Claimed::Wait => std::thread::sleep(IDLE),
                Claimed::Trial(claim) => {
                    self.run(store, study, &mut view, &rules, &claim, runner)?;
                }
            }
        }
    }

    fn out_of_time(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn out_of_operations(&self, store: &mut Store, view: &mut View) -> Result<bool, Error> {
        let Some(budget) = self.settings.operations else {
            return Ok(false);
        };
        store.refresh_reports(view)?;
        Ok(view.operations() >= budget)
    }

    /// Runs a trial, and tells what became of it.
    fn run(
        &self,
        store: &mut Store,
        study: &Study,
        view: &mut View,
        rules: &Rules<'_>,
        claim: &Claim,
        runner: &mut dyn Runner,
    ) -> Result<(), Trouble> {
        let ended = self.attempt(store, study, view, rules, claim, runner);
        let told = ended.and_then(|ended| self.tell(store, view, claim, ended));
        match told {
            // Somebody else goes on with it; this worker can do something else.
            Err(Trouble::Store(Error::ClaimLost { .. })) => Ok(()),
            Err(trouble) => {
                // Another worker can go on with it at once; if even that cannot be said, it will be
                // found lost.
                let _ = store.release(claim);
                Err(trouble)
            }
            told => told,
        }
    }

    /// Runs a trial until it is over or the worker has to leave it.
    fn attempt(
        &self,
        store: &mut Store,
        study: &Study,
        view: &mut View,
        rules: &Rules<'_>,
        claim: &Claim,
        runner: &mut dyn Runner,
    ) -> Result<Ended, Trouble> {
        // First of all: to read a long history and to ask for a point takes a while.
        let pulse = rules.heart.beat_for(claim, self.settings.patience / 4);
        let dir = self.dir(claim.number);
        let point = self.start(store, study, view, rules, claim, &dir)?;
        store.refresh_reports(view)?;
        let known = view.trials().get(claim.number as usize);
        let planned = known.and_then(|trial| trial.planned);
        let mut supervision = Supervision {
            worker: self,
            pruners: &rules.pruners,
            store,
            view,
            claim,
            pulse: &pulse,
            begun: Instant::now(),
        };
        let owner =
            format!("trial {} of {}, made at {}\n", claim.number, study.name, study.created);
        let assignment = Assignment {
            number: claim.number,
            attempt: claim.attempt,
            reported: claim.reported.into(),
            planned: planned.map(u64::from),
            owner: &owner,
            point: &point,
            dir: &dir,
        };
        let ended = catch_unwind(AssertUnwindSafe(|| runner.run(&assignment, &mut supervision)));
        ended.unwrap_or_else(|panic| {
            Ok(Ended::Failed(format!("it panicked: {}", panic_message(panic.as_ref()))))
        })
    }

    /// The directory of a trial.
    pub fn dir(&self, number: u64) -> PathBuf {
        self.runs.join(format!("trial-{number:05}"))
    }

    /// Finds out what the trial is to be run with, and lets others know.
    fn start(
        &self,
        store: &mut Store,
        study: &Study,
        view: &mut View,
        rules: &Rules<'_>,
        claim: &Claim,
        dir: &Path,
    ) -> Result<Point, Trouble> {
        let (point, seen) = match &claim.point {
            Some(point) => (point.clone(), None),
            None => {
                store.refresh_reports(view)?;
                let point = rules.sampler.suggest(&SampleRequest {
                    space: &study.space,
                    seed: study.seed,
                    number: claim.number,
                    history: &view.history(),
                });
                (point, Some(view.change()))
            }
        };
        let start = Start {
            point: point.clone(),
            seen,
            planned: None,
            run: Some(dir.display().to_string()),
        };
        store.start(claim, &start)?;
        Ok(point)
    }

    /// Tells the store how a trial ended.
    fn tell(
        &self,
        store: &mut Store,
        view: &mut View,
        claim: &Claim,
        ended: Ended,
    ) -> Result<(), Trouble> {
        store.refresh_reports(view)?;
        let reports = view.reports(claim.number);
        // An empty sum is -0.
        let seconds = 0.0 + reports.iter().map(|report| report.seconds).sum::<f64>();
        let direction = self.settings.direction;
        let curve = view.curve(claim.number).unwrap_or_default();
        let last = curve.last().map(|cost| direction.value(cost));
        let best = curve.best().map(|cost| direction.value(cost)).or(last);
        let end = match ended {
            Ended::Interrupted => return Ok(store.release(claim)?),
            Ended::Complete(value) => End::Complete { value: value.or(best).unwrap_or(f64::NAN) },
            Ended::Stopped(reason) => End::Stopped {
                value: match reason.counts {
                    true => best,
                    false => last,
                },
                reason,
            },
            Ended::Failed(message) => End::Failed { message },
        };
        Ok(store.finish(claim, &end, seconds)?)
    }
}

/// Looks after one trial.
struct Supervision<'a> {
    worker: &'a Worker<'a>,
    pruners: &'a PrunerSet,
    store: &'a mut Store,
    view: &'a mut View,
    claim: &'a Claim,
    pulse: &'a Pulse,
    /// When the stretch began.
    begun: Instant,
}

impl Supervision<'_> {
    /// The multiplications of the stretches before one.
    fn operations_before(&self, index: u64) -> f64 {
        let reports = self.view.reports(self.claim.number).iter();
        let before = reports.filter(|report| u64::from(report.step) < index);
        before.map(|report| report.operations).sum()
    }
}

impl Supervisor for Supervision<'_> {
    fn report(&mut self, progress: &Progress) -> Result<Order, Trouble> {
        let number = self.claim.number;
        let planned = progress.planned.and_then(|n| u32::try_from(n).ok());
        let known = self.view.trials().get(number as usize);
        if let Some(planned) = planned
            && known.is_none_or(|trial| trial.planned != Some(planned))
        {
            self.store.plan(self.claim, planned)?;
        }
        let effort = Effort {
            seconds: self.begun.elapsed().as_secs_f64(),
            operations: progress.operations - self.operations_before(progress.index),
        };
        self.begun = Instant::now();
        let step = u32::try_from(progress.index).unwrap_or(u32::MAX);
        self.store.report(self.claim, step, progress.value, effort)?;
        self.store.refresh_reports(self.view)?;
        let curve = self.view.curve(number).unwrap_or_default();
        // One that has come to its end is not stopped any more.
        if curve.costs.len() < curve.planned {
            let others = self.view.others(number);
            let reason = self.pruners.decide(&curve, &others, &progress.findings);
            if let Some(reason) = reason {
                return Ok(Order::Stop(reason));
            }
        }
        let budget = self.worker.settings.operations;
        if budget.is_some_and(|budget| self.view.operations() >= budget) {
            return Ok(Order::Interrupt);
        }
        Ok(Order::GoOn)
    }

    fn interrupted(&self) -> bool {
        (self.worker.leave)() || self.worker.out_of_time() || self.pulse.lost()
    }
}

impl std::fmt::Debug for Worker<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("name", &self.name).finish_non_exhaustive()
    }
}
