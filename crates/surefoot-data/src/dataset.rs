//! A data set ready to train on.

use surefoot_plan::Task;
use xxhash_rust::xxh3::Xxh3;

use crate::scale::Scaling;

/// Samples in three parts, cleaned and scaled.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// What the model learns from.
    pub train: Part,
    /// What it is judged by after each epoch.
    pub validation: Part,
    /// What is kept for the end.
    pub test: Part,
    /// The shape of one sample: channels last, no batch.
    pub input_shape: Vec<usize>,
    /// Whether every feature is a whole number from 0 that can be looked up in an embedding.
    ///
    /// Sequences of symbols are, and so are unscaled tables and arrays of small whole numbers. A
    /// model without an embedding takes the same features as amounts.
    pub integer_input: bool,
    /// One more than the largest feature if `integer_input`, else 0: an embedding needs at least
    /// so many rows.
    pub symbols: usize,
    /// What is to be learnt, as stated or inferred.
    pub task: Task,
    /// The number of classes, 0 for a regression.
    pub classes: usize,
    /// The names of the classes by their number, none for a regression.
    pub class_names: Vec<String>,
    /// The names of the features, where the source has names.
    pub feature_names: Vec<String>,
    /// Columns of the targets: 1 for classes.
    pub target_width: usize,
    /// How the features were scaled, if they were.
    pub scaling: Option<Scaling>,
    /// XXH3-128 of the bytes of all features and targets: those of the training part, then
    /// validation, then test, features first, each number in little-endian order.
    pub digest: u128,
    /// What a person should know: what was inferred, what was left out, what looks odd.
    pub notes: Vec<String>,
}

/// One part of a data set.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The features of all samples, one after the other, channels last.
    pub features: Vec<f32>,
    /// What is to be learnt, sample by sample.
    pub targets: Targets,
    /// How many samples there are.
    pub len: usize,
    /// The number of each sample in its source, ascending.
    pub ids: Vec<u64>,
}

/// What is to be learnt.
#[derive(Clone, Debug, PartialEq)]
pub enum Targets {
    /// The class of each sample.
    Classes(Vec<u32>),
    /// `target_width` numbers a sample.
    Values(Vec<f32>),
}

impl Targets {
    /// The targets of some samples, each of so many numbers.
    fn gather(&self, ids: &[u64], width: usize) -> Targets {
        match self {
            Targets::Classes(all) => Targets::Classes(gather(all, ids, 1)),
            Targets::Values(all) => Targets::Values(gather(all, ids, width)),
        }
    }
}

impl Part {
    /// The part of some samples.
    pub(crate) fn gather(
        features: &[f32],
        width: usize,
        targets: &Targets,
        target_width: usize,
        ids: Vec<u64>,
    ) -> Part {
        Part {
            features: gather(features, &ids, width),
            targets: targets.gather(&ids, target_width),
            len: ids.len(),
            ids,
        }
    }
}

/// What belongs to some samples, `width` values each.
pub(crate) fn gather<T: Copy>(all: &[T], ids: &[u64], width: usize) -> Vec<T> {
    let mut some = Vec::with_capacity(ids.len() * width);
    for &id in ids {
        some.extend_from_slice(&all[id as usize * width..][..width]);
    }
    some
}

/// The digest of parts in order.
pub(crate) fn digest(parts: [&Part; 3]) -> u128 {
    let mut hash = Xxh3::new();
    for part in parts {
        update(&mut hash, &part.features, f32::to_le_bytes);
        match &part.targets {
            Targets::Classes(ids) => update(&mut hash, ids, u32::to_le_bytes),
            Targets::Values(values) => update(&mut hash, values, f32::to_le_bytes),
        }
    }
    hash.digest128()
}

fn update<T: Copy>(hash: &mut Xxh3, values: &[T], bytes: impl Fn(T) -> [u8; 4]) {
    let mut buffer = [0; 4096];
    for values in values.chunks(buffer.len() / 4) {
        for (place, &value) in buffer.as_chunks_mut::<4>().0.iter_mut().zip(values) {
            *place = bytes(value);
        }
        hash.update(&buffer[..values.len() * 4]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xxhash_rust::xxh3::xxh3_128;

    #[test]
    fn the_digest_is_that_of_the_bytes_in_order() {
        let features: Vec<f32> = (0..6000).map(|i| i as f32).collect();
        let targets = Targets::Classes((0..3000).collect());
        let ids = [0..2000, 2000..2600, 2600..3000];
        let parts = ids.map(|ids| Part::gather(&features, 2, &targets, 1, ids.collect()));
        let mut bytes = Vec::new();
        for part in &parts {
            bytes.extend(part.features.iter().flat_map(|x| x.to_le_bytes()));
            if let Targets::Classes(ids) = &part.targets {
                bytes.extend(ids.iter().flat_map(|x| x.to_le_bytes()));
            }
        }
        assert_eq!(digest(parts.each_ref()), xxh3_128(&bytes));
    }

    #[test]
    fn a_part_has_the_features_and_targets_of_its_samples() {
        let targets = Targets::Values(vec![0.0, 0.5, 1.0, 1.5, 2.0, 2.5]);
        let part = Part::gather(&[0.0, 1.0, 2.0], 1, &targets, 2, vec![0, 2]);
        assert_eq!(part.features, [0.0, 2.0]);
        assert_eq!(part.targets, Targets::Values(vec![0.0, 0.5, 2.0, 2.5]));
        assert_eq!(part.len, 2);
    }
}
