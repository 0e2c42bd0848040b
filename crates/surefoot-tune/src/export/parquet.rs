//! Tables as Parquet.

use super::table::{Cell, Column, Kind, Table};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

pub(super) fn write(table: &Table) -> Result<Vec<u8>, ParquetError> {
    let fields = table.columns.iter().map(field).collect::<Result<_, _>>()?;
    let root = Type::group_type_builder("trials").with_fields(fields);
    let properties = WriterProperties::builder()
        .set_created_by(format!("surefoot {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?));
    let mut writer = SerializedFileWriter::new(
        Vec::new(),
        Arc::new(root.build()?),
        Arc::new(properties.build()),
    )?;
    let mut group = writer.next_row_group()?;
    for column in &table.columns {
        let Some(mut out) = group.next_column()? else {
            break;
        };
        match column.kind {
            Kind::Int => put::<Int64Type>(&mut out, column, |cell| match cell {
                Cell::Int(value) => Some(*value),
                _ => None,
            }),
            Kind::Float => put::<DoubleType>(&mut out, column, |cell| match cell {
                Cell::Float(value) => Some(*value),
                _ => None,
            }),
            Kind::Bool => put::<BoolType>(&mut out, column, |cell| match cell {
                Cell::Bool(value) => Some(*value),
                _ => None,
            }),
            Kind::Text => put::<ByteArrayType>(&mut out, column, |cell| match cell {
                Cell::Text(text) => Some(ByteArray::from(text.as_str())),
                _ => None,
            }),
        }?;
        out.close()?;
    }
    group.close()?;
    writer.into_inner()
}

fn field(column: &Column) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match column.kind {
        Kind::Int => (Physical::INT64, None),
        Kind::Float => (Physical::DOUBLE, None),
        Kind::Bool => (Physical::BOOLEAN, None),
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    Type::primitive_type_builder(&column.name, physical)
        .with_logical_type(logical)
        .with_repetition(Repetition::OPTIONAL)
        .build()
        .map(Arc::new)
}

fn put<T: DataType>(
    out: &mut SerializedColumnWriter<'_>,
    column: &Column,
    value: impl Fn(&Cell) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let values: Vec<Option<T::T>> = column.cells.iter().map(value).collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    out.typed::<T>().write_batch(&values, Some(&levels), None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::fixture;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::{Field, Row};

    fn rows(bytes: Vec<u8>) -> Vec<Row> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), bytes).expect("written");
        let reader = SerializedFileReader::new(file.reopen().expect("a file")).expect("Parquet");
        let rows = reader.get_row_iter(None).expect("rows");
        rows.map(|row| row.expect("a row")).collect()
    }

    #[test]
    fn columns_keep_their_types() {
        let (study, view) = fixture::study();
        let rows = rows(write(&Table::of(&study, &view)).expect("Parquet"));
        assert_eq!(rows.len(), 6);
        let cell = |row: usize, name: &str| {
            let mut columns = rows[row].get_column_iter();
            let found = columns.find(|(column, _)| column.as_str() == name);
            found.map(|(_, field)| field.clone())
        };
        assert_eq!(cell(0, "number"), Some(Field::Long(0)));
        assert_eq!(cell(0, "rate"), Some(Field::Double(0.001)));
        assert_eq!(cell(0, "units"), Some(Field::Long(16)));
        assert_eq!(cell(0, "momentum"), Some(Field::Null));
        assert_eq!(cell(1, "momentum"), Some(Field::Double(0.5)));
        assert_eq!(cell(1, "reason"), Some(Field::Str("median".to_owned())));
        let Some(Field::Double(value)) = cell(3, "value") else {
            panic!("no value");
        };
        assert!(value.is_nan());
    }

    #[test]
    fn a_study_without_trials_is_a_table_without_rows() {
        let (study, _) = fixture::study();
        let view = crate::storage::View::new(&study);
        assert!(rows(write(&Table::of(&study, &view)).expect("Parquet")).is_empty());
    }
}
