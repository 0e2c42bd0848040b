//! Keras models: files of Keras 2 and 3 as layers and weights.
//!
//! [`load`] reads three kinds of file and tells them apart by their content:
//!
//! | file | written by |
//! | --- | --- |
//! | HDF5, `.h5` or `.hdf5` | `model.save("m.h5")` of Keras 2 and 3 |
//! | Keras archive, `.keras` | `model.save("m.keras")` of Keras 2.12 and later, and 3 |
//! | JSON | `model.to_json()`; the model has no weights |
//!
//! A model must be a chain: `Sequential`, or functional with one input and one output for each
//! layer. Models inside models are flattened. What would change the model's outputs and has no
//! counterpart here is an error that names the layer; what only changes how Keras trains it (a
//! constraint, a frozen layer, dropout inside a recurrent layer) is left out with a warning.

mod archive;
mod chain;
mod compile;
mod error;
mod graph;
mod layers;
mod norms;
mod optimizer;
mod recurrent;
mod settings;
mod values;
mod weights;

use std::path::Path;

pub use error::{Fault, KerasError};

use crate::{Layer, Loss, Optimizer, Schedule, Weight};

/// A model read from a Keras file.
#[derive(Clone, Debug, PartialEq)]
pub struct KerasModel {
    /// The layers, from the input to the output. Each has the name it has in Keras; a layer of an
    /// inner model whose name is taken has the inner model's name before its own.
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
    /// What Keras would do in training and Surefoot does not, a sentence each.
    pub warnings: Vec<String>,
}

/// The Keras that wrote a file, where it makes a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// Keras 2 and before.
    Two,
    /// Keras 3 and later.
    Three,
}

/// Reads the model in a Keras file.
///
/// ```no_run
/// # use std::path::Path;
/// let model = surefoot_plan::keras::load(Path::new("lenet.keras"))?;
/// println!("{} layers, {} arrays", model.layers.len(), model.weights.len());
/// # Ok::<(), surefoot_plan::keras::KerasError>(())
/// ```
pub fn load(path: &Path) -> Result<KerasModel, KerasError> {
    std::fs::read(path)
        .map_err(Fault::Unreadable)
        .and_then(read)
        .map_err(|fault| KerasError { path: path.to_owned(), fault })
}

fn read(bytes: Vec<u8>) -> Result<KerasModel, Fault> {
    let archive = archive::open(bytes)?;
    let mut warnings = Vec::new();
    let chain = chain::flatten(&archive.model, &mut warnings)?;
    let layers = layers::convert(&chain, archive.version, &mut warnings)?;
    let weights = weights::read(archive.store.as_ref(), &chain.nodes, &layers)?;
    let compiled = compile::read(archive.training.as_ref(), &mut warnings);
    Ok(KerasModel {
        layers,
        input_shape: chain.input.shape(),
        weights,
        loss: compiled.loss,
        optimizer: compiled.optimizer,
        schedule: compiled.schedule,
        warnings,
    })
}
