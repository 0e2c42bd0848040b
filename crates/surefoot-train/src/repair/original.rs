//! The plan as given, while its repair is searched for.

use super::standing;
use crate::callback::{Callback, Callbacks, DiagnosisCallback, RecordCallback, RunContext};
use crate::compute::Compute;
use crate::error::TrainError;
use crate::run::{TrainingResult, TrainingRun};
use surefoot_diagnose::Diagnosis;
use surefoot_repair::Standing;

/// The plan as given, while its repair is searched for.
pub(crate) struct Original<'a, 'd, B: Compute> {
    pub(crate) run: TrainingRun<'a, B>,
    pub(crate) diagnosis: &'d mut DiagnosisCallback,
    pub(crate) result: TrainingResult,
    /// True once it was given up because it cannot reach what an attempt has learned.
    pub(crate) given_up: bool,
}

/// Skill without a repair from which on a likely problem did no harm.
const UNHARMED: f64 = 0.8;

impl<B: Compute> Original<'_, '_, B> {
    /// Trains to step `until`.
    pub(super) fn train(
        &mut self,
        until: u64,
        record: Option<&mut RecordCallback>,
        callbacks: &mut [&mut dyn Callback],
        context: RunContext,
    ) -> Result<(), TrainError> {
        if until <= self.result.steps {
            return Ok(());
        }
        let mut list: Vec<&mut dyn Callback> = Vec::new();
        list.extend(record.map(|record| record as &mut dyn Callback));
        list.push(&mut *self.diagnosis);
        for callback in callbacks {
            list.push(&mut **callback);
        }
        self.result = self.run.train_with(until, &mut Callbacks::new(list, context))?;
        Ok(())
    }

    /// Cost of its steps so far.
    pub(super) fn cost(&self) -> u64 {
        self.result.steps.saturating_mul(self.run.outline().step_cost())
    }

    pub(super) fn standing(&self) -> Standing {
        standing(Some(&self.result), self.run.steps(), self.diagnosis.diagnosis())
    }
}

/// Returns true if a plan with nothing but likely problems has learned so well that they did no harm.
/// `samples` is the number of validation samples.
pub(crate) fn is_unharmed(result: &TrainingResult, diagnosis: &Diagnosis, samples: usize) -> bool {
    standing(Some(result), result.steps, diagnosis).has_ended_well(UNHARMED, samples)
}
