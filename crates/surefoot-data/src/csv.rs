//! CSV files: a header, columns of numbers or categories, and a label column of numbers or names.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use ::csv::{ErrorKind, Reader, ReaderBuilder, StringRecord, Trim};
use surefoot_plan::{Missing, Task};

use crate::error::{DataError, Origin, Place, Position, list, shortened};
use crate::missing::Gaps;
use crate::preprocessing::{Column, Preprocessing};
use crate::samples::{Form, Labels, Measure, Samples, check_memory, room};
use crate::table::{Names, label_columns};

/// Columns with more categories than this are identifiers or texts.
const MOST_CATEGORIES: usize = 1000;

/// Columns that a plan names.
#[derive(Clone, Copy)]
pub(crate) struct Selection<'a> {
    /// Empty for the last column.
    pub(crate) labels: &'a [String],
    pub(crate) exclude: &'a [String],
    pub(crate) categorical: &'a [String],
    /// The feature columns with their categories, if they are known already.
    pub(crate) columns: Option<&'a [Column]>,
}

/// Reads a file. The task, if stated, settles what a label column of mixed cells is.
pub(crate) fn csv(
    path: &Path,
    selection: Selection<'_>,
    task: Option<Task>,
    missing: Missing,
) -> Result<Samples, DataError> {
    let bytes = read(path)?;
    let mut file = Text::open(path, &bytes, missing)?;
    file.select(selection)?;
    let rows = file.rows()?;
    let labels = match rows.first_text {
        Some(text) if file.are_classes(&text, rows.texts, rows.numbers, task)? => file.classes()?,
        _ => Labels::Numbers { values: rows.labels, width: file.labels.len(), form: Form::Column },
    };
    let columns: Vec<Column> = file.features.into_iter().map(|(_, column)| column).collect();
    let unnamed = columns.iter().any(|column| column.name.is_empty());
    let is_encoded = columns.iter().any(|column| column.categories.is_some());
    Ok(Samples {
        origin: Origin::File(path.to_owned()),
        label_origin: Origin::File(path.to_owned()),
        shape: vec![columns.iter().map(|column| column.inputs().len()).sum()],
        features: rows.features,
        measure: if rows.whole && !is_encoded { Measure::Whole } else { Measure::Amounts },
        labels,
        positions: 1,
        notes: if unnamed {
            vec![format!(
                "a column of {} has no name and is taken as a feature; if it is an index that \
                 pandas saved, write the file with index=False",
                path.display()
            )]
        } else {
            Vec::new()
        },
        label_columns: file.labels.iter().map(|&at| file.columns[at].clone()).collect(),
        columns,
    })
}

/// Content of a column.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    pub(crate) name: String,
    pub(crate) rows: usize,
    /// Cells without a value.
    pub(crate) missing: usize,
    /// Cells that are not numbers.
    pub(crate) texts: usize,
    /// Different cells with a value, counted up to [`MOST_CATEGORIES`] and all if none repeats.
    pub(crate) distinct: usize,
    /// True if each cell is the number before it plus 1.
    pub(crate) is_counter: bool,
}

/// Profiles the columns of a file.
pub(crate) fn profile(path: &Path) -> Result<Vec<Profile>, DataError> {
    let bytes = read(path)?;
    let file = Text::open(path, &bytes, Missing::Impute)?;
    let mut seen = vec![HashSet::new(); file.columns.len()];
    let mut last = vec![None; file.columns.len()];
    let mut profiles: Vec<Profile> = file
        .columns
        .iter()
        .map(|name| Profile { name: name.clone(), is_counter: true, ..Profile::default() })
        .collect();
    file.each(|_, record| {
        for (((cell, profile), seen), last) in
            record.iter().zip(&mut profiles).zip(&mut seen).zip(&mut last)
        {
            let number = cell.parse::<f64>().ok();
            let is_boolean = ["true", "false"].iter().any(|word| cell.eq_ignore_ascii_case(word));
            profile.rows += 1;
            profile.is_counter &= number.is_some()
                && last.is_none_or(|last: Option<f64>| {
                    last.zip(number).is_some_and(|(last, number)| number == last + 1.0)
                });
            *last = Some(number);
            if cell.is_empty() || number.is_some_and(f64::is_nan) {
                profile.missing += 1;
                continue;
            }
            profile.texts += usize::from(number.is_none() && !is_boolean && !is_missing(cell));
            profile.missing += usize::from(number.is_none() && is_missing(cell));
            // Beyond the limit only a column without repeated cells is followed.
            if (seen.len() < MOST_CATEGORIES || seen.len() + 1 == profile.rows)
                && !seen.contains(cell)
            {
                seen.insert(cell.to_owned());
            }
        }
        Ok(())
    })?;
    for (profile, seen) in profiles.iter_mut().zip(&seen) {
        profile.distinct = seen.len();
        profile.is_counter &= profile.rows > 2;
    }
    Ok(profiles)
}

/// Reads new samples for a model: the feature columns that it was trained with.
pub(crate) fn features(
    path: &Path,
    trained: &Preprocessing,
    missing: Missing,
) -> Result<Vec<f32>, DataError> {
    let bytes = read(path)?;
    let mut file = Text::open(path, &bytes, missing)?;
    if trained.columns.is_empty() {
        if file.columns.len() != trained.width() {
            let found = format!("{} columns", file.columns.len());
            let expected = format!("{} values a sample", trained.width());
            return Err(DataError::width(path, &found, &expected));
        }
        file.features = file.columns.iter().map(Column::number).enumerate().collect();
    }
    file.select_columns(&trained.columns)?;
    let mut features = file.room()?;
    file.each(|line, record| file.encode(line, record, &mut features))?;
    match features.is_empty() {
        true => Err(DataError::header_only(path)),
        false => Ok(features),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, DataError> {
    let unreadable = |cause| DataError::unreadable(path, &cause);
    let size = std::fs::metadata(path).map_err(unreadable)?.len();
    check_memory(&Origin::File(path.to_owned()), size)?;
    std::fs::read(path).map_err(unreadable)
}

/// A file in memory, its header understood.
struct Text<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    delimiter: u8,
    columns: Vec<String>,
    /// Indices of the label columns.
    labels: Vec<usize>,
    /// Feature columns with their index in the file.
    features: Vec<(usize, Column)>,
    missing: Missing,
}

/// All rows of a file.
struct Rows {
    features: Vec<f32>,
    /// True if all present features are whole numbers from 0.
    whole: bool,
    /// Labels of each row: 0 if one is not a number, NaN if it is missing.
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
    column: usize,
    value: String,
}

impl<'a> Text<'a> {
    fn open(path: &'a Path, bytes: &'a [u8], missing: Missing) -> Result<Text<'a>, DataError> {
        let mut file = Text {
            path,
            bytes,
            delimiter: delimiter(bytes),
            columns: Vec::new(),
            labels: Vec::new(),
            features: Vec::new(),
            missing,
        };
        let mut header = StringRecord::new();
        if !file.next(&mut file.reader(), &mut header)? {
            return Err(DataError::empty(path.display()));
        }
        if header.iter().all(|cell| cell.parse::<f64>().is_ok()) {
            return Err(DataError::new(format!(
                "{} has no header: every cell of its first line is a number (the first is {:?}); add a line with the names of the columns",
                path.display(),
                shortened(&header[0])
            )));
        }
        file.columns = header.iter().map(str::to_owned).collect();
        Ok(file)
    }

    /// Selects the label and the features.
    fn select(&mut self, selection: Selection<'_>) -> Result<(), DataError> {
        self.labels = label_columns(self.path, &self.columns, selection.labels)?;
        if let Some(columns) = selection.columns {
            return self.select_columns(columns);
        }
        for name in selection.exclude {
            self.find(name, "which data.source.exclude names")?;
        }
        for name in selection.categorical {
            self.find(name, "which data.source.categorical names")?;
        }
        for (at, name) in self.columns.iter().enumerate() {
            if self.labels.contains(&at) || selection.exclude.contains(name) {
                continue;
            }
            let categories = match selection.categorical.contains(name) {
                true => Some(self.categories(at)?),
                false => None,
            };
            self.features.push((at, Column { name: name.clone(), categories }));
        }
        match self.features.is_empty() {
            true => Err(DataError::no_features(self.path, &self.columns[self.labels[0]])),
            false => Ok(()),
        }
    }

    /// Selects known feature columns.
    fn select_columns(&mut self, columns: &[Column]) -> Result<(), DataError> {
        for column in columns {
            let at = self.find(&column.name, "which the training data have")?;
            self.features.push((at, column.clone()));
        }
        Ok(())
    }

    /// Index of a column.
    fn find(&self, name: &str, purpose: &'static str) -> Result<usize, DataError> {
        let found = self.columns.iter().position(|column| column == name);
        found.ok_or_else(|| DataError::no_column(self.path, name, purpose, &self.columns))
    }

    /// The distinct texts of a column in ascending order. An empty cell is a missing value.
    fn categories(&self, column: usize) -> Result<Vec<String>, DataError> {
        let mut found = BTreeSet::new();
        self.each(|_, record| {
            let cell = &record[column];
            if !cell.is_empty() && !found.contains(cell) {
                found.insert(cell.to_owned());
            }
            match found.len() > MOST_CATEGORIES {
                true => Err(DataError::new(format!(
                    "{}: column {:?} has more than {MOST_CATEGORIES} categories; leave it out with exclude",
                    self.path.display(),
                    shortened(&self.columns[column])
                ))),
                false => Ok(()),
            }
        })?;
        Ok(found.into_iter().collect())
    }

    /// Appends the inputs of a line: a number for a column of numbers, one 1 among zeros for a
    /// category.
    fn encode(
        &self,
        line: u64,
        record: &StringRecord,
        features: &mut Vec<f32>,
    ) -> Result<(), DataError> {
        for (at, column) in &self.features {
            let cell = &record[*at];
            let Some(categories) = &column.categories else {
                features.push(self.feature(line, *at, cell)?);
                continue;
            };
            let place = || self.place(line, *at);
            let start = features.len();
            features.resize(start + categories.len(), 0.0);
            if cell.is_empty() {
                let gap = Gaps::in_features(self.missing).fill(shown(cell), place)?;
                features[start..].fill(gap as f32);
                continue;
            }
            match categories.binary_search_by(|category| category.as_str().cmp(cell)) {
                Ok(category) => features[start + category] = 1.0,
                Err(_) => {
                    let (value, known) = (shortened(cell), list(categories));
                    let fault = format!(
                        "{value:?} is not a category of the training data; they are {known}"
                    );
                    return Err(DataError::value(place(), fault));
                }
            }
        }
        Ok(())
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
            DataError::malformed(self.path, "CSV", what)
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
                return Err(DataError::new(format!(
                    "{}, line {line}: {} cells where the header has {}; add or remove cells (a cell with a comma needs quotes)",
                    self.path.display(),
                    record.len(),
                    self.columns.len()
                )));
            }
            visit(line, &record)?;
        }
        Ok(())
    }

    /// Memory for the features of all lines. Categories need many times their size in the file.
    fn room(&self) -> Result<Vec<f32>, DataError> {
        let lines = self.bytes.iter().filter(|&&byte| byte == b'\n').count();
        let width = self.features.iter().map(|(_, column)| match &column.categories {
            Some(categories) => categories.len(),
            None => 1,
        });
        room(&Origin::File(self.path.to_owned()), lines.max(1), width.sum())
    }

    fn rows(&self) -> Result<Rows, DataError> {
        let mut rows = Rows {
            features: self.room()?,
            whole: true,
            labels: Vec::new(),
            numbers: 0,
            texts: 0,
            first_text: None,
        };
        self.each(|line, record| {
            let start = rows.features.len();
            self.encode(line, record, &mut rows.features)?;
            let is_whole = |x: &f32| x.is_nan() || *x >= 0.0 && x.fract() == 0.0;
            rows.whole &= rows.features[start..].iter().all(is_whole);
            for &column in &self.labels {
                let cell = &record[column];
                let label = self.label(line, column, cell)?;
                match label {
                    Some(number) => rows.numbers += usize::from(!number.is_nan()),
                    None => {
                        rows.texts += 1;
                        let value = || FirstText { line, column, value: shortened(cell) };
                        rows.first_text.get_or_insert_with(value);
                    }
                }
                rows.labels.push(label.unwrap_or_default());
            }
            Ok(())
        })?;
        if rows.labels.is_empty() {
            return Err(DataError::header_only(self.path));
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
            Err(_) => {
                let advice = "correct it, or list the column in data.source.categorical, or leave it \
                              out with data.source.exclude";
                Err(DataError::not_a_number(place(), &shortened(cell), advice))
            }
        }
    }

    /// Parses a numeric label: NaN if it is missing, `None` if it is a name.
    fn label(&self, line: u64, column: usize, cell: &str) -> Result<Option<f64>, DataError> {
        let gaps = Gaps::in_labels(self.missing);
        let place = || self.place(line, column);
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
            _ if self.labels.len() > 1 => {
                "several label columns have to be numbers: correct it, or give one label column"
            }
            Some(Task::Binary | Task::MultiClass) => return Ok(true),
            None if texts >= numbers => return Ok(true),
            None => {
                "most labels are numbers: correct it, or say task = \"multi_class\" if it is the \
                 name of a class"
            }
            Some(Task::Regression) => "the labels of a regression are numbers",
            Some(Task::MultiLabel) => "the labels of a multi-label task are 0 or 1",
        };
        let place = self.place(text.line, text.column);
        Err(DataError::not_a_number(place, &text.value, advice))
    }

    /// Reads the labels once more, as names.
    fn classes(&self) -> Result<Labels, DataError> {
        let mut names = Names::default();
        self.each(|_, record| {
            let cell = &record[self.labels[0]];
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
