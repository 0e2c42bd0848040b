//! Random search.

use super::{SampleRequest, Sampler};
use crate::space::Point;
use serde::{Deserialize, Serialize};

/// Draws every value uniformly from its domain, independently of other trials.
///
/// Draws are keyed by the parameter's index, so a value does not depend on which other parameters are
/// active.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Random {}

impl Sampler for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn learns(&self) -> bool {
        false
    }

    fn suggest(&self, request: &SampleRequest<'_>) -> Point {
        let key = request.key();
        let places = |index: usize| key.uniform(index as u64);
        request.space.at(places)
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
        let suggest = |seed, number| {
            Random {}.suggest(&SampleRequest { space: &space, seed, number, history: &history })
        };
        assert_ne!(suggest(1, 0), suggest(1, 1));
        assert_ne!(suggest(1, 0), suggest(2, 0));
    }
}
