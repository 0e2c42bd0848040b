//! Training logs written by other programs, read as observations.
//!
//! [`read`] recognizes the format of a file or directory and returns a [`Log`] for each run in it: the
//! facts, steps and evaluations that a [`Diagnosis`] needs, and the
//! [quantities](surefoot_diagnose::Quantity) it can use.
//!
//! ```
//! use surefoot_diagnose::Thresholds;
//! use surefoot_record::logs::{Map, read};
//! # fn main() -> Result<(), surefoot_record::logs::Error> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("history.csv");
//! # std::fs::write(&path, "epoch,loss,val_loss\n0,0.7,0.8\n1,0.5,0.6\n").unwrap();
//! for log in read(&path, &Map::new())? { // epoch,loss,val_loss
//!     assert_eq!(log.evaluations[1].loss, 0.6);
//!     assert!(log.diagnose(Thresholds::default()).findings().is_empty());
//! }
//! # Ok(())
//! # }
//! ```

mod choice;
mod csv;
mod error;
mod json_lines;
mod json_table;
mod keras_console;
mod log;
mod mlflow;
mod name;
mod natural;
mod number;
mod role;
mod rows;
mod table;
mod tensorboard;
mod text;
mod trainer_state;

use std::path::{Path, PathBuf};
#[cfg(doc)]
use surefoot_diagnose::Diagnosis;

pub use crate::logs::error::Error;
pub use crate::logs::log::{Log, Origin, Series, Unit};
pub use crate::logs::role::{Map, Role, UnknownRole};

/// All log formats. The first that recognizes a path reads it.
const FORMATS: &[&dyn LogFormat] = &[
    &trainer_state::TrainerState,
    &tensorboard::TensorBoard,
    &mlflow::Mlflow,
    &json_lines::JsonLines,
    &json_table::JsonTable,
    &keras_console::KerasConsole,
    &text::Text,
    &csv::Csv,
];

/// Files that frameworks write into the directories of runs: Lightning, YOLO, Stable Baselines, timm,
/// Detectron2.
const KNOWN_FILES: &[&str] =
    &["metrics.csv", "results.csv", "progress.csv", "summary.csv", "metrics.json", "metrics.jsonl"];
/// Depth to which these are searched for below a directory.
const DEPTH: usize = 4;

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
///     fn read(&self, path: &Path, map: &Map) -> Result<Vec<Log>, Error> {
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
/// let logs = read_with(&[&KeyValue], &path, &Map::new())?;
/// assert_eq!(logs[0].steps[1].metric, Some(0.7));
/// # Ok(())
/// # }
/// ```
pub trait LogFormat: Sync {
    /// Name of the format for messages.
    fn name(&self) -> &'static str;

    /// Returns true if the file or directory at `path` holds a log in this format.
    fn recognizes(&self, path: &Path) -> Result<bool, Error>;

    /// Reads the runs in the log at `path`, at least one. `map` assigns roles to columns whose names
    /// are not recognized.
    fn read(&self, path: &Path, map: &Map) -> Result<Vec<Log>, Error>;
}

/// Reads the runs in the log at `path`, at least one.
///
/// Columns and tags are recognized by their names; `map` names the others. A directory may also have
/// the logs that frameworks write somewhere below it, such as `version_0/metrics.csv`.
pub fn read(path: &Path, map: &Map) -> Result<Vec<Log>, Error> {
    read_with(FORMATS, path, map)
}

/// Reads the runs in the log at `path`, in the first of `formats` that recognizes it.
pub fn read_with(formats: &[&dyn LogFormat], path: &Path, map: &Map) -> Result<Vec<Log>, Error> {
    std::fs::metadata(path).map_err(Error::io(path))?;
    for format in formats {
        if format.recognizes(path)? {
            return format.read(path, map);
        }
    }
    let mut files = Vec::new();
    if path.is_dir() {
        collect(path, DEPTH, &mut files)?;
    }
    if files.is_empty() {
        return Err(Error::NotALog { path: path.to_owned() });
    }
    files.sort_by_key(|file| natural::key(&file.to_string_lossy()));
    let several = files.len() > 1;
    let mut logs = Vec::new();
    for file in files {
        let below = file.strip_prefix(path).unwrap_or(&file).display().to_string();
        for mut log in read_with(formats, &file, map)? {
            if several {
                log.origin.run = Some(match &log.origin.run {
                    Some(run) => format!("{below}, {run}"),
                    None => below.clone(),
                });
            }
            logs.push(log);
        }
    }
    Ok(logs)
}

/// Collects the [`KNOWN_FILES`] in a directory and below.
fn collect(dir: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    for entry in std::fs::read_dir(dir).map_err(Error::io(dir))? {
        let entry = entry.map_err(Error::io(dir))?;
        let kind = entry.file_type().map_err(Error::io(&entry.path()))?;
        if kind.is_dir() {
            if depth > 0 {
                collect(&entry.path(), depth - 1, files)?;
            }
        } else if KNOWN_FILES.iter().any(|name| entry.file_name() == *name) {
            files.push(entry.path());
        }
    }
    Ok(())
}
