//! Weights: named arrays that belong to layers.

/// One array of a layer, as it is imported, trained and delivered.
///
/// Layouts, row-major:
///
/// | layer | arrays |
/// | --- | --- |
/// | dense | `kernel` `[in, units]`, `bias` `[units]` |
/// | conv1d | `kernel` `[filters, in, width]`, `bias` `[filters]` |
/// | conv2d | `kernel` `[filters, in, height, width]`, `bias` `[filters]` |
/// | batch_norm | `gamma`, `beta`, `moving_mean`, `moving_variance`, all `[channels]` |
/// | layer_norm, group_norm | `gamma`, `beta`, `[channels]` |
/// | embedding | `embeddings` `[input_dim, output_dim]` |
/// | position_embedding | `embeddings` `[steps, features]` |
/// | simple_rnn | `kernel` `[in, units]`, `recurrent_kernel` `[units, units]`, `bias` `[units]` |
/// | lstm | `kernel` `[in, 4 units]`, `recurrent_kernel` `[units, 4 units]`, `bias` `[4 units]`; input, forget, cell, output |
/// | gru | `kernel` `[in, 3 units]`, `recurrent_kernel` `[units, 3 units]`, `bias` `[2, 3 units]` (`[3 units]` unless `reset_after`); update, reset, candidate |
/// | multi_head_attention | `query_kernel`, `key_kernel`, `value_kernel` `[features, heads * key_dim]`, their biases `[heads * key_dim]`, `output_kernel` `[heads * key_dim, features]`, `output_bias` `[features]` |
///
/// A bidirectional layer has each array twice, prefixed `forward_` and `backward_`.
#[derive(Clone, Debug, PartialEq)]
pub struct Weight {
    /// The layer's name.
    pub layer: String,
    /// The array's name within the layer.
    pub name: String,
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// Its values, row-major.
    pub values: Vec<f32>,
}
