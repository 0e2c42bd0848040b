//! A data set ready to train on.

use surefoot_plan::Task;
use twox_hash::XxHash3_128;

use crate::preprocessing::Preprocessing;

/// Samples in three parts, cleaned and scaled.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// Training part.
    pub train: Part,
    /// Validation part, evaluated after each epoch.
    pub validation: Part,
    /// Test part, evaluated at the end.
    pub test: Part,
    /// The shape of one sample: channels last, no batch.
    pub input_shape: Vec<usize>,
    /// True if every feature is a whole number from 0 that an embedding can look up.
    ///
    /// This holds for sequences of symbols and for unscaled tables and arrays of small whole
    /// numbers. A model without an embedding uses the same features as amounts.
    pub integer_input: bool,
    /// Number of rows that an embedding needs if `integer_input`, otherwise 0.
    pub symbols: usize,
    /// Task, as stated or inferred.
    pub task: Task,
    /// The number of classes, or of the labels of a multi-label task; 0 for a regression.
    pub classes: usize,
    /// The names of the classes by their number, or of the labels; none for a regression.
    pub class_names: Vec<String>,
    /// The names of the features, where the source has names.
    pub feature_names: Vec<String>,
    /// Columns of the targets of a position: 1 for classes.
    pub target_width: usize,
    /// Positions of a sample that have a target each: the steps of a sequence, otherwise 1.
    pub positions: usize,
    /// Preparation of the features, to be repeated on new data.
    pub preprocessing: Preprocessing,
    /// XXH3-128 of the bytes of all features and targets: those of the training part, then
    /// validation, then test, features first, each number in little-endian order.
    pub digest: u128,
    /// Notes for the user: inferred facts, skipped data, suspicious values.
    pub notes: Vec<String>,
}

/// One part of a data set.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The features of all samples, one after the other, channels last.
    pub features: Vec<f32>,
    /// Targets, sample by sample.
    pub targets: Targets,
    /// Number of samples.
    pub len: usize,
    /// The number of each sample in its source, ascending.
    pub ids: Vec<u64>,
}

/// Targets of the samples.
#[derive(Clone, Debug, PartialEq)]
pub enum Targets {
    /// The class of each position of each sample.
    Classes(Vec<u32>),
    /// `target_width` numbers for each position of each sample.
    Values(Vec<f32>),
}

impl Targets {
    /// Targets of the samples `ids`, `width` numbers each.
    fn gather(&self, ids: &[u64], width: usize) -> Targets {
        match self {
            Targets::Classes(all) => Targets::Classes(gather(all, ids, width)),
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

/// Values of the samples `ids`, `width` values each.
pub(crate) fn gather<T: Copy>(all: &[T], ids: &[u64], width: usize) -> Vec<T> {
    let mut some = Vec::with_capacity(ids.len() * width);
    for &id in ids {
        some.extend_from_slice(&all[id as usize * width..][..width]);
    }
    some
}

/// The digest of parts in order.
pub(crate) fn digest(parts: [&Part; 3]) -> u128 {
    let mut hash = XxHash3_128::new();
    for part in parts {
        update(&mut hash, &part.features, f32::to_le_bytes);
        match &part.targets {
            Targets::Classes(ids) => update(&mut hash, ids, u32::to_le_bytes),
            Targets::Values(values) => update(&mut hash, values, f32::to_le_bytes),
        }
    }
    hash.finish_128()
}

fn update<T: Copy>(hash: &mut XxHash3_128, values: &[T], bytes: impl Fn(T) -> [u8; 4]) {
    let mut buffer = [0; 4096];
    for values in values.chunks(buffer.len() / 4) {
        for (place, &value) in buffer.as_chunks_mut::<4>().0.iter_mut().zip(values) {
            *place = bytes(value);
        }
        hash.write(&buffer[..values.len() * 4]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(digest(parts.each_ref()), XxHash3_128::oneshot(&bytes));
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
