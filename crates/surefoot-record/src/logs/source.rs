//! What kind of log a path is.

use crate::logs::error::Error;
use crate::logs::log::Log;
use crate::logs::role::Map;
use crate::logs::{csv, tensorboard};
use std::path::Path;

/// Reads a CSV file, a TensorBoard log directory or a single file of one, or a directory with the
/// `metrics.csv` that Lightning writes.
///
/// What the columns and tags mean is guessed from their names; `map` says it where that fails.
pub fn read(path: &Path, map: &Map) -> Result<Log, Error> {
    let about = std::fs::metadata(path).map_err(Error::io(path))?;
    if !about.is_dir() {
        return match tensorboard::is_event_file(path)? {
            true => tensorboard::read(path, vec![path.to_owned()], map),
            false => csv::read(path, map),
        };
    }
    let events = tensorboard::event_files(path)?;
    let metrics = path.join("metrics.csv");
    if !events.is_empty() {
        tensorboard::read(path, events, map)
    } else if metrics.is_file() {
        csv::read(&metrics, map)
    } else {
        Err(Error::NotALog { path: path.to_owned() })
    }
}
