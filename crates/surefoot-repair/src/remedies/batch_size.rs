//! `batch_size` (S5): batch size.

use crate::remedy::{Change, Remedy, RemedyContext};
use surefoot_plan::Plan;

/// `batch_size` (S5): takes 32 samples a step, then twice as many, up to 256.
///
/// Larger batches are fewer steps in an epoch; epochs are added for them, up to five times as many,
/// so that the run is not cut short by its own remedy.
#[derive(Clone, Copy, Debug)]
pub struct BatchSize;

/// The first size that is tried, and the last.
const FIRST: usize = 32;
const LAST: usize = 256;

impl Remedy for BatchSize {
    fn id(&self) -> &'static str {
        "batch_size"
    }

    fn title(&self) -> &'static str {
        "adjust the batch size"
    }

    fn apply(&self, plan: &Plan, _: &RemedyContext<'_>, variant: usize) -> Result<Change, String> {
        let given = plan.training.batch_size;
        let start = if given < FIRST { FIRST } else { given * 2 };
        let size = start.saturating_mul(1 << variant.min(8));
        if size > LAST {
            return Err(format!("a batch has at most {LAST} samples"));
        }
        let mut changed = plan.clone();
        changed.training.batch_size = size;
        let growth = (size / given).clamp(1, 5) as u64;
        changed.training.epochs = plan.training.epochs.saturating_mul(growth);
        let message = format!("Sets the batch size to {size} instead of {given}.");
        Change::new(plan, changed, message)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, finding, plan};
    use super::*;
    use surefoot_diagnose::Problem;

    #[test]
    fn sizes_double_from_32_to_256() {
        let (facts, finding) = (facts(), finding(Problem::OSCILLATING_LOSS));
        let context = RemedyContext { finding: &finding, facts: &facts };
        let mut small = plan();
        small.training.batch_size = 2;
        let sizes: Vec<usize> = (0..5)
            .filter_map(|variant| BatchSize.apply(&small, &context, variant).ok())
            .map(|change| change.plan.training.batch_size)
            .collect();
        assert_eq!(sizes, [32, 64, 128, 256]);
        let change = BatchSize.apply(&small, &context, 0).unwrap();
        assert_eq!(change.plan.training.epochs, 5 * small.training.epochs);
    }
}
