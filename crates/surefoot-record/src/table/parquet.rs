//! The closed file: Parquet, read by everything.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atomic_write_file::AtomicWriteFile;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use super::{Batch, Column, Data, Field, Kind, Schema};
use crate::error::{Error, Result};

/// Rows of a row group: a megabyte or two, which is what closing and reading need of memory.
const GROUP_ROWS: usize = 8 * 1024;

/// Writes the batches of `next` to a file that is durable when this returns. On failure there is no
/// file.
pub(crate) fn write(
    path: &Path,
    schema: &Schema,
    mut next: impl FnMut() -> Result<Option<Batch>>,
) -> Result<()> {
    let file = AtomicWriteFile::open(path).map_err(Error::io("create", path))?;
    let failed = |error: ParquetError| Error::Io {
        action: "write",
        path: path.to_owned(),
        source: into_io(error),
    };
    let root = message_type(schema).map_err(failed)?;
    let properties = Arc::new(properties(schema).map_err(failed)?);
    let mut writer = SerializedFileWriter::new(file, root, properties).map_err(failed)?;
    let mut group = Batch::new(schema);
    while let Some(batch) = next()? {
        group.append(&batch);
        // Groups of a fixed size, so that the file does not depend on the size of the batches.
        while group.rows >= GROUP_ROWS {
            let rest = group.split_off(GROUP_ROWS);
            write_group(&mut writer, schema, &group).map_err(failed)?;
            group = rest;
        }
    }
    if group.rows > 0 {
        write_group(&mut writer, schema, &group).map_err(failed)?;
    }
    let file = writer.into_inner().map_err(failed)?;
    file.commit().map_err(Error::io("write", path))
}

/// Extracts the I/O error, if the cause is one.
fn into_io(error: ParquetError) -> std::io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(source) => *source,
            Err(source) => std::io::Error::other(source),
        },
        error => std::io::Error::other(error),
    }
}

fn message_type(schema: &Schema) -> Result<TypePtr, ParquetError> {
    let field = |field: &Field| {
        let (physical, logical) = match field.kind {
            Kind::Int => (Physical::INT64, None),
            Kind::Float => (Physical::DOUBLE, None),
            Kind::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        Type::primitive_type_builder(field.name, physical)
            .with_logical_type(logical)
            .with_repetition(if field.nullable {
                Repetition::OPTIONAL
            } else {
                Repetition::REQUIRED
            })
            .build()
            .map(Arc::new)
    };
    let fields = schema.fields.iter().map(field).collect::<Result<_, _>>()?;
    let root = Type::group_type_builder("observations").with_fields(fields);
    Ok(Arc::new(root.build()?))
}

fn properties(schema: &Schema) -> Result<WriterProperties, ParquetError> {
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("surefoot {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None);
    for field in &schema.fields {
        let column = ColumnPath::from(field.name);
        properties = match field.kind {
            // Neighbouring steps and counts differ by little.
            Kind::Int => properties
                .set_column_encoding(column.clone(), Encoding::DELTA_BINARY_PACKED)
                .set_column_statistics_enabled(column, EnabledStatistics::Chunk),
            // Signs and exponents of neighbours agree, and lie beside each other this way.
            Kind::Float => properties.set_column_encoding(column, Encoding::BYTE_STREAM_SPLIT),
            Kind::Text(_) => properties.set_column_dictionary_enabled(column, true),
        };
    }
    Ok(properties.build())
}

fn write_group(
    writer: &mut SerializedFileWriter<AtomicWriteFile>,
    schema: &Schema,
    batch: &Batch,
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for (field, column) in schema.fields.iter().zip(&batch.columns) {
        let Some(mut out) = group.next_column()? else {
            break;
        };
        match (&column.data, &field.kind) {
            (Data::Int(values), _) => {
                write_column::<Int64Type, _>(&mut out, column, values, |value| *value)?;
            }
            (Data::Float(values), _) => {
                write_column::<DoubleType, _>(&mut out, column, values, |value| *value)?;
            }
            (Data::Text(values), Kind::Text(texts)) => {
                let texts: Vec<ByteArray> = texts.iter().map(|text| text.as_str().into()).collect();
                write_column::<ByteArrayType, _>(&mut out, column, values, |&value| {
                    let position = usize::try_from(value).ok();
                    let text = position.and_then(|position| texts.get(position));
                    text.cloned().unwrap_or_else(|| "".into())
                })?;
            }
            (Data::Text(_), _) => {}
        }
        out.close()?;
    }
    group.close()?;
    Ok(())
}

fn write_column<T: DataType, V>(
    out: &mut SerializedColumnWriter<'_>,
    column: &Column,
    values: &[V],
    convert: impl Fn(&V) -> T::T,
) -> Result<(), ParquetError> {
    let out = out.typed::<T>();
    match &column.valid {
        Some(valid) => {
            let levels: Vec<i16> = valid.iter().map(|&there| i16::from(there)).collect();
            let there = values.iter().zip(valid).filter(|(_, there)| **there);
            let values: Vec<T::T> = there.map(|(value, _)| convert(value)).collect();
            out.write_batch(&values, Some(&levels), None)?;
        }
        None => {
            let values: Vec<T::T> = values.iter().map(convert).collect();
            out.write_batch(&values, None, None)?;
        }
    }
    Ok(())
}

/// Reads a file row group by row group.
pub(crate) struct Reader {
    path: PathBuf,
    file: SerializedFileReader<File>,
    schema: Schema,
    next_group: usize,
}

impl Reader {
    pub(crate) fn open(path: &Path, schema: Schema) -> Result<Reader> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        let file = guarded(|| SerializedFileReader::new(file))
            .map_err(|error| Error::damaged(path, error))?;
        let columns = file.metadata().file_metadata().schema_descr();
        let names = columns.columns().iter().map(|column| column.name());
        if !names.eq(schema.fields.iter().map(|field| field.name)) {
            return Err(Error::damaged(path, "its columns are not those of a record"));
        }
        Ok(Reader { path: path.to_owned(), file, schema, next_group: 0 })
    }

    pub(crate) fn next_batch(&mut self) -> Result<Option<Batch>> {
        if self.next_group == self.file.num_row_groups() {
            return Ok(None);
        }
        let batch = guarded(|| {
            let group = self.file.get_row_group(self.next_group)?;
            read_group(&self.schema, &*group)
        })
        .map_err(|error| Error::damaged(&self.path, error))?;
        self.next_group += 1;
        Ok(Some(batch))
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reader({})", self.path.display())
    }
}

/// Turns a panic into an error: the library panics on some damaged files.
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    // What is left half-done is not used again.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).unwrap_or_else(|panic| {
        Err(ParquetError::General(surefoot_diagnose::panic_message(panic.as_ref())))
    })
}

fn read_group(schema: &Schema, group: &dyn RowGroupReader) -> Result<Batch, ParquetError> {
    let rows = usize::try_from(group.metadata().num_rows())
        .map_err(|_| ParquetError::General("a negative number of rows".to_owned()))?;
    let mut columns = Vec::with_capacity(schema.fields.len());
    for (i, field) in schema.fields.iter().enumerate() {
        let column = match (group.get_column_reader(i)?, &field.kind) {
            (ColumnReader::Int64ColumnReader(reader), Kind::Int) => {
                let (values, valid) = read_column(reader, field, rows, |value| *value)?;
                let data = Data::Int(values);
                Column { data, valid }
            }
            (ColumnReader::DoubleColumnReader(reader), Kind::Float) => {
                let (values, valid) = read_column(reader, field, rows, |value| *value)?;
                let data = Data::Float(values);
                Column { data, valid }
            }
            (ColumnReader::ByteArrayColumnReader(reader), Kind::Text(texts)) => {
                let position = |value: &ByteArray| {
                    let text = texts.iter().position(|text| text.as_bytes() == value.data());
                    text.map_or(-1, |position| position as i32)
                };
                let (values, valid) = read_column(reader, field, rows, position)?;
                let data = Data::Text(values);
                Column { data, valid }
            }
            _ => {
                let reason = format!("column `{}` has another type", field.name);
                return Err(ParquetError::General(reason));
            }
        };
        columns.push(column);
    }
    Ok(Batch { rows, columns })
}

/// Values of a column and their validity; missing values are zero.
fn read_column<T: DataType, V: Default>(
    mut reader: ColumnReaderImpl<T>,
    field: &Field,
    rows: usize,
    convert: impl Fn(&T::T) -> V,
) -> Result<(Vec<V>, Option<Vec<bool>>), ParquetError> {
    let mut found = Vec::new();
    let mut levels = Vec::new();
    let mut read = 0;
    while read < rows {
        let levels = field.nullable.then_some(&mut levels);
        let (records, _, _) = reader.read_records(rows - read, levels, None, &mut found)?;
        if records == 0 {
            let reason = format!("column `{}` is too short", field.name);
            return Err(ParquetError::General(reason));
        }
        read += records;
    }
    let mut found = found.iter().map(convert);
    if !field.nullable {
        return Ok((found.collect(), None));
    }
    let valid: Vec<bool> = levels.iter().map(|&level| level > 0).collect();
    let values = valid.iter().map(|&there| {
        let value = if there { found.next() } else { None };
        value.unwrap_or_default()
    });
    Ok((values.collect(), Some(valid)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{layer_schema, random_batch};
    use super::*;
    use surefoot_random::{Key, Purpose};

    fn write_all(path: &Path, batches: &[Batch]) {
        let mut batches = batches.iter().cloned();
        write(path, &layer_schema(), || Ok(batches.next())).unwrap();
    }

    #[test]
    fn the_size_of_batches_does_not_show() {
        let folder = tempfile::tempdir().unwrap();
        let (whole, parts) = (folder.path().join("whole"), folder.path().join("parts"));
        let batch = random_batch(&layer_schema(), 20_000);
        write_all(&whole, std::slice::from_ref(&batch));
        let mut first = batch;
        let rest = first.split_off(9_000);
        write_all(&parts, &[first, rest]);
        assert!(std::fs::read(whole).unwrap() == std::fs::read(parts).unwrap());
    }

    #[test]
    fn rows_are_read_back_to_the_bit_in_groups() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("observations.parquet");
        let schema = layer_schema();
        let batches = [10_000, 1, 30_000, 0, 5].map(|rows| random_batch(&schema, rows));
        write_all(&path, &batches);
        let mut expected = Batch::new(&schema);
        batches.iter().for_each(|batch| expected.append(batch));
        let mut reader = Reader::open(&path, schema.clone()).unwrap();
        let mut read = Batch::new(&schema);
        let mut groups = 0;
        while let Some(batch) = reader.next_batch().unwrap() {
            read.append(&batch);
            groups += 1;
        }
        assert_eq!(groups, 5);
        assert!(format!("{read:?}") == format!("{expected:?}"));
    }

    #[test]
    fn a_table_without_rows_is_a_file_too() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("observations.parquet");
        write_all(&path, &[]);
        let mut reader = Reader::open(&path, layer_schema()).unwrap();
        assert!(reader.next_batch().unwrap().is_none());
    }

    #[test]
    fn a_damaged_file_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("observations.parquet");
        write_all(&path, &[random_batch(&layer_schema(), 50)]);
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            assert!(Reader::open(&path, layer_schema()).is_err());
        }
        std::fs::write(&path, &whole).unwrap();
        let error = Reader::open(&path, Schema::steps()).unwrap_err();
        assert!(error.to_string().contains("columns"), "{error}");
    }

    #[test]
    fn changed_bytes_are_an_error_or_other_values() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("observations.parquet");
        write_all(&path, &[random_batch(&layer_schema(), 40)]);
        let whole = std::fs::read(&path).unwrap();
        let mut errors = 0;
        for round in 0..2000 {
            let key = Key::new(7, Purpose::Noise).epoch(round);
            let mut torn = whole.clone();
            for change in 0..=key.below(0, 3) {
                let at = key.below(2 * change + 1, torn.len() as u64) as usize;
                torn[at] = key.below(2 * change + 2, 256) as u8;
            }
            std::fs::write(&path, torn).unwrap();
            let read = Reader::open(&path, layer_schema()).and_then(|mut reader| {
                while reader.next_batch()?.is_some() {}
                Ok(())
            });
            errors += u32::from(read.is_err());
        }
        assert!(errors > 300, "{errors}");
    }

    #[test]
    fn when_the_rows_cannot_be_had_there_is_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("observations.parquet");
        let error =
            write(&path, &layer_schema(), || Err(Error::damaged(Path::new("elsewhere"), "gone")));
        assert!(error.is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
