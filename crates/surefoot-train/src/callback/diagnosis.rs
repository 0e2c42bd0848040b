//! Diagnoses a run while it trains.

use super::{Callback, RunContext, Step, StopReason};
use crate::error::TrainError;
use crate::run::TrainingResult;
use surefoot_diagnose::{Diagnosis, Evaluation, Finding, Severity};
use surefoot_record::{Entry, Event, Record};

/// Runs the detectors of a [`Diagnosis`] and reports their findings.
pub struct DiagnosisCallback {
    diagnosis: Diagnosis,
    stops: bool,
    reported: usize,
    reported_panics: usize,
    problem: Option<Finding>,
}

impl DiagnosisCallback {
    /// Reports the findings of `diagnosis`. If `stop_at_problem`, the first problem ends the run.
    pub fn new(diagnosis: Diagnosis, stop_at_problem: bool) -> Self {
        Self { diagnosis, stops: stop_at_problem, reported: 0, reported_panics: 0, problem: None }
    }

    /// The diagnosis with all findings so far.
    pub fn diagnosis(&self) -> &Diagnosis {
        &self.diagnosis
    }

    /// The first problem found; warnings do not count.
    pub fn problem(&self) -> Option<&Finding> {
        self.problem.as_ref()
    }

    fn report(&mut self, run: &mut RunContext) {
        let new = &self.diagnosis.findings()[self.reported..];
        self.reported += new.len();
        for finding in new {
            if self.problem.is_none() && finding.severity == Severity::Problem {
                self.problem = Some(finding.clone());
            }
            run.report(finding.clone());
        }
        let panics = &self.diagnosis.panics()[self.reported_panics..];
        self.reported_panics += panics.len();
        for panic in panics {
            run.log(Event::DetectorPanic {
                step: panic.step,
                problem: panic.problem.clone(),
                message: panic.message.clone(),
            });
        }
        if self.stops && self.problem.is_some() {
            run.stop(StopReason::Problem);
        }
    }
}

impl Callback for DiagnosisCallback {
    /// Replays the record into the detectors. Its findings are recorded already.
    fn on_resume(
        &mut self,
        record: &Record,
        step: u64,
        _: &mut RunContext,
    ) -> Result<(), TrainError> {
        record.visit(step, |entry| {
            match entry {
                Entry::Step(observation) => self.diagnosis.observe(observation),
                Entry::Evaluation(evaluation) => self.diagnosis.evaluate(evaluation),
            };
        })?;
        let mut findings = self.diagnosis.findings().iter();
        self.problem = findings.find(|f| f.severity == Severity::Problem).cloned();
        self.reported = self.diagnosis.findings().len();
        self.reported_panics = self.diagnosis.panics().len();
        Ok(())
    }

    fn on_step(&mut self, step: &Step<'_>, run: &mut RunContext) -> Result<(), TrainError> {
        self.diagnosis.observe(step.observation);
        self.report(run);
        Ok(())
    }

    fn on_evaluation(
        &mut self,
        evaluation: &Evaluation,
        run: &mut RunContext,
    ) -> Result<(), TrainError> {
        self.diagnosis.evaluate(evaluation);
        self.report(run);
        Ok(())
    }

    fn on_end(&mut self, result: &TrainingResult, run: &mut RunContext) -> Result<(), TrainError> {
        if result.reason == StopReason::Finished {
            self.diagnosis.finish();
            self.report(run);
        }
        Ok(())
    }
}
