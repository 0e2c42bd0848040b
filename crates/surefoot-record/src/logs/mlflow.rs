//! Runs of MLflow: a directory `metrics` with one file for each metric.

use crate::logs::LogFormat;
use crate::logs::error::Error;
use crate::logs::log::Log;
use crate::logs::role::Map;
use crate::logs::rows::{Rows, text};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The directory of an MLflow run, or its `metrics`. A line of a file has time, value and step.
pub(crate) struct Mlflow;

impl LogFormat for Mlflow {
    fn name(&self) -> &'static str {
        "MLflow"
    }

    fn recognizes(&self, path: &Path) -> Result<bool, Error> {
        let Some(dir) = metrics(path) else {
            return Ok(false);
        };
        let files = files(&dir)?;
        Ok(match files.first() {
            Some((_, file)) => text(file)?.lines().next().is_some_and(|line| value(line).is_some()),
            None => false,
        })
    }

    fn read(&self, path: &Path, map: &Map) -> Result<Vec<Log>, Error> {
        let dir = metrics(path).unwrap_or_else(|| path.to_owned());
        let mut steps: BTreeMap<u64, Vec<(String, Option<f64>)>> = BTreeMap::new();
        let mut warnings = Vec::new();
        for (name, file) in files(&dir)? {
            for (line, number) in text(&file)?.lines().zip(1..) {
                match value(line) {
                    Some((step, value)) => {
                        let row = steps.entry(step).or_default();
                        row.push((name.clone(), Some(value)));
                    }
                    None => warnings.push(format!("`{name}`: line {number} is ignored")),
                }
            }
        }
        let mut rows = Rows::default();
        for (step, mut row) in steps {
            row.push(("step".to_owned(), Some(step as f64)));
            // A step that is logged twice keeps its later value.
            row.reverse();
            rows.push(row);
        }
        let mut logs = rows.logs(path, self.name(), map)?;
        if let Some(log) = logs.first_mut() {
            log.warnings.extend(warnings);
        }
        Ok(logs)
    }
}

fn metrics(path: &Path) -> Option<PathBuf> {
    let inner = path.join("metrics");
    if inner.is_dir() {
        return Some(inner);
    }
    (path.is_dir() && path.file_name().is_some_and(|name| name == "metrics"))
        .then(|| path.to_owned())
}

/// Names and files of all metrics, in the order of their names.
fn files(dir: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
    fn collect(dir: &Path, prefix: &str, files: &mut Vec<(String, PathBuf)>) -> Result<(), Error> {
        for entry in std::fs::read_dir(dir).map_err(Error::io(dir))? {
            let path = entry.map_err(Error::io(dir))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let name = format!("{prefix}{name}");
            match path.is_dir() {
                true => collect(&path, &format!("{name}/"), files)?,
                false => files.push((name, path)),
            }
        }
        Ok(())
    }
    let mut files_found = Vec::new();
    collect(dir, "", &mut files_found)?;
    files_found.sort();
    Ok(files_found)
}

/// Step and value of a line.
fn value(line: &str) -> Option<(u64, f64)> {
    let mut words = line.split_whitespace();
    let (_, value, step) = (words.next()?.parse::<u64>().ok()?, words.next()?, words.next()?);
    Some((step.parse().ok()?, crate::logs::number::parse(value)?))
}
