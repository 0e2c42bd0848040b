//! Diagnoses a run while it trains.

use super::{Callback, RunContext, Step, StopReason};
use crate::error::TrainError;
use crate::run::TrainingResult;
use surefoot_diagnose::{Confidence, Diagnosis, Evaluation, Finding, Severity};
use surefoot_record::{Entry, Event, Record};

/// Reaction to a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnProblem {
    /// Report it and train on.
    Continue,
    /// End the run.
    Stop,
    /// End the run if the problem is [certain](Confidence::Certain). Pause it at the first likely one.
    Pause,
}

/// Runs the detectors of a [`Diagnosis`] and reports their findings.
pub struct DiagnosisCallback {
    diagnosis: Diagnosis,
    on_problem: OnProblem,
    reported: usize,
    reported_panics: usize,
    problem: Option<Finding>,
    has_paused: bool,
}

impl DiagnosisCallback {
    /// Reports the findings of `diagnosis`.
    pub fn new(diagnosis: Diagnosis, on_problem: OnProblem) -> Self {
        Self {
            diagnosis,
            on_problem,
            reported: 0,
            reported_panics: 0,
            problem: None,
            has_paused: false,
        }
    }

    /// The diagnosis with all findings so far.
    pub fn diagnosis(&self) -> &Diagnosis {
        &self.diagnosis
    }

    /// The first certain problem found, or else the first likely one; warnings do not count.
    pub fn problem(&self) -> Option<&Finding> {
        self.problem.as_ref()
    }

    fn report(&mut self, run: &mut RunContext) {
        let new = &self.diagnosis.findings()[self.reported..];
        self.reported += new.len();
        for finding in new {
            note_problem(&mut self.problem, finding);
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
        let Some(problem) = &self.problem else {
            return;
        };
        let certain = problem.confidence == Confidence::Certain;
        match self.on_problem {
            OnProblem::Continue => {}
            OnProblem::Pause if !certain => {
                if !std::mem::replace(&mut self.has_paused, true) {
                    run.stop(StopReason::Paused);
                }
            }
            OnProblem::Stop | OnProblem::Pause => run.stop(StopReason::Problem),
        }
    }
}

/// Keeps the first certain problem, or else the first likely one.
fn note_problem(known: &mut Option<Finding>, new: &Finding) {
    let replaces = known.as_ref().is_none_or(|known| {
        known.confidence != Confidence::Certain && new.confidence == Confidence::Certain
    });
    if replaces && new.severity == Severity::Problem {
        *known = Some(new.clone());
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
        for finding in self.diagnosis.findings() {
            note_problem(&mut self.problem, finding);
        }
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
