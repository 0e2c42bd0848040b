//! Parquet files: a table by columns, of numbers and names.

use std::fs::File;
use std::path::Path;

use ::parquet::basic::{ConvertedType, LogicalType, Type};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::DataType;
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::schema::types::ColumnDescriptor;

use surefoot_plan::Missing;

use crate::error::{DataError, Origin, Place, Position, shortened};
use crate::missing::Gaps;
use crate::preprocessing::Column as Feature;
use crate::samples::{Form, Labels, Measure, Samples, room};
use crate::table::{Names, label_columns};

const FORMAT: &str = "Parquet";

/// Number of values read at a time.
const BATCH: usize = 1 << 13;

/// Reads a file.
pub(crate) fn parquet(
    path: &Path,
    labels: &[String],
    known: Option<&[Feature]>,
    missing: Missing,
) -> Result<Samples, DataError> {
    let unreadable = |cause| DataError::unreadable(path, &cause);
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.is_dir() {
        return Err(DataError::unsupported(path, "it is a folder", "name a single Parquet file"));
    }
    if metadata.len() == 0 {
        return Err(DataError::empty(path.display()));
    }
    // The library has panicked on damaged files before; a run must not.
    std::panic::catch_unwind(|| read(path, file, labels, known, missing))
        .unwrap_or_else(|_| Err(DataError::malformed(path, FORMAT, "it is damaged")))
}

fn read(
    path: &Path,
    file: File,
    labels: &[String],
    known: Option<&[Feature]>,
    missing: Missing,
) -> Result<Samples, DataError> {
    let table = Table {
        path,
        file: SerializedFileReader::new(file).map_err(|error| malformed(path, &error))?,
    };
    let (columns, notes) = table.columns();
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    if names.is_empty() {
        return Err(DataError::empty(path.display()));
    }
    let targets = label_columns(path, &names, labels)?;
    let labels = match targets[..] {
        [label] => table.labels(&columns[label], Gaps::in_labels(missing))?,
        _ => table.numeric_labels(&columns, &targets, Gaps::in_labels(missing))?,
    };
    let count = labels.len();
    if count == 0 {
        return Err(DataError::header_only(path));
    }

    let mut inputs = Vec::new();
    match known {
        Some(known) => {
            for feature in known {
                let column = columns.iter().find(|column| column.name == feature.name);
                inputs.push(column.ok_or_else(|| {
                    DataError::no_column(
                        path,
                        &feature.name,
                        "which the training data have",
                        &names,
                    )
                })?);
            }
        }
        None => {
            let is_input = |at: &usize| !targets.contains(at);
            inputs.extend((0..columns.len()).filter(is_input).map(|at| &columns[at]));
        }
    }
    let width = inputs.len();
    let mut features = room(&Origin::File(path.to_owned()), count, width)?;
    features.resize(count * width, 0.0);
    let mut whole = true;
    for (place, column) in inputs.iter().enumerate() {
        let mut rows = features.chunks_mut(width);
        let mut read = 0;
        table.numbers(column, Gaps::in_features(missing), |number| {
            read += 1;
            whole &= number.is_nan() || number >= 0.0 && number.fract() == 0.0;
            if let Some(row) = rows.next() {
                row[place] = number as f32;
            }
        })?;
        if read != count {
            let what = format!("column {:?} has {read} rows, not {count}", column.name);
            return Err(DataError::malformed(path, FORMAT, what));
        }
    }
    Ok(Samples {
        origin: Origin::File(path.to_owned()),
        label_origin: Origin::File(path.to_owned()),
        shape: vec![width],
        features,
        columns: inputs.iter().map(|column| Feature::number(&column.name)).collect(),
        label_columns: targets.iter().map(|&at| names[at].clone()).collect(),
        measure: if whole { Measure::Whole } else { Measure::Amounts },
        labels,
        positions: 1,
        notes,
    })
}

struct Table<'a> {
    path: &'a Path,
    file: SerializedFileReader<File>,
}

struct Column {
    /// Its number in the file.
    index: usize,
    name: String,
    kind: Kind,
    /// True if values can be missing.
    optional: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Number {
        unsigned: bool,
    },
    Text,
    /// Description of an unsupported type.
    Other(&'static str),
}

impl Table<'_> {
    /// The columns, and notes about skipped ones.
    fn columns(&self) -> (Vec<Column>, Vec<String>) {
        let schema = self.file.metadata().file_metadata().schema_descr();
        let mut notes = Vec::new();
        let columns = schema.columns().iter().enumerate();
        let columns = columns.filter_map(|(index, column)| {
            let name = column.path().string();
            if name.starts_with("__index_level_") {
                notes.push(format!(
                    "{name:?} of {} is an index that pandas saved, and is left out",
                    self.path.display()
                ));
                return None;
            }
            Some(Column { index, name, kind: kind(column), optional: column.max_def_level() > 0 })
        });
        (columns.collect(), notes)
    }

    fn labels(&self, column: &Column, gaps: Gaps) -> Result<Labels, DataError> {
        if column.kind != Kind::Text {
            let mut values = Vec::new();
            self.numbers(column, gaps, |number| values.push(number))?;
            return Ok(Labels::Numbers { values, width: 1, form: Form::Column });
        }
        let mut names = Names::default();
        let mut row = 0;
        self.each_group(column, |reader| {
            let ColumnReader::ByteArrayColumnReader(mut reader) = reader else {
                return Ok(());
            };
            self.pull(&mut reader, column, &mut row, |row, bytes| {
                let text = match bytes {
                    Some(bytes) => bytes.as_utf8().map_err(|error| malformed(self.path, &error))?,
                    None => "",
                };
                if text.is_empty() {
                    let written = bytes.map_or("null", |_| "an empty text");
                    gaps.fill(written, || self.place(row, column))?;
                }
                names.push(text);
                Ok(())
            })
        })?;
        Ok(names.labels())
    }

    /// Several label columns, which have to be numbers.
    fn numeric_labels(
        &self,
        columns: &[Column],
        targets: &[usize],
        gaps: Gaps,
    ) -> Result<Labels, DataError> {
        let mut each = Vec::new();
        for &at in targets {
            let mut values = Vec::new();
            self.numbers(&columns[at], gaps, |number| values.push(number))?;
            each.push(values);
        }
        // Columns of different lengths are found when the features are read.
        let rows = each.iter().map(Vec::len).min().unwrap_or(0);
        let values = (0..rows).flat_map(|row| each.iter().map(move |values| values[row]));
        Ok(Labels::Numbers { values: values.collect(), width: targets.len(), form: Form::Column })
    }

    /// Calls a function with each number of a column, NaN where one is missing.
    fn numbers(
        &self,
        column: &Column,
        gaps: Gaps,
        mut push: impl FnMut(f64),
    ) -> Result<(), DataError> {
        let unsigned = match column.kind {
            Kind::Number { unsigned } => unsigned,
            Kind::Text => return Err(self.not_read(column, "text")),
            Kind::Other(what) => return Err(self.not_read(column, what)),
        };
        let mut row = 0;
        let mut check = |row, number: Option<f64>| {
            let place = || self.place(row, column);
            push(match number {
                Some(number) => gaps.check(number, number, place)?,
                None => gaps.fill("null", place)?,
            });
            Ok(())
        };
        self.each_group(column, |reader| match reader {
            ColumnReader::BoolColumnReader(mut reader) => {
                self.pull(&mut reader, column, &mut row, |row, x| {
                    check(row, x.map(|&x| f64::from(x)))
                })
            }
            ColumnReader::Int32ColumnReader(mut reader) => {
                self.pull(&mut reader, column, &mut row, |row, x| {
                    let number = |&x| {
                        if unsigned { f64::from(x as u32) } else { f64::from(x) }
                    };
                    check(row, x.map(number))
                })
            }
            ColumnReader::Int64ColumnReader(mut reader) => {
                self.pull(&mut reader, column, &mut row, |row, x| {
                    let number = |&x| if unsigned { x as u64 as f64 } else { x as f64 };
                    check(row, x.map(number))
                })
            }
            ColumnReader::FloatColumnReader(mut reader) => {
                self.pull(&mut reader, column, &mut row, |row, x| {
                    check(row, x.map(|&x| f64::from(x)))
                })
            }
            ColumnReader::DoubleColumnReader(mut reader) => {
                self.pull(&mut reader, column, &mut row, |row, x| check(row, x.copied()))
            }
            _ => Err(self.not_read(column, "bytes")),
        })
    }

    /// Calls a function with a reader of the column for each group of rows.
    fn each_group(
        &self,
        column: &Column,
        mut visit: impl FnMut(ColumnReader) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        for group in 0..self.file.num_row_groups() {
            let reader = self
                .file
                .get_row_group(group)
                .and_then(|group| group.get_column_reader(column.index))
                .map_err(|error| malformed(self.path, &error))?;
            visit(reader)?;
        }
        Ok(())
    }

    /// Calls a function with each row of a reader, counted from 1, and its value, if it has one.
    fn pull<T: DataType>(
        &self,
        reader: &mut ColumnReaderImpl<T>,
        column: &Column,
        row: &mut u64,
        mut visit: impl FnMut(u64, Option<&T::T>) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        loop {
            values.clear();
            levels.clear();
            let (records, ..) = reader
                .read_records(BATCH, Some(&mut levels), None, &mut values)
                .map_err(|error| malformed(self.path, &error))?;
            if records == 0 {
                return Ok(());
            }
            // A column that cannot have nulls is stored without levels.
            if !column.optional {
                levels.resize(values.len(), 1);
            }
            let mut values = values.iter();
            for &level in &levels {
                *row += 1;
                visit(*row, if level == 0 { None } else { values.next() })?;
            }
        }
    }

    fn place(&self, row: u64, column: &Column) -> Box<Place> {
        Box::new(Place {
            file: self.path.to_owned(),
            position: Position::Row { row, column: column.name.clone() },
        })
    }

    fn not_read(&self, column: &Column, what: &str) -> DataError {
        let what = format!("column {:?} holds {what}", shortened(&column.name));
        DataError::unsupported(self.path, what, "encode it as numbers, or remove the column")
    }
}

fn kind(column: &ColumnDescriptor) -> Kind {
    use ConvertedType as Converted;
    if column.max_rep_level() > 0 || column.path().parts().len() > 1 {
        return Kind::Other("lists or records");
    }
    let timed = matches!(
        column.logical_type_ref(),
        Some(LogicalType::Timestamp(_) | LogicalType::Time(_) | LogicalType::Date)
    );
    match (column.physical_type(), column.converted_type()) {
        _ if timed => Kind::Other("dates or times"),
        (Type::BOOLEAN | Type::FLOAT | Type::DOUBLE, _) => Kind::Number { unsigned: false },
        (
            Type::INT32 | Type::INT64,
            Converted::NONE
            | Converted::INT_8
            | Converted::INT_16
            | Converted::INT_32
            | Converted::INT_64,
        ) => Kind::Number { unsigned: false },
        (
            Type::INT32 | Type::INT64,
            Converted::UINT_8 | Converted::UINT_16 | Converted::UINT_32 | Converted::UINT_64,
        ) => Kind::Number { unsigned: true },
        (Type::BYTE_ARRAY, Converted::UTF8 | Converted::ENUM | Converted::NONE) => Kind::Text,
        (_, Converted::DECIMAL) => Kind::Other("decimals"),
        (Type::INT32 | Type::INT64 | Type::INT96, _) => Kind::Other("dates or times"),
        _ => Kind::Other("bytes"),
    }
}

fn malformed(path: &Path, error: &ParquetError) -> DataError {
    let message = error.to_string();
    // The library's message for a compression that is not compiled in.
    if let Some((_, compression)) = message.split_once("Disabled feature at compile time: ") {
        let what = format!("its compression, {compression}, is not read");
        let instead = "compress it with snappy, zstd or gzip, or not at all";
        return DataError::unsupported(path, what, instead);
    }
    DataError::malformed(path, FORMAT, message)
}

#[cfg(test)]
#[path = "parquet_tests.rs"]
pub(crate) mod tests;
