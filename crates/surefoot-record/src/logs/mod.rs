//! Training logs written by other programs, read as observations.
//!
//! [`read`] recognizes CSV files and TensorBoard directories and returns a [`Log`]: the facts,
//! steps and evaluations that a [`Diagnosis`](surefoot_diagnose::Diagnosis) needs, and the
//! [quantities](surefoot_diagnose::Quantity) it can use.
//!
//! ```
//! use surefoot_diagnose::{Diagnosis, Thresholds};
//! use surefoot_record::logs::{Map, read};
//! # fn main() -> Result<(), surefoot_record::logs::Error> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("history.csv");
//! # std::fs::write(&path, "epoch,loss,val_loss\n0,0.7,0.8\n1,0.5,0.6\n").unwrap();
//! let log = read(&path, &Map::new())?; // epoch,loss,val_loss
//! assert_eq!(log.evaluations[1].loss, 0.6);
//!
//! let mut diagnosis = Diagnosis::new(log.facts.clone(), Thresholds::default());
//! diagnosis.restrict_to(&log.available);
//! assert_eq!(log.replay(&mut diagnosis).steps, 2);
//! # Ok(())
//! # }
//! ```

mod csv;
mod error;
mod log;
mod name;
mod role;
mod table;
mod tensorboard;

use std::path::Path;

pub use crate::logs::error::Error;
pub use crate::logs::log::{Log, Origin, Series, Unit};
pub use crate::logs::role::{Map, Role, UnknownRole};

/// All log formats. The first that recognizes a path reads it.
const FORMATS: &[&dyn LogFormat] = &[&tensorboard::TensorBoard, &csv::Csv];

/// A format of training logs.
///
/// To add one, implement this trait in a file of this module and list it in `FORMATS`. Programs
/// pass formats of their own to [`read_with`]:
///
/// ```
/// use std::path::Path;
/// use surefoot_record::logs::{Error, Log, LogFormat, Map, read_with};
///
/// /// Lines such as `loss=0.7 acc=0.5`.
/// struct KeyValue;
///
/// impl LogFormat for KeyValue {
///     fn name(&self) -> &'static str {
///         "key=value"
///     }
///
///     fn recognizes(&self, path: &Path) -> Result<bool, Error> {
///         Ok(path.extension().is_some_and(|extension| extension == "log"))
///     }
///
///     fn read(&self, path: &Path, map: &Map) -> Result<Log, Error> {
///         let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
///         let columns = ["loss".to_owned(), "acc".to_owned()];
///         let lines: Vec<&str> = text.lines().collect();
///         Log::from_table(path, self.name(), &columns, lines.len(), map, |row, column| {
///             let name = &columns[column];
///             let words = lines[row].split_whitespace();
///             let mut pairs = words.filter_map(|word| word.split_once('='));
///             Ok(pairs.find(|(key, _)| key == name).and_then(|(_, value)| value.parse().ok()))
///         })
///     }
/// }
///
/// # fn main() -> Result<(), Error> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("train.log");
/// # std::fs::write(&path, "loss=0.7 acc=0.5\nloss=0.6 acc=0.7\n").unwrap();
/// let log = read_with(&[&KeyValue], &path, &Map::new())?;
/// assert_eq!(log.steps[1].metric, Some(0.7));
/// # Ok(())
/// # }
/// ```
pub trait LogFormat: Sync {
    /// Name of the format for messages.
    fn name(&self) -> &'static str;

    /// Returns true if the file or directory at `path` holds a log in this format.
    fn recognizes(&self, path: &Path) -> Result<bool, Error>;

    /// Reads the log at `path`. `map` assigns roles to columns whose names are not recognized.
    fn read(&self, path: &Path, map: &Map) -> Result<Log, Error>;
}

/// Reads the log at `path`: a CSV file, a TensorBoard file or directory, or a directory with the
/// `metrics.csv` that Lightning writes.
///
/// Columns and tags are recognized by their names; `map` names the others.
pub fn read(path: &Path, map: &Map) -> Result<Log, Error> {
    read_with(FORMATS, path, map)
}

/// Reads the log at `path` in the first of `formats` that recognizes it.
pub fn read_with(formats: &[&dyn LogFormat], path: &Path, map: &Map) -> Result<Log, Error> {
    std::fs::metadata(path).map_err(Error::io(path))?;
    for format in formats {
        if format.recognizes(path)? {
            return format.read(path, map);
        }
    }
    Err(Error::NotALog { path: path.to_owned() })
}
