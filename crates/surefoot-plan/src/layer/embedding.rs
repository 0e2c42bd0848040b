//! Embedding of integers.

use super::{LayerSpec, Role};
use crate::Initializer;
#[cfg(feature = "keras")]
use crate::keras::{self, KerasArrays, LayerConfig};
use crate::language::{name, record};
use crate::shape::{Input, Mismatch, Output};

/// A learned vector for each integer below `input_dim`.
///
/// Weights: `embeddings` `[input_dim, output_dim]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding {
    /// Name of the layer.
    pub name: Option<String>,
    /// Number of different inputs.
    pub input_dim: usize,
    /// Size of each vector.
    pub output_dim: usize,
    /// Initial vectors.
    pub embeddings_initializer: Initializer,
}

impl Embedding {
    /// An embedding with the defaults of Keras.
    pub fn new(input_dim: usize, output_dim: usize) -> Self {
        let embeddings_initializer = Initializer::random_uniform();
        Self { name: None, input_dim, output_dim, embeddings_initializer }
    }
}

record! { Embedding;
    maybe: name(name);
    required: input_dim, output_dim;
    optional: embeddings_initializer;
}

impl LayerSpec for Embedding {
    const ROLE: Role = Role::Other;

    fn template() -> Self {
        Self::new(1, 1)
    }

    fn output(&self, input: Input<'_>) -> Result<Output, Mismatch> {
        match input.shape {
            [steps] if input.integers => Output::new(
                vec![*steps, self.output_dim],
                self.input_dim.saturating_mul(self.output_dim),
            ),
            [_] => Err(Mismatch::new("it needs whole numbers").help(
                "an embedding must come first in the model, and its data must not be scaled",
            )),
            _ => Err(Mismatch::new("it needs whole numbers of shape [steps]")),
        }
    }

    #[cfg(feature = "keras")]
    fn from_keras(config: &LayerConfig<'_>) -> keras::Result<Self> {
        config.only("mask_zero", false)?;
        config.read(Self::template())
    }

    #[cfg(feature = "keras")]
    fn keras_arrays(&self) -> KerasArrays {
        KerasArrays::default().with("embeddings", &[Some(self.input_dim), Some(self.output_dim)])
    }

    #[cfg(feature = "keras")]
    fn rank(&self, input: Option<usize>) -> Option<usize> {
        input.map(|rank| rank + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Layer;
    use super::*;
    use crate::{Dense, Flatten, infer};

    #[test]
    fn an_embedding_needs_whole_numbers() {
        let embedding = || Layer::Embedding(Embedding::new(10, 4));
        let shapes = infer(&[embedding()], &[6], true).unwrap();
        assert_eq!(shapes[0].output, [6, 4]);
        assert_eq!(shapes[0].parameters, 40);
        let flat = [Layer::Flatten(Flatten::default()), embedding()];
        assert_eq!(infer(&flat, &[2, 3], true).unwrap()[1].output, [6, 4]);
        let late = [Layer::Dense(Dense::new(6)), embedding()];
        assert_eq!(infer(&late, &[6], true).unwrap_err().path, [1]);
        assert!(infer(&[embedding()], &[6], false).is_err());
    }
}
