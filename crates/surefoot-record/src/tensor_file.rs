//! Arrays in safetensors files: the delivered model, checkpoints and capsules.
//!
//! Checkpoints and capsules carry a header and a checksum as JSON in the metadata entry `surefoot`,
//! so every safetensors reader opens them. Files are written under a temporary name, synchronized
//! and renamed.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::Write;
use std::path::Path;

use atomic_write_file::AtomicWriteFile;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::array::{Array, Values};
use crate::digest::{Digest, StateDigest};
use crate::error::{Error, Result};
use crate::layout::read_if_there;

/// Metadata key of the header. A file has one key: the order of several would be random.
const KEY: &str = "surefoot";

/// Kind of a file with a header.
pub(crate) struct Format {
    /// Identifier in the file: `checkpoint`.
    pub(crate) kind: &'static str,
    /// The only version that can be read.
    pub(crate) version: u32,
}

#[derive(Serialize, Deserialize)]
struct Contents {
    kind: String,
    version: u32,
    /// Array names in their order: safetensors sorts the arrays.
    arrays: Vec<String>,
    header: String,
    checksum: Digest,
}

impl Contents {
    /// Checksum of the header and all arrays.
    fn checksum(&self, arrays: &[Array]) -> Digest {
        let mut digest = StateDigest::new();
        digest.update("kind", self.kind.as_bytes());
        digest.update_u64("version", self.version.into());
        digest.update("header", self.header.as_bytes());
        arrays.iter().for_each(|array| array.digest_into(&mut digest));
        digest.finish()
    }

    /// Reads the arrays in their order and verifies the checksum.
    fn arrays(&self, path: &Path, bytes: &[u8]) -> Result<Vec<Array>> {
        let mut arrays = decode(path, bytes)?;
        let names = self.arrays.iter().enumerate();
        let place: HashMap<&str, usize> = names.map(|(i, name)| (name.as_str(), i)).collect();
        arrays.sort_by_key(|array| place.get(array.name.as_str()).copied());
        let complete = arrays.iter().map(|array| &array.name).eq(&self.arrays);
        match complete && self.checksum(&arrays) == self.checksum {
            true => Ok(arrays),
            false => Err(Error::damaged(path, "its checksum does not match its content")),
        }
    }
}

impl Format {
    /// Writes a file durably and atomically.
    pub(crate) fn write<H: Serialize>(
        &self,
        path: &Path,
        header: &H,
        arrays: &[Array],
    ) -> Result<()> {
        let failed = |error: serde_json::Error| unrecordable(self.kind, error);
        let mut contents = Contents {
            kind: self.kind.to_owned(),
            version: self.version,
            arrays: arrays.iter().map(|array| array.name.clone()).collect(),
            header: serde_json::to_string(header).map_err(failed)?,
            checksum: Digest(0),
        };
        contents.checksum = contents.checksum(arrays);
        let text = serde_json::to_string(&contents).map_err(failed)?;
        write_atomically(path, &encode(self.kind, arrays, Some((KEY.to_owned(), text)))?)
    }

    /// Reads a file and verifies its checksum.
    pub(crate) fn read<H: DeserializeOwned>(&self, path: &Path) -> Result<(H, Vec<Array>)> {
        let bytes = fs::read(path).map_err(Error::io("read", path))?;
        self.parse(path, &bytes)
    }

    fn parse<H: DeserializeOwned>(&self, path: &Path, bytes: &[u8]) -> Result<(H, Vec<Array>)> {
        if bytes.is_empty() {
            return Err(Error::damaged(path, "it is empty"));
        }
        let (_, metadata) = SafeTensors::read_metadata(bytes)
            .map_err(|error| Error::damaged(path, format!("it is not a {}: {error}", self.kind)))?;
        let text = metadata.metadata().as_ref().and_then(|metadata| metadata.get(KEY));
        let value: serde_json::Value = text
            .and_then(|text| serde_json::from_str(text).ok())
            .filter(|value: &serde_json::Value| value["kind"] == self.kind)
            .ok_or_else(|| Error::damaged(path, format!("it is not a {}", self.kind)))?;
        let Some(found) = value["version"].as_u64().and_then(|found| u32::try_from(found).ok())
        else {
            return Err(Error::damaged(path, "it has no version"));
        };
        let contents: Result<Contents> =
            serde_json::from_value(value).map_err(|error| Error::damaged(path, error));
        let arrays = match &contents {
            Ok(contents) => Some(contents.arrays(path, bytes)?),
            Err(_) => None,
        };
        let known = self.version;
        if found != known {
            let path = path.to_owned();
            return Err(match found > known {
                true => Error::Newer { path, found, known },
                false => Error::Older { path, found, known },
            });
        }
        let contents = contents?;
        let arrays = arrays.unwrap_or_default();
        let header =
            serde_json::from_str(&contents.header).map_err(|error| Error::damaged(path, error))?;
        Ok((header, arrays))
    }
}

/// Writes the delivered model. The same arrays in any order make the same bytes.
pub(crate) fn write_model(path: &Path, arrays: &[Array]) -> Result<()> {
    write_atomically(path, &encode("model", arrays, None)?)
}

/// Reads the arrays of a model, sorted by name; `None` if there is no file.
pub(crate) fn read_model(path: &Path) -> Result<Option<Vec<Array>>> {
    let Some(bytes) = read_if_there(path)? else {
        return Ok(None);
    };
    let mut arrays = decode(path, &bytes)?;
    arrays.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Some(arrays))
}

fn encode(what: &str, arrays: &[Array], metadata: Option<(String, String)>) -> Result<Vec<u8>> {
    let mut names = BTreeSet::new();
    let mut parts = Vec::with_capacity(arrays.len());
    for array in arrays {
        array.check()?;
        if !names.insert(&array.name) {
            return Err(unrecordable(what, format!("it has two arrays `{}`", array.name)));
        }
        parts.push((array, array.data.to_bytes()));
    }
    let mut views = Vec::with_capacity(arrays.len());
    for (array, bytes) in &parts {
        let view = TensorView::new(array.data.dtype(), array.shape.clone(), bytes);
        views.push((&array.name, view.map_err(|error| unrecordable(what, error))?));
    }
    let metadata = metadata.map(|pair| [pair].into_iter().collect());
    safetensors::serialize(views, metadata).map_err(|error| unrecordable(what, error))
}

fn decode(path: &Path, bytes: &[u8]) -> Result<Vec<Array>> {
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| Error::damaged(path, error))?;
    let arrays = tensors.iter().map(|(name, view)| {
        let (fours, _) = view.data().as_chunks::<4>();
        let (eights, _) = view.data().as_chunks::<8>();
        let data = match view.dtype() {
            Dtype::F32 => Values::F32(fours.iter().map(|b| f32::from_le_bytes(*b)).collect()),
            Dtype::F64 => Values::F64(eights.iter().map(|b| f64::from_le_bytes(*b)).collect()),
            Dtype::U64 => Values::U64(eights.iter().map(|b| u64::from_le_bytes(*b)).collect()),
            other => Values::Bytes(other, view.data().to_vec()),
        };
        Array { name: name.to_owned(), shape: view.shape().to_vec(), data }
    });
    Ok(arrays.collect())
}

fn unrecordable(what: &str, reason: impl ToString) -> Error {
    Error::Unrecordable { what: format!("the {what}"), reason: reason.to_string() }
}

/// Writes a file durably. An existing file is replaced atomically.
pub(crate) fn write_atomically(path: &Path, content: &[u8]) -> Result<()> {
    let mut file = AtomicWriteFile::open(path).map_err(Error::io("create", path))?;
    file.write_all(content).and_then(|()| file.commit()).map_err(Error::io("write", path))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const FORMAT: Format = Format { kind: "sample", version: 3 };

    fn arrays() -> Vec<Array> {
        vec![
            Array::new("w", &[2, 2], vec![1.0_f32, -2.5, 0.0, f32::INFINITY]),
            Array::new("order", &[3], vec![u64::MAX, 0, 1]),
            Array::new("mask", &[2], Values::Bytes(Dtype::BOOL, vec![1, 0])),
            Array::new("a", &[0], Vec::<f32>::new()),
        ]
    }

    fn parse(bytes: &[u8]) -> Result<(Value, Vec<Array>)> {
        FORMAT.parse(Path::new("a.file"), bytes)
    }

    fn written(format: Format) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.file");
        let header = json!({"step": 12, "plan": "x"});
        format.write(&path, &header, &arrays()).unwrap();
        fs::read(path).unwrap()
    }

    #[test]
    fn header_and_arrays_round_trip_in_order() {
        let (header, read) = parse(&written(FORMAT)).unwrap();
        assert_eq!(header["step"], 12);
        assert_eq!(read, arrays());
        assert_eq!(written(FORMAT), written(FORMAT));
    }

    #[test]
    fn every_cut_or_flipped_byte_is_detected() {
        let whole = written(FORMAT);
        for length in 0..whole.len() {
            assert!(parse(&whole[..length]).is_err(), "cut at {length}");
        }
        for at in 0..whole.len() {
            let mut torn = whole.clone();
            torn[at] ^= 0x10;
            assert!(parse(&torn).is_err(), "flipped at {at}");
        }
        let mut longer = whole.clone();
        longer.push(0);
        assert!(parse(&longer).is_err());
    }

    #[test]
    fn errors_name_the_cause() {
        let message = |bytes: &[u8]| parse(bytes).unwrap_err().to_string();
        assert!(message(b"").ends_with("a.file is damaged: it is empty"));
        assert!(message(b"something else").contains("it is not a sample"));
        let other = written(Format { kind: "other", version: 3 });
        assert!(message(&other).ends_with("it is not a sample"));
        let newer = written(Format { kind: "sample", version: 4 });
        assert!(message(&newer).contains("use a newer surefoot"));
        let older = written(Format { kind: "sample", version: 2 });
        assert!(message(&older).contains("format version 2"));
    }

    #[test]
    fn a_wrong_shape_is_refused_before_anything_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.file");
        let wrong = [Array::new("w", &[3], vec![1.0_f32])];
        assert!(FORMAT.write(&path, &json!({}), &wrong).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_model_has_the_same_bytes_in_any_order_of_its_arrays() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        let mut arrays = vec![
            Array::new("a.bias", &[2], vec![1.0_f32, -0.0]),
            Array::new("a.weight", &[2, 1], vec![1e-30_f32, 5.0]),
            Array::new("b.running", &[1], vec![0.1_f64]),
            Array::new("c.count", &[], vec![3_u64]),
        ];
        write_model(&one, &arrays).unwrap();
        assert_eq!(read_model(&one).unwrap().unwrap(), arrays);
        arrays.reverse();
        write_model(&two, &arrays).unwrap();
        assert_eq!(fs::read(one).unwrap(), fs::read(two).unwrap());
    }

    #[test]
    fn duplicate_names_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let twice = [0, 1].map(|_| Array::new("x", &[1], vec![1.0_f32]));
        let error = write_model(&dir.path().join("m"), &twice).unwrap_err();
        assert!(error.to_string().contains("two arrays `x`"), "{error}");
    }

    #[test]
    fn a_truncated_model_is_an_error_and_a_missing_one_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model.safetensors");
        assert!(read_model(&path).unwrap().is_none());
        write_model(&path, &[Array::new("x", &[3], vec![1.0_f32; 3])]).unwrap();
        let whole = fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            assert!(read_model(&path).is_err(), "cut at {cut}");
        }
    }
}
