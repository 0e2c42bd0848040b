//! Shape inference: the input and output shape of every layer, before anything runs.
//!
//! Shapes omit the batch and have channels last.

mod infer;
mod rule;
mod target;

pub use infer::infer;
pub(crate) use rule::{
    Input, Mismatch, Output, affine, divide_into_heads, per_channel, size, window,
};
pub use target::{TargetLayout, TargetShape, check_output, target_layout};

/// Shapes and parameters of one layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerShape {
    /// Unique name of the layer, as in [`layer_names`](crate::layer_names).
    pub name: String,
    /// Kind of the layer, as in [`Layer::kind`](crate::Layer::kind).
    pub kind: &'static str,
    /// Index in the model, then in the residual block that contains the layer, and so on.
    pub path: Vec<usize>,
    /// Shape of the input.
    pub input: Vec<usize>,
    /// Shape of the output.
    pub output: Vec<usize>,
    /// Number of trained values. Those of a residual block are counted at the layers inside.
    pub parameters: usize,
}

/// A layer that cannot take its input, or an output that does not fit the targets.
///
/// [`Document::shape_error`](crate::Document::shape_error) adds the line of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", label.as_ref().map(|label| format!(": {label}")).unwrap_or_default())]
pub struct ShapeError {
    /// Path of the layer, as in [`LayerShape::path`].
    pub path: Vec<usize>,
    /// Name of the layer.
    pub layer: String,
    /// The layer and the shape that does not fit.
    pub message: String,
    /// Requirement that is not met.
    pub label: Option<String>,
    /// Suggested fix.
    pub help: Option<String>,
}
