//! Looks for a remedy for a run in which a problem was found.

use super::Arguments;
use super::bookkeeper::Bookkeeper;
use super::care::Care;
use super::examiner::Examiner;
use super::job::Job;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::repair::failure;
use crate::output::screen::Screen;
use std::sync::Arc;
use surefoot_data::Dataset;
use surefoot_diagnose::{Finding, Thresholds};
use surefoot_plan::Plan;
use surefoot_record::Event;
use surefoot_repair::{RepairSearch, remedies};
use surefoot_train::{Compute, Patient, Repaired, Report, repair};

/// What a repair needs besides the run.
pub(super) struct Surgery<'a, D> {
    pub(super) job: &'a Job,
    pub(super) arguments: &'a Arguments,
    pub(super) screen: &'a Screen,
    pub(super) interrupt: Interrupt,
    pub(super) care: Care,
    pub(super) thresholds: &'a Thresholds,
    pub(super) metric: &'static str,
    pub(super) device: &'a D,
}

impl<D> Surgery<'_, D> {
    /// Tries remedies for `finding`, and records what was tried.
    pub(super) fn mend<B: Compute<Device = D>>(
        self,
        finding: &Finding,
        examiner: &mut Examiner<'_>,
        report: &Report,
    ) -> Result<Repaired, Failure>
    where
        D: Clone,
    {
        let stopped = Event::Stopped { step: report.steps, problem: finding.problem.clone() };
        examiner.recorder.event(&stopped)?;
        self.screen.event(&stopped);
        self.screen.mention("\n  Looking for a remedy:");
        let plan = &self.job.plan;
        let facts = examiner.diagnosis.facts().clone();
        let search =
            RepairSearch::new(plan.clone(), finding.clone(), facts.clone(), remedies::all());
        let patient = Patient {
            plan,
            finding: finding.clone(),
            facts,
            stopped: report.steps,
            report,
            load: &|plan| load(plan, self.job),
            weights: &self.job.weights,
            detectors: &surefoot_diagnose::detectors::all,
            workers: self.arguments.workers(),
        };
        let mut bookkeeper = Bookkeeper {
            job: self.job,
            arguments: self.arguments,
            screen: self.screen,
            interrupt: self.interrupt,
            care: self.care,
            recorder: &mut examiner.recorder,
            metric: self.metric,
            open: Vec::new(),
            bar: None,
            tried: 0,
            quits: false,
        };
        let repaired = repair::<B>(&patient, search, self.thresholds, self.device, &mut bookkeeper);
        let tried = bookkeeper.tried;
        self.screen.clear();
        let repaired = repaired?;
        let ending = match &repaired.delivered {
            _ if repaired.interrupted => Event::Interrupted { step: report.steps },
            delivered => Event::Delivered {
                step: report.steps,
                attempt: delivered.as_ref().map_or(0, |delivered| delivered.number),
                metric: delivered
                    .as_ref()
                    .map_or(report, |delivered| &delivered.report)
                    .best
                    .as_ref()
                    .and_then(|best| best.metric),
            },
        };
        examiner.recorder.event(&ending)?;
        if repaired.interrupted {
            examiner.recorder.sync()?;
            return Ok(repaired);
        }
        self.screen.event(&ending);
        if !repaired.solved {
            let delivered = repaired.delivered.as_ref().map(|best| best.number);
            self.screen.say(&failure(tried, delivered));
        }
        Ok(repaired)
    }
}

/// The data of a changed plan, if the plan's layers fit them.
fn load(plan: &Plan, job: &Job) -> Result<Arc<Dataset>, String> {
    let data = match plan.data == job.plan.data && plan.seed == job.plan.seed {
        true => Arc::clone(&job.data),
        false => {
            let data = surefoot_data::load(&plan.data, plan.seed, &job.base);
            Arc::new(data.map_err(|error| error.to_string())?)
        }
    };
    Job::shapes(plan, &data).map_err(|error| error.to_string())?;
    Ok(data)
}
