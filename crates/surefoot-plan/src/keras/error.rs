//! What can be wrong with a Keras file.

use std::path::PathBuf;

use thiserror::Error;

/// A Keras file that cannot be used, and why.
#[derive(Debug, Error)]
#[error("`{}` {fault}", path.display())]
pub struct KerasError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with a Keras file. Reads as the predicate of a sentence about the file.
#[derive(Debug, Error)]
pub enum Fault {
    /// The operating system refused.
    #[error("cannot be read: {0}")]
    Unreadable(std::io::Error),
    /// The content is of another kind.
    #[error(
        "is not a Keras model: expected an HDF5 file (.h5), a Keras archive (.keras) or the JSON \
         of `model.to_json()`, found {found}"
    )]
    NotKeras {
        /// What was found instead.
        found: String,
    },
    /// There are weights, but not what they belong to.
    #[error(
        "has no model in it: expected the attribute `model_config`, found {found}; save the whole \
         model with `model.save(..)`, not `model.save_weights(..)`"
    )]
    NoModel {
        /// What was found instead.
        found: String,
    },
    /// A part of the file cannot be understood.
    #[error("is damaged: {part}: {reason}")]
    Damaged {
        /// The part of the file.
        part: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A model that Keras itself cannot rebuild from the file alone.
    #[error("holds a model of class `{class}`; only Sequential and Functional models can be read")]
    UnknownModel {
        /// Keras's name of the class.
        class: String,
    },
    /// Layers with several inputs or outputs.
    #[error("holds a model that is not a chain of layers: {reason}")]
    NotAChain {
        /// Where the chain ends or branches.
        reason: String,
    },
    /// Layers without a counterpart.
    #[error(
        "has layers that Surefoot does not know: {}; it knows {}",
        list_unknown(unknown),
        known.join(", ")
    )]
    UnknownLayers {
        /// Class and name of each layer that is not known.
        unknown: Vec<(String, String)>,
        /// The classes that are known.
        known: Vec<&'static str>,
    },
    /// A known layer with a setting that has no counterpart.
    #[error("has a layer `{layer}` that cannot be represented: {reason}")]
    Unsupported {
        /// The layer's name.
        layer: String,
        /// The setting, its value and what is possible.
        reason: String,
    },
    /// Weights that do not belong to the layer they are stored for.
    #[error("has wrong weights for layer `{layer}`: {reason}")]
    Weights {
        /// The layer's name.
        layer: String,
        /// What was expected and what was found.
        reason: String,
    },
}

impl Fault {
    pub(super) fn damaged(part: impl Into<String>, reason: impl ToString) -> Self {
        Self::Damaged { part: part.into(), reason: reason.to_string() }
    }

    pub(super) fn unsupported(layer: &str, reason: impl Into<String>) -> Self {
        Self::Unsupported { layer: layer.to_owned(), reason: reason.into() }
    }

    pub(super) fn weights(layer: &str, reason: impl ToString) -> Self {
        Self::Weights { layer: layer.to_owned(), reason: reason.to_string() }
    }

    pub(super) fn not_a_chain(reason: impl Into<String>) -> Self {
        Self::NotAChain { reason: reason.into() }
    }
}

/// Each class once, with the names of its layers.
fn list_unknown(unknown: &[(String, String)]) -> String {
    let mut classes: Vec<&str> = Vec::new();
    for (class, _) in unknown {
        if !classes.contains(&class.as_str()) {
            classes.push(class);
        }
    }
    let entries: Vec<String> = classes
        .iter()
        .map(|class| {
            let names: Vec<&str> = unknown
                .iter()
                .filter(|(other, _)| other == class)
                .map(|(_, name)| name.as_str())
                .collect();
            format!("{class} ({})", quoted(&names))
        })
        .collect();
    entries.join(", ")
}

/// Names for a sentence: `` `a`, `b` and `c` ``.
pub(super) fn quoted(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_classes_are_named_once_with_their_layers() {
        let fault = Fault::UnknownLayers {
            unknown: [("Rescaling", "a"), ("Add", "b"), ("Rescaling", "c")]
                .map(|(class, name)| (class.to_owned(), name.to_owned()))
                .to_vec(),
            known: vec!["Dense", "Flatten"],
        };
        assert_eq!(
            fault.to_string(),
            "has layers that Surefoot does not know: Rescaling (`a` and `c`), Add (`b`); it knows \
             Dense, Flatten"
        );
    }

    #[test]
    fn an_error_is_a_sentence_about_the_file() {
        let error =
            KerasError { path: "model.h5".into(), fault: Fault::not_a_chain("it has 2 inputs") };
        assert_eq!(
            error.to_string(),
            "`model.h5` holds a model that is not a chain of layers: it has 2 inputs"
        );
    }
}
