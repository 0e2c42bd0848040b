//! The few messages of TensorFlow's `event.proto`, `summary.proto` and `tensor.proto` that hold
//! scalars, with the fields that are needed. The numbers are those of the format and never change.

use prost::Message;

/// Values logged together.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Event {
    #[prost(int64, tag = "2")]
    pub(crate) step: i64,
    #[prost(message, optional, tag = "5")]
    pub(crate) summary: Option<Summary>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Summary {
    #[prost(message, repeated, tag = "1")]
    pub(crate) value: Vec<Value>,
}

/// A value and its tag. Images and histograms are ignored.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Value {
    #[prost(string, tag = "1")]
    pub(crate) tag: String,
    /// A scalar as TensorFlow 1, PyTorch and most others write it.
    #[prost(float, optional, tag = "2")]
    pub(crate) simple_value: Option<f32>,
    /// A scalar as TensorFlow 2 writes it, and much else.
    #[prost(message, optional, tag = "8")]
    pub(crate) tensor: Option<Tensor>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Tensor {
    #[prost(int32, tag = "1")]
    pub(crate) dtype: i32,
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) content: Vec<u8>,
    #[prost(float, repeated, tag = "5")]
    pub(crate) float_val: Vec<f32>,
    #[prost(double, repeated, tag = "6")]
    pub(crate) double_val: Vec<f64>,
}

/// `DT_FLOAT`, which all scalars of TensorFlow 2 are.
const FLOAT: i32 = 1;
/// `DT_DOUBLE`, which PyTorch writes for double precision.
const DOUBLE: i32 = 2;

impl Value {
    /// The number, if it is one.
    pub(crate) fn scalar(&self) -> Option<f64> {
        match (&self.simple_value, &self.tensor) {
            (Some(value), _) => Some(f64::from(*value)),
            (None, Some(tensor)) => tensor.scalar(),
            (None, None) => None,
        }
    }
}

impl Tensor {
    fn scalar(&self) -> Option<f64> {
        let content = self.content.as_slice();
        match (self.dtype, self.float_val.as_slice(), self.double_val.as_slice()) {
            (FLOAT, [value], _) => Some(f64::from(*value)),
            (FLOAT, [], _) => content.try_into().ok().map(f32::from_le_bytes).map(f64::from),
            (DOUBLE, _, [value]) => Some(*value),
            (DOUBLE, _, []) => content.try_into().ok().map(f64::from_le_bytes),
            _ => None,
        }
    }
}
