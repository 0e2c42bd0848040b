//! Arrays of numbers as NumPy and IDX files store them.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use surefoot_plan::Missing;

use crate::error::{DataError, Origin, Place, Position};
use crate::missing::Gaps;
use crate::samples::{Form, Labels, Measure, Samples, check_memory, room};

/// The kind of an array's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F32,
    F64,
}

impl Number {
    /// Bytes of a number.
    pub(crate) fn size(self) -> usize {
        match self {
            Number::Bool | Number::U8 | Number::I8 => 1,
            Number::U16 | Number::I16 => 2,
            Number::U32 | Number::I32 | Number::F32 => 4,
            Number::U64 | Number::I64 | Number::F64 => 8,
        }
    }

    fn is_float(self) -> bool {
        matches!(self, Number::F32 | Number::F64)
    }
}

/// An array in the order of C: the last index runs fastest.
#[derive(Debug)]
pub(crate) struct Array {
    /// The file, or an array within a file, as messages name it.
    pub(crate) file: PathBuf,
    pub(crate) number: Number,
    pub(crate) big_endian: bool,
    /// At least one dimension, none of them 0.
    pub(crate) shape: Vec<usize>,
    /// Exactly as many bytes as the shape needs.
    pub(crate) bytes: Vec<u8>,
}

impl Array {
    /// Reads the numbers that follow a header.
    ///
    /// Nothing is allocated on the header's word: memory grows with what the file really holds.
    pub(crate) fn read(
        mut reader: impl Read,
        file: &Path,
        format: &'static str,
        number: Number,
        big_endian: bool,
        shape: Vec<usize>,
    ) -> Result<Array, DataError> {
        let malformed = |what: String| DataError::malformed(file, format, what);
        if shape.is_empty() {
            return Err(malformed("it holds a single number and not samples".into()));
        }
        if shape.contains(&0) {
            return Err(DataError::empty(file.display()));
        }
        let need = shape
            .iter()
            .try_fold(number.size(), |size, &length| size.checked_mul(length))
            .ok_or_else(|| malformed(format!("its header claims a shape of {shape:?}")))?;
        // Compressed files can hold far more than their size.
        check_memory(&Origin::File(file.to_owned()), need as u64)?;
        let mut bytes = Vec::new();
        reader
            .by_ref()
            .take(need as u64)
            .read_to_end(&mut bytes)
            .map_err(|error| damaged(file, format, error))?;
        if bytes.len() < need {
            return Err(malformed(format!(
                "it is cut short, with {} of the {need} bytes that a shape of {shape:?} needs",
                bytes.len()
            )));
        }
        // A compressed file is checked against its checksum when its end is read.
        reader.read(&mut [0]).map_err(|error| damaged(file, format, error))?;
        Ok(Array { file: file.to_owned(), number, big_endian, shape, bytes })
    }

    /// Brings an array that was stored in the order of Fortran into that of C.
    pub(crate) fn transposed(mut self) -> Array {
        let size = self.number.size();
        let mut bytes = Vec::with_capacity(self.bytes.len());
        let strides: Vec<usize> = self
            .shape
            .iter()
            .scan(size, |stride, &length| {
                let this = *stride;
                *stride *= length;
                Some(this)
            })
            .collect();
        let mut index = vec![0; self.shape.len()];
        for _ in 0..self.bytes.len() / size {
            let from: usize = index.iter().zip(&strides).map(|(i, stride)| i * stride).sum();
            bytes.extend_from_slice(&self.bytes[from..from + size]);
            for (i, length) in index.iter_mut().zip(&self.shape).rev() {
                *i += 1;
                if *i < *length {
                    break;
                }
                *i = 0;
            }
        }
        self.bytes = bytes;
        self
    }

    /// The numbers, each converted and then checked to be one that a model can compute with.
    pub(crate) fn numbers<T>(
        &self,
        gaps: Gaps,
        convert: impl Fn(f64) -> T,
    ) -> Result<Vec<T>, DataError> {
        let count = self.bytes.len() / self.number.size();
        let mut numbers = room(&Origin::File(self.file.clone()), count, 1)?;
        let big = self.big_endian;
        macro_rules! decode {
            ($type:ty) => {
                for &bytes in self.bytes.as_chunks::<{ size_of::<$type>() }>().0 {
                    let number = if big {
                        <$type>::from_be_bytes(bytes)
                    } else {
                        <$type>::from_le_bytes(bytes)
                    };
                    let number = number as f64;
                    let number = gaps.check(number, number, || self.place(numbers.len()))?;
                    numbers.push(convert(number));
                }
            };
        }
        match self.number {
            Number::Bool | Number::U8 => decode!(u8),
            Number::I8 => decode!(i8),
            Number::U16 => decode!(u16),
            Number::I16 => decode!(i16),
            Number::U32 => decode!(u32),
            Number::I32 => decode!(i32),
            Number::U64 => decode!(u64),
            Number::I64 => decode!(i64),
            Number::F32 => decode!(f32),
            Number::F64 => decode!(f64),
        }
        Ok(numbers)
    }

    fn place(&self, at: usize) -> Box<Place> {
        let mut rest = at;
        let mut index: Vec<usize> = self
            .shape
            .iter()
            .rev()
            .map(|&length| {
                let i = rest % length;
                rest /= length;
                i
            })
            .collect();
        let sample = index.pop().unwrap_or_default();
        index.reverse();
        Box::new(Place { file: self.file.clone(), position: Position::Element { sample, index } })
    }
}

/// The samples of an array of features and one of labels, samples first.
pub(crate) fn paired(
    features: Array,
    labels: Array,
    missing: Missing,
) -> Result<Samples, DataError> {
    let count = features.shape[0];
    if count != labels.shape[0] {
        return Err(DataError::new(format!(
            "{} has {count} samples and {} has {}; each sample needs one label",
            features.file.display(),
            labels.file.display(),
            labels.shape[0]
        )));
    }
    // All axes but the first and the last are positions: the steps of a sequence.
    let (width, positions) = match &labels.shape[1..] {
        [] => (1, 1),
        [axes @ .., _] => (labels.shape[1..].iter().product(), axes.iter().product()),
    };
    let values = features.numbers(Gaps::in_features(missing), |number| number as f32)?;
    let whole = !features.number.is_float() && values.iter().all(|&value| value >= 0.0);
    let shape = match &features.shape[1..] {
        [] => vec![1],
        shape => shape.to_vec(),
    };
    Ok(Samples {
        shape,
        features: values,
        columns: Vec::new(),
        label_columns: Vec::new(),
        measure: if whole { Measure::Whole } else { Measure::Amounts },
        labels: Labels::Numbers {
            values: labels.numbers(Gaps::in_labels(missing), |number| number)?,
            width,
            form: if labels.number.is_float() { Form::Floats } else { Form::Integers },
        },
        origin: Origin::File(features.file),
        label_origin: Origin::File(labels.file),
        positions,
        notes: Vec::new(),
    })
}

/// The error of a file that cannot be read to its end, whether the file or the system is at fault.
pub(crate) fn damaged(file: &Path, format: &'static str, error: io::Error) -> DataError {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    match error.kind() {
        UnexpectedEof => DataError::malformed(file, format, "it is cut short"),
        InvalidData | InvalidInput => DataError::malformed(file, format, error),
        _ => DataError::unreadable(file, &error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(number: Number, shape: &[usize], bytes: &[u8]) -> Result<Array, DataError> {
        Array::read(bytes, Path::new("x.npy"), "NPY", number, false, shape.to_vec())
    }

    fn numbers(number: Number, big_endian: bool, bytes: &[u8]) -> Vec<f64> {
        let shape = [bytes.len() / number.size()];
        let array = Array { big_endian, ..array(number, &shape, bytes).unwrap() };
        array.numbers(Gaps::in_features(Missing::Refuse), |number| number).unwrap()
    }

    #[test]
    fn every_kind_of_number_is_decoded_in_both_byte_orders() {
        macro_rules! check {
            ($kind:ident, $type:ty, $value:expr) => {
                let value: $type = $value;
                let expected = [value as f64];
                assert_eq!(numbers(Number::$kind, false, &value.to_le_bytes()), expected);
                assert_eq!(numbers(Number::$kind, true, &value.to_be_bytes()), expected);
            };
        }
        check!(Bool, u8, 1);
        check!(U8, u8, 200);
        check!(I8, i8, -100);
        check!(U16, u16, 60_000);
        check!(I16, i16, -30_000);
        check!(U32, u32, 4_000_000_000);
        check!(I32, i32, -2_000_000_000);
        check!(U64, u64, 1 << 60);
        check!(I64, i64, -(1 << 60));
        check!(F32, f32, 0.1);
        check!(F64, f64, -0.1);
    }

    #[test]
    fn the_order_of_fortran_is_turned() {
        let stored = array(Number::U8, &[2, 3], &[1, 4, 2, 5, 3, 6]).unwrap();
        assert_eq!(stored.transposed().bytes, [1, 2, 3, 4, 5, 6]);
        let stored = array(Number::I16, &[2, 1, 2], &[1, 0, 3, 0, 2, 0, 4, 0]).unwrap();
        assert_eq!(stored.transposed().bytes, [1, 0, 2, 0, 3, 0, 4, 0]);
    }

    #[test]
    fn a_shape_beyond_the_file_allocates_nothing() {
        for shape in [&[1 << 60][..], &[1 << 40, 1 << 40], &[usize::MAX]] {
            let error = array(Number::F64, shape, &[0; 16]).unwrap_err();
            let message = error.to_string();
            let refused =
                ["is not a valid", "bytes of memory"].iter().any(|it| message.contains(it));
            assert!(refused, "{message}");
        }
    }

    #[test]
    fn a_number_that_is_none_is_named_by_its_index() {
        let mut bytes = vec![0; 2 * 3 * 4];
        bytes[16..20].copy_from_slice(&f32::NAN.to_le_bytes());
        let found = array(Number::F32, &[2, 3], &bytes).unwrap();
        let refused = |array: Array| {
            let gaps = Gaps::in_features(Missing::Refuse);
            array.numbers(gaps, |number| number).unwrap_err()
        };
        let error = refused(found).to_string();
        assert!(error.starts_with("x.npy, element [1, 1]: the value is missing (NaN)"), "{error}");
        let huge = array(Number::F64, &[1], &1e300_f64.to_le_bytes()).unwrap();
        let error = refused(huge);
        assert!(error.to_string().contains("infinite or too large"), "{error}");
    }

    #[test]
    fn features_and_labels_must_be_as_many() {
        let features = array(Number::U8, &[3, 1], &[1, 2, 3]).unwrap();
        let labels = array(Number::U8, &[2], &[0, 1]).unwrap();
        let error = paired(features, labels, Missing::Refuse).unwrap_err().to_string();
        assert!(error.contains("has 3 samples and x.npy has 2"), "{error}");
    }

    #[test]
    fn axes_between_samples_and_numbers_are_positions() {
        let features = array(Number::U8, &[2, 3], &[1, 2, 3, 4, 5, 6]).unwrap();
        let labels = array(Number::U8, &[2, 3, 2], &[0; 12]).unwrap();
        let samples = paired(features, labels, Missing::Refuse).unwrap();
        assert_eq!((samples.len(), samples.positions), (2, 3));
    }

    #[test]
    fn small_whole_numbers_may_be_symbols() {
        let read = |bytes| {
            let labels = array(Number::U8, &[2], &[0, 1]).unwrap();
            let features = array(Number::I8, &[2], bytes).unwrap();
            paired(features, labels, Missing::Refuse).unwrap()
        };
        let whole = read(&[3, 4]);
        assert_eq!((whole.measure, whole.shape), (Measure::Whole, vec![1]));
        assert_eq!(read(&[3, 0xff]).measure, Measure::Amounts);
    }
}
