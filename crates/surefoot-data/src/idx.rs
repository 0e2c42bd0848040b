//! IDX files, the format of MNIST: big-endian arrays, gzipped or not.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use surefoot_plan::Missing;

use crate::array::{Array, Number, damaged, paired};
use crate::error::DataError;
use crate::samples::Samples;

const FORMAT: &str = "IDX";

/// Features and labels, a file each. Images without channels get one.
pub(crate) fn idx(features: &Path, labels: &Path, missing: Missing) -> Result<Samples, DataError> {
    let mut features = open(features)?;
    if features.shape.len() == 3 {
        features.shape.push(1);
    }
    paired(features, open(labels)?, missing)
}

fn open(path: &Path) -> Result<Array, DataError> {
    let file = File::open(path).map_err(|cause| DataError::unreadable(path, &cause))?;
    array(BufReader::new(file), path)
}

fn array(mut reader: impl BufRead, file: &Path) -> Result<Array, DataError> {
    let start = reader.fill_buf().map_err(|error| damaged(file, FORMAT, error))?;
    if start.is_empty() {
        return Err(DataError::empty(file.display()));
    }
    if start.starts_with(&[0x1f, 0x8b]) {
        plain(MultiGzDecoder::new(reader), file)
    } else {
        plain(reader, file)
    }
}

fn plain(mut reader: impl Read, file: &Path) -> Result<Array, DataError> {
    let failed = |error| damaged(file, FORMAT, error);
    let malformed = |what: &str| DataError::malformed(file, FORMAT, what);
    let mut start = [0; 4];
    reader.read_exact(&mut start).map_err(failed)?;
    let [0, 0, kind, dimensions] = start else {
        return Err(malformed("it does not begin with two zero bytes"));
    };
    let number = match kind {
        0x08 => Number::U8,
        0x09 => Number::I8,
        0x0b => Number::I16,
        0x0c => Number::I32,
        0x0d => Number::F32,
        0x0e => Number::F64,
        _ => {
            return Err(malformed(&format!("numbers of type {kind:#04x} are unknown")));
        }
    };
    let mut shape = Vec::new();
    for _ in 0..dimensions {
        let mut length = [0; 4];
        reader.read_exact(&mut length).map_err(failed)?;
        shape.push(u32::from_be_bytes(length) as usize);
    }
    Array::read(reader, file, FORMAT, number, true, shape)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    pub(crate) fn file(kind: u8, shape: &[u32], data: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 0, kind, shape.len() as u8];
        bytes.extend(shape.iter().flat_map(|length| length.to_be_bytes()));
        bytes.extend(data);
        bytes
    }

    pub(crate) fn gzipped(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: &[u8]) -> Result<Array, String> {
        array(bytes, Path::new("x.idx")).map_err(|error| error.to_string())
    }

    #[test]
    fn images_get_a_channel_and_keep_their_values() {
        let folder = tempfile::tempdir().unwrap();
        let (x, y) = (folder.path().join("x"), folder.path().join("y"));
        let images: Vec<u8> = (0..12).map(|i| i * 20).collect();
        std::fs::write(&x, gzipped(&file(0x08, &[2, 2, 3], &images))).unwrap();
        std::fs::write(&y, file(0x08, &[2], &[1, 0])).unwrap();
        let samples = idx(&x, &y, Missing::Refuse).unwrap();
        assert_eq!(samples.shape, [2, 3, 1]);
        assert!(
            samples.features.iter().eq(&images.iter().map(|&x| f32::from(x)).collect::<Vec<_>>())
        );
    }

    #[test]
    fn numbers_are_big_endian() {
        let array = read(&file(0x0c, &[1], &[0, 0, 1, 2])).unwrap();
        assert!(array.big_endian);
        assert_eq!(array.number, Number::I32);
    }

    #[test]
    fn a_decompression_bomb_is_refused_by_its_header() {
        let bomb = gzipped(&file(0x0e, &[1 << 24, 1 << 24], &[0; 1 << 16]));
        assert!(bomb.len() < 1 << 12);
        let error = read(&bomb).unwrap_err();
        assert!(error.contains("needs 2251799813685248 bytes of memory"), "{error}");
    }

    #[test]
    fn other_files_are_refused() {
        assert!(read(b"").unwrap_err().contains("is empty"));
        assert!(read(b"\x01\x02\x03\x04").unwrap_err().contains("two zero bytes"));
        assert!(read(&[0, 0, 7, 1]).unwrap_err().contains("type 0x07"));
        assert!(read(&[0, 0, 8]).unwrap_err().contains("cut short"));
        assert!(read(&file(8, &[2, 2], &[1, 2, 3])).unwrap_err().contains("3 of the 4 bytes"));
        assert!(read(&file(8, &[u32::MAX; 4], &[])).unwrap_err().contains("claims"));
        let zipped = gzipped(&file(8, &[2, 2], &[1, 2, 3, 4]));
        assert!(read(&zipped[..zipped.len() - 12]).is_err());
    }
}
