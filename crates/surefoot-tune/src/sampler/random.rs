//! Random search: every trial is drawn by itself.

use super::{Question, Sampler};
use crate::space::Point;
use serde::{Deserialize, Serialize};

/// Draws every value evenly from its domain, whatever other trials did.
///
/// Each parameter has draws of its own, by its place in the space, so that a value does not depend
/// on which other parameters are there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Random {}

impl Sampler for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn ask(&self, question: &Question<'_>) -> Point {
        let key = question.key();
        let places = |index: usize| key.uniform(index as u64);
        question.space.at(places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::History;
    use crate::sampler::fixture;

    #[test]
    fn trials_and_seeds_differ() {
        let space = fixture::conditional();
        let history = History::default();
        let ask = |seed, number| {
            Random {}.ask(&Question { space: &space, seed, number, history: &history })
        };
        assert_ne!(ask(1, 0), ask(1, 1));
        assert_ne!(ask(1, 0), ask(2, 0));
    }
}
