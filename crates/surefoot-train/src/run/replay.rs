//! Repeats steps that were done before.

use super::{Progress, Run};
use crate::compute::Compute;
use surefoot_record::StepDigest;

impl<B: Compute> Run<'_, B> {
    /// How many steps are done.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// How many steps there are in all.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Does the steps up to `until`, and nothing else: layers are not watched and nothing is
    /// evaluated, neither of which changes a bit of the state. `look` sees the digest of each step,
    /// and says whether to go on.
    pub fn replay(&mut self, until: u64, mut look: impl FnMut(&Progress, &StepDigest) -> bool) {
        let watched = self.rhythm;
        self.rhythm.every = None;
        self.rhythm.quartiles = None;
        while self.step < until.min(self.steps) {
            let observation = self.execute();
            let progress = Progress {
                step: self.step,
                steps: self.steps,
                epoch: observation.epoch,
                epochs: self.plan.training.epochs,
                loss: observation.loss,
                metric: observation.metric,
            };
            self.layers = observation.layers;
            if !look(&progress, self.step_digest(observation.loss)) {
                break;
            }
        }
        self.rhythm = watched;
    }
}
