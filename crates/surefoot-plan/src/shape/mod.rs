//! Shapes: what goes into and comes out of every layer, worked out before anything runs.
//!
//! Shapes leave out the batch and have channels last.

mod infer;
mod target;

pub use infer::infer;
pub use target::{TargetLayout, TargetShape, check_output, target_layout};

/// What goes into a layer and what comes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerShape {
    /// The layer's unique name, as in [`layer_names`](crate::layer_names).
    pub name: String,
    /// Its kind, as in [`Layer::kind`](crate::Layer::kind).
    pub kind: &'static str,
    /// Its index in the model, then in the residual block that contains it, and so on.
    pub path: Vec<usize>,
    /// Shape of its input.
    pub input: Vec<usize>,
    /// Shape of its output.
    pub output: Vec<usize>,
    /// Number of trained values. That of a residual block is counted at the layers in it.
    pub parameters: usize,
}

/// A layer that cannot take what comes in, or an output that cannot be compared with the targets.
///
/// [`Document::shape_error`](crate::Document::shape_error) adds the line of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", label.as_ref().map(|label| format!(": {label}")).unwrap_or_default())]
pub struct ShapeError {
    /// Where the layer is, as in [`LayerShape::path`].
    pub path: Vec<usize>,
    /// The layer's name.
    pub layer: String,
    /// The layer and what came in.
    pub message: String,
    /// What it needs.
    pub label: Option<String>,
    /// What to do.
    pub help: Option<String>,
}
