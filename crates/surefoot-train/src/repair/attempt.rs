//! An attempt in progress.

use super::{standing, steps_at};
use crate::callback::{
    Callback, Callbacks, DiagnosisCallback, RecordCallback, RunContext, StopSignal,
};
use crate::compute::Compute;
use crate::error::TrainError;
use crate::run::{TrainingResult, TrainingRun};
use std::sync::Arc;
use std::time::Instant;
use surefoot_record::Attempt;
use surefoot_repair::Standing;

/// An attempt in progress.
pub(super) struct RunningAttempt<'a, B: Compute> {
    /// Ids of its remedies.
    pub(super) remedies: Vec<String>,
    pub(super) attempt: Attempt,
    pub(super) run: TrainingRun<'a, B>,
    pub(super) record: Option<RecordCallback>,
    pub(super) diagnosis: DiagnosisCallback,
    pub(super) result: Option<TrainingResult>,
    pub(super) begun: Instant,
}

impl<B: Compute> RunningAttempt<'_, B> {
    /// Trains up to a share of its steps.
    pub(super) fn train(
        &mut self,
        share: f64,
        callbacks: &mut [&mut dyn Callback],
        signal: &StopSignal,
    ) -> Result<(), TrainError> {
        let until = steps_at(share, self.run.steps());
        if until <= self.steps() {
            return Ok(());
        }
        let dir = self.record.as_mut().map(|record| record.recorder().dir().to_owned());
        let context = RunContext::new(Arc::clone(self.run.outline()))
            .attempt_number(self.attempt.number)
            .recorded_in(dir.as_deref())
            .stopped_by(signal);
        let mut list: Vec<&mut dyn Callback> = Vec::new();
        list.extend(self.record.as_mut().map(|record| record as &mut dyn Callback));
        list.push(&mut self.diagnosis);
        for callback in callbacks {
            list.push(&mut **callback);
        }
        self.result = Some(self.run.train_with(until, &mut Callbacks::new(list, context))?);
        Ok(())
    }

    fn steps(&self) -> u64 {
        self.result.as_ref().map_or(0, |result| result.steps)
    }

    /// Cost of its steps so far.
    pub(super) fn cost(&self) -> u64 {
        self.steps().saturating_mul(self.run.outline().step_cost())
    }

    pub(super) fn standing(&self) -> Standing {
        standing(self.result.as_ref(), self.run.steps(), self.diagnosis.diagnosis())
    }
}
