//! `batch_norm` (S1): add batch normalization.

use crate::action::Action;
use crate::remedy::{Remedy, RemedyContext};

/// `batch_norm` (S1): adds batch normalization before the activations of hidden layers (Ioffe and
/// Szegedy), and enlarges batches whose statistics would be noise.
#[derive(Clone, Copy, Debug)]
pub struct BatchNormalization;

/// Samples below which the statistics of a batch are noise.
const LEAST_BATCH: usize = 16;

impl Remedy for BatchNormalization {
    fn id(&self) -> &'static str {
        "batch_norm"
    }

    fn title(&self) -> &'static str {
        "add batch normalization"
    }

    fn propose(&self, context: &RemedyContext<'_>, variant: usize) -> Result<Vec<Action>, String> {
        if variant > 0 {
            return Err("batch normalization was tried".to_owned());
        }
        let mut actions = vec![Action::AddBatchNorm];
        if context.facts.batch_size.is_some_and(|size| size < LEAST_BATCH) {
            actions.push(Action::SetBatchSize(LEAST_BATCH));
        }
        Ok(actions)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, propose};
    use super::*;
    use surefoot_diagnose::{Facts, Problem};

    #[test]
    fn small_batches_grow() {
        let of = |size| {
            let facts = Facts { batch_size: Some(size), ..facts() };
            propose(&BatchNormalization, Problem::DYING_RELU, &facts)
        };
        assert_eq!(of(4), [[Action::AddBatchNorm, Action::SetBatchSize(16)]]);
        assert_eq!(of(32), [[Action::AddBatchNorm]]);
    }
}
