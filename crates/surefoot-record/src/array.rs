//! Named arrays of numbers: what checkpoints and models are made of.

use crate::digest::StateDigest;
use crate::error::{Error, Result};

/// A named array in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// A name that no other array beside it has: `dense_1.weight`.
    pub name: String,
    /// The length along each dimension; empty for a single number.
    pub shape: Vec<usize>,
    /// The numbers, as many as the shape says.
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
}

impl Array {
    /// An array of any of the kinds.
    pub fn new(name: impl Into<String>, shape: &[usize], data: impl Into<Values>) -> Array {
        Array { name: name.into(), shape: shape.to_vec(), data: data.into() }
    }

    /// The numbers, if they are in single precision.
    pub fn as_f32(&self) -> Option<&[f32]> {
        match &self.data {
            Values::F32(values) => Some(values),
            _ => None,
        }
    }

    /// Adds the array to a digest: name, kind, shape and the bits of the numbers.
    pub fn digest_into(&self, state: &mut StateDigest) {
        state.update_u64(self.data.kind().name(), self.shape.len() as u64);
        for &length in &self.shape {
            state.update_u64("length", length as u64);
        }
        match &self.data {
            Values::F32(values) => state.update_f32(&self.name, values),
            _ => state.update(&self.name, &self.data.to_bytes()),
        }
    }

    /// An error unless the shape and the numbers agree.
    pub(crate) fn check(&self) -> Result<()> {
        let expected = element_count(&self.shape);
        if expected == Some(self.data.len()) {
            return Ok(());
        }
        Err(Error::Unrecordable {
            what: format!("array `{}`", self.name),
            reason: format!(
                "its shape {:?} does not go with its {} numbers",
                self.shape,
                self.data.len()
            ),
        })
    }
}

/// The product of a shape, if it is a number at all.
pub(crate) fn element_count(shape: &[usize]) -> Option<usize> {
    let mut product = 1_usize;
    for &length in shape {
        product = product.checked_mul(length)?;
    }
    Some(product)
}

/// Adds the bytes of numbers at the speed of a copy, which an iterator over bytes does not have.
pub(crate) fn put_all<T: Copy, const N: usize>(
    out: &mut Vec<u8>,
    values: &[T],
    to_bytes: impl Fn(T) -> [u8; N],
) {
    let start = out.len();
    out.resize(start + N * values.len(), 0);
    let (places, _) = out[start..].as_chunks_mut::<N>();
    for (place, &value) in places.iter_mut().zip(values) {
        *place = to_bytes(value);
    }
}

/// What the numbers of an array are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Kind {
    F32,
    F64,
    U64,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::F32 => "F32",
            Kind::F64 => "F64",
            Kind::U64 => "U64",
        }
    }

    pub(crate) fn size(self) -> usize {
        match self {
            Kind::F32 => 4,
            Kind::F64 | Kind::U64 => 8,
        }
    }
}

impl Values {
    /// How many numbers there are.
    pub fn len(&self) -> usize {
        match self {
            Values::F32(values) => values.len(),
            Values::F64(values) => values.len(),
            Values::U64(values) => values.len(),
        }
    }

    /// Whether there is no number.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Values::F32(_) => Kind::F32,
            Values::F64(_) => Kind::F64,
            Values::U64(_) => Kind::U64,
        }
    }

    /// The little-endian bytes.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Values::F32(values) => put_all(&mut bytes, values, f32::to_le_bytes),
            Values::F64(values) => put_all(&mut bytes, values, f64::to_le_bytes),
            Values::U64(values) => put_all(&mut bytes, values, u64::to_le_bytes),
        }
        bytes
    }

    /// The numbers in little-endian bytes; a remainder that is no whole number is left out.
    pub(crate) fn from_bytes(kind: Kind, bytes: &[u8]) -> Values {
        let (fours, _) = bytes.as_chunks::<4>();
        let (eights, _) = bytes.as_chunks::<8>();
        match kind {
            Kind::F32 => Values::F32(fours.iter().map(|b| f32::from_le_bytes(*b)).collect()),
            Kind::F64 => Values::F64(eights.iter().map(|b| f64::from_le_bytes(*b)).collect()),
            Kind::U64 => Values::U64(eights.iter().map(|b| u64::from_le_bytes(*b)).collect()),
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
    fn bytes_round_trip_for_every_kind() {
        for values in [
            Values::from(vec![1.5_f32, -0.0, f32::INFINITY]),
            Values::from(vec![1e300_f64, f64::MIN_POSITIVE]),
            Values::from(vec![u64::MAX, 0]),
            Values::from(Vec::<f32>::new()),
        ] {
            let bytes = values.to_bytes();
            assert_eq!(bytes.len(), values.len() * values.kind().size());
            assert_eq!(Values::from_bytes(values.kind(), &bytes), values);
        }
    }

    #[test]
    fn a_shape_that_does_not_fit_is_named() {
        assert!(Array::new("x", &[2, 3], vec![0.0_f32; 6]).check().is_ok());
        assert!(Array::new("scalar", &[], vec![0.0_f32]).check().is_ok());
        let error = Array::new("x", &[2, 3], vec![0.0_f32; 5]).check();
        assert!(error.is_err_and(|e| e.to_string().contains("`x`")));
        let error = Array::new("x", &[usize::MAX, 3], vec![0.0_f32; 5]).check();
        assert!(error.is_err());
    }

    #[test]
    fn shape_and_kind_are_part_of_the_digest() {
        let digest = |array: Array| {
            let mut state = StateDigest::new();
            array.digest_into(&mut state);
            state.finish()
        };
        let one = digest(Array::new("x", &[2, 3], vec![0.0_f32; 6]));
        assert_ne!(one, digest(Array::new("x", &[3, 2], vec![0.0_f32; 6])));
        assert_ne!(one, digest(Array::new("x", &[6], vec![0.0_f32; 6])));
        assert_ne!(one, digest(Array::new("x", &[2, 3], vec![0.0_f64; 6])));
        assert_eq!(one, digest(Array::new("x", &[2, 3], vec![0.0_f32; 6])));
    }
}
