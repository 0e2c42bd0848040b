//! Named arrays of numbers, the content of checkpoints and models.

use std::borrow::Cow;

use bytemuck::NoUninit;
use safetensors::tensor::Dtype;

use crate::digest::StateDigest;
use crate::error::{Error, Result};

/// A named array in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Name, unique within its file: `dense_1.weight`.
    pub name: String,
    /// Length of each dimension; empty for a scalar.
    pub shape: Vec<usize>,
    /// The numbers, as many as the product of the shape.
    pub data: Values,
}

/// The numbers of an [`Array`].
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
    /// Counters and indices.
    U64(Vec<u64>),
    /// Little-endian bytes of numbers of another type, as a framework stores them.
    Bytes(Dtype, Vec<u8>),
}

impl Array {
    /// Creates an array from a vector of any supported type.
    pub fn new(name: impl Into<String>, shape: &[usize], data: impl Into<Values>) -> Array {
        Array { name: name.into(), shape: shape.to_vec(), data: data.into() }
    }

    /// Returns the numbers if they are single precision.
    pub fn as_f32(&self) -> Option<&[f32]> {
        match &self.data {
            Values::F32(values) => Some(values),
            _ => None,
        }
    }

    /// Adds name, type, shape and the bits of the numbers to a digest.
    pub(crate) fn digest_into(&self, state: &mut StateDigest) {
        state.update_u64(&self.data.dtype().to_string(), self.shape.len() as u64);
        for &length in &self.shape {
            state.update_u64("length", length as u64);
        }
        state.update(&self.name, &self.data.to_bytes());
    }

    /// Returns an error unless the shape matches the count of numbers.
    pub(crate) fn check(&self) -> Result<()> {
        let expected = self.shape.iter().try_fold(1_usize, |size, &n| size.checked_mul(n));
        if expected == Some(self.data.len()) {
            return Ok(());
        }
        Err(Error::Unrecordable {
            what: format!("array `{}`", self.name),
            reason: format!(
                "its shape {:?} does not match its {} numbers",
                self.shape,
                self.data.len()
            ),
        })
    }
}

/// Returns the little-endian bytes of numbers; copies only on big-endian machines.
pub(crate) fn le_bytes<T: NoUninit, const N: usize>(
    values: &[T],
    to_bytes: fn(T) -> [u8; N],
) -> Cow<'_, [u8]> {
    match cfg!(target_endian = "little") {
        true => Cow::Borrowed(bytemuck::cast_slice(values)),
        false => Cow::Owned(values.iter().flat_map(|&value| to_bytes(value)).collect()),
    }
}

impl Values {
    /// Count of the numbers.
    pub fn len(&self) -> usize {
        match self {
            Values::F32(values) => values.len(),
            Values::F64(values) => values.len(),
            Values::U64(values) => values.len(),
            Values::Bytes(dtype, bytes) => match dtype.bitsize() {
                0 => 0,
                bits => bytes.len() * 8 / bits,
            },
        }
    }

    /// Type of the numbers.
    pub fn dtype(&self) -> Dtype {
        match self {
            Values::F32(_) => Dtype::F32,
            Values::F64(_) => Dtype::F64,
            Values::U64(_) => Dtype::U64,
            Values::Bytes(dtype, _) => *dtype,
        }
    }

    /// Returns true if there are no numbers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Little-endian bytes.
    pub fn to_bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Values::F32(values) => le_bytes(values, f32::to_le_bytes),
            Values::F64(values) => le_bytes(values, f64::to_le_bytes),
            Values::U64(values) => le_bytes(values, u64::to_le_bytes),
            Values::Bytes(_, bytes) => Cow::Borrowed(bytes),
        }
    }
}

impl From<Vec<f32>> for Values {
    fn from(values: Vec<f32>) -> Values {
        Values::F32(values)
    }
}

impl From<Vec<f64>> for Values {
    fn from(values: Vec<f64>) -> Values {
        Values::F64(values)
    }
}

impl From<Vec<u64>> for Values {
    fn from(values: Vec<u64>) -> Values {
        Values::U64(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_that_does_not_match_is_refused() {
        assert!(Array::new("x", &[2, 3], vec![0.0_f32; 6]).check().is_ok());
        assert!(Array::new("scalar", &[], vec![0.0_f32]).check().is_ok());
        let error = Array::new("x", &[2, 3], vec![0.0_f32; 5]).check();
        assert!(error.is_err_and(|e| e.to_string().contains("`x`")));
        let error = Array::new("x", &[usize::MAX, 3], vec![0.0_f32; 5]).check();
        assert!(error.is_err());
    }

    #[test]
    fn the_digest_covers_shape_and_type() {
        let digest = |array: Array| {
            let mut state = StateDigest::new();
            array.digest_into(&mut state);
            state.finish()
        };
        let one = digest(Array::new("x", &[2, 3], vec![0.0_f32; 6]));
        assert_ne!(one, digest(Array::new("x", &[3, 2], vec![0.0_f32; 6])));
        assert_ne!(one, digest(Array::new("x", &[6], vec![0.0_f32; 6])));
        assert_ne!(one, digest(Array::new("x", &[2, 3], vec![0.0_f64; 6])));
        assert_ne!(one, digest(Array::new("x", &[2, 3], Values::Bytes(Dtype::I32, vec![0; 24]))));
        assert_eq!(one, digest(Array::new("x", &[2, 3], vec![0.0_f32; 6])));
    }
}
