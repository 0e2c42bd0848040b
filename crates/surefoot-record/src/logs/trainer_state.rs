//! `trainer_state.json` of Hugging Face Transformers.

use crate::logs::LogFormat;
use crate::logs::error::Error;
use crate::logs::log::Log;
use crate::logs::natural;
use crate::logs::role::Map;
use crate::logs::rows::{Rows, opening, pairs, parse_json, text};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A `trainer_state.json`, or an output directory with checkpoints. The last checkpoint has the whole
/// history.
pub(crate) struct TrainerState;

impl LogFormat for TrainerState {
    fn name(&self) -> &'static str {
        "Transformers"
    }

    fn recognizes(&self, path: &Path) -> Result<bool, Error> {
        match path.is_dir() {
            true => Ok(file(path)?.is_some()),
            false => Ok(path.extension().is_some_and(|extension| extension == "json")
                && opening(path)?.contains("\"log_history\"")),
        }
    }

    fn read(&self, path: &Path, map: &Map) -> Result<Vec<Log>, Error> {
        let inside = if path.is_dir() { file(path)? } else { None };
        let path = inside.as_deref().unwrap_or(path);
        let malformed = |reason: String| Error::Malformed { path: path.to_owned(), reason };
        let value = parse_json(&text(path)?).map_err(|error| malformed(error.to_string()))?;
        let Some(Value::Array(history)) = value.get("log_history") else {
            return Err(malformed("it has no list `log_history`".to_owned()));
        };
        let mut rows = Rows::default();
        history.iter().for_each(|entry| rows.push(pairs(entry)));
        rows.logs(path, self.name(), map)
    }
}

/// The file of a directory: its own, or that of its last checkpoint.
fn file(dir: &Path) -> Result<Option<PathBuf>, Error> {
    const NAME: &str = "trainer_state.json";
    let own = dir.join(NAME);
    if own.is_file() {
        return Ok(Some(own));
    }
    let mut checkpoints = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(Error::io(dir))? {
        let entry = entry.map_err(Error::io(dir))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("checkpoint") && entry.path().join(NAME).is_file() {
            checkpoints.push((natural::key(&name), entry.path().join(NAME)));
        }
    }
    checkpoints.sort();
    Ok(checkpoints.pop().map(|(_, file)| file))
}
