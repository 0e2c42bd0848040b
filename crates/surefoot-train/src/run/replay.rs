//! Repeats recorded steps.

use super::{Progress, TrainingRun};
use crate::compute::Compute;
use surefoot_record::StepDigest;

impl<B: Compute> TrainingRun<'_, B> {
    /// Steps done.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Total steps.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Repeats the steps up to `until` without observing layers or evaluating the model, neither of
    /// which changes the state. `check` receives the digest of each step and returns false to stop.
    pub fn replay(&mut self, until: u64, mut check: impl FnMut(&Progress, &StepDigest) -> bool) {
        let schedule = self.schedule;
        self.schedule.every = None;
        self.schedule.quartiles = None;
        while self.step < until.min(self.steps) {
            let observation = self.execute();
            let progress = self.progress(&observation);
            self.layers = observation.layers;
            if !check(&progress, self.step_digest(observation.loss)) {
                break;
            }
        }
        self.schedule = schedule;
    }
}
