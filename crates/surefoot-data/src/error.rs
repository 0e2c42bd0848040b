//! Errors of loading data: cause, place and advice.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use surefoot_plan::Task;

/// Error of loading data: a fault of the input.
///
/// The message names the file and, if possible, the line, the column and the value, and advises a fix.
#[derive(Debug, thiserror::Error)]
#[error("{}{fault}", place.as_ref().map_or_else(String::new, |place| format!("{place}: ")))]
pub struct DataError {
    place: Option<Box<Place>>,
    fault: String,
}

impl DataError {
    pub(crate) fn new(fault: impl Into<String>) -> DataError {
        DataError { place: None, fault: fault.into() }
    }

    /// A value that cannot be used.
    pub(crate) fn value(place: Box<Place>, fault: impl Into<String>) -> DataError {
        DataError { place: Some(place), fault: fault.into() }
    }

    /// A file or folder is missing or unreadable.
    pub(crate) fn unreadable(path: &Path, cause: &io::Error) -> DataError {
        let path = path.display();
        DataError::new(format!(
            "cannot read {path}: {cause}; files are looked for relative to the plan's folder"
        ))
    }

    /// A file of no bytes, or an array without elements.
    pub(crate) fn empty(origin: impl fmt::Display) -> DataError {
        DataError::new(format!("{origin} is empty; it must hold at least two samples"))
    }

    /// A table has a header and no rows.
    pub(crate) fn header_only(path: &Path) -> DataError {
        let path = path.display();
        DataError::new(format!("{path} has a header but no samples; it must hold at least two"))
    }

    /// A table whose only column is the label.
    pub(crate) fn no_features(path: &Path, label: &str) -> DataError {
        DataError::new(format!(
            "{} has the label column {:?} and no other; there is nothing to learn it from",
            path.display(),
            shortened(label)
        ))
    }

    /// A column that is not in the file.
    pub(crate) fn no_column(
        path: &Path,
        column: &str,
        purpose: &str,
        columns: &[String],
    ) -> DataError {
        DataError::new(format!(
            "{} has no column {:?}, {purpose}; its columns are {}",
            path.display(),
            shortened(column),
            list(columns)
        ))
    }

    /// New samples of another shape than those of the training.
    pub(crate) fn width(path: &Path, found: &str, expected: &str) -> DataError {
        let path = path.display();
        DataError::new(format!("{path} has {found}, but the model takes {expected}"))
    }

    /// A text where a number must be.
    pub(crate) fn not_a_number(place: Box<Place>, value: &str, advice: &str) -> DataError {
        DataError::value(place, format!("{value:?} is not a number; {advice}"))
    }

    /// A file is damaged, or is not of the kind stated in the plan.
    pub(crate) fn malformed(path: &Path, format: &str, what: impl fmt::Display) -> DataError {
        DataError::new(format!("{} is not a valid {format} file: {what}", path.display()))
    }

    /// A valid file with something in it that Surefoot does not read.
    pub(crate) fn unsupported(path: &Path, what: impl fmt::Display, instead: &str) -> DataError {
        DataError::new(format!("{}: {what}; {instead}", path.display()))
    }

    /// Labels that are all the same.
    pub(crate) fn one_class(origin: &Origin, class: &str) -> DataError {
        let class = shortened(class);
        DataError::new(format!("only one class ({class}) in {origin}; nothing to learn"))
    }

    /// A stated task that the targets do not fit.
    pub(crate) fn wrong_task(task: Task, origin: &Origin, found: &str, advice: &str) -> DataError {
        let task = task.name();
        DataError::new(format!(
            "the plan says task = \"{task}\", but {origin} has {found}; {advice}"
        ))
    }

    /// A part of the split that would have no samples.
    pub(crate) fn empty_part(part: &str, share: f64, samples: usize) -> DataError {
        DataError::new(format!(
            "the {part} part would be empty: {share} of {samples} samples is none; give it a larger share, or more samples"
        ))
    }

    /// More data than memory can hold.
    pub(crate) fn too_large(origin: &Origin, needed: u64, available: u64) -> DataError {
        DataError::new(format!(
            "{origin} needs {needed} bytes of memory, and {available} are available"
        ))
    }

    /// Names the sample and the position of a row, of which a sample has `positions`.
    pub(crate) fn at_position(mut self, positions: usize) -> DataError {
        if let Some(place) = &mut self.place
            && let Position::Element { sample, index } = &mut place.position
            && positions > 1
        {
            index.insert(0, *sample % positions);
            *sample /= positions;
        }
        self
    }
}

/// Source of the samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
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
pub(crate) struct Place {
    pub(crate) file: PathBuf,
    pub(crate) position: Position,
}

/// Kind of place within a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Position {
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
pub(crate) fn list(names: &[String]) -> String {
    const MOST: usize = 20;
    let shown = names.iter().take(MOST).map(|name| format!("{:?}", shortened(name)));
    let mut text = shown.collect::<Vec<_>>().join(", ");
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
