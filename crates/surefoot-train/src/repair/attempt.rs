//! An attempt in progress.

use super::{AttemptResult, CHECK, Proposal, RepairRequest};
use crate::callback::{Callback, DiagnosisCallback, RecordCallback, RunContext, StopReason};
use crate::compute::Compute;
use crate::run::{TrainingResult, TrainingRun};
use std::sync::Arc;
use std::time::Instant;
use surefoot_diagnose::Block;
use surefoot_record::{Attempt, AttemptState};

/// Shares of its steps after which an attempt waits for the plan as given.
const SYNC_EVERY: f64 = 0.15;
/// Skill of an attempt that has learned something.
const SOME_SKILL: f64 = 0.2;
/// Ratio of recent to initial loss below which the loss is falling.
const FALLING: f64 = 0.85;

/// An attempt in progress.
pub(super) struct RunningAttempt<'a, B: Compute> {
    pub(super) proposal: Proposal,
    pub(super) attempt: Attempt,
    pub(super) run: TrainingRun<'a, B>,
    pub(super) record: Option<RecordCallback>,
    pub(super) diagnosis: DiagnosisCallback,
    pub(super) result: Option<TrainingResult>,
    pub(super) begun: Instant,
}

/// Returns true if the loss of the last quarter is clearly below that of the first.
fn is_falling(diagnosis: &DiagnosisCallback) -> bool {
    let blocks = diagnosis.diagnosis().curve().blocks();
    let quarter = (blocks.len() / 4).max(1);
    let mean = |part: &[Block]| part.iter().map(|b| b.loss).sum::<f64>() / part.len() as f64;
    let first = mean(&blocks[..quarter.min(blocks.len())]);
    let last = mean(&blocks[blocks.len().saturating_sub(quarter)..]);
    last < FALLING * first
}

pub(super) fn running_callbacks<'a>(
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
    pub(super) fn context(&mut self, request: &RepairRequest<'_>) -> RunContext {
        let dir = self.record.as_mut().map(|record| record.recorder().dir().to_owned());
        RunContext::new(Arc::clone(self.run.outline()))
            .attempt_number(self.proposal.number)
            .recorded_in(dir.as_deref())
            .stopped_by(request.signal)
    }

    pub(super) fn attempt_result(&self) -> AttemptResult {
        let diagnosis = self.diagnosis.diagnosis();
        AttemptResult {
            proposal: self.proposal.clone(),
            finding: self.diagnosis.problem().cloned(),
            facts: diagnosis.facts().clone(),
            skill: diagnosis.curve().recent_skill(4),
        }
    }

    /// Returns true if it cannot be trained further.
    pub(super) fn is_over(&self) -> bool {
        self.result.as_ref().is_some_and(|result| result.reason != StopReason::Paused)
    }

    pub(super) fn steps(&self) -> u64 {
        self.result.as_ref().map_or(0, |result| result.steps)
    }

    /// Share of its steps up to which it is trained next: the next place to wait for the plan as
    /// given, or to be checked, or its end.
    pub(super) fn next_stop(&self, alongside: bool) -> f64 {
        let done = self.steps() as f64 / self.run.steps().max(1) as f64;
        let stops = (-1..).map(|i| CHECK + f64::from(i) * SYNC_EVERY);
        let mut stops = stops.take_while(|stop| *stop < 1.0);
        let next = stops.find(|stop| *stop > done && (alongside || *stop == CHECK));
        next.unwrap_or(1.0)
    }

    /// Recent skill; negative infinity if unknown.
    pub(super) fn skill(&self) -> f64 {
        let skill = self.diagnosis.diagnosis().curve().recent_skill(4);
        skill.filter(|skill| !skill.is_nan()).unwrap_or(f64::NEG_INFINITY)
    }

    /// The state of an attempt that is not a repair.
    pub(super) fn state(&self) -> AttemptState {
        match self.diagnosis.problem() {
            None => AttemptState::NoBetter,
            Some(found) if found.problem == self.proposal.finding.problem => AttemptState::Persists,
            Some(_) => AttemptState::NewProblem,
        }
    }

    /// Returns true if the attempt has learned something or its loss is falling.
    pub(super) fn is_learning(&self) -> bool {
        let skill = self.diagnosis.diagnosis().curve().recent_skill(8);
        skill.is_none_or(|skill| skill >= SOME_SKILL) || is_falling(&self.diagnosis)
    }
}
