//! Where a run writes what happens.

use surefoot_diagnose::{Evaluation, Observation};
use surefoot_record::{Checkpoint, Event, Recorder, Result, StepDigest};

/// Takes down what happens in a run: a [`Recorder`], or [`Unrecorded`].
pub trait Journal {
    /// Whether digests are wanted; they cost a pass over the parameters and the optimizer's memory.
    fn wants_digests(&self) -> bool;

    /// A step was observed.
    fn observe(&mut self, observation: &Observation);

    /// The digest of the state after a step, and before the first.
    fn digest(&mut self, step: &StepDigest);

    /// Something happened.
    fn event(&mut self, event: &Event) -> Result<()>;

    /// A split was evaluated.
    fn evaluation(&mut self, evaluation: &Evaluation) -> Result<()>;

    /// The state to go on from.
    fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<()>;

    /// Makes everything so far durable.
    fn sync(&mut self) -> Result<()>;

    /// What it was taken down with, to end the record; none if there is no record.
    fn into_recorder(self: Box<Self>) -> Option<Recorder> {
        None
    }
}

impl Journal for Recorder {
    fn wants_digests(&self) -> bool {
        true
    }

    fn observe(&mut self, observation: &Observation) {
        Recorder::observe(self, observation);
    }

    fn digest(&mut self, step: &StepDigest) {
        Recorder::digest(self, step);
    }

    fn event(&mut self, event: &Event) -> Result<()> {
        Recorder::event(self, event)
    }

    fn evaluation(&mut self, evaluation: &Evaluation) -> Result<()> {
        Recorder::evaluation(self, evaluation)
    }

    fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        Recorder::checkpoint(self, checkpoint).map(|_| ())
    }

    fn sync(&mut self) -> Result<()> {
        Recorder::sync(self)
    }

    fn into_recorder(self: Box<Self>) -> Option<Recorder> {
        Some(*self)
    }
}

/// The journal of a run that leaves nothing behind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unrecorded;

impl Journal for Unrecorded {
    fn wants_digests(&self) -> bool {
        false
    }

    fn observe(&mut self, _: &Observation) {}

    fn digest(&mut self, _: &StepDigest) {}

    fn event(&mut self, _: &Event) -> Result<()> {
        Ok(())
    }

    fn evaluation(&mut self, _: &Evaluation) -> Result<()> {
        Ok(())
    }

    fn checkpoint(&mut self, _: &Checkpoint) -> Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }
}
