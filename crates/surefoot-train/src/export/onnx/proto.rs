//! The messages of an ONNX file, as far as they are written.
//!
//! Numbers are those of `onnx.proto`. Fields that a reader tests for presence are optional.

use prost::Message;

/// Type of an element of a tensor.
#[derive(Clone, Copy)]
pub(super) enum Element {
    F32 = 1,
    I64 = 7,
    F64 = 11,
}

/// Kind of an attribute's value.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Float = 1,
    Int = 2,
    Tensor = 4,
    Graph = 5,
    Ints = 7,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Model {
    #[prost(int64, tag = "1")]
    pub(super) ir_version: i64,
    #[prost(string, tag = "2")]
    pub(super) producer_name: String,
    #[prost(string, tag = "3")]
    pub(super) producer_version: String,
    #[prost(message, optional, tag = "7")]
    pub(super) graph: Option<Graph>,
    #[prost(message, repeated, tag = "8")]
    pub(super) opset_import: Vec<OperatorSet>,
    #[prost(message, repeated, tag = "14")]
    pub(super) metadata: Vec<Entry>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OperatorSet {
    #[prost(string, optional, tag = "1")]
    pub(super) domain: Option<String>,
    #[prost(int64, tag = "2")]
    pub(super) version: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Entry {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Graph {
    #[prost(message, repeated, tag = "1")]
    pub(super) nodes: Vec<Node>,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "5")]
    pub(super) initializers: Vec<Tensor>,
    #[prost(message, repeated, tag = "11")]
    pub(super) inputs: Vec<Value>,
    #[prost(message, repeated, tag = "12")]
    pub(super) outputs: Vec<Value>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Node {
    #[prost(string, repeated, tag = "1")]
    pub(super) inputs: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(super) outputs: Vec<String>,
    #[prost(string, tag = "3")]
    pub(super) name: String,
    #[prost(string, tag = "4")]
    pub(super) operator: String,
    #[prost(message, repeated, tag = "5")]
    pub(super) attributes: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(float, optional, tag = "2")]
    pub(super) number: Option<f32>,
    #[prost(int64, optional, tag = "3")]
    pub(super) integer: Option<i64>,
    #[prost(message, optional, tag = "5")]
    pub(super) tensor: Option<Tensor>,
    #[prost(message, optional, tag = "6")]
    pub(super) graph: Option<Graph>,
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub(super) ints: Vec<i64>,
    #[prost(int32, tag = "20")]
    pub(super) kind: i32,
}

impl Attribute {
    fn new(name: &str, kind: Kind) -> Self {
        Self { name: name.to_owned(), kind: kind as i32, ..Self::default() }
    }

    pub(super) fn float(name: &str, value: f64) -> Self {
        Self { number: Some(value as f32), ..Self::new(name, Kind::Float) }
    }

    pub(super) fn int(name: &str, value: i64) -> Self {
        Self { integer: Some(value), ..Self::new(name, Kind::Int) }
    }

    pub(super) fn ints(name: &str, values: impl IntoIterator<Item = i64>) -> Self {
        Self { ints: values.into_iter().collect(), ..Self::new(name, Kind::Ints) }
    }

    pub(super) fn tensor(name: &str, value: Tensor) -> Self {
        Self { tensor: Some(value), ..Self::new(name, Kind::Tensor) }
    }

    pub(super) fn graph(name: &str, value: Graph) -> Self {
        Self { graph: Some(value), ..Self::new(name, Kind::Graph) }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Tensor {
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub(super) shape: Vec<i64>,
    #[prost(int32, tag = "2")]
    pub(super) element: i32,
    #[prost(string, tag = "8")]
    pub(super) name: String,
    #[prost(bytes = "vec", tag = "9")]
    pub(super) data: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Value {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) kind: Option<ValueType>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ValueType {
    #[prost(message, optional, tag = "1")]
    pub(super) tensor: Option<TensorType>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorType {
    #[prost(int32, tag = "1")]
    pub(super) element: i32,
    /// Unknown if absent.
    #[prost(message, optional, tag = "2")]
    pub(super) shape: Option<Shape>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Shape {
    #[prost(message, repeated, tag = "1")]
    pub(super) dimensions: Vec<Dimension>,
}

/// A size, or the name of one that is free.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Dimension {
    #[prost(int64, optional, tag = "1")]
    pub(super) size: Option<i64>,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
}

impl Value {
    /// A value of 32-bit numbers. `shape` is that of one sample; unknown if `None`.
    pub(super) fn floats(name: &str, shape: Option<&[usize]>) -> Self {
        let batch = Dimension { size: None, name: Some("batch".to_owned()) };
        let size = |&size: &usize| Dimension { size: Some(size as i64), name: None };
        let dimensions = |shape: &[usize]| {
            std::iter::once(batch.clone()).chain(shape.iter().map(size)).collect()
        };
        let shape = shape.map(|shape| Shape { dimensions: dimensions(shape) });
        let tensor = Some(TensorType { element: Element::F32 as i32, shape });
        Self { name: name.to_owned(), kind: Some(ValueType { tensor }) }
    }
}
