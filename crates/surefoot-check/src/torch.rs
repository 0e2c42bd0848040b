//! The nondeterministic operations of an installed PyTorch.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The operations that an installed PyTorch documents as nondeterministic.
///
/// The list is read from the documentation of `torch.use_deterministic_algorithms`, which differs between
/// versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorchOperations {
    /// Names, without underscores and in lower case.
    names: BTreeSet<String>,
}

/// Error for a folder without a readable PyTorch.
#[derive(Debug, thiserror::Error)]
pub enum TorchListError {
    /// The module cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: std::io::Error,
    },
    /// The module has no list.
    #[error("{} has no list of nondeterministic operations", .0.display())]
    NoList(PathBuf),
}

impl TorchOperations {
    /// Reads the list of the PyTorch in a folder: `site-packages/torch`.
    pub fn read(folder: &Path) -> Result<TorchOperations, TorchListError> {
        let path = folder.join("__init__.py");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => return Err(TorchListError::Unreadable { path, error }),
        };
        let documentation = || {
            let function = text.split_once("def use_deterministic_algorithms(")?.1;
            function.split("\"\"\"").nth(1)
        };
        match documentation() {
            Some(documentation) => Ok(TorchOperations { names: names(documentation) }),
            None => Err(TorchListError::NoList(path)),
        }
    }

    /// Reads the list of the PyTorch in a virtual environment, if it has one.
    pub fn of_environment(environment: &Path) -> Option<TorchOperations> {
        let versions = fs::read_dir(environment.join("lib")).ok()?.flatten();
        let mut folders: Vec<PathBuf> =
            versions.map(|version| version.path().join("site-packages").join("torch")).collect();
        folders.sort();
        folders.iter().find_map(|folder| Self::read(folder).ok())
    }

    /// Returns true if an operation is on the list, by its name or by a phrase that ends with it. A name
    /// without dimensions matches any.
    pub(crate) fn has(&self, operation: &str) -> bool {
        let name = match operation.rsplit(' ').next() {
            // The list names the function and its modes.
            Some("interpolation") => "interpolate",
            Some(name) => name,
            None => operation,
        };
        let name = normalize(name);
        let ends = ["", "1d", "2d", "3d"];
        ends.iter().any(|end| self.names.contains(&format!("{name}{end}")))
    }
}

/// Names in a list: `* :func:`torch.histc` when called on a CUDA tensor`. Entries about other devices only
/// are left out.
fn names(documentation: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in documentation.split("* :").skip(1) {
        let is_elsewhere = ["MPS", "CPU", "quantized"].iter().any(|it| entry.contains(it));
        if is_elsewhere && !entry.contains("CUDA") {
            continue;
        }
        let quoted = entry.split('`').skip(1).step_by(2);
        let functions = quoted.filter(|it| it.starts_with("torch."));
        names.extend(functions.filter_map(|it| it.rsplit('.').next()).map(normalize));
    }
    names
}

/// Normalizes a name, so that `adaptive_avg_pool2d` equals `AdaptiveAvgPool2d`.
fn normalize(text: &str) -> String {
    text.replace('_', "").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(module: &str) -> tempfile::TempDir {
        let environment = tempfile::tempdir().unwrap();
        let folder = environment.path().join("lib/python3.12/site-packages/torch");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("__init__.py"), module).unwrap();
        environment
    }

    #[test]
    fn operations_are_read_from_the_installed_version() {
        let environment = installed(
            "def use_deterministic_algorithms(mode):\n    r\"\"\"Sets it.\n\n    \
             * :class:`torch.nn.AdaptiveAvgPool2d` on CUDA\n    \
             * :func:`torch.nn.functional.interpolate` with `bilinear`\n    \"\"\"\n    histc()\n",
        );
        let operations = TorchOperations::of_environment(environment.path()).unwrap();
        assert!(operations.has("the gradient of AdaptiveAvgPool2d"));
        assert!(operations.has("the gradient of adaptive_avg_pool2d"));
        assert!(operations.has("the gradient of a bilinear interpolation"));
        assert!(!operations.has("histc"));
    }

    #[test]
    fn other_devices_are_left_out() {
        let environment = installed(
            "def use_deterministic_algorithms(mode):\n    r\"\"\"Sets it and puts the output out.\n\n    \
             * :func:`torch.Tensor.index_put` with ``accumulate=False``\n    \
             * :class:`torch.nn.ReflectionPad1d` when attempting to differentiate a CUDA tensor\n    \
             * :func:`torch.kthvalue` when called on an MPS tensor\n    \
             * :func:`torch.bincount` when called on a CUDA tensor and ``weights``\n      tensor is given\n    \"\"\"\n",
        );
        let operations = TorchOperations::of_environment(environment.path()).unwrap();
        assert!(operations.has("index_put"));
        assert!(!operations.has("put_"));
        assert!(operations.has("the gradient of ReflectionPad"));
        assert!(!operations.has("kthvalue"));
        assert!(operations.has("a weighted bincount"));
    }

    #[test]
    fn a_folder_without_the_list_is_an_error() {
        let environment = installed("version = 1\n");
        assert_eq!(TorchOperations::of_environment(environment.path()), None);
        let folder = environment.path().join("lib/python3.12/site-packages/torch");
        let error = TorchOperations::read(&folder).unwrap_err().to_string();
        assert!(error.contains("__init__.py has no list"), "{error}");
    }
}
