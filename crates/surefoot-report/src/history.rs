//! What happened in a run, sorted out of its events.

use surefoot_diagnose::indicators::PROBLEMS;
use surefoot_diagnose::{Evaluation, Finding, Problem, Severity, Split};
use surefoot_record::{Attempt, AttemptOutcome, Event};
use surefoot_tune::pruner::{NON_FINITE, PrunerConfig};

/// What happened, by kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// The step after which the plan as given was given up, and why.
    pub(crate) stopped: Option<(u64, Problem)>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) attempts: Vec<Entry>,
    /// The number of the delivered attempt; 0 is the plan as given.
    pub(crate) delivered: Option<u32>,
    /// Why the search ended it whose trial it was, unless it went on since.
    pub(crate) ended: Option<Finding>,
    /// The step after which somebody asked it to stop, unless it went on since.
    pub(crate) interrupted: Option<u64>,
    pub(crate) evaluations: Vec<Evaluation>,
}

/// An attempt and how it went; `None` while that is open.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) attempt: Attempt,
    pub(crate) outcome: Option<AttemptOutcome>,
}

impl History {
    /// Of the events of a run.
    pub(crate) fn of(events: &[Event]) -> History {
        let mut history = History::default();
        for event in events {
            history.take(event);
        }
        // A search writes down why it ends a trial, and nothing after it.
        history.ended = match events.last() {
            Some(Event::Finding(finding)) if ends_trials(&finding.problem) => Some(finding.clone()),
            _ => None,
        };
        history
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::Finding(finding) => self.findings.push(finding.clone()),
            Event::Stopped { step, problem } => self.stopped = Some((*step, problem.clone())),
            Event::Attempt(attempt) => {
                self.attempts.push(Entry { attempt: attempt.clone(), outcome: None })
            }
            Event::Outcome(outcome) => {
                let mut entries = self.attempts.iter_mut();
                let entry = entries.find(|entry| entry.attempt.number == outcome.number);
                if let Some(entry) = entry {
                    entry.outcome = Some(outcome.clone());
                }
            }
            Event::Delivered { attempt, .. } => self.delivered = Some(*attempt),
            Event::Interrupted { step } => self.interrupted = Some(*step),
            Event::Resumed { .. } => self.interrupted = None,
            _ => self.evaluations.extend(event.evaluation()),
        }
    }

    /// The entry of the delivered attempt; `None` if that is the plan as given.
    pub(crate) fn delivered_attempt(&self) -> Option<&Attempt> {
        let number = self.delivered?;
        let mut attempts = self.attempts.iter().map(|entry| &entry.attempt);
        attempts.find(|attempt| attempt.number == number)
    }

    /// The problem that it is all about.
    pub(crate) fn main_problem(&self) -> Option<&Problem> {
        let stopped = self.stopped.as_ref().map(|(_, problem)| problem);
        let mut findings = self.findings.iter();
        let found = findings.find(|finding| finding.severity == Severity::Problem);
        stopped.or(found.map(|finding| &finding.problem))
    }

    /// The split that models are chosen by: validation, or training if there is no such split.
    pub(crate) fn judged_split(&self) -> Option<Split> {
        let has = |split| self.evaluations.iter().any(|e| e.split == split);
        let splits = [Split::Validation, Split::Train];
        splits.into_iter().find(|split| has(*split))
    }

    /// The evaluations of that split.
    pub(crate) fn judged(&self) -> impl Iterator<Item = &Evaluation> {
        let split = self.judged_split();
        let evaluations = self.evaluations.iter();
        evaluations.filter(move |evaluation| Some(evaluation.split) == split)
    }
}

/// Whether a search ends trials by this: a pruner, or an indicator.
fn ends_trials(problem: &Problem) -> bool {
    let id = problem.id();
    PROBLEMS.contains(problem) || PrunerConfig::names().contains(&id) || id == NON_FINITE
}
