//! TensorBoard log directories.

mod event;
mod record;

use crate::logs::LogFormat;
use crate::logs::choice::{Choice, Named, choose};
use crate::logs::error::Error;
use crate::logs::log::Log;
use crate::logs::name::{meaning, split_of_folder};
use crate::logs::natural;
use crate::logs::role::{Map, Role};
use crate::logs::table::{Row, Table};
use event::Event;
use record::{Records, is_event_file};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use surefoot_diagnose::Split;

/// Depth to which event files are searched for below a directory.
const DEPTH: usize = 6;

/// TensorBoard event files and directories.
pub(crate) struct TensorBoard;

impl LogFormat for TensorBoard {
    fn name(&self) -> &'static str {
        "TensorBoard"
    }

    fn recognizes(&self, path: &Path) -> Result<bool, Error> {
        match path.is_dir() {
            true => Ok(!event_files(path)?.is_empty()),
            false => is_event_file(path),
        }
    }

    fn read(&self, path: &Path, map: &Map) -> Result<Vec<Log>, Error> {
        let files = match path.is_dir() {
            true => event_files(path)?,
            false => vec![path.to_owned()],
        };
        read(path, files, map)
    }
}

/// The event files in a directory and below, in the order of their paths: their names begin with
/// the time.
fn event_files(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    collect(dir, DEPTH, &mut files)?;
    files.sort();
    Ok(files)
}

fn collect(dir: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    for entry in std::fs::read_dir(dir).map_err(Error::io(dir))? {
        let entry = entry.map_err(Error::io(dir))?;
        let kind = entry.file_type().map_err(Error::io(&entry.path()))?;
        if kind.is_dir() {
            if depth > 0 {
                collect(&entry.path(), depth - 1, files)?;
            }
        } else if entry.file_name().to_string_lossy().contains("tfevents") {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// A tag of a run, in one of its folders.
#[derive(Default)]
struct Tag {
    name: String,
    split: Option<Split>,
    /// Steps and values. If a resumed run repeats a step, the later value wins.
    values: BTreeMap<i64, f64>,
}

/// The tags of a run, by their names with their folders.
type TagMap = BTreeMap<String, Tag>;

/// Reads the event files of all runs found at `path`.
fn read(path: &Path, files: Vec<PathBuf>, map: &Map) -> Result<Vec<Log>, Error> {
    let mut runs: BTreeMap<PathBuf, TagMap> = BTreeMap::new();
    for file in files {
        let folder = file.parent().unwrap_or(Path::new(""));
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let split = split_of_folder(&name);
        let (home, prefix) = match folder.parent() {
            Some(parent) if split.is_some() && folder != path => (parent, format!("{name}/")),
            _ => (folder, String::new()),
        };
        let run = runs.entry(home.to_owned()).or_default();
        let mut records = Records::open(&file)?;
        while let Some(event) = records.next()? {
            for (tag, value) in event.scalars() {
                let series = run.entry(format!("{prefix}{tag}")).or_insert_with(|| Tag {
                    name: tag.to_owned(),
                    split,
                    ..Tag::default()
                });
                series.values.insert(event.step, value);
            }
        }
    }
    let mut tables = Vec::new();
    let mut first_error = None;
    let mut found = Vec::new();
    for (home, run) in runs {
        found.extend(run.keys().cloned());
        match table(path, run, map) {
            Ok(table) => tables.push((home, table)),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    if tables.is_empty() {
        let no_loss = || Error::NoLoss { path: path.to_owned(), what: "tag", found };
        return Err(first_error.unwrap_or_else(no_loss));
    }
    let several = tables.len() > 1;
    tables.sort_by_key(|(home, _)| natural::key(&home.to_string_lossy()));
    let logs = tables.into_iter().map(|(home, mut table)| {
        let below = home.strip_prefix(path).unwrap_or(&home).display().to_string();
        table.run = several.then_some(below);
        Log::from(table)
    });
    Ok(logs.collect())
}

fn table(path: &Path, run: TagMap, map: &Map) -> Result<Table, Error> {
    let named: Vec<Named> = run
        .iter()
        .map(|(name, tag)| Named {
            name: name.clone(),
            meaning: meaning(&tag.name, tag.split),
            count: tag.values.len(),
            span: match (tag.values.keys().next(), tag.values.keys().next_back()) {
                (Some(first), Some(last)) => (last - first) as f64,
                _ => 0.0,
            },
        })
        .collect();
    let choices = choose(path, &named, map, "tag")?;
    let tags: Vec<Tag> = run.into_values().collect();
    let by_epoch = choices.iter().any(|choice| {
        let meaning = named[choice.index].meaning.as_ref();
        choice.series.role == Role::Loss && meaning.is_some_and(|meaning| meaning.by_epoch)
    });
    let (positions, values): (Vec<Choice>, Vec<Choice>) = choices
        .into_iter()
        .partition(|choice| matches!(choice.series.role, Role::Step | Role::Epoch));
    let mut rows: BTreeMap<i64, Row> = BTreeMap::new();
    for (cell, choice) in values.iter().enumerate() {
        for (&step, &value) in &tags[choice.index].values {
            let row = rows.entry(step).or_insert_with(|| Row::new(values.len()));
            row.cells[cell] = Some(value);
        }
    }
    let epochs = positions.iter().filter(|choice| choice.series.role == Role::Epoch);
    for choice in epochs {
        for (step, &epoch) in &tags[choice.index].values {
            if let Some(row) = rows.get_mut(step) {
                row.epoch = Some(epoch);
            }
        }
    }
    for (&step, row) in &mut rows {
        match by_epoch {
            true => row.epoch = Some(step as f64),
            false => row.step = Some(step as f64),
        }
    }
    Ok(Table {
        path: path.to_owned(),
        format: TensorBoard.name(),
        run: None,
        warnings: Vec::new(),
        series: values.into_iter().map(|choice| choice.series).collect(),
        rows: rows.into_values().collect(),
    })
}

impl Event {
    /// The tags and values of all scalars.
    fn scalars(&self) -> impl Iterator<Item = (&str, f64)> {
        self.values.iter().filter_map(|value| Some((value.tag.as_str(), value.scalar()?)))
    }
}
