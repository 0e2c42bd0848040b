//! No file makes loading panic: damaged copies of a valid file of each format, and random bytes.

use std::fs;
use std::path::PathBuf;

use ::parquet::basic::Compression;
use proptest::prelude::*;
use surefoot_plan::SplitFractions;
use zip::CompressionMethod;

use super::*;

/// A format: a file of it that is valid, and the source that reads it from a path.
struct Format {
    valid: Vec<u8>,
    source: fn(PathBuf) -> Source,
}

fn formats() -> Vec<Format> {
    let table = |path: PathBuf| Source::Parquet { path, label: None };
    let archive = |path: PathBuf| Source::Npz { path, features: "x".into(), labels: "y".into() };
    let array = |path: PathBuf| Source::Npy { features: path.clone(), labels: path };
    let idx = |path: PathBuf| Source::Idx { features: path.clone(), labels: path };
    let floats = npy::tests::floats(&[1.0, 0.0, 2.0, 3.0]);
    let bytes = idx::tests::file(8, &[4, 1], &[1, 0, 2, 3]);
    vec![
        Format {
            valid: b"a,\"b\",y\n1,2,u\n3,4,v\n5,6,u\n7,8,v\n".to_vec(),
            source: |path| Source::csv(path),
        },
        Format { valid: parquet::tests::flowers(Compression::UNCOMPRESSED), source: table },
        Format { valid: parquet::tests::flowers(Compression::SNAPPY), source: table },
        Format { valid: npy::tests::file("'<f4'", true, "(4, 1)", &floats), source: array },
        Format { valid: npz::tests::archive(CompressionMethod::Deflated), source: archive },
        Format { valid: npz::tests::archive(CompressionMethod::Stored), source: archive },
        Format { valid: idx::tests::gzipped(&bytes), source: idx },
        Format { valid: bytes, source: idx },
    ]
}

fn load_bytes(bytes: &[u8], source: fn(PathBuf) -> Source) -> Result<Dataset, DataError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, bytes).unwrap();
    let mut data = Data {
        missing: Missing::Drop,
        outliers: Outliers::Clip,
        scale: Scale::Standardise,
        split: SplitFractions { validation: 0.3, test: 0.0 },
        ..Data::new(source(path))
    };
    // Damaged data reaches farthest where missing values are allowed.
    let _ = load(&data, 1, Path::new(""));
    data.missing = Missing::Refuse;
    load(&data, 1, Path::new(""))
}

#[test]
fn the_valid_files_are_valid() {
    for (i, format) in formats().iter().enumerate() {
        let loaded = load_bytes(&format.valid, format.source);
        assert!(loaded.is_ok(), "{i}: {:?}", loaded.err());
    }
}

#[test]
fn no_cut_panics() {
    for format in formats() {
        for end in 0..format.valid.len() {
            let _ = load_bytes(&format.valid[..end], format.source);
        }
    }
}

/// Several of these make the Parquet library panic, which must not be seen from outside.
#[test]
fn no_wrong_byte_of_a_table_panics() {
    let valid = parquet::tests::flowers(Compression::UNCOMPRESSED);
    for place in 0..valid.len() {
        for byte in [0x01, 0xff] {
            let mut damaged = valid.clone();
            damaged[place] = byte;
            let _ = load_bytes(&damaged, |path| Source::Parquet { path, label: None });
        }
    }
}

proptest! {
    #[test]
    fn no_damage_panics(
        which in 0..8_usize,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let Format { mut valid, source } = formats().swap_remove(which);
        for (place, byte) in damage {
            let place = place.index(valid.len());
            valid[place] = byte;
        }
        let _ = load_bytes(&valid, source);
    }

    #[test]
    fn no_bytes_panic(
        which in 0..8_usize,
        kept in 0..12_usize,
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let Format { valid, source } = formats().swap_remove(which);
        let bytes = [&valid[..kept], &bytes].concat();
        let _ = load_bytes(&bytes, source);
    }

    #[test]
    fn no_picture_panics(
        jpeg: bool,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = if jpeg {
            picture::tests::COLOUR.to_vec()
        } else {
            picture::tests::png(3, 2, ::png::ColorType::Rgb, &[9; 18])
        };
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let _ = picture::Picture::decode(&bytes, 3);
        let _ = picture::Picture::decode(&bytes[..cut.index(bytes.len())], 1);
    }
}
