//! Learned vectors for whole numbers and for positions.

use crate::Initializer;
use crate::language::{Fields, Record, any, name};

/// A learned vector for each whole number below `input_dim`.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding {
    /// A name for people and for weights.
    pub name: Option<String>,
    /// Number of different inputs.
    pub input_dim: usize,
    /// Size of each vector.
    pub output_dim: usize,
    /// Initial vectors.
    pub embeddings_initializer: Initializer,
}

/// Adds a learned vector for each position of a sequence.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PositionEmbedding {
    /// A name for people and for weights.
    pub name: Option<String>,
    /// Initial vectors.
    pub initializer: Initializer,
}

impl Embedding {
    /// An embedding with Keras's defaults.
    pub fn new(input_dim: usize, output_dim: usize) -> Self {
        Self {
            name: None,
            input_dim,
            output_dim,
            embeddings_initializer: Initializer::random_uniform(),
        }
    }
}

impl Record for Embedding {
    fn fields<F: Fields>(&mut self, f: &mut F) {
        f.maybe("name", &mut self.name, name);
        f.required("input_dim", &mut self.input_dim, any);
        f.required("output_dim", &mut self.output_dim, any);
        f.optional("embeddings_initializer", &mut self.embeddings_initializer, any);
    }
}

impl Record for PositionEmbedding {
    fn fields<F: Fields>(&mut self, f: &mut F) {
        f.maybe("name", &mut self.name, name);
        f.optional("initializer", &mut self.initializer, any);
    }
}
