//! Memory that a training needs, estimated before anything is allocated.

use crate::error::TrainError;
use crate::optimizer::slots;
use surefoot_data::{Dataset, available_memory};
use surefoot_plan::{LayerShape, Plan};

/// Estimated memory of a training in bytes. Sums saturate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryNeeds {
    /// The data set, which is loaded already.
    pub data: u64,
    /// Parameters, their best values so far, their gradients and the state of the optimizer.
    pub model: u64,
    /// Outputs of all layers for a batch, and their gradients.
    pub activations: u64,
}

impl MemoryNeeds {
    /// Estimates the needs of `plan` with layers of these `shapes`.
    pub(crate) fn of(plan: &Plan, shapes: &[LayerShape], data: &Dataset) -> Self {
        const VALUE: u64 = size_of::<f32>() as u64;
        let product = |shape: &[usize]| {
            shape.iter().fold(1, |product: u64, &size| product.saturating_mul(size as u64))
        };
        let sum = |parts: &mut dyn Iterator<Item = u64>| parts.fold(0, u64::saturating_add);
        let parameters = sum(&mut shapes.iter().map(|shape| shape.parameters as u64));
        let outputs = sum(&mut shapes.iter().map(|shape| product(&shape.output)));
        let batch = plan.training.batch_size.min(data.train.len.max(1)) as u64;
        let samples = [&data.train, &data.validation, &data.test].map(|part| part.len as u64);
        let width = product(&data.input_shape).saturating_add(data.target_width as u64);
        // Values, best values, gradients of a shard, their sum.
        let copies = 4 + slots(plan.training.optimizer.algorithm) as u64;
        Self {
            data: sum(&mut samples.into_iter()).saturating_mul(width).saturating_mul(VALUE),
            model: parameters.saturating_mul(copies).saturating_mul(VALUE),
            activations: outputs.saturating_mul(batch).saturating_mul(2).saturating_mul(VALUE),
        }
    }

    /// All bytes together.
    pub fn total(&self) -> u64 {
        self.data.saturating_add(self.model).saturating_add(self.activations)
    }

    /// An error if the model is larger than any address space, where sizes would overflow.
    pub(crate) fn check_size(&self) -> Result<(), TrainError> {
        let needed = self.total();
        match needed > isize::MAX as u64 {
            true => Err(TrainError::TooLarge { needed, available: available_memory() }),
            false => Ok(()),
        }
    }

    /// An error if the model and its activations need more than the available memory.
    pub fn check(&self) -> Result<(), TrainError> {
        let (needed, available) = (self.model.saturating_add(self.activations), available_memory());
        match needed > available {
            true => Err(TrainError::TooLarge { needed, available }),
            false => Ok(()),
        }
    }
}
