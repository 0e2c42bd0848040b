//! Checkpoints: the complete training state in one safetensors file.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::array::Array;
use crate::digest::{Digest, StateDigest};
use crate::error::Result;
use crate::tensor_file::Format;

const FORMAT: Format = Format { kind: "checkpoint", version: 3 };

/// Everything the next step of a run depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The number of optimizer steps done.
    pub step: u64,
    /// The epoch the next step belongs to.
    pub epoch: u64,
    /// Whatever is not an array. JSON has no NaN or infinity: numbers that can be such belong in
    /// [`Checkpoint::arrays`].
    pub state: serde_json::Value,
    /// Parameters, optimizer state, normalisation statistics.
    pub arrays: Vec<Array>,
}

impl Checkpoint {
    /// The array of that name.
    pub fn array(&self, name: &str) -> Option<&Array> {
        self.arrays.iter().find(|array| array.name == name)
    }

    /// The digest of all that the checkpoint holds, wherever it is stored.
    pub fn digest(&self) -> Digest {
        let mut digest = StateDigest::new();
        digest.update_u64("step", self.step);
        digest.update_u64("epoch", self.epoch);
        digest.update("state", self.state.to_string().as_bytes());
        for array in &self.arrays {
            array.digest_into(&mut digest);
        }
        digest.finish()
    }

    /// Writes the checkpoint to a file outside a record.
    ///
    /// The file is durable when this returns. An existing file is replaced atomically.
    pub fn write(&self, path: &Path) -> Result<()> {
        write_stored(path, self, Digest(0), Marks::default())
    }

    /// Reads a file and verifies its checksum.
    pub fn read(path: &Path) -> Result<Checkpoint> {
        Ok(read_stored(path)?.checkpoint)
    }
}

/// Number of rows in the files of the record when the checkpoint was taken. Resuming truncates to
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marks {
    pub(crate) steps: u64,
    pub(crate) layers: u64,
    pub(crate) digests: u64,
}

/// A checkpoint with what ties it to its record.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) checkpoint: Checkpoint,
    pub(crate) plan_digest: Digest,
    pub(crate) marks: Marks,
}

#[derive(Serialize, Deserialize)]
struct FileHeader {
    step: u64,
    epoch: u64,
    plan_digest: Digest,
    record: Marks,
    state: serde_json::Value,
}

pub(crate) fn write_stored(
    path: &Path,
    checkpoint: &Checkpoint,
    plan_digest: Digest,
    marks: Marks,
) -> Result<()> {
    let header = FileHeader {
        step: checkpoint.step,
        epoch: checkpoint.epoch,
        plan_digest,
        record: marks,
        state: checkpoint.state.clone(),
    };
    FORMAT.write(path, &header, &checkpoint.arrays)
}

pub(crate) fn read_stored(path: &Path) -> Result<Stored> {
    let (header, arrays): (FileHeader, _) = FORMAT.read(path)?;
    Ok(Stored {
        checkpoint: Checkpoint {
            step: header.step,
            epoch: header.epoch,
            state: header.state,
            arrays,
        },
        plan_digest: header.plan_digest,
        marks: header.record,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    pub(crate) fn sample(step: u64) -> Checkpoint {
        Checkpoint {
            step,
            epoch: step / 10,
            state: json!({"position": step, "best": 0.1, "schedule": [1, 2]}),
            arrays: vec![
                Array::new("w", &[2, 2], vec![1.0_f32, -2.5, f32::NAN, f32::INFINITY]),
                Array::new("loss", &[], vec![f64::NEG_INFINITY]),
                Array::new("order", &[3], vec![u64::MAX, 0, step]),
                Array::new("empty", &[0, 4], Vec::<f32>::new()),
            ],
        }
    }

    fn bits(checkpoint: &Checkpoint) -> Digest {
        checkpoint.digest()
    }

    #[test]
    fn a_checkpoint_is_read_back_to_the_bit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.ckpt");
        let checkpoint = sample(12);
        let marks = Marks { steps: 1, layers: 2, digests: 4 };
        write_stored(&path, &checkpoint, Digest(9), marks).unwrap();
        let stored = read_stored(&path).unwrap();
        assert_eq!(bits(&stored.checkpoint), bits(&checkpoint));
        assert_eq!(stored.checkpoint.state, checkpoint.state);
        assert_eq!(stored.plan_digest, Digest(9));
        assert_eq!(stored.marks, marks);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_array_is_found_by_name() {
        let checkpoint = sample(1);
        assert_eq!(checkpoint.array("loss").map(|a| a.data.len()), Some(1));
        assert!(checkpoint.array("none").is_none());
        assert!(checkpoint.array("w").and_then(Array::as_f32).is_some());
        assert!(checkpoint.array("loss").and_then(Array::as_f32).is_none());
    }

    #[test]
    fn the_digest_is_of_the_content_and_not_of_where_it_stands() {
        let one = sample(3);
        assert_eq!(one.digest(), sample(3).digest());
        assert_ne!(one.digest(), sample(4).digest());
        let mut other = sample(3);
        other.state["best"] = json!(0.2);
        assert_ne!(one.digest(), other.digest());
    }
}
