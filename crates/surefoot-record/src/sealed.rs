//! Files with a header and arrays that are whole or not there: checkpoints and capsules.
//!
//! Such a file is: 8 bytes of magic, the version and the length of the header (`u32` each,
//! little-endian like all else), a JSON header padded to a multiple of 8, the arrays' raw numbers,
//! and the XXH3-128 of all that. It is written to a temporary name, synchronised and renamed.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use atomic_write_file::AtomicWriteFile;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::array::{Array, Kind, Values, element_count, put_all};
use crate::digest::Digest;
use crate::error::{Error, Result};

const MAGIC: usize = 8;
const PREFIX: usize = MAGIC + 4 + 4;
const CHECKSUM: usize = 16;

/// What a file is.
pub(crate) struct Format {
    pub(crate) magic: [u8; MAGIC],
    /// The only version that is read.
    pub(crate) version: u32,
    /// With its article: `a checkpoint`.
    pub(crate) name: &'static str,
}

#[derive(Serialize, Deserialize)]
struct Contents<H> {
    #[serde(flatten)]
    header: H,
    arrays: Vec<ArrayHeader>,
}

#[derive(Serialize, Deserialize)]
struct ArrayHeader {
    name: String,
    shape: Vec<usize>,
    kind: Kind,
    /// In bytes from the start of the payload.
    offset: usize,
}

impl Format {
    /// Writes a file, durably and at once.
    pub(crate) fn write<H: Serialize>(
        &self,
        path: &Path,
        header: &H,
        arrays: &[Array],
    ) -> Result<()> {
        let prefix = self.prefix(header, arrays)?;
        let file = AtomicWriteFile::open(path).map_err(Error::io("create", path))?;
        let mut out =
            Hashing { inner: BufWriter::with_capacity(1 << 16, file), hasher: Xxh3::new() };
        let write = |out: &mut Hashing<_>| -> io::Result<()> {
            out.write_all(&prefix)?;
            for array in arrays {
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

    /// Everything before the arrays' numbers.
    fn prefix<H: Serialize>(&self, header: &H, arrays: &[Array]) -> Result<Vec<u8>> {
        let mut places = Vec::with_capacity(arrays.len());
        let mut offset = 0;
        for array in arrays {
            array.check()?;
            let kind = array.data.kind();
            places.push(ArrayHeader {
                name: array.name.clone(),
                shape: array.shape.clone(),
                kind,
                offset,
            });
            offset += array.data.len() * kind.size();
        }
        let contents = Contents { header, arrays: places };
        let unrecordable = |reason: String| Error::Unrecordable {
            what: format!("the header of {}", self.name),
            reason,
        };
        let mut json = serde_json::to_vec(&contents).map_err(|e| unrecordable(e.to_string()))?;
        json.resize(json.len().next_multiple_of(8), b' ');
        let length = u32::try_from(json.len()).map_err(|_| {
            unrecordable("it is larger than 4 GB; put numbers into arrays".to_owned())
        })?;

        let mut bytes = Vec::with_capacity(PREFIX + json.len());
        bytes.extend(self.magic);
        bytes.extend(self.version.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend(json);
        Ok(bytes)
    }

    /// Reads a file and verifies its checksum.
    pub(crate) fn read<H: DeserializeOwned>(&self, path: &Path) -> Result<(H, Vec<Array>)> {
        let bytes = fs::read(path).map_err(Error::io("read", path))?;
        self.parse(path, &bytes)
    }

    fn parse<H: DeserializeOwned>(&self, path: &Path, bytes: &[u8]) -> Result<(H, Vec<Array>)> {
        let damaged = |reason: &str| Error::damaged(path, reason);
        let short = || damaged("it ends too early");
        if bytes.is_empty() {
            return Err(damaged("it is empty"));
        }
        if !bytes.starts_with(&self.magic) {
            return Err(Error::damaged(path, format!("it is not {}", self.name)));
        }
        // Before the checksum, which another version may compute otherwise.
        let version = read_u32(bytes, MAGIC).ok_or_else(short)?;
        let (found, known) = (version, self.version);
        if found != known {
            let path = path.to_owned();
            return Err(match found > known {
                true => Error::Newer { path, found, known },
                false => Error::Older { path, found, known },
            });
        }
        let (content, checksum) = bytes.split_last_chunk::<CHECKSUM>().ok_or_else(short)?;
        if Digest::of(content).0 != u128::from_le_bytes(*checksum) {
            return Err(damaged("its checksum does not agree with its content"));
        }
        let length = read_u32(content, MAGIC + 4).ok_or_else(short)? as usize;
        let rest = content.get(PREFIX..).ok_or_else(short)?;
        let (json, payload) = rest.split_at_checked(length).ok_or_else(short)?;
        let contents: Contents<H> =
            serde_json::from_slice(json).map_err(|error| Error::damaged(path, error))?;

        let mut arrays = Vec::with_capacity(contents.arrays.len());
        for array in contents.arrays {
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
        Ok((contents.header, arrays))
    }
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
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const FORMAT: Format = Format { magic: *b"NOTHING!", version: 3, name: "a nothing" };

    fn arrays() -> Vec<Array> {
        vec![
            Array::new("w", &[2, 2], vec![1.0_f32, -2.5, 0.0, f32::INFINITY]),
            Array::new("order", &[3], vec![u64::MAX, 0, 1]),
        ]
    }

    fn parse(bytes: &[u8]) -> Result<(Value, Vec<Array>)> {
        FORMAT.parse(Path::new("a.file"), bytes)
    }

    fn written() -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.file");
        let header = json!({"step": 12, "plan": "x"});
        FORMAT.write(&path, &header, &arrays()).unwrap();
        fs::read(path).unwrap()
    }

    #[test]
    fn header_and_arrays_are_read_back() {
        let (header, read) = parse(&written()).unwrap();
        assert_eq!(header["step"], 12);
        assert_eq!(read, arrays());
    }

    #[test]
    fn whatever_is_cut_or_flipped_is_noticed() {
        let whole = written();
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
    fn what_is_wrong_is_said() {
        let message = |bytes: &[u8]| parse(bytes).unwrap_err().to_string();
        assert!(message(b"").ends_with("a.file is damaged: it is empty"));
        assert!(message(b"something else").ends_with("it is not a nothing"));
        let mut bytes = written();
        bytes[MAGIC] = 4;
        assert!(message(&bytes).contains("use a newer surefoot"));
        bytes[MAGIC] = 2;
        assert!(message(&bytes).contains("format version 2"));
    }

    #[test]
    fn a_wrong_shape_is_refused_before_anything_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.file");
        let wrong = [Array::new("w", &[3], vec![1.0_f32])];
        assert!(FORMAT.write(&path, &json!({}), &wrong).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
