//! Keys: what a random number is drawn from.

use crate::philox::Stream;

/// Purpose of a random number.
///
/// Each purpose has a fixed number that enters every draw. Numbers are never changed or reassigned,
/// because recorded runs are replayed with them; a new purpose uses the next free number, up to
/// 255.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Purpose {
    /// The first values of a model's parameters.
    Initialize = 1,
    /// The order in which samples are visited.
    Shuffle = 2,
    /// Which samples are for training, which for validation and which for test.
    Split = 3,
    /// Which units a dropout layer keeps.
    Dropout = 4,
    /// Noise added to data or activations, and other augmentation.
    Noise = 5,
    /// Data that is made up rather than read.
    Generate = 6,
    /// Which part of a larger set is looked at.
    Subset = 7,
    /// The values a hyperparameter search tries.
    Sample = 8,
    /// Seeds of the generators of a Python script.
    Script = 9,
}

/// The name of a sequence of random numbers: (seed, purpose, epoch, sample, site).
///
/// A key is plain data of 40 bytes. Two keys are equal when their parts are, whatever the order in
/// which these were set, and a part that is not set is zero. Set as many as make the draw unique:
/// the weights of a layer need a seed, a purpose and a site; a dropout mask needs all five.
///
/// ```
/// use surefoot_random::{Key, Purpose};
///
/// let layer = Key::new(42, Purpose::Dropout).site(2);
/// let (a, b) = (layer.epoch(1).sample(0), layer.epoch(1).sample(1));
/// assert_ne!(a.u64(0), b.u64(0));
/// assert_eq!(a.u64(0), Key::new(42, Purpose::Dropout).epoch(1).site(2).u64(0));
/// ```
///
/// # One key, one kind of draw
///
/// All draws of one key read the same words: `key.word(0)` is part of `key.u64(0)`, which is where
/// `key.normal(0)` comes from. Numbers that ought to be independent have different indices of the
/// same kind of draw, or different keys; give a second quantity a site of its own.
///
/// # Why keys do not collide
///
/// The five parts are folded by two Philox blocks into the 128 bits that name a stream of 2⁶⁴
/// blocks: first (epoch and purpose, site) under the seed, then the result under the sample. Two
/// streams with different names never evaluate Philox at the same point, so keys can share numbers
/// only if they share a name.
///
/// * Within a seed and a sample they cannot. Philox under a given key is a bijection, and so is the
///   composition of two, so different (purpose, epoch, site) have different names, as long as
///   epochs are below 2⁵⁶: an epoch gives its upper eight bits to the purpose.
/// * Across seeds and samples a name is 128 bits that Philox has scrambled, so two keys share one
///   with probability 2⁻¹²⁸ and any two of *k* keys with probability below *k*² / 2¹²⁹. That is
///   2⁻⁴⁹ for a run of 2⁴⁰ keys, which is a mask for each of a million samples at each of a
///   hundred layers for ten thousand epochs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[must_use]
pub struct Key {
    seed: u64,
    purpose: Purpose,
    epoch: u64,
    sample: u64,
    site: u64,
}

impl Key {
    /// The key of a seed and a purpose, with epoch, sample and site zero.
    #[inline]
    pub const fn new(seed: u64, purpose: Purpose) -> Key {
        Key { seed, purpose, epoch: 0, sample: 0, site: 0 }
    }

    /// This key in another epoch (or at another step, where draws belong to steps).
    ///
    /// Epochs count modulo 2⁵⁶ in what is drawn.
    #[inline]
    pub const fn epoch(self, epoch: u64) -> Key {
        Key { epoch, ..self }
    }

    /// This key for another sample, by its number in the data and not in the batch: the draws of a
    /// sample must not depend on how batches are cut.
    #[inline]
    pub const fn sample(self, sample: u64) -> Key {
        Key { sample, ..self }
    }

    /// This key at another place in the model or the program, such as a layer.
    #[inline]
    pub const fn site(self, site: u64) -> Key {
        Key { site, ..self }
    }

    /// The stream this key names; two Philox blocks.
    pub(crate) fn stream(self) -> Stream {
        let scope = u64::from(self.purpose as u8) << 56 | self.epoch & (u64::MAX >> 8);
        Stream::root(self.seed, [scope, self.site]).child(self.sample)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn purposes_keep_their_numbers() {
        let numbers = [
            (Purpose::Initialize, 1),
            (Purpose::Shuffle, 2),
            (Purpose::Split, 3),
            (Purpose::Dropout, 4),
            (Purpose::Noise, 5),
            (Purpose::Generate, 6),
            (Purpose::Subset, 7),
            (Purpose::Sample, 8),
            (Purpose::Script, 9),
        ];
        for (purpose, number) in numbers {
            assert_eq!(purpose as u8, number);
        }
    }

    #[test]
    fn the_order_of_setting_parts_does_not_matter() {
        let key = Key::new(1, Purpose::Dropout);
        assert_eq!(key.epoch(2).sample(3).site(4), key.site(4).sample(3).epoch(2));
        assert_eq!(key.epoch(9).epoch(2), key.epoch(2));
    }

    #[test]
    fn every_part_changes_the_stream() {
        let parts = [0, 1, 2, u64::from(u32::MAX), 1 << 32, (1 << 56) - 1];
        let purposes = [Purpose::Initialize, Purpose::Dropout];
        let mut streams = HashSet::new();
        let mut keys = 0;
        for seed in parts {
            for purpose in purposes {
                for epoch in parts {
                    for sample in parts {
                        for site in parts {
                            let key = Key::new(seed, purpose).epoch(epoch);
                            streams.insert(key.sample(sample).site(site).stream().block(0));
                            keys += 1;
                        }
                    }
                }
            }
        }
        assert_eq!(streams.len(), keys);
    }

    #[test]
    fn an_epoch_does_not_reach_into_the_purpose() {
        let key = Key::new(1, Purpose::Initialize);
        assert_eq!(key.epoch(3 << 56 | 5).stream(), key.epoch(5).stream());
    }
}
