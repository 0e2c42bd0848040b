//! Quasi-random search with a Sobol sequence.

use super::{SampleRequest, Sampler};
use crate::space::{Point, Space};
use serde::{Deserialize, Serialize};
use surefoot_random::{Key, Purpose};

/// Takes the points of a Sobol sequence scrambled by the seed (Burley, *Practical Hash-based Owen
/// Scrambling*, 2020), independently of other trials.
///
/// Every parameter has its own dimension, active or not. The sequence has 256 dimensions and 65,536
/// points; parameters and trials beyond that reuse it with another scrambling.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sobol {}

impl Sampler for Sobol {
    fn name(&self) -> &'static str {
        "sobol"
    }

    fn learns(&self) -> bool {
        false
    }

    fn suggest(&self, request: &SampleRequest<'_>) -> Point {
        point(request.space, request.seed, request.number)
    }
}

/// Point `number` of the sequence of a seed.
pub(crate) fn point(space: &Space, seed: u64, number: u64) -> Point {
    space.at(|dimension| place(seed, number, dimension as u64))
}

/// Coordinate of a point in one dimension, from 0 to 1.
pub(crate) fn place(seed: u64, number: u64, dimension: u64) -> f64 {
    const POINTS: u64 = 1 << 16;
    const DIMENSIONS: u64 = sobol_burley::NUM_DIMENSIONS as u64;
    let scrambling = Key::new(seed, Purpose::Sample)
        .epoch(number / POINTS)
        .sample(dimension / DIMENSIONS)
        .site(SCRAMBLING);
    sobol_burley::sample(
        (number % POINTS) as u32,
        (dimension % DIMENSIONS) as u32,
        scrambling.word(0),
    )
    .into()
}

/// Separates the scrambling key from the keys of trials.
const SCRAMBLING: u64 = 0x50b0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of 64 equal boxes of any shape contains one of 64 points in two dimensions.
    #[test]
    fn points_are_spread_evenly() {
        for seed in 0..4 {
            for columns in [1, 2, 4, 8, 16, 32, 64] {
                let rows = 64 / columns;
                let mut boxes = vec![0; 64];
                for number in 0..64 {
                    let [x, y] = [0, 1].map(|dimension| place(seed, number, dimension));
                    let column = (x * f64::from(columns)) as usize;
                    let row = (y * f64::from(rows)) as usize;
                    boxes[row * columns as usize + column] += 1;
                }
                assert!(boxes.iter().all(|&n| n == 1), "{columns} columns: {boxes:?}");
            }
        }
    }

    #[test]
    fn points_and_dimensions_beyond_the_sequence_are_valid() {
        let places = [(1 << 16, 0), (1 << 20, 7), (3, 256), (3, 1000)]
            .map(|(number, dimension)| place(1, number, dimension));
        assert!(places.iter().all(|place| (0.0..1.0).contains(place)));
        assert_ne!(place(1, 3, 0), place(1, 3, 256));
        assert_ne!(place(1, 0, 0), place(1, 1 << 16, 0));
    }
}
