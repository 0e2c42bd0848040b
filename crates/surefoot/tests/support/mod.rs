//! Runs the real command in a folder of its own.
#![allow(dead_code, reason = "every test file uses its own part")]

pub(crate) mod search;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// A folder with plans, data and runs, gone after the test.
pub(crate) struct Folder {
    dir: TempDir,
}

/// Exit code and output of a command.
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// A folder with one file.
    pub(crate) fn with(name: &str, content: &str) -> Self {
        let folder = Self::new();
        folder.write(name, content);
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_surefoot"));
        command
            .args(arguments)
            .current_dir(self.path())
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        self.command(arguments).output().unwrap().into()
    }

    /// Starts a command without waiting for it.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// Trains and gives the digest.
    pub(crate) fn digest(&self, arguments: &[&str]) -> String {
        let outcome = self.run(&[&["train", "--json"], arguments].concat());
        assert!(matches!(outcome.code, Some(0 | 1)), "{}", outcome.stderr);
        outcome.summary()["digest"].as_str().unwrap().to_owned()
    }

    /// The run directories.
    pub(crate) fn runs(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path().join("runs"));
        let names = entries.into_iter().flatten().map(|entry| {
            let name = entry.unwrap().file_name();
            name.into_string().unwrap()
        });
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Outcome {
    /// The lines of JSON on stdout.
    pub(crate) fn events(&self) -> Vec<Value> {
        let lines = self.stdout.lines();
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The last line of JSON.
    pub(crate) fn summary(&self) -> Value {
        let summary = self.events().pop().unwrap_or_default();
        assert_eq!(summary["event"], "summary", "{}{}", self.stdout, self.stderr);
        summary
    }

    /// Everything that was printed, for a snapshot.
    pub(crate) fn shown(&self) -> String {
        let code = self.code.map_or("signal".to_owned(), |code| code.to_string());
        format!(
            "exit code: {code}\n----- stdout -----\n{}----- stderr -----\n{}",
            self.stdout, self.stderr
        )
    }
}

/// The plans of `examples/`.
pub(crate) fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut plans: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    plans.sort();
    assert!(!plans.is_empty());
    plans
}

/// A healthy little plan: 32 steps.
pub(crate) const CIRCLES: &str = r#"name = "circles"
seed = 3

[data]
source = { kind = "circles", samples = 160 }
scale = "standardise"

[[model]]
layer = "dense"
units = 8
activation = "relu"

[[model]]
layer = "dense"
units = 1
activation = "sigmoid"

[training]
epochs = 8
optimizer = { name = "adam", learning_rate = 0.02 }
"#;

/// Dropout, momentum and a test split; takes a while, with many checkpoints.
pub(crate) const LONG: &str = r#"name = "long"
seed = 5

[data]
source = { kind = "moons", samples = 400 }
split = { validation = 0.2, test = 0.1 }

[[model]]
layer = "dense"
units = 24
activation = "tanh"

[[model]]
layer = "dropout"
rate = 0.2

[[model]]
layer = "dense"
units = 1
activation = "sigmoid"

[training]
epochs = 150
batch_size = 16
optimizer = { name = "nadam", learning_rate = 0.01 }
shards = 4
checkpoint_every = 50
"#;

/// Batch statistics over shards.
pub(crate) const BATCH_NORM: &str = r#"name = "cnn"
seed = 9

[data]
source = { kind = "shapes", samples = 60, size = 8, classes = 3 }

[[model]]
layer = "conv2d"
filters = 4
kernel_size = 3
padding = "same"

[[model]]
layer = "batch_norm"

[[model]]
layer = "activation"
activation = "relu"

[[model]]
layer = "dropout"
rate = 0.3

[[model]]
layer = "global_average_pool"

[[model]]
layer = "dense"
units = 3
activation = "softmax"

[training]
epochs = 4
batch_size = 16
shards = 4
"#;

/// A model with weights, written by Keras: three features in, two outputs.
pub(crate) const KERAS_FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../surefoot-plan/tests/keras/fixtures/keras3_h5_nested.h5"
);

/// A plan for it.
pub(crate) const KERAS_PLAN: &str = r#"
[data]
source = { kind = "blobs", samples = 60, centers = 2, features = 3 }

[training]
epochs = 1500
loss = "mse"
"#;

/// Sigmoids so deep that no gradient reaches the first of them, which is found in the first epoch,
/// after some checkpoints. S2 repairs it.
pub(crate) const FAULTY: &str = r#"name = "deep"
seed = 3

[data]
source = { kind = "circles", samples = 2000, noise = 0.05 }
scale = "standardise"
split = { validation = 0.2, test = 0.1 }

[[model]]
layer = "dense"
units = 8
activation = "sigmoid"

[[model]]
layer = "dense"
units = 8
activation = "sigmoid"

[[model]]
layer = "dense"
units = 8
activation = "sigmoid"

[[model]]
layer = "dense"
units = 8
activation = "sigmoid"

[[model]]
layer = "dense"
units = 8
activation = "sigmoid"

[[model]]
layer = "dense"
units = 8
activation = "sigmoid"

[[model]]
layer = "dense"
units = 8
activation = "sigmoid"

[[model]]
layer = "dense"
units = 1
activation = "sigmoid"

[training]
epochs = 20
checkpoint_every = 12

[repair]
order = ["activation"]
"#;
