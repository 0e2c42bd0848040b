//! Errors of loading data: cause, place and advice.

use std::fmt;
use std::path::PathBuf;

use surefoot_plan::Task;

/// Error of loading data.
///
/// All variants are faults of the input. The message names the file and, if possible, the line, the
/// column and the value, and advises a fix.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// A file or folder is missing or unreadable.
    #[error("cannot read {}: {cause}; files are looked for relative to the plan's folder", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// Cause.
        cause: std::io::Error,
    },

    /// A file of no bytes, or an array without elements.
    #[error("{origin} is empty; it must hold at least two samples")]
    Empty {
        /// Expected source of the samples.
        origin: Origin,
    },

    /// A table has a header and no rows.
    #[error("{} has a header but no samples; it must hold at least two", path.display())]
    HeaderOnly {
        /// The file.
        path: PathBuf,
    },

    /// A single sample, which can be learnt from or judged by, but not both.
    #[error(
        "{origin} has a single sample; it must hold at least two, one to learn from and one to judge by"
    )]
    OneSample {
        /// Source of the sample.
        origin: Origin,
    },

    /// No sample is left to learn from.
    #[error(
        "every training sample of {origin} has an outlier; set outliers = \"clip\" to keep the samples"
    )]
    OnlyOutliers {
        /// Source of the samples.
        origin: Origin,
    },

    /// A CSV file whose first line is a sample.
    #[error("{} has no header: every cell of its first line is a number (the first is {first:?}); add a line with the names of the columns", path.display())]
    NoHeader {
        /// The file.
        path: PathBuf,
        /// The first cell of the first line.
        first: String,
    },

    /// Two columns of one name.
    #[error("{} has two columns named {column:?} (numbers {} and {}); rename or remove one", path.display(), numbers[0], numbers[1])]
    DuplicateColumn {
        /// The file.
        path: PathBuf,
        /// The name.
        column: String,
        /// Which columns have it, counted from 1.
        numbers: [usize; 2],
    },

    /// A label column that is not in the file.
    #[error("{} has no column {label:?} to take the label from; its columns are {}", path.display(), list(columns))]
    NoLabel {
        /// The file.
        path: PathBuf,
        /// Column in the plan.
        label: String,
        /// The columns there are.
        columns: Vec<String>,
    },

    /// A table whose only column is the label.
    #[error("{} has the label column {label:?} and no other; there is nothing to learn it from", path.display())]
    NoFeatures {
        /// The file.
        path: PathBuf,
        /// The only column.
        label: String,
    },

    /// A column that is not in the file.
    #[error("{} has no column {column:?}, {purpose}; its columns are {}", path.display(), list(columns))]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// Use of the column.
        purpose: &'static str,
        /// The columns there are.
        columns: Vec<String>,
    },

    /// Too many categories to encode.
    #[error("{}: column {column:?} has more than {limit} categories; leave it out with exclude", path.display())]
    ManyCategories {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// Maximum number of categories.
        limit: usize,
    },

    /// A category that the training data do not have.
    #[error("{place}: {value:?} is not a category of the training data; they are {}", list(known))]
    UnknownCategory {
        /// Place.
        place: Box<Place>,
        /// Value found.
        value: String,
        /// Known categories.
        known: Vec<String>,
    },

    /// New samples of another shape than those of the training.
    #[error("{} has {found}, but the model takes {expected}", path.display())]
    Width {
        /// The file.
        path: PathBuf,
        /// Shape found.
        found: String,
        /// Shape of the training data.
        expected: String,
    },

    /// A value that an embedding cannot look up.
    #[error("{place}: {value} is not a symbol; the model takes whole numbers from 0 to {}", symbols - 1)]
    NotASymbol {
        /// Place.
        place: Box<Place>,
        /// Value found.
        value: String,
        /// Number of symbols.
        symbols: usize,
    },

    /// A line with more or fewer cells than the header.
    #[error("{}, line {line}: {found} cells where the header has {expected}; add or remove cells (a cell with a comma needs quotes)", path.display())]
    Ragged {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// Cells on the line.
        found: usize,
        /// Cells of the header.
        expected: usize,
    },

    /// A missing value: an empty cell, a null or NaN.
    #[error("{place}: the value is missing ({value}); {advice}")]
    Missing {
        /// Place.
        place: Box<Place>,
        /// Value found.
        value: String,
        /// Advice.
        advice: &'static str,
    },

    /// A value that is infinite, or too large for the 32-bit floats that models compute with.
    #[error("{place}: {value} is infinite or too large (the limit is 3.4e38); {advice}")]
    Infinite {
        /// Place.
        place: Box<Place>,
        /// Value found.
        value: String,
        /// Advice.
        advice: &'static str,
    },

    /// A text where a number must be.
    #[error("{place}: {value:?} is not a number; {advice}")]
    NotANumber {
        /// Place.
        place: Box<Place>,
        /// Value found.
        value: String,
        /// Advice.
        advice: &'static str,
    },

    /// A number that cannot be the number of a class.
    #[error("{place}: {value} is not a class; {expected}")]
    NotAClass {
        /// Place.
        place: Box<Place>,
        /// Value found.
        value: String,
        /// Format of a class.
        expected: &'static str,
    },

    /// A file is damaged, or is not of the kind stated in the plan.
    #[error("{} is not a valid {format} file: {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The format it should have.
        format: &'static str,
        /// Cause.
        what: String,
    },

    /// A valid file with something in it that Surefoot does not read.
    #[error("{}: {what}; {instead}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// Unsupported feature.
        what: String,
        /// Supported alternative.
        instead: &'static str,
    },

    /// An archive without the array that the plan names.
    #[error("{} has no array {array:?}; its arrays are {}", path.display(), list(arrays))]
    NoArray {
        /// The archive.
        path: PathBuf,
        /// Array in the plan.
        array: String,
        /// The arrays there are.
        arrays: Vec<String>,
    },

    /// A validation file whose samples do not have the layout of the training file.
    #[error("{training} has {what} {expected} and {validation} {found}; both need the same")]
    Differs {
        /// The training file.
        training: Origin,
        /// The validation file.
        validation: Origin,
        /// Compared property.
        what: &'static str,
        /// That of the training file.
        expected: String,
        /// That of the validation file.
        found: String,
    },

    /// Features and labels of different numbers of samples.
    #[error(
        "{features} has {feature_count} samples and {labels} has {label_count}; each sample needs one label"
    )]
    Unpaired {
        /// Source of the features.
        features: String,
        /// Number of features.
        feature_count: usize,
        /// Source of the labels.
        labels: String,
        /// Number of labels.
        label_count: usize,
    },

    /// An image folder without classes or a class without images.
    #[error("{} {what}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Cause.
        what: &'static str,
    },

    /// Labels that are all the same.
    #[error("only one class ({class}) in {origin}; nothing to learn")]
    OneClass {
        /// Source of the labels.
        origin: Origin,
        /// The class.
        class: String,
    },

    /// More classes than a model could tell apart.
    #[error(
        "{origin} has {classes} classes, and at most {limit} are allowed; if the labels are amounts, say task = \"regression\""
    )]
    ManyClasses {
        /// Source of the labels.
        origin: Origin,
        /// Number of classes.
        classes: String,
        /// Maximum number.
        limit: usize,
    },

    /// Targets that are classes cannot be scaled.
    #[error("{origin}: the targets are classes; remove data.target_scale, which needs numbers")]
    ScaledClasses {
        /// Origin of the targets.
        origin: Origin,
    },

    /// A stated task that the targets do not fit.
    #[error("the plan says task = \"{}\", but {origin} has {found}; {advice}", task.name())]
    WrongTask {
        /// The task of the plan.
        task: Task,
        /// Source of the labels.
        origin: Origin,
        /// Kind of the labels.
        found: String,
        /// Advice.
        advice: &'static str,
    },

    /// Shares of the split that are not shares.
    #[error("split.{key} = {value}: {need}")]
    BadSplit {
        /// The setting.
        key: &'static str,
        /// Its value.
        value: f64,
        /// Requirement.
        need: &'static str,
    },

    /// A part of the split that would have no samples.
    #[error(
        "the {part} part would be empty: {share} of {samples} samples is none; give it a larger share, or more samples"
    )]
    EmptyPart {
        /// Which part.
        part: &'static str,
        /// Its share.
        share: f64,
        /// Number of samples.
        samples: usize,
    },

    /// Arithmetic on symbols, whose numbers are names and not amounts.
    #[error("{origin} gives symbols, which are numbered and not measured; set {instead}")]
    MeasuredSymbols {
        /// Source of the symbols.
        origin: Origin,
        /// The setting that leaves them as they are.
        instead: &'static str,
    },

    /// A setting of a source that makes no sense.
    #[error("data.source ({kind}): {key} = {value}; {need}")]
    Setting {
        /// The kind of source.
        kind: &'static str,
        /// The setting.
        key: &'static str,
        /// Its value.
        value: String,
        /// Requirement.
        need: &'static str,
    },

    /// More data than memory can hold.
    #[error("{origin} needs {needed} bytes of memory, and {available} are available")]
    TooLarge {
        /// Source of the data.
        origin: Origin,
        /// Bytes needed.
        needed: u64,
        /// Bytes available.
        available: u64,
    },
}

/// Source of the samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A generator, by its kind in the plan.
    Generator(&'static str),
    /// A file or folder.
    File(PathBuf),
    /// The training file and the validation file.
    Joined {
        /// Both files.
        files: Box<[Origin; 2]>,
        /// Number of samples in the first.
        first: usize,
    },
    /// No samples are left after dropping incomplete ones.
    Complete {
        /// Source of the samples.
        of: Box<Origin>,
        /// Number of dropped samples.
        dropped: usize,
    },
}

impl DataError {
    /// Names the sample and the position of a row, of which a sample has `positions`.
    pub(crate) fn at_position(mut self, positions: usize) -> DataError {
        if let DataError::NotAClass { place, .. } = &mut self
            && let Position::Element { sample, index } = &mut place.position
            && positions > 1
        {
            index.insert(0, *sample % positions);
            *sample /= positions;
        }
        self
    }
}

impl Origin {
    /// The same for rows, of which a sample has `positions`.
    pub(crate) fn of_rows(&self, positions: usize) -> Origin {
        match self {
            Origin::Joined { files, first } => {
                Origin::Joined { files: files.clone(), first: first * positions }
            }
            _ => self.clone(),
        }
    }

    /// The file of a sample, and its number there.
    pub(crate) fn of_sample(&self, sample: usize) -> (&Origin, usize) {
        match self {
            Origin::Joined { files, first } if sample < *first => (&files[0], sample),
            Origin::Joined { files, first } => (&files[1], sample - first),
            _ => (self, sample),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Generator(kind) => write!(f, "the generator {kind}"),
            Origin::File(path) => path.display().fmt(f),
            Origin::Joined { files, .. } => write!(f, "{} and {}", files[0], files[1]),
            Origin::Complete { of, dropped: 1 } => write!(f, "{of} without 1 incomplete sample"),
            Origin::Complete { of, dropped } => {
                write!(f, "{of} without {dropped} incomplete samples")
            }
        }
    }
}

/// Place of a value in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// Place within the file.
    pub position: Position,
}

/// Kind of place within a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// A cell of a text file.
    Cell {
        /// The line, counted from 1; the header is line 1.
        line: u64,
        /// The name of the column.
        column: String,
    },
    /// A cell of a table that has rows but no lines.
    Row {
        /// The row, counted from 1.
        row: u64,
        /// The name of the column.
        column: String,
    },
    /// An element of an array.
    Element {
        /// The sample, counted from 0 as in NumPy.
        sample: usize,
        /// The position within the sample, if that has more than one value.
        index: Vec<usize>,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, ", self.file.display())?;
        match &self.position {
            Position::Cell { line, column } => write!(f, "line {line}, column {column:?}"),
            Position::Row { row, column } => write!(f, "row {row}, column {column:?}"),
            Position::Element { sample, index } if index.is_empty() => {
                write!(f, "element {sample}")
            }
            Position::Element { sample, index } => {
                write!(f, "element [{sample}")?;
                index.iter().try_for_each(|i| write!(f, ", {i}"))?;
                f.write_str("]")
            }
        }
    }
}

/// The beginning of a text from a file, short enough for a message.
pub(crate) fn shortened(text: &str) -> String {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Names for a message, not more than a line of them.
fn list(names: &[String]) -> String {
    const MOST: usize = 20;
    let mut text = names
        .iter()
        .take(MOST)
        .map(|name| format!("{:?}", shortened(name)))
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > MOST {
        text += &format!(" and {} more", names.len() - MOST);
    }
    if text.is_empty() { "none".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_names_file_line_and_column() {
        let place = Place {
            file: "scores.csv".into(),
            position: Position::Cell { line: 3, column: "age".into() },
        };
        assert_eq!(place.to_string(), "scores.csv, line 3, column \"age\"");
    }

    #[test]
    fn an_element_is_named_as_numpy_indexes_it() {
        let at = |index: &[usize]| {
            Place {
                file: "x.npy".into(),
                position: Position::Element { sample: 7, index: index.to_vec() },
            }
            .to_string()
        };
        assert_eq!(at(&[]), "x.npy, element 7");
        assert_eq!(at(&[2, 0]), "x.npy, element [7, 2, 0]");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(shortened(&"é".repeat(50)), format!("{}…", "é".repeat(40)));
        assert_eq!(shortened("short"), "short");
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..23).map(|i| i.to_string()).collect();
        assert!(list(&names).ends_with("\"19\" and 3 more"));
        assert_eq!(list(&[]), "none");
    }
}
