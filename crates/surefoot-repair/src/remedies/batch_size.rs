//! `batch_size` (S5): larger batches.

use crate::action::Action;
use crate::remedy::{Remedy, RemedyContext};

/// `batch_size` (S5): takes 32 samples a step, then twice as many, up to 256.
///
/// Larger batches mean fewer steps per epoch. The number of epochs grows with them, at most
/// fivefold, so that the run does not end early because of its remedy.
#[derive(Clone, Copy, Debug)]
pub struct BatchSize;

/// First and last batch size.
const FIRST: usize = 32;
const LAST: usize = 256;

impl Remedy for BatchSize {
    fn id(&self) -> &'static str {
        "batch_size"
    }

    fn title(&self) -> &'static str {
        "adjust the batch size"
    }

    fn propose(&self, context: &RemedyContext<'_>, variant: usize) -> Result<Vec<Action>, String> {
        let given = context.facts.batch_size.ok_or("the batch size is unknown")?.max(1);
        let start = if given < FIRST { FIRST } else { given * 2 };
        let size = start.saturating_mul(1 << variant.min(8));
        if size > LAST {
            return Err(format!("a batch has at most {LAST} samples"));
        }
        let factor = (size / given).clamp(1, 5) as u64;
        Ok(vec![Action::SetBatchSize(size), Action::ExtendTraining { factor }])
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, propose};
    use super::*;
    use surefoot_diagnose::{Facts, Problem};

    #[test]
    fn sizes_double_from_32_to_256() {
        let facts = Facts { batch_size: Some(2), ..facts() };
        let actions = propose(&BatchSize, Problem::OSCILLATING_LOSS, &facts);
        let sizes: Vec<&Action> = actions.iter().map(|actions| &actions[0]).collect();
        let all = [32, 64, 128, 256].map(Action::SetBatchSize);
        assert_eq!(sizes, all.iter().collect::<Vec<_>>());
        assert_eq!(actions[0][1], Action::ExtendTraining { factor: 5 });
    }
}
