//! Looks for problems in a run while it is taken down.

use crate::output::repair;
use crate::output::screen::Screen;
use std::cell::Cell;
use std::rc::Rc;
use surefoot_diagnose::{Diagnosis, Evaluation, Finding, Observation, Severity};
use surefoot_record::{Checkpoint, Entry, Error, Event, Record, Recorder, Result, StepDigest};
use surefoot_train::Journal;

/// Set when a problem was found.
#[derive(Clone, Debug, Default)]
pub(super) struct Alarm(Rc<Cell<bool>>);

impl Alarm {
    /// Whether it was.
    pub(super) fn rings(&self) -> bool {
        self.0.get()
    }
}

/// A journal that shows the detectors what it takes down. What they find is recorded, told and
/// shown at once.
pub(super) struct Examiner<'a> {
    pub(super) recorder: Recorder,
    pub(super) diagnosis: Diagnosis,
    screen: &'a Screen,
    /// Steps that are planned.
    steps: u64,
    alarm: Alarm,
    /// Why a finding could not be recorded where that could not be said.
    failure: Option<Error>,
}

impl<'a> Examiner<'a> {
    pub(super) fn new(
        recorder: Recorder,
        diagnosis: Diagnosis,
        screen: &'a Screen,
        steps: u64,
    ) -> Self {
        Self { recorder, diagnosis, screen, steps, alarm: Alarm::default(), failure: None }
    }

    /// Rings when a problem is found.
    pub(super) fn alarm(&self) -> Alarm {
        self.alarm.clone()
    }

    /// Shows the detectors what is recorded up to a step, as they saw it then. What they find is
    /// recorded already.
    pub(super) fn catch_up(&mut self, step: u64) -> Result<()> {
        Record::open(self.recorder.dir())?.visit(step, |entry| {
            match entry {
                Entry::Step(observation) => self.diagnosis.observe(observation),
                Entry::Evaluation(evaluation) => self.diagnosis.evaluate(evaluation),
            };
        })?;
        self.alarm.0.set(self.problem().is_some());
        Ok(())
    }

    /// Looks back when all steps are done.
    pub(super) fn finish(&mut self) -> Result<()> {
        let known = self.diagnosis.findings().len();
        self.diagnosis.finish();
        self.note(known)
    }

    /// The first problem that was found.
    pub(super) fn problem(&self) -> Option<&Finding> {
        self.problems().next()
    }

    /// All problems that were found, without warnings.
    pub(super) fn problems(&self) -> impl Iterator<Item = &Finding> {
        let findings = self.diagnosis.findings().iter();
        findings.filter(|finding| finding.severity == Severity::Problem)
    }

    /// Tells what was found beyond what is known.
    fn note(&mut self, known: usize) -> Result<()> {
        for finding in &self.diagnosis.findings()[known..] {
            let event = Event::Finding(finding.clone());
            self.recorder.event(&event)?;
            self.screen.event(&event);
            let text = repair::finding(finding, self.steps, self.screen.width());
            self.screen.say(&text);
        }
        self.alarm.0.set(self.problem().is_some());
        Ok(())
    }

    /// What went wrong before, said once.
    fn check(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }
}

impl Journal for Examiner<'_> {
    fn wants_digests(&self) -> bool {
        true
    }

    fn observe(&mut self, observation: &Observation) {
        self.recorder.observe(observation);
        let known = self.diagnosis.findings().len();
        self.diagnosis.observe(observation);
        if self.diagnosis.findings().len() > known
            && let Err(error) = self.note(known)
        {
            self.failure.get_or_insert(error);
        }
    }

    fn digest(&mut self, step: &StepDigest) {
        self.recorder.digest(step);
    }

    fn event(&mut self, event: &Event) -> Result<()> {
        self.check()?;
        self.recorder.event(event)
    }

    fn evaluation(&mut self, evaluation: &Evaluation) -> Result<()> {
        let event = Event::from(evaluation);
        self.event(&event)?;
        self.screen.event(&event);
        let known = self.diagnosis.findings().len();
        self.diagnosis.evaluate(evaluation);
        self.note(known)
    }

    fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        self.check()?;
        self.recorder.checkpoint(checkpoint).map(|_| ())
    }

    fn sync(&mut self) -> Result<()> {
        self.check()?;
        self.recorder.sync()
    }
}
