//! Writes a run to its record.

use super::{Callback, RunContext, Step, StopReason};
use crate::error::TrainError;
use crate::run::TrainingResult;
use surefoot_record::{Checkpoint, Event, Recorder, StepDigest};

/// Writes observations, digests, events and checkpoints to a run directory.
pub struct RecordCallback {
    recorder: Recorder,
    saves: bool,
}

impl RecordCallback {
    /// Writes to `recorder`.
    pub fn new(recorder: Recorder) -> Self {
        Self { recorder, saves: true }
    }

    /// Writes no more checkpoints, so that the run resumes at the last one.
    pub(crate) fn stop_saving(&mut self) {
        self.saves = false;
    }

    /// The recorder, to end the record with a summary.
    pub fn into_recorder(self) -> Recorder {
        self.recorder
    }

    pub(crate) fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }
}

impl Callback for RecordCallback {
    fn needs_state(&self) -> bool {
        true
    }

    fn on_step(&mut self, step: &Step<'_>, _: &mut RunContext) -> Result<(), TrainError> {
        self.recorder.observe(step.observation);
        Ok(())
    }

    fn on_digest(&mut self, digest: &StepDigest, _: &mut RunContext) -> Result<(), TrainError> {
        self.recorder.digest(digest);
        Ok(())
    }

    fn on_checkpoint(
        &mut self,
        checkpoint: &Checkpoint,
        _: &mut RunContext,
    ) -> Result<(), TrainError> {
        if self.saves {
            self.recorder.checkpoint(checkpoint)?;
        }
        Ok(())
    }

    fn on_event(&mut self, event: &Event, _: &mut RunContext) -> Result<(), TrainError> {
        Ok(self.recorder.event(event)?)
    }

    fn on_end(&mut self, result: &TrainingResult, _: &mut RunContext) -> Result<(), TrainError> {
        if result.reason == StopReason::Interrupted {
            self.recorder.event(&Event::Interrupted { step: result.steps })?;
        }
        Ok(self.recorder.sync()?)
    }
}
