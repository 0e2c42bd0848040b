//! Capsules: one step of a run in a file that can be repeated anywhere.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::array::Array;
use crate::digest::Digest;
use crate::error::Result;
use crate::header::Environment;
use crate::step_digest::Part;
use crate::tensor_file::Format;

const FORMAT: Format = Format { kind: "capsule", version: 2 };

/// One step of a run, with the state before it and the samples it trained on.
///
/// A capsule is a safetensors file like a checkpoint. It needs neither the run nor the data.
#[derive(Clone, Debug, PartialEq)]
pub struct Capsule {
    /// Facts of the step.
    pub facts: CapsuleFacts,
    /// The state before the step, under the names of a checkpoint with `state.` before them, and
    /// the batch: `batch.features`, `batch.targets`, `batch.samples`.
    pub arrays: Vec<Array>,
}

/// Facts of the step in a [`Capsule`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapsuleFacts {
    /// The step; the first is 1.
    pub step: u64,
    /// The epoch it belongs to; the first is 1.
    pub epoch: u64,
    /// The run it was taken from, for people.
    pub run: String,
    /// The plan of the run.
    pub plan: String,
    /// Environment of the run.
    pub environment: Environment,
    /// Parts of the digest, in order.
    pub digest_parts: Vec<Part>,
    /// The recorded digest of the state after the step.
    pub digest: Digest,
    /// And those of its parts.
    pub parts: Vec<u64>,
    /// Further data for the trainer: sample shape, number of steps and shards.
    pub training: serde_json::Value,
}

impl Capsule {
    /// The array of that name.
    pub fn array(&self, name: &str) -> Option<&Array> {
        self.arrays.iter().find(|array| array.name == name)
    }

    /// Writes the file, durably and at once.
    pub fn write(&self, path: &Path) -> Result<()> {
        FORMAT.write(path, &self.facts, &self.arrays)
    }

    /// Reads a file and verifies its checksum.
    pub fn read(path: &Path) -> Result<Capsule> {
        let (facts, arrays) = FORMAT.read(path)?;
        Ok(Capsule { facts, arrays })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::step_digest::Quantity;

    #[test]
    fn a_capsule_is_read_back_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.capsule");
        let capsule = Capsule {
            facts: CapsuleFacts {
                step: 7,
                epoch: 2,
                run: "runs/x-001".to_owned(),
                plan: "seed = 1\n".to_owned(),
                environment: Environment::detect(),
                digest_parts: vec![Part::of(Quantity::Loss)],
                digest: Digest(u128::MAX - 5),
                parts: vec![f64::NAN.to_bits()],
                training: json!({"shards": 4}),
            },
            arrays: vec![Array::new("batch.samples", &[2], vec![5_u64, 9])],
        };
        capsule.write(&path).unwrap();
        assert_eq!(Capsule::read(&path).unwrap(), capsule);
    }

    #[test]
    fn a_checkpoint_is_no_capsule() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.ckpt");
        crate::checkpoint::tests::sample(1).write(&path).unwrap();
        let error = Capsule::read(&path).unwrap_err().to_string();
        assert!(error.ends_with("it is not a capsule"), "{error}");
    }
}
