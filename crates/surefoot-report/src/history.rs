//! Events of a run, grouped by kind.

use surefoot_diagnose::indicators::PROBLEMS;
use surefoot_diagnose::{Evaluation, Finding, Problem, Severity, Split};
use surefoot_record::{Attempt, AttemptOutcome, Event};
use surefoot_tune::pruner::{NON_FINITE, PrunerConfig};

/// Events of a run, grouped by kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// Step at which the plan as given was stopped, and the problem.
    pub(crate) stopped: Option<(u64, Problem)>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) attempts: Vec<Entry>,
    /// Number of the delivered attempt; 0 is the plan as given.
    pub(crate) delivered: Option<u32>,
    /// Reason why the run was pruned as a trial of a search, unless it was continued.
    pub(crate) pruned: Option<Finding>,
    /// Step at which the run was interrupted, unless it was resumed.
    pub(crate) interrupted: Option<u64>,
    /// Step at which the program crashed, and the error, unless it was resumed.
    pub(crate) crashed: Option<(u64, String)>,
    pub(crate) evaluations: Vec<Evaluation>,
}

/// An attempt and its outcome; `None` while it is running.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) attempt: Attempt,
    pub(crate) outcome: Option<AttemptOutcome>,
}

impl History {
    /// Groups the events of a run.
    pub(crate) fn of(events: &[Event]) -> History {
        let mut history = History::default();
        for event in events {
            history.take(event);
        }
        // The reason for pruning is always the last event of a trial.
        history.pruned = match events.last() {
            Some(Event::Finding(finding)) if is_pruner(&finding.problem) => Some(finding.clone()),
            _ => None,
        };
        history
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::Finding(finding) => self.findings.push(finding.clone()),
            Event::Stopped { step, problem } => self.stopped = Some((*step, problem.clone())),
            Event::Dismissed { .. } => {
                self.findings.iter_mut().for_each(|it| it.severity = Severity::Warning);
            }
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
            Event::Crashed { step, reason } => self.crashed = Some((*step, reason.clone())),
            Event::Resumed { .. } => (self.interrupted, self.crashed) = (None, None),
            _ => self.evaluations.extend(event.evaluation()),
        }
    }

    /// The delivered attempt; `None` for the plan as given.
    pub(crate) fn delivered_attempt(&self) -> Option<&Attempt> {
        let number = self.delivered?;
        let mut attempts = self.attempts.iter().map(|entry| &entry.attempt);
        attempts.find(|attempt| attempt.number == number)
    }

    /// The problem that stopped the run, or the first one found.
    pub(crate) fn main_problem(&self) -> Option<&Problem> {
        let stopped = self.stopped.as_ref().map(|(_, problem)| problem);
        let mut findings = self.findings.iter();
        let found = findings.find(|finding| finding.severity == Severity::Problem);
        stopped.or(found.map(|finding| &finding.problem))
    }

    /// The split for model selection: validation, or training if there is no validation split.
    pub(crate) fn selection_split(&self) -> Option<Split> {
        let has = |split| self.evaluations.iter().any(|e| e.split == split);
        let splits = [Split::Validation, Split::Train];
        splits.into_iter().find(|split| has(*split))
    }

    /// The evaluations on that split.
    pub(crate) fn selection_evaluations(&self) -> impl Iterator<Item = &Evaluation> {
        let split = self.selection_split();
        let evaluations = self.evaluations.iter();
        evaluations.filter(move |evaluation| Some(evaluation.split) == split)
    }
}

/// Returns true for the id of a pruner or an indicator.
fn is_pruner(problem: &Problem) -> bool {
    let id = problem.id();
    PROBLEMS.contains(problem) || PrunerConfig::names().contains(&id) || id == NON_FINITE
}
