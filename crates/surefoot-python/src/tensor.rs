//! Statistics of tensors that another framework holds in memory.

use half::{bf16, f16};
use pyo3::PyResult;
use pyo3::exceptions::PyValueError;
use surefoot_stats::{Element, Moments, moments};

/// Number format of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    F16,
    Bf16,
    F32,
    F64,
}

impl Format {
    /// The format with a name as in `torch.float32`.
    pub(crate) fn parse(name: &str) -> PyResult<Format> {
        match name {
            "float16" => Ok(Format::F16),
            "bfloat16" => Ok(Format::Bf16),
            "float32" => Ok(Format::F32),
            "float64" => Ok(Format::F64),
            _ => Err(PyValueError::new_err(format!("unknown number format `{name}`"))),
        }
    }

    fn size(self) -> usize {
        match self {
            Format::F16 | Format::Bf16 => 2,
            Format::F32 => 4,
            Format::F64 => 8,
        }
    }
}

/// A contiguous tensor at an address that the caller keeps alive and unchanged during the call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tensor {
    pub(crate) address: usize,
    pub(crate) len: usize,
    pub(crate) format: Format,
}

/// Number of values that stand for a tensor when its change is measured.
const SAMPLE: usize = 4096;

impl Tensor {
    /// Its values, if they have the format `T`.
    ///
    /// # Safety
    ///
    /// `address` points to `len` initialized values of the format `T`, which nothing changes while
    /// the slice lives. The Python package guarantees that: it holds a reference to the tensor and the
    /// interpreter lock during the call.
    unsafe fn values<'a, T: Element>(self) -> &'a [T] {
        if self.len == 0 || !self.address.is_multiple_of(align_of::<T>()) || self.address == 0 {
            return &[];
        }
        // SAFETY: by the contract of this function, and the address is aligned and not null.
        unsafe { std::slice::from_raw_parts(self.address as *const T, self.len) }
    }

    /// Moments of its values.
    pub(crate) fn moments(self) -> Moments {
        // SAFETY: the format is the one that the caller declared for this address.
        unsafe {
            match self.format {
                Format::F16 => moments(self.values::<f16>()),
                Format::Bf16 => moments(self.values::<bf16>()),
                Format::F32 => moments(self.values::<f32>()),
                Format::F64 => moments(self.values::<f64>()),
            }
        }
    }

    /// Its first value; NaN if it has none.
    pub(crate) fn first(self) -> f64 {
        fn first<T: Element>(values: &[T]) -> f64 {
            values.first().map_or(f64::NAN, |value| value.to_f64())
        }
        // SAFETY: as in `moments`.
        unsafe {
            match self.format {
                Format::F16 => first(self.values::<f16>()),
                Format::Bf16 => first(self.values::<bf16>()),
                Format::F32 => first(self.values::<f32>()),
                Format::F64 => first(self.values::<f64>()),
            }
        }
    }

    /// True if none of its values is NaN or infinite.
    pub(crate) fn is_finite(self) -> bool {
        fn all<T: Element>(values: &[T]) -> bool {
            values.iter().all(|value| value.to_f64().is_finite())
        }
        // SAFETY: as in `moments`.
        unsafe {
            match self.format {
                Format::F16 => all(self.values::<f16>()),
                Format::Bf16 => all(self.values::<bf16>()),
                Format::F32 => all(self.values::<f32>()),
                Format::F64 => all(self.values::<f64>()),
            }
        }
    }

    /// Share of its `rows` whose every value is exactly zero.
    pub(crate) fn zero_rows(self, rows: usize) -> Option<f64> {
        // SAFETY: as in `moments`.
        (self.format == Format::F32)
            .then(|| surefoot_stats::zero_rows(unsafe { self.values::<f32>() }, rows))
    }

    /// Number of values at or beyond the bounds.
    pub(crate) fn outside(self, low: f64, high: f64) -> usize {
        fn count<T: Element>(values: &[T], low: f64, high: f64) -> usize {
            let is_outside = |value: &&T| {
                let value = value.to_f64();
                value <= low || value >= high
            };
            values.iter().filter(is_outside).count()
        }
        // SAFETY: as in `moments`.
        unsafe {
            match self.format {
                Format::F16 => count(self.values::<f16>(), low, high),
                Format::Bf16 => count(self.values::<bf16>(), low, high),
                Format::F32 => count(self.values::<f32>(), low, high),
                Format::F64 => count(self.values::<f64>(), low, high),
            }
        }
    }

    /// Adds about [`SAMPLE`] evenly spread values to `sample`.
    pub(crate) fn sample(self, sample: &mut Vec<f64>) {
        fn extend<T: Element>(values: &[T], sample: &mut Vec<f64>) {
            // An odd stride meets every column of the usual, even-sized matrices.
            let stride = values.len().div_ceil(SAMPLE).max(1) | 1;
            sample.extend(values.iter().step_by(stride).map(|value| value.to_f64()));
        }
        // SAFETY: as in `moments`.
        unsafe {
            match self.format {
                Format::F16 => extend(self.values::<f16>(), sample),
                Format::Bf16 => extend(self.values::<bf16>(), sample),
                Format::F32 => extend(self.values::<f32>(), sample),
                Format::F64 => extend(self.values::<f64>(), sample),
            }
        }
    }

    /// Its memory.
    pub(crate) fn bytes<'a>(self) -> &'a [u8] {
        if self.address == 0 || self.len == 0 {
            return &[];
        }
        // SAFETY: as in `values`; bytes need no alignment.
        unsafe {
            std::slice::from_raw_parts(self.address as *const u8, self.len * self.format.size())
        }
    }
}
