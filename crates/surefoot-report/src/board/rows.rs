//! A run in the list: read once when it is finished, followed while it trains.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use surefoot_diagnose::Severity;
use surefoot_record::{Event, Observations, Record, Result, RunSummary};

use super::source::Source;
use crate::history::History;
use crate::series::Series;

/// Points of the small loss curve.
const SPARK: usize = 48;

/// A record that changed within this time belongs to a running training, perhaps on another machine.
const RECENT: Duration = Duration::from_secs(15);

/// Time over which the speed of a run is measured.
const WINDOW: Duration = Duration::from_secs(30);

/// A run in the list.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct RunRow {
    pub(super) id: String,
    /// Sequence number of the last change of this row.
    pub(super) revision: u64,
    pub(super) name: String,
    pub(super) path: String,
    pub(super) status: &'static str,
    /// Reason why the run cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// Script of a program, or name of a plan.
    pub(super) source: String,
    pub(super) is_program: bool,
    pub(super) tags: Vec<String>,
    pub(super) metric_name: String,
    pub(super) metric: Option<f64>,
    pub(super) loss: Option<f64>,
    pub(super) step: u64,
    pub(super) planned: Option<u64>,
    pub(super) problems: Vec<String>,
    pub(super) warnings: usize,
    pub(super) remedies: Vec<String>,
    pub(super) device: String,
    /// Start in milliseconds since 1970.
    pub(super) started: Option<u64>,
    pub(super) seconds: Option<f64>,
    /// Steps per second.
    pub(super) rate: Option<f64>,
    /// Loss from the first step to the last, in equal distances.
    pub(super) spark: Vec<f64>,
}

/// A run and what is needed to follow it.
#[derive(Debug)]
pub(super) struct RunEntry {
    pub(super) row: RunRow,
    dir: PathBuf,
    identity: Option<Identity>,
    record: Option<Record>,
    steps: Option<Observations>,
    events: Vec<Event>,
    events_end: u64,
    loss: Series,
    speed: Speed,
    is_over: bool,
}

/// Changes if the directory is replaced by another run.
pub(super) type Identity = (u64, SystemTime);

pub(super) fn identity(dir: &Path) -> Option<Identity> {
    let header = fs::metadata(dir.join("header.json")).ok()?;
    Some((header.ino(), header.modified().ok()?))
}

impl RunEntry {
    pub(super) fn new(id: String, dir: PathBuf) -> RunEntry {
        let name = dir.canonicalize().unwrap_or_else(|_| dir.clone());
        let name = name.file_name().unwrap_or(dir.as_os_str()).to_string_lossy().into_owned();
        let path = dir.display().to_string();
        RunEntry {
            row: RunRow { id, name, path, status: "unfinished", ..RunRow::default() },
            dir,
            identity: None,
            record: None,
            steps: None,
            events: Vec::new(),
            events_end: 0,
            loss: Series::with_buckets(SPARK),
            speed: Speed::default(),
            is_over: false,
        }
    }

    /// Reads what is new until `deadline`. Returns true if the row changed; `None` if there is more to read.
    pub(super) fn refresh(&mut self, sources: &[Source], deadline: Instant) -> Option<bool> {
        let identity = identity(&self.dir);
        if identity != self.identity {
            let id = std::mem::take(&mut self.row.id);
            *self = RunEntry::new(id, std::mem::take(&mut self.dir));
            self.identity = identity;
            self.open(sources);
        } else if self.is_over || self.record.is_none() {
            return Some(false);
        }
        let before = serde_json::to_string(&self.row).unwrap_or_default();
        match self.follow(deadline) {
            Ok(true) => {}
            Ok(false) => return None,
            Err(error) => {
                self.row.status = "damaged";
                self.row.error = Some(error.to_string());
                self.is_over = true;
            }
        }
        Some(
            before != serde_json::to_string(&self.row).unwrap_or_default()
                || self.row.revision == 0,
        )
    }

    fn open(&mut self, sources: &[Source]) {
        let row = &mut self.row;
        let record = match super::source::resolve(sources, &row.id) {
            Some(dir) => Record::open(&dir).map_err(|error| error.to_string()),
            None => Err(format!("{}: a file links to a place outside the given paths", row.path)),
        };
        match record {
            Ok(record) => {
                let header = record.header();
                row.planned = header.facts.total_steps();
                row.metric_name = header.facts.metric.clone().unwrap_or_default();
                row.device = header.environment.device.clone();
                row.is_program = record.program().is_some();
                row.source = source_name(&record);
                row.started = record.created().and_then(millis);
                row.tags = tags(&self.dir);
                self.record = Some(record);
            }
            Err(error) => {
                row.status = "damaged";
                row.error = Some(error);
            }
        }
    }

    /// Returns false if the deadline came first.
    fn follow(&mut self, deadline: Instant) -> Result<bool> {
        let Some(record) = &self.record else {
            return Ok(true);
        };
        // The summary is written last, so everything is there if it is.
        let summary = record.summary()?;
        let (new, end) = record.events_from(self.events_end)?;
        let is_resumed = new.iter().any(|event| matches!(event, Event::Resumed { .. }));
        self.events_end = end;
        let has_events = !new.is_empty();
        self.events.extend(new);
        let is_continued = match &mut self.steps {
            Some(steps) => !is_resumed && steps.refresh()?,
            None => false,
        };
        if !is_continued {
            self.steps = Some(record.steps()?);
            self.loss = Series::with_buckets(SPARK);
            self.row.step = 0;
        }
        let before = self.row.step;
        for observation in self.steps.iter_mut().flatten() {
            let observation = observation?;
            self.row.step = observation.step;
            self.loss.push(observation.step, observation.loss);
            if observation.step % 1024 == 0 && Instant::now() > deadline {
                return Ok(false);
            }
        }
        if self.row.step != before || !is_continued {
            self.speed.add(self.row.step);
            self.row.loss = self.loss.last();
            self.row.spark = self.loss.columns(0, u64::MAX).map(|[_, _, _, mean]| mean).collect();
        }
        if has_events || !is_continued || summary.is_some() {
            self.describe(summary.as_ref());
        }
        if summary.is_some() {
            self.is_over = true;
            self.steps = None;
            self.events = Vec::new();
        } else {
            self.watch(self.row.step != before);
        }
        Ok(true)
    }

    /// Fills in what events and the summary say.
    fn describe(&mut self, summary: Option<&RunSummary>) {
        let history = History::of(&self.events);
        let row = &mut self.row;
        row.problems.clear();
        row.warnings = 0;
        for finding in &history.findings {
            let title = finding.problem.title();
            match finding.severity {
                Severity::Problem if !row.problems.contains(&title) => row.problems.push(title),
                Severity::Problem => {}
                Severity::Warning => row.warnings += 1,
            }
        }
        row.metric = history.selection_evaluations().last().and_then(|last| last.metric);
        row.status = if history.pruned.is_some() { "pruned" } else { "unfinished" };
        if let Some(summary) = summary {
            row.status = summary.status.name();
            row.metric = summary.metric.after;
            row.metric_name.clone_from(&summary.metric.name);
            row.seconds = Some(summary.seconds);
            row.rate = Some(summary.steps as f64 / summary.seconds).filter(|rate| rate.is_finite());
            row.remedies.clone_from(&summary.remedies);
        }
    }

    /// Fills in what only a run without a summary has.
    fn watch(&mut self, moved: bool) {
        let (Some(record), row) = (&self.record, &mut self.row) else {
            return;
        };
        let (created, modified) = (record.created(), record.modified());
        let is_training = is_running(record, moved);
        if row.status == "running" || row.status == "unfinished" {
            row.status = if is_training { "running" } else { "unfinished" };
        }
        let duration = created.zip(modified).and_then(|(created, modified)| {
            modified.duration_since(created).ok().map(|duration| duration.as_secs_f64())
        });
        row.seconds = duration.map(f64::round);
        let average = duration.filter(|seconds| *seconds > 0.5).map(|s| row.step as f64 / s);
        row.rate = self.speed.rate().or(average).filter(|_| row.step > 0 && is_training);
    }
}

/// Returns true if a run without a summary is training, here or on another machine. `has_moved` is true if it was just
/// seen to.
pub(super) fn is_running(record: &Record, has_moved: bool) -> bool {
    let age = || record.modified()?.elapsed().ok();
    has_moved || age().is_some_and(|age| age < RECENT) || record.is_training()
}

/// Steps over the last seconds.
#[derive(Debug, Default)]
pub(super) struct Speed {
    seen: VecDeque<(Instant, u64)>,
}

impl Speed {
    pub(super) fn add(&mut self, step: u64) {
        let now = Instant::now();
        self.seen.push_back((now, step));
        while self.seen.len() > 2 && self.seen[1].0 + WINDOW < now {
            self.seen.pop_front();
        }
    }

    /// Steps per second, once they have been seen for two seconds.
    pub(super) fn rate(&self) -> Option<f64> {
        let (first, last) = (self.seen.front()?, self.seen.back()?);
        let seconds = (last.0 - first.0).as_secs_f64();
        (seconds > 2.0).then(|| last.1.saturating_sub(first.1) as f64 / seconds)
    }
}

/// Script of a program, or the name in a plan.
fn source_name(record: &Record) -> String {
    if let Some(program) = record.program() {
        let program: serde_json::Value = serde_json::from_str(program).unwrap_or_default();
        return program["script"].as_str().unwrap_or("program").to_owned();
    }
    let head = record.plan().lines().take_while(|line| !line.trim_start().starts_with('['));
    let mut names = head.filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "name").then(|| value.trim().trim_matches(['"', '\'']).to_owned())
    });
    names.next().unwrap_or_else(|| "plan".to_owned())
}

/// The lines of `tags.txt`.
fn tags(dir: &Path) -> Vec<String> {
    let file = dir.join("tags.txt");
    let is_file = fs::symlink_metadata(&file).is_ok_and(|meta| meta.is_file() && meta.len() < 4096);
    let text = if is_file { fs::read_to_string(file).unwrap_or_default() } else { String::new() };
    let tags = text.lines().map(str::trim).filter(|tag| !tag.is_empty());
    tags.take(20).map(str::to_owned).collect()
}

pub(super) fn millis(time: SystemTime) -> Option<u64> {
    u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}
