//! NPZ files: NumPy arrays by name in a ZIP archive.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use surefoot_plan::Missing;
use zip::ZipArchive;

use crate::array::{Array, paired};
use crate::error::{DataError, list};
use crate::npy;
use crate::samples::Samples;

/// A file written by `np.savez` or `np.savez_compressed`.
pub(crate) fn npz(
    path: &Path,
    features: &str,
    labels: &str,
    missing: Missing,
) -> Result<Samples, DataError> {
    let unreadable = |cause| DataError::unreadable(path, &cause);
    let file = File::open(path).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.is_dir() {
        return Err(unreadable(std::io::ErrorKind::IsADirectory.into()));
    }
    let mut archive = ZipArchive::new(BufReader::new(file))
        .map_err(|error| DataError::malformed(path, "NPZ", error))?;
    let features = member(&mut archive, path, features)?;
    let labels = member(&mut archive, path, labels)?;
    paired(features, labels, missing)
}

fn member(
    archive: &mut ZipArchive<impl Read + Seek>,
    path: &Path,
    name: &str,
) -> Result<Array, DataError> {
    let arrays: Vec<String> = archive
        .file_names()
        .filter_map(Result::ok)
        .filter_map(|file| file.strip_suffix(".npy").map(str::to_owned))
        .collect();
    if !arrays.iter().any(|array| array == name) {
        let (path, arrays) = (path.display(), list(&arrays));
        return Err(DataError::new(format!(
            "{path} has no array {name:?}; its arrays are {arrays}"
        )));
    }
    let file = archive
        .by_name(&format!("{name}.npy"))
        .map_err(|error| DataError::malformed(path, "NPZ", format!("array {name:?}: {error}")))?;
    // Messages about the array name it within its archive, as Python would index it.
    let place = PathBuf::from(format!("{}[{name:?}]", path.display()));
    npy::array(file, &place)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::npy::tests::{file, floats};
    use std::io::{Cursor, Write};
    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

    pub(crate) fn archive(method: CompressionMethod) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().compression_method(method);
        writer.start_file("x.npy", options).unwrap();
        let values = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        writer.write_all(&file("'<f4'", false, "(3, 2)", &values)).unwrap();
        writer.start_file("y.npy", options).unwrap();
        writer.write_all(&file("'|i1'", false, "(3,)", &[0, 1, 1])).unwrap();
        writer.finish().unwrap().into_inner()
    }

    fn read(bytes: &[u8], features: &str) -> Result<Samples, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        npz(file.path(), features, "y", Missing::Refuse).map_err(|error| error.to_string())
    }

    #[test]
    fn stored_and_deflated_arrays_are_read() {
        for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
            let samples = read(&archive(method), "x").unwrap();
            assert_eq!(samples.features, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
            assert_eq!(samples.shape, [2]);
        }
    }

    #[test]
    fn an_array_that_is_not_there_is_named_with_those_that_are() {
        let error = read(&archive(CompressionMethod::Stored), "images").unwrap_err();
        assert!(error.ends_with("has no array \"images\"; its arrays are \"x\", \"y\""), "{error}");
    }

    #[test]
    fn what_is_no_archive_is_refused() {
        let error = read(b"not a zip", "x").unwrap_err();
        assert!(error.contains("is not a valid NPZ file"), "{error}");
        assert!(npz(&std::env::temp_dir(), "x", "y", Missing::Refuse).is_err());
    }

    #[test]
    fn a_damaged_member_is_an_error() {
        let mut bytes = archive(CompressionMethod::Deflated);
        // Within the compressed bytes of the first array, where its checksum sees it.
        bytes[60] ^= 0xff;
        assert!(read(&bytes, "x").is_err());
    }
}
