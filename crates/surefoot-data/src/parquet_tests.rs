//! Tests of Parquet files, written by the library that reads them.

use std::sync::Arc;

use ::parquet::basic::Compression;
use ::parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DoubleType, FloatType, Int32Type, Int64Type,
};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;

use super::*;

/// The values of a column, `None` where one is missing.
pub(crate) enum Values {
    Bools(Vec<Option<bool>>),
    Ints(Vec<Option<i32>>),
    Longs(Vec<Option<i64>>),
    Floats(Vec<Option<f32>>),
    Doubles(Vec<Option<f64>>),
    Texts(Vec<Option<&'static str>>),
}

/// A file of a schema, with each list of columns a group of rows.
pub(crate) fn file(schema: &str, groups: &[Vec<Values>], compression: Compression) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(&format!("message table {{ {schema} }}")).unwrap());
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties)).unwrap();
    for columns in groups {
        let mut group = writer.next_row_group().unwrap();
        for values in columns {
            let mut column = group.next_column().unwrap().unwrap();
            macro_rules! write {
                ($type:ty, $values:expr) => {{
                    let levels: Vec<i16> = $values.iter().map(|x| i16::from(x.is_some())).collect();
                    let values: Vec<_> = $values.iter().flatten().cloned().collect();
                    column.typed::<$type>().write_batch(&values, Some(&levels), None).unwrap();
                }};
            }
            match values {
                Values::Bools(values) => write!(BoolType, values),
                Values::Ints(values) => write!(Int32Type, values),
                Values::Longs(values) => write!(Int64Type, values),
                Values::Floats(values) => write!(FloatType, values),
                Values::Doubles(values) => write!(DoubleType, values),
                Values::Texts(values) => {
                    let values: Vec<Option<ByteArray>> =
                        values.iter().map(|text| text.map(ByteArray::from)).collect();
                    write!(ByteArrayType, values);
                }
            }
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
    bytes
}

/// A file of two features and a label of names, in two groups of rows.
pub(crate) fn flowers(compression: Compression) -> Vec<u8> {
    let group = |sepal: [f32; 2], petals: [i32; 2], kinds: [&'static str; 2]| {
        vec![
            Values::Floats(sepal.map(Some).into()),
            Values::Ints(petals.map(Some).into()),
            Values::Texts(kinds.map(Some).into()),
        ]
    };
    file(
        "optional float sepal; optional int32 petals; optional binary kind (UTF8);",
        &[group([1.5, 2.5], [5, 6], ["rose", "lily"]), group([3.5, 4.5], [7, 8], ["lily", "rose"])],
        compression,
    )
}

fn names(samples: &Samples) -> Vec<&str> {
    samples.columns.iter().map(|column| column.name.as_str()).collect()
}

fn read(bytes: &[u8], labels: &[&str]) -> Result<Samples, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    std::fs::write(&path, bytes).unwrap();
    let labels: Vec<String> = labels.iter().map(|&label| label.to_owned()).collect();
    parquet(&path, &labels, None, Missing::Refuse).map_err(|error| {
        let message = error.to_string();
        message.replace(&path.display().to_string(), "t.parquet")
    })
}

fn one(schema: &str, columns: Vec<Values>) -> Result<Samples, String> {
    read(&file(schema, &[columns], Compression::UNCOMPRESSED), &[])
}

fn labels() -> Values {
    Values::Ints(vec![Some(0), Some(1)])
}

#[test]
fn groups_of_rows_are_joined_in_every_compression() {
    for compression in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::ZSTD(Default::default()),
    ] {
        let samples = read(&flowers(compression), &[]).unwrap();
        assert_eq!(samples.features, [1.5, 5.0, 2.5, 6.0, 3.5, 7.0, 4.5, 8.0]);
        assert_eq!(names(&samples), ["sepal", "petals"]);
        assert!(matches!(
            samples.labels,
            Labels::Classes { ids, names } if ids == [1, 0, 0, 1] && names == ["lily", "rose"]
        ));
    }
}

#[test]
fn every_kind_of_number_is_read() {
    let samples = one(
        "optional boolean a; optional int32 b; optional int64 c; optional float d; \
         optional double e; optional int32 f (UINT_32); optional int32 y;",
        vec![
            Values::Bools(vec![Some(true), Some(false)]),
            Values::Ints(vec![Some(-1), Some(2)]),
            Values::Longs(vec![Some(-3), Some(4)]),
            Values::Floats(vec![Some(0.5), Some(1.5)]),
            Values::Doubles(vec![Some(2.5), Some(3.5)]),
            Values::Ints(vec![Some(-1), Some(7)]),
            labels(),
        ],
    )
    .unwrap();
    assert_eq!(samples.features[..6], [1.0, -1.0, -3.0, 0.5, 2.5, u32::MAX as f32]);
    assert_eq!(samples.features[6..], [0.0, 2.0, 4.0, 1.5, 3.5, 7.0]);
}

#[test]
fn a_required_column_has_no_levels() {
    let schema = "required float a; required int32 y;";
    let samples = one(schema, vec![Values::Floats(vec![Some(0.5), Some(1.5)]), labels()]).unwrap();
    assert_eq!(samples.features, [0.5, 1.5]);
}

#[test]
fn a_null_is_named_by_row_and_column() {
    let error = one(
        "optional float a; optional int32 y;",
        vec![Values::Floats(vec![Some(1.0), None]), labels()],
    )
    .unwrap_err();
    assert!(
        error.starts_with("t.parquet, row 2, column \"a\": the value is missing (null)"),
        "{error}"
    );
}

#[test]
fn nan_and_infinity_are_refused() {
    let read = |value| {
        one(
            "optional float a; optional int32 y;",
            vec![Values::Floats(vec![Some(value), Some(1.0)]), labels()],
        )
        .unwrap_err()
    };
    assert!(read(f32::NAN).contains("row 1, column \"a\": the value is missing (NaN)"));
    assert!(read(f32::INFINITY).contains("row 1, column \"a\": inf is infinite"));
}

#[test]
fn columns_that_are_no_numbers_are_refused() {
    let texts = || Values::Texts(vec![Some("a"), Some("b")]);
    let error = one("optional binary a (UTF8); optional int32 y;", vec![texts(), labels()]);
    assert_eq!(
        error.unwrap_err(),
        "t.parquet: column \"a\" holds text; encode it as numbers, or remove the column"
    );
    let error = one("optional int32 a (DATE); optional int32 y;", vec![labels(), labels()]);
    assert!(error.unwrap_err().contains("holds dates or times"));
}

#[test]
fn a_compression_that_is_not_read_is_named() {
    let error = ParquetError::General("Disabled feature at compile time: brotli".into());
    assert_eq!(
        malformed(Path::new("t.parquet"), &error).to_string(),
        "t.parquet: its compression, brotli, is not read; compress it with snappy, zstd or gzip, \
         or not at all"
    );
}

#[test]
fn an_index_that_pandas_saved_is_left_out() {
    let samples = one(
        "optional float a; optional int32 y; optional int64 __index_level_0__;",
        vec![
            Values::Floats(vec![Some(0.5), Some(1.5)]),
            labels(),
            Values::Longs(vec![Some(7), Some(8)]),
        ],
    )
    .unwrap();
    assert_eq!(names(&samples), ["a"]);
    assert!(samples.notes[0].contains("left out"));
}

#[test]
fn the_label_can_be_named() {
    let samples = read(&flowers(Compression::SNAPPY), &["petals"]);
    assert!(samples.unwrap_err().contains("column \"kind\" holds text"));
    let error = read(&flowers(Compression::SNAPPY), &["y"]).unwrap_err();
    assert!(error.ends_with("its columns are \"sepal\", \"petals\", \"kind\""), "{error}");
}

#[test]
fn files_without_samples_are_refused() {
    assert_eq!(
        read(b"", &[]).unwrap_err(),
        "t.parquet is empty; it must hold at least two samples"
    );
    let bare = file("optional float a; optional int32 y;", &[], Compression::UNCOMPRESSED);
    assert!(read(&bare, &[]).unwrap_err().contains("has a header but no samples"));
    assert!(read(b"a,b\n1,2\n", &[]).unwrap_err().contains("is not a valid Parquet file"));
    assert!(parquet(&std::env::temp_dir(), &[], None, Missing::Refuse).is_err());
}

#[test]
fn several_label_columns_are_rows_of_labels() {
    let schema = "required int32 a; required float x; required int32 b;";
    let ints = || Values::Ints(vec![Some(0), Some(1)]);
    let columns = vec![ints(), Values::Floats(vec![Some(0.5), Some(1.5)]), ints()];
    let bytes = file(schema, &[columns], Compression::UNCOMPRESSED);
    let samples = read(&bytes, &["a", "b"]).unwrap();
    assert_eq!(samples.features, [0.5, 1.5]);
    assert_eq!(samples.label_columns, ["a", "b"]);
    assert!(matches!(
        samples.labels,
        Labels::Numbers { values, width: 2, .. } if values == [0.0, 0.0, 1.0, 1.0]
    ));
}
