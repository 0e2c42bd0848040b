//! Samples as read from a source, before the task is determined.

use crate::dataset::gather;
use crate::error::{DataError, Origin};
use crate::memory::available_memory;
use crate::preprocessing::Column;
use crate::table::Names;

/// Everything a source has, in its own order.
#[derive(Debug)]
pub(crate) struct Samples {
    /// Source of the features.
    pub(crate) origin: Origin,
    /// Source of the labels; often the same.
    pub(crate) label_origin: Origin,
    /// The shape of one sample, channels last.
    pub(crate) shape: Vec<usize>,
    /// The features of all samples, one after the other; NaN where one is missing.
    pub(crate) features: Vec<f32>,
    /// Feature columns, where the source has names.
    pub(crate) columns: Vec<Column>,
    /// Names of the label columns, where the source has names.
    pub(crate) label_columns: Vec<String>,
    /// Meaning of the numbers in `features`.
    pub(crate) measure: Measure,
    /// Labels, one per sample.
    pub(crate) labels: Labels,
    /// Positions of a sample that have a label each: the steps of a sequence, otherwise 1.
    pub(crate) positions: usize,
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
}

impl Samples {
    /// Number of samples.
    pub(crate) fn len(&self) -> usize {
        self.labels.len()
    }

    /// Returns the samples without missing values, and their original numbers.
    pub(crate) fn complete(mut self) -> (Samples, Vec<u64>) {
        let count = self.len();
        let width = self.shape.iter().product();
        let whole = |&id: &u64| {
            let features = &self.features[id as usize * width..][..width];
            features.iter().all(|value| value.is_finite()) && !self.labels.lack(id as usize)
        };
        let kept: Vec<u64> = (0..count as u64).filter(whole).collect();
        let dropped = count - kept.len();
        if dropped > 0 {
            self.notes.push(format!(
                "samples of {} left out because a value is missing: {dropped} of {count}",
                self.origin
            ));
            self.features = gather(&self.features, &kept, width);
            self.labels = self.labels.gather(&kept);
            for origin in [&mut self.origin, &mut self.label_origin] {
                *origin = Origin::Complete { of: Box::new(origin.clone()), dropped };
            }
        }
        (self, kept)
    }
}

/// Meaning of the features' numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Amounts.
    Amounts,
    /// Whole numbers from 0 that can be amounts as well as the numbers of symbols.
    Whole,
    /// Numbers of symbols.
    Symbols,
}

/// Labels, before the task is determined.
#[derive(Debug)]
pub(crate) enum Labels {
    /// Classes by name.
    Classes {
        /// The class of each sample.
        ids: Vec<u32>,
        /// The names of the classes; that of a missing label is empty.
        names: Vec<String>,
    },
    /// Numbers that are amounts or classes.
    Numbers {
        /// `width` numbers a sample; NaN where one is missing.
        values: Vec<f64>,
        /// Numbers per sample.
        width: usize,
        /// Notation of the numbers in the source.
        form: Form,
    },
}

impl Labels {
    pub(crate) fn len(&self) -> usize {
        match self {
            Labels::Classes { ids, .. } => ids.len(),
            Labels::Numbers { values, width, .. } => values.len() / width,
        }
    }

    /// Returns true if a sample's label is missing.
    fn lack(&self, sample: usize) -> bool {
        match self {
            Labels::Classes { ids, names } => names[ids[sample] as usize].is_empty(),
            Labels::Numbers { values, width, .. } => {
                let label = &values[sample * width..][..*width];
                label.iter().any(|value| value.is_nan())
            }
        }
    }

    /// The labels of some samples, as if there had never been others.
    fn gather(&self, kept: &[u64]) -> Labels {
        match self {
            Labels::Classes { ids, names } => {
                let mut some = Names::default();
                for &sample in kept {
                    some.push(&names[ids[sample as usize] as usize]);
                }
                some.labels()
            }
            Labels::Numbers { values, width, form } => {
                Labels::Numbers { values: gather(values, kept, *width), width: *width, form: *form }
            }
        }
    }
}

/// Notation of numeric labels, a hint at the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A generator's amounts.
    Amounts,
    /// The column of a table.
    Column,
    /// An array of whole numbers.
    Integers,
    /// An array of floating-point numbers.
    Floats,
}

/// Allocates memory for the features of `samples`. An error if it is not available.
pub(crate) fn room<T>(origin: &Origin, samples: usize, width: usize) -> Result<Vec<T>, DataError> {
    let size = [samples, width, size_of::<T>()];
    let needed = size.iter().fold(1_u64, |size, &factor| size.saturating_mul(factor as u64));
    check_memory(origin, needed)?;
    let mut room = Vec::new();
    let available = room.try_reserve_exact(samples * width).is_ok();
    match available {
        true => Ok(room),
        false => Err(DataError::too_large(origin, needed, 0)),
    }
}

/// An error if `needed` bytes are more than are available.
pub(crate) fn check_memory(origin: &Origin, needed: u64) -> Result<(), DataError> {
    let available = available_memory();
    match needed > available {
        true => Err(DataError::too_large(origin, needed, available)),
        false => Ok(()),
    }
}
