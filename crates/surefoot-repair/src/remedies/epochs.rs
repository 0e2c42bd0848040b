//! `epochs`: train longer.

use crate::action::Action;
use crate::remedy::{Remedy, RemedyContext};

/// `epochs`: five times as many epochs, then twenty times, for runs that end while they still learn. Our
/// own: AutoTrainer has no answer to a training that is too short.
#[derive(Clone, Copy, Debug)]
pub struct MoreEpochs;

/// Steps of a training that is long enough.
const ENOUGH: u64 = 20_000;

impl Remedy for MoreEpochs {
    fn id(&self) -> &'static str {
        "epochs"
    }

    fn title(&self) -> &'static str {
        "train longer"
    }

    fn propose(&self, context: &RemedyContext<'_>, variant: usize) -> Result<Vec<Action>, String> {
        let factor = *[5, 20].get(variant).ok_or("longer trainings were tried")?;
        if context.facts.total_steps().is_none_or(|steps| steps * factor > ENOUGH) {
            return Err("the training is long enough".to_owned());
        }
        Ok(vec![Action::ExtendTraining { factor }])
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, propose};
    use super::*;
    use surefoot_diagnose::{Facts, Problem};

    #[test]
    fn only_short_trainings_are_extended() {
        let of = |epochs| {
            let facts = Facts { epochs: Some(epochs), steps_per_epoch: Some(10), ..facts() };
            propose(&MoreEpochs, Problem::SLOW_CONVERGENCE, &facts).len()
        };
        assert_eq!([of(5), of(300), of(1000)], [2, 1, 0]);
    }
}
