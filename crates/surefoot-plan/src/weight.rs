//! Weights of layers.

/// One array of a layer, row-major. The struct of each layer documents its arrays; see for example
/// [`Dense`](crate::Dense).
#[derive(Clone, Debug, PartialEq)]
pub struct Weight {
    /// Name of the layer.
    pub layer: String,
    /// Name of the array within the layer.
    pub name: String,
    /// Dimensions of the array.
    pub shape: Vec<usize>,
    /// Values of the array.
    pub values: Vec<f32>,
}
