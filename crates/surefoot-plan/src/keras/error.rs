//! Errors of the Keras import.

use std::path::PathBuf;

use thiserror::Error;

/// A Keras file that cannot be imported.
#[derive(Debug, Error)]
#[error("`{}` {kind}", path.display())]
pub struct KerasError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub kind: KerasErrorKind,
}

/// Reason why a Keras file cannot be imported. Its message continues a sentence about the file.
#[derive(Debug, Error)]
pub enum KerasErrorKind {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(std::io::Error),
    /// The file is not a Keras model.
    #[error(
        "is not a Keras model: expected an HDF5 file (.h5), a Keras archive (.keras) or the JSON \
         of `model.to_json()`, found {found}"
    )]
    NotKeras {
        /// Content found instead.
        found: String,
    },
    /// The file has weights but no model.
    #[error(
        "has no model in it: expected the attribute `model_config`, found {found}; save the whole \
         model with `model.save(..)`, not `model.save_weights(..)`"
    )]
    NoModel {
        /// Content found instead.
        found: String,
    },
    /// Part of the file cannot be decoded.
    #[error("is damaged: {part}: {reason}")]
    Damaged {
        /// The part of the file.
        part: String,
        /// Cause.
        reason: String,
    },
    /// A subclassed model.
    #[error("holds a model of class `{class}`; only Sequential and Functional models can be read")]
    UnknownModel {
        /// Keras's name of the class.
        class: String,
    },
    /// A layer has several inputs or outputs.
    #[error("holds a model that is not a chain of layers: {reason}")]
    NotAChain {
        /// Layer at which the chain ends or branches.
        reason: String,
    },
    /// Layers of unknown classes.
    #[error(
        "has unsupported layers: {}; supported: {}",
        list_unknown(unknown),
        known.join(", ")
    )]
    UnknownLayers {
        /// Class and name of each unknown layer.
        unknown: Vec<(String, String)>,
        /// The supported classes.
        known: Vec<&'static str>,
    },
    /// A layer with an unsupported option.
    #[error("has a layer `{layer}` that cannot be represented: {reason}")]
    Unsupported {
        /// The layer's name.
        layer: String,
        /// The option, its value and the supported values.
        reason: String,
    },
    /// Weights that do not fit their layer.
    #[error("has wrong weights for layer `{layer}`: {reason}")]
    Weights {
        /// The layer's name.
        layer: String,
        /// Expected and found arrays.
        reason: String,
    },
}

impl KerasErrorKind {
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

/// Joins names for a sentence: `` `a`, `b` and `c` ``.
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
        let error = KerasErrorKind::UnknownLayers {
            unknown: [("Rescaling", "a"), ("Add", "b"), ("Rescaling", "c")]
                .map(|(class, name)| (class.to_owned(), name.to_owned()))
                .to_vec(),
            known: vec!["Dense", "Flatten"],
        };
        assert_eq!(
            error.to_string(),
            "has unsupported layers: Rescaling (`a` and `c`), Add (`b`); supported: Dense, Flatten"
        );
    }

    #[test]
    fn an_error_is_a_sentence_about_the_file() {
        let error = KerasError {
            path: "model.h5".into(),
            kind: KerasErrorKind::not_a_chain("it has 2 inputs"),
        };
        assert_eq!(
            error.to_string(),
            "`model.h5` holds a model that is not a chain of layers: it has 2 inputs"
        );
    }
}
