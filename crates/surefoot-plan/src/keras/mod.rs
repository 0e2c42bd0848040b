//! Import of Keras 2 and 3 models.
//!
//! [`load`] reads three kinds of file, distinguished by their content:
//!
//! | file | written by |
//! | --- | --- |
//! | HDF5, `.h5` or `.hdf5` | `model.save("m.h5")` of Keras 2 and 3 |
//! | Keras archive, `.keras` | `model.save("m.keras")` of Keras 2.12 and later, and 3 |
//! | JSON | `model.to_json()`; the model has no weights |
//!
//! A model must be a chain: `Sequential`, or functional with one input and one output for each
//! layer; two branches that an `Add` layer joins become a residual block. Models inside models are
//! flattened. A `TimeDistributed` layer becomes the layer inside it. An unsupported option that changes the outputs of the
//! model is an error that names the layer. An unsupported option that only matters in training (a
//! constraint, a frozen layer, dropout inside a recurrent layer) is ignored with a warning.

mod archive;
mod chain;
mod compile;
mod config;
mod error;
mod graph;
mod layers;
mod optimizer;
mod values;
mod weights;

use std::path::Path;

pub(crate) use config::LayerConfig;
pub use error::{KerasError, KerasErrorKind};
pub(crate) use weights::KerasArrays;

pub(crate) type Result<T> = std::result::Result<T, KerasErrorKind>;

use crate::{Layer, Loss, Optimizer, Schedule, Weight};

/// A model read from a Keras file.
#[derive(Clone, Debug, PartialEq)]
pub struct KerasModel {
    /// The layers, from the input to the output, with their Keras names. If the name of a layer in
    /// an inner model is taken, the name of the inner model is prepended.
    pub layers: Vec<Layer>,
    /// The shape of one sample; `None` where the file leaves a dimension open.
    pub input_shape: Option<Vec<usize>>,
    /// The arrays of all layers, in the layouts of [`Weight`]; empty if the file has none.
    pub weights: Vec<Weight>,
    /// The loss the model was compiled with.
    pub loss: Option<Loss>,
    /// The optimizer the model was compiled with.
    pub optimizer: Option<Optimizer>,
    /// The schedule of the optimizer's learning rate, if Keras has one.
    pub schedule: Option<Schedule>,
    /// Unsupported options that only matter in training, one sentence each.
    pub warnings: Vec<String>,
}

/// Major version of the Keras that wrote a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// Keras 2 and before.
    Two,
    /// Keras 3 and later.
    Three,
}

/// Reads a model from a Keras file.
///
/// ```no_run
/// # use std::path::Path;
/// let model = surefoot_plan::keras::load(Path::new("lenet.keras"))?;
/// println!("{} layers, {} arrays", model.layers.len(), model.weights.len());
/// # Ok::<(), surefoot_plan::keras::KerasError>(())
/// ```
pub fn load(path: &Path) -> std::result::Result<KerasModel, KerasError> {
    std::fs::read(path)
        .map_err(KerasErrorKind::Unreadable)
        .and_then(read)
        .map_err(|kind| KerasError { path: path.to_owned(), kind })
}

fn read(bytes: Vec<u8>) -> Result<KerasModel> {
    let archive = archive::open(bytes)?;
    let mut warnings = Vec::new();
    let chain = chain::flatten(&archive.model, &mut warnings)?;
    let layers = layers::convert(&chain, archive.version, &mut warnings)?;
    let weights = weights::read(archive.store.as_ref(), &chain.nodes, &layers)?;
    let compiled = compile::read(archive.training.as_ref(), &mut warnings);
    Ok(KerasModel {
        layers: layers::assemble(&chain.pieces, &layers),
        input_shape: chain.input.shape(),
        weights,
        loss: compiled.loss,
        optimizer: compiled.optimizer,
        schedule: compiled.schedule,
        warnings,
    })
}
