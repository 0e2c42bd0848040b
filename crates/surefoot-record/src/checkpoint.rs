//! Everything the next step depends on, in one file that is whole or not there.
//!
//! A checkpoint file is: 8 bytes of magic, the version and the length of the header (`u32` each,
//! little-endian like all else), a JSON header padded to a multiple of 8, the arrays' raw numbers,
//! and the XXH3-128 of all that. It is written to a temporary name, synchronised and renamed.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use atomic_write_file::AtomicWriteFile;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::array::{Array, Kind, Values, element_count, put_all};
use crate::digest::{Digest, StateDigest};
use crate::error::{Error, Result};

const MAGIC: [u8; 8] = *b"SUREFOOT";
const VERSION: u32 = 1;
const PREFIX: usize = MAGIC.len() + 4 + 4;
const CHECKSUM: usize = 16;

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

    /// Writes a file of its own, outside of any record.
    ///
    /// The file is durable when this returns, and a file that stood there before is replaced at
    /// once or not at all.
    pub fn write(&self, path: &Path) -> Result<()> {
        write_stored(path, self, Digest(0), Marks::default())
    }

    /// Reads a file and verifies its checksum.
    pub fn read(path: &Path) -> Result<Checkpoint> {
        Ok(read_stored(path)?.checkpoint)
    }
}

/// How many rows the files of the record had when a checkpoint was taken. Resuming cuts them there.
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
    arrays: Vec<ArrayHeader>,
    state: serde_json::Value,
}

#[derive(Serialize, Deserialize)]
struct ArrayHeader {
    name: String,
    shape: Vec<usize>,
    kind: Kind,
    /// In bytes from the start of the payload.
    offset: usize,
}

pub(crate) fn write_stored(
    path: &Path,
    checkpoint: &Checkpoint,
    plan_digest: Digest,
    marks: Marks,
) -> Result<()> {
    let header = header_bytes(checkpoint, plan_digest, marks)?;
    let file = AtomicWriteFile::open(path).map_err(Error::io("create", path))?;
    let mut out = Hashing {
        inner: BufWriter::with_capacity(1 << 16, file),
        hasher: Xxh3::new(),
    };
    let write = |out: &mut Hashing<_>| -> io::Result<()> {
        out.write_all(&header)?;
        for array in &checkpoint.arrays {
            write_values(out, &array.data)?;
        }
        let checksum = out.hasher.digest128();
        out.write_all(&checksum.to_le_bytes())
    };
    write(&mut out)
        .and_then(|()| out.inner.into_inner().map_err(|e| e.into_error()))
        .and_then(AtomicWriteFile::commit)
        .map_err(Error::io("write", path))
}

fn header_bytes(checkpoint: &Checkpoint, plan_digest: Digest, record: Marks) -> Result<Vec<u8>> {
    let mut arrays = Vec::with_capacity(checkpoint.arrays.len());
    let mut offset = 0;
    for array in &checkpoint.arrays {
        array.check()?;
        let kind = array.data.kind();
        arrays.push(ArrayHeader {
            name: array.name.clone(),
            shape: array.shape.clone(),
            kind,
            offset,
        });
        offset += array.data.len() * kind.size();
    }
    let header = FileHeader {
        step: checkpoint.step,
        epoch: checkpoint.epoch,
        plan_digest,
        record,
        arrays,
        state: checkpoint.state.clone(),
    };
    let unrecordable = |reason: String| Error::Unrecordable {
        what: "the state of a checkpoint".to_owned(),
        reason,
    };
    let mut json = serde_json::to_vec(&header).map_err(|e| unrecordable(e.to_string()))?;
    json.resize(json.len().next_multiple_of(8), b' ');
    let length = u32::try_from(json.len())
        .map_err(|_| unrecordable("it is larger than 4 GB; put numbers into arrays".to_owned()))?;

    let mut bytes = Vec::with_capacity(PREFIX + json.len());
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(json);
    Ok(bytes)
}

/// The little-endian bytes of the numbers, without a second copy of them all.
fn write_values(out: &mut impl Write, values: &Values) -> io::Result<()> {
    const CHUNK: usize = 4096;
    fn chunks<T: Copy, const N: usize>(
        out: &mut impl Write,
        values: &[T],
        to_bytes: impl Fn(T) -> [u8; N],
    ) -> io::Result<()> {
        let mut buffer = Vec::with_capacity(CHUNK * N);
        for chunk in values.chunks(CHUNK) {
            buffer.clear();
            put_all(&mut buffer, chunk, &to_bytes);
            out.write_all(&buffer)?;
        }
        Ok(())
    }
    match values {
        Values::F32(values) => chunks(out, values, f32::to_le_bytes),
        Values::F64(values) => chunks(out, values, f64::to_le_bytes),
        Values::U64(values) => chunks(out, values, u64::to_le_bytes),
    }
}

pub(crate) fn read_stored(path: &Path) -> Result<Stored> {
    let bytes = fs::read(path).map_err(Error::io("read", path))?;
    parse(path, &bytes)
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Stored> {
    let damaged = |reason: &str| Error::damaged(path, reason);
    let short = || damaged("it ends too early");
    if !bytes.starts_with(&MAGIC) {
        return Err(damaged("it is not a checkpoint"));
    }
    // Before the checksum, which a later version may compute otherwise.
    let version = read_u32(bytes, MAGIC.len()).ok_or_else(short)?;
    if version > VERSION {
        return Err(Error::Newer {
            path: path.to_owned(),
            found: version,
            known: VERSION,
        });
    }
    let (content, checksum) = bytes.split_last_chunk::<CHECKSUM>().ok_or_else(short)?;
    if xxhash_rust::xxh3::xxh3_128(content) != u128::from_le_bytes(*checksum) {
        return Err(damaged("its checksum does not agree with its content"));
    }
    let length = read_u32(content, MAGIC.len() + 4).ok_or_else(short)? as usize;
    let rest = content.get(PREFIX..).ok_or_else(short)?;
    let (json, payload) = rest.split_at_checked(length).ok_or_else(short)?;
    let header: FileHeader =
        serde_json::from_slice(json).map_err(|error| Error::damaged(path, error))?;

    let mut arrays = Vec::with_capacity(header.arrays.len());
    for array in header.arrays {
        let data = element_count(&array.shape)
            .and_then(|count| count.checked_mul(array.kind.size()))
            .and_then(|size| array.offset.checked_add(size))
            .and_then(|end| payload.get(array.offset..end))
            .ok_or_else(short)?;
        arrays.push(Array {
            data: Values::from_bytes(array.kind, data),
            name: array.name,
            shape: array.shape,
        });
    }
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

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*bytes))
}

/// Hashes what passes through.
struct Hashing<W> {
    inner: W,
    hasher: Xxh3,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
pub(crate) mod tests {
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
        let marks = Marks {
            steps: 1,
            layers: 2,
            digests: 4,
        };
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
    fn whatever_is_cut_or_flipped_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.ckpt");
        sample(12).write(&path).unwrap();
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            assert!(parse(&path, &whole[..length]).is_err(), "cut at {length}");
        }
        for at in 0..whole.len() {
            let mut torn = whole.clone();
            torn[at] ^= 0x10;
            assert!(parse(&path, &torn).is_err(), "flipped at {at}");
        }
        let mut longer = whole.clone();
        longer.push(0);
        assert!(parse(&path, &longer).is_err());
        assert!(parse(&path, &whole).is_ok());
    }

    #[test]
    fn a_newer_version_asks_for_a_newer_surefoot() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.ckpt");
        sample(1).write(&path).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        bytes[MAGIC.len()] = 2;
        let error = parse(&path, &bytes).unwrap_err();
        assert!(matches!(error, Error::Newer { found: 2, .. }));
        assert!(error.to_string().contains("use a newer surefoot"));
    }

    #[test]
    fn a_wrong_shape_is_refused_before_anything_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.ckpt");
        let mut checkpoint = sample(1);
        checkpoint.arrays[0].shape = vec![3];
        assert!(checkpoint.write(&path).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
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
