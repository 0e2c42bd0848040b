//! CSV files: a header, numbers, and a label column of numbers or names.

use std::path::Path;

use ::csv::{ErrorKind, Reader, ReaderBuilder, StringRecord, Trim};
use surefoot_plan::{Missing, Task};

use crate::error::{DataError, Origin, Place, Position, shortened};
use crate::missing::Gaps;
use crate::samples::{Form, Labels, Measure, Samples};
use crate::table::{Names, label_column};

/// Reads a file. The task, if stated, settles what a label column of mixed cells is.
pub(crate) fn csv(
    path: &Path,
    label: Option<&str>,
    task: Option<Task>,
    missing: Missing,
) -> Result<Samples, DataError> {
    let bytes = std::fs::read(path)
        .map_err(|cause| DataError::Unreadable { path: path.to_owned(), cause })?;
    let file = Text::open(path, &bytes, label, missing)?;
    let rows = file.rows()?;
    let labels = match rows.first_text {
        Some(text) if file.are_classes(&text, rows.texts, rows.numbers, task)? => file.classes()?,
        _ => Labels::Numbers { values: rows.labels, width: 1, form: Form::Column },
    };
    let mut feature_names = file.columns.clone();
    feature_names.remove(file.label);
    let unnamed = feature_names.iter().any(String::is_empty);
    Ok(Samples {
        origin: Origin::File(path.to_owned()),
        label_origin: Origin::File(path.to_owned()),
        shape: vec![feature_names.len()],
        features: rows.features,
        measure: if rows.whole { Measure::Whole } else { Measure::Amounts },
        labels,
        notes: if unnamed {
            vec![format!(
                "a column of {} has no name and is taken as a feature; if it is an index that \
                 pandas saved, write the file with index=False",
                path.display()
            )]
        } else {
            Vec::new()
        },
        feature_names,
    })
}

/// A file in memory, its header understood.
struct Text<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    delimiter: u8,
    columns: Vec<String>,
    /// Which column is the label.
    label: usize,
    missing: Missing,
}

/// All rows of a file.
struct Rows {
    features: Vec<f32>,
    /// True if all present features are whole numbers from 0.
    whole: bool,
    /// Label of each row: 0 if it is not a number, NaN if it is missing.
    labels: Vec<f64>,
    /// Number of numeric labels.
    numbers: usize,
    /// Number of other labels.
    texts: usize,
    /// The first that is not.
    first_text: Option<FirstText>,
}

struct FirstText {
    line: u64,
    value: String,
}

impl<'a> Text<'a> {
    fn open(
        path: &'a Path,
        bytes: &'a [u8],
        label: Option<&str>,
        missing: Missing,
    ) -> Result<Text<'a>, DataError> {
        let mut file = Text {
            path,
            bytes,
            delimiter: delimiter(bytes),
            columns: Vec::new(),
            label: 0,
            missing,
        };
        let mut header = StringRecord::new();
        if !file.next(&mut file.reader(), &mut header)? {
            return Err(DataError::Empty { origin: Origin::File(path.to_owned()) });
        }
        if header.iter().all(|cell| cell.parse::<f64>().is_ok()) {
            return Err(DataError::NoHeader {
                path: path.to_owned(),
                first: shortened(&header[0]),
            });
        }
        file.columns = header.iter().map(str::to_owned).collect();
        file.label = label_column(path, &file.columns, label)?;
        Ok(file)
    }

    fn reader(&self) -> Reader<&'a [u8]> {
        ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(self.delimiter)
            .trim(Trim::All)
            .from_reader(self.bytes)
    }

    fn next(
        &self,
        reader: &mut Reader<&'a [u8]>,
        record: &mut StringRecord,
    ) -> Result<bool, DataError> {
        reader.read_record(record).map_err(|error| {
            let what = match error.kind() {
                ErrorKind::Utf8 { pos: Some(pos), .. } => {
                    format!("line {} is not UTF-8; save it in that encoding", self.line(pos))
                }
                _ => error.to_string(),
            };
            DataError::Malformed { path: self.path.to_owned(), format: "CSV", what }
        })
    }

    /// The line on which a record begins. The reader's position is before any blank lines.
    fn line(&self, at: &::csv::Position) -> u64 {
        let rest = self.bytes.get(at.byte() as usize..).unwrap_or_default();
        let blank = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
        at.line() + blank.filter(|&&byte| byte == b'\n').count() as u64
    }

    /// Calls a function with each line after the header and its number.
    fn each(
        &self,
        mut visit: impl FnMut(u64, &StringRecord) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let mut reader = self.reader();
        let mut record = StringRecord::new();
        self.next(&mut reader, &mut record)?;
        while self.next(&mut reader, &mut record)? {
            let line = record.position().map_or(0, |at| self.line(at));
            if record.len() != self.columns.len() {
                return Err(DataError::Ragged {
                    path: self.path.to_owned(),
                    line,
                    found: record.len(),
                    expected: self.columns.len(),
                });
            }
            visit(line, &record)?;
        }
        Ok(())
    }

    fn rows(&self) -> Result<Rows, DataError> {
        let mut rows = Rows {
            features: Vec::new(),
            whole: true,
            labels: Vec::new(),
            numbers: 0,
            texts: 0,
            first_text: None,
        };
        self.each(|line, record| {
            for (column, cell) in record.iter().enumerate() {
                if column == self.label {
                    let label = self.label(line, cell)?;
                    match label {
                        Some(number) => rows.numbers += usize::from(!number.is_nan()),
                        None => {
                            rows.texts += 1;
                            rows.first_text
                                .get_or_insert_with(|| FirstText { line, value: shortened(cell) });
                        }
                    }
                    rows.labels.push(label.unwrap_or_default());
                } else {
                    let feature = self.feature(line, column, cell)?;
                    rows.whole &= feature.is_nan() || feature >= 0.0 && feature.fract() == 0.0;
                    rows.features.push(feature);
                }
            }
            Ok(())
        })?;
        if rows.labels.is_empty() {
            return Err(DataError::HeaderOnly { path: self.path.to_owned() });
        }
        Ok(rows)
    }

    fn feature(&self, line: u64, column: usize, cell: &str) -> Result<f32, DataError> {
        let gaps = Gaps::in_features(self.missing);
        let place = || self.place(line, column);
        match cell.parse::<f64>() {
            Ok(number) => Ok(gaps.check(number, cell, place)? as f32),
            Err(_) if cell.eq_ignore_ascii_case("true") => Ok(1.0),
            Err(_) if cell.eq_ignore_ascii_case("false") => Ok(0.0),
            Err(_) if is_missing(cell) => Ok(gaps.fill(shown(cell), place)? as f32),
            Err(_) => Err(DataError::NotANumber {
                place: place(),
                value: shortened(cell),
                advice: "correct it, or encode the column as numbers, or remove the column",
            }),
        }
    }

    /// Parses a numeric label: NaN if it is missing, `None` if it is a name.
    fn label(&self, line: u64, cell: &str) -> Result<Option<f64>, DataError> {
        let gaps = Gaps::in_labels(self.missing);
        let place = || self.place(line, self.label);
        match cell.parse::<f64>() {
            Ok(number) => gaps.check(number, cell, place).map(Some),
            Err(_) if cell.is_empty() => gaps.fill(shown(cell), place).map(Some),
            // Among numbers it marks a missing value; among names it is a name.
            Err(_) if self.missing == Missing::Drop && is_missing(cell) => Ok(Some(f64::NAN)),
            Err(_) => Ok(None),
        }
    }

    fn place(&self, line: u64, column: usize) -> Box<Place> {
        Box::new(Place {
            file: self.path.to_owned(),
            position: Position::Cell { line, column: self.columns[column].clone() },
        })
    }

    /// Returns true if labels that are not all numbers are class names. If most are numbers and the
    /// plan does not declare classes, the others are mistakes.
    fn are_classes(
        &self,
        text: &FirstText,
        texts: usize,
        numbers: usize,
        task: Option<Task>,
    ) -> Result<bool, DataError> {
        let advice = match task {
            Some(Task::Binary | Task::MultiClass) => return Ok(true),
            None if texts >= numbers => return Ok(true),
            None => {
                "most labels are numbers: correct it, or say task = \"multi_class\" if it is the \
                 name of a class"
            }
            Some(Task::Regression) => "the labels of a regression are numbers",
        };
        Err(DataError::NotANumber {
            place: self.place(text.line, self.label),
            value: text.value.clone(),
            advice,
        })
    }

    /// Reads the labels once more, as names.
    fn classes(&self) -> Result<Labels, DataError> {
        let mut names = Names::default();
        self.each(|_, record| {
            let cell = &record[self.label];
            let number = cell.parse::<f64>();
            let missing = number.is_ok_and(|number| !(number as f32).is_finite());
            names.push(if missing { "" } else { cell });
            Ok(())
        })?;
        Ok(names.labels())
    }
}

/// Delimiter: a comma if the header has one, otherwise a semicolon or a tab.
fn delimiter(bytes: &[u8]) -> u8 {
    let header = bytes.split(|&byte| byte == b'\n').find(|line| !line.is_empty());
    let header = header.unwrap_or_default();
    [b',', b';', b'\t'].into_iter().find(|delimiter| header.contains(delimiter)).unwrap_or(b',')
}

/// A missing cell as messages name it.
fn shown(cell: &str) -> &str {
    match cell {
        "" => "an empty cell",
        _ => cell,
    }
}

/// Returns true for the words that programs write for a missing value.
fn is_missing(cell: &str) -> bool {
    ["", "na", "n/a", "null", "none", "?"].iter().any(|word| cell.eq_ignore_ascii_case(word))
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;
