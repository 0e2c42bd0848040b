//! A run on an open page: read by offset while it trains, downsampled to a bounded size.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use surefoot_diagnose::Split;
use surefoot_record::{Event, Observations, Record, Result, RunSummary};

use super::rows::{Identity, Speed, identity, is_running};
use super::source::{self, Source};
use crate::findings::Numbered;
use crate::history::History;
use crate::layer_map::{Cell, LayerMap, LayerQuantity};
use crate::page::RunPage;
use crate::reading::{Delivered, Reading, Readings, read_attempt};
use crate::series::Series;
use crate::study::live::significant;

/// Buckets of a series in memory.
const BUCKETS: usize = 2048;

/// A part of a run with fewer buckets than this is read again from the disk.
const FINE: usize = 256;

/// Maximum number of evaluations that are sent.
const EVALUATIONS: usize = 2000;

/// Time for reading in one go. A long run is read in several, and shown as far as it is read.
const SLICE: Duration = Duration::from_millis(250);

/// Minimum time between two checks of the files, for all pages of a run together.
const INTERVAL: Duration = Duration::from_millis(200);

/// Memory for runs that were opened, in bytes.
const MEMORY: usize = 64 << 20;

/// Parts of runs that are kept.
const ZOOMS: usize = 4;

/// Recently opened runs, the last one first.
#[derive(Debug, Default)]
pub(super) struct RunCache {
    runs: Mutex<VecDeque<Opened>>,
}

#[derive(Debug)]
struct Opened {
    id: String,
    with_layers: bool,
    identity: Option<Identity>,
    run: Arc<Mutex<LiveRun>>,
}

impl RunCache {
    /// Opens a run, with or without the observations of its layers.
    pub(super) fn get(
        &self,
        sources: &[Source],
        id: &str,
        with_layers: bool,
    ) -> Result<Arc<Mutex<LiveRun>>, String> {
        let Some(dir) = source::resolve(sources, id) else {
            return Err(
                "there is no such run below the given paths; it may have been deleted".into()
            );
        };
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        // Another run may have taken the place of one that was deleted.
        let identity = identity(&dir);
        let known = runs.iter().position(|it| {
            (it.id.as_str(), it.with_layers, it.identity) == (id, with_layers, identity)
        });
        let entry = match known.and_then(|index| runs.remove(index)) {
            Some(entry) => entry,
            None => {
                let run = LiveRun::open(dir, with_layers).map_err(|error| error.to_string())?;
                Opened { id: id.to_owned(), with_layers, identity, run: Arc::new(Mutex::new(run)) }
            }
        };
        let run = Arc::clone(&entry.run);
        runs.push_front(entry);
        let mut total = 0;
        runs.retain(|Opened { run, .. }| {
            let is_first = total == 0;
            // One that is in use right now is kept.
            total += run.try_lock().map_or(1, |run| run.bytes());
            is_first || total < MEMORY
        });
        Ok(run)
    }
}

/// A run that is followed.
#[derive(Debug)]
pub(super) struct LiveRun {
    dir: PathBuf,
    record: Record,
    with_layers: bool,
    readings: Readings,
    observations: Option<Observations>,
    events: Vec<Event>,
    events_end: u64,
    summary: Option<RunSummary>,
    speed: Speed,
    zooms: VecDeque<(Part, Arc<Reading>)>,
    revision: u64,
    is_running: bool,
    is_loading: bool,
    refreshed: Option<Instant>,
}

/// A part of a run: first and last step, number of buckets, and a quantity of layers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) buckets: usize,
    pub(super) quantity: Option<LayerQuantity>,
}

impl LiveRun {
    fn open(dir: PathBuf, with_layers: bool) -> Result<LiveRun> {
        let record = Record::open(&dir)?;
        let readings = Readings { given: empty(&record, with_layers), delivered: None };
        Ok(LiveRun {
            dir,
            record,
            with_layers,
            readings,
            observations: None,
            events: Vec::new(),
            events_end: 0,
            summary: None,
            speed: Speed::default(),
            zooms: VecDeque::new(),
            revision: 0,
            is_running: false,
            is_loading: true,
            refreshed: None,
        })
    }

    fn bytes(&self) -> usize {
        let of = |reading: &Reading| {
            let series = [&reading.loss, &reading.metric, &reading.learning_rate];
            let maps = reading.maps.iter().map(LayerMap::bytes).sum::<usize>();
            maps + series.map(Series::bytes).iter().sum::<usize>()
        };
        let zooms = self.zooms.iter().map(|(_, reading)| of(reading)).sum::<usize>();
        let delivered = self.readings.repaired().map_or(0, |(_, reading)| of(reading));
        of(&self.readings.given) + zooms + delivered + 4096
    }

    /// Reads what is new and returns the number of changes so far.
    pub(super) fn refresh(&mut self) -> Result<u64, String> {
        let is_recent = self.refreshed.is_some_and(|at| at.elapsed() < INTERVAL);
        let is_over = self.summary.is_some() && !self.is_loading;
        if !is_recent && !is_over {
            self.read().map_err(|error| error.to_string())?;
            self.refreshed = Some(Instant::now());
        }
        Ok(self.revision)
    }

    fn read(&mut self) -> Result<()> {
        let summary = self.record.summary()?;
        let (new, end) = self.record.events_from(self.events_end)?;
        let is_resumed = new.iter().any(|event| matches!(event, Event::Resumed { .. }));
        let has_events = !new.is_empty();
        self.events_end = end;
        self.events.extend(new);
        let is_continued = match &mut self.observations {
            Some(observations) => (!is_resumed || self.is_loading) && observations.refresh()?,
            None => false,
        };
        if !is_continued {
            self.observations = Some(match self.with_layers {
                true => self.record.observations()?,
                false => self.record.steps()?,
            });
            self.readings.given = empty(&self.record, self.with_layers);
            self.zooms.clear();
        }
        let given = &mut self.readings.given;
        let before = given.last_step;
        let end = Instant::now() + SLICE;
        self.is_loading = false;
        for observation in self.observations.iter_mut().flatten() {
            given.push(&observation?);
            if given.last_step.is_multiple_of(256) && Instant::now() > end {
                self.is_loading = true;
                break;
            }
        }
        let has_moved = given.last_step != before;
        if has_events || !is_continued {
            given.history = History::of(&self.events);
        }
        if has_moved {
            self.speed.add(given.last_step);
        }
        let was = (self.is_running, self.summary.is_some());
        self.is_running = summary.is_none() && is_running(&self.record, has_moved);
        self.summary = summary;
        self.read_delivered();
        let is = (self.is_running, self.summary.is_some());
        if has_moved || has_events || !is_continued || was != is || self.is_loading {
            self.revision += 1;
        }
        Ok(())
    }

    fn read_delivered(&mut self) {
        let delivered = self.readings.given.history.delivered_attempt();
        if let Some(attempt) = delivered.filter(|_| self.readings.delivered.is_none()) {
            let reading = read_attempt(&self.dir, &attempt.run);
            self.readings.delivered = Some(Delivered { number: attempt.number, reading });
        }
    }

    /// Everything on the page but the curves.
    pub(super) fn page(&self, id: &str) -> Value {
        let given = &self.readings.given;
        let history = &given.history;
        let page = RunPage {
            run: &self.record,
            summary: self.summary.clone(),
            history,
            readings: &self.readings,
            is_running: self.is_running,
        };
        let rate = self.rate();
        let left = given.planned.map(|planned| planned.saturating_sub(given.last_step));
        let facts = &self.record.header().facts;
        let attempts = history.attempts.iter().map(|entry| {
            let attempt = &entry.attempt;
            json!({
                "id": format!("{id}/{}", attempt.run),
                "number": attempt.number,
                "remedies": attempt.remedies,
                "state": entry.outcome.as_ref().map_or("running", |outcome| outcome.state.title()),
                "metric": entry.outcome.as_ref().and_then(|outcome| outcome.metric),
                "delivered": history.delivered == Some(attempt.number),
            })
        });
        json!({
            "id": id,
            "revision": self.revision,
            "name": page.name(),
            "status": page.status().1,
            "class": page.status().0,
            "loading": self.is_loading,
            "running": self.is_running,
            "step": given.last_step,
            "planned": given.planned,
            "steps_per_epoch": facts.steps_per_epoch,
            "rate": rate,
            "left": left.zip(rate).map(|(left, rate)| left as f64 / rate).filter(|_| self.is_running),
            "metric": page.metric(),
            "chance": facts.chance,
            "layers": facts.layers.len(),
            "source": self.record.program().unwrap_or(self.record.plan()),
            "html": page.fragments(),
            "marks": page.findings().iter().filter(|n| n.attempt.is_none()).map(mark).collect::<Value>(),
            "attempts": attempts.collect::<Value>(),
            "evaluations": evaluations(history),
        })
    }

    /// Steps per second.
    fn rate(&self) -> Option<f64> {
        if let Some(summary) = &self.summary {
            let rate = summary.steps as f64 / summary.seconds;
            return Some(rate).filter(|rate| rate.is_finite());
        }
        let seconds = || {
            let (created, modified) = (self.record.created()?, self.record.modified()?);
            let seconds = modified.duration_since(created).ok()?.as_secs_f64();
            (seconds > 0.5).then(|| self.readings.given.last_step as f64 / seconds)
        };
        let rate = self.speed.rate().or_else(seconds);
        rate.filter(|rate| *rate > 0.0 && self.is_running)
    }

    /// The curves of a part of the run.
    pub(super) fn part(&mut self, part: Part) -> Result<Value, String> {
        let reading = self.zoomed(part).map_err(|error| error.to_string())?;
        let reading = reading.as_deref().unwrap_or(&self.readings.given);
        let map = part.quantity.and_then(|quantity| {
            reading.maps.iter().find(|map| map.quantity == quantity && map.columns() > 0)
        });
        Ok(json!({
            "revision": self.revision,
            "last": self.readings.given.last_step,
            "loss": series(&reading.loss, part),
            "metric": series(&reading.metric, part),
            "learning_rate": series(&reading.learning_rate, part),
            "heat": map.map(heat),
        }))
    }

    /// A part read again in finer buckets, if those in memory are too coarse for it.
    fn zoomed(&mut self, part: Part) -> Result<Option<Arc<Reading>>> {
        let loss = &self.readings.given.loss;
        let in_memory = loss.columns(part.from, part.to).count();
        let is_whole = part.from <= 1 && part.to >= self.readings.given.last_step;
        if is_whole || loss.width() == 1 && part.quantity.is_none() || in_memory >= FINE * 4 {
            return Ok(None);
        }
        let known = self.zooms.iter().find(|(known, _)| *known == part);
        if let Some((_, reading)) = known {
            return Ok(Some(Arc::clone(reading)));
        }
        let quantities = part.quantity.as_slice();
        let series = Series::with_buckets(part.buckets);
        let mut reading = Reading::new(self.record.header(), series, quantities);
        let start = part.from.saturating_sub(1);
        reading.maps = reading.maps.into_iter().map(|map| map.after(start)).collect();
        let observations = match quantities.is_empty() {
            true => self.record.steps()?,
            false => self.record.observations()?,
        };
        for observation in observations {
            let observation = observation?;
            if observation.step > part.to {
                break;
            }
            if observation.step >= part.from {
                reading.push(&observation);
            }
        }
        let reading = Arc::new(reading);
        // Steps never change, but those to come would be missing.
        if part.to <= self.readings.given.last_step {
            self.zooms.truncate(ZOOMS - 1);
            self.zooms.push_front((part, Arc::clone(&reading)));
        }
        Ok(Some(reading))
    }

    /// The static report and its file name.
    pub(super) fn report(&self) -> Result<(String, String), String> {
        let name = self.dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let page = crate::report(&self.record).map_err(|error| error.to_string())?;
        Ok((name, page))
    }
}

fn empty(record: &Record, with_layers: bool) -> Reading {
    let quantities: &[LayerQuantity] = if with_layers { &LayerQuantity::ALL } else { &[] };
    Reading::new(record.header(), Series::with_buckets(BUCKETS), quantities)
}

fn mark(numbered: &Numbered<'_>) -> Value {
    let mark = numbered.mark();
    json!({
        "number": mark.number, "since": mark.since, "at": mark.at, "title": mark.title,
        "layers": mark.layers,
    })
}

/// Steps, losses and metrics by split.
fn evaluations(history: &History) -> Value {
    let of = |split: Split| -> Value {
        let all: Vec<_> = history.evaluations.iter().filter(|e| e.split == split).collect();
        let every = all.len().div_ceil(EVALUATIONS).max(1);
        let last = all.len().saturating_sub(1);
        let kept = all.iter().enumerate().filter(|(i, _)| i % every == 0 || *i == last);
        kept.map(|(_, e)| json!([e.step, significant(e.loss), e.metric.map(significant)])).collect()
    };
    json!({ "validation": of(Split::Validation), "train": of(Split::Train), "test": of(Split::Test) })
}

fn series(series: &Series, part: Part) -> Value {
    let columns: Vec<[f64; 4]> = series.columns(part.from, part.to).collect();
    // A wide range has more buckets than pixels: merge neighbors, keep their extremes.
    let every = columns.len().div_ceil(part.buckets).max(1);
    let merged = columns.chunks(every).map(|chunk| {
        let low = chunk.iter().fold(f64::INFINITY, |low, column| low.min(column[1]));
        let high = chunk.iter().fold(f64::NEG_INFINITY, |high, column| high.max(column[2]));
        let mean = chunk.iter().map(|column| column[3]).sum::<f64>() / chunk.len() as f64;
        [chunk[chunk.len() / 2][0], low, high, mean]
    });
    let merged: Vec<[f64; 4]> = merged.collect();
    let column = |i: usize| -> Value { merged.iter().map(|it| significant(it[i])).collect() };
    let inside = |step: &u64| (part.from..=part.to).contains(step);
    json!({
        "width": series.width() * every as u64,
        "x": column(0),
        "low": column(1),
        "high": column(2),
        "mean": column(3),
        "broken": series.broken().into_iter().filter(inside).take(part.buckets).collect::<Value>(),
    })
}

fn heat(map: &LayerMap) -> Value {
    let columns = map.columns();
    let rows = map.rows();
    let rows = rows.iter().map(|row| {
        let cells = row.cells(columns).map(|cell| match cell {
            Cell::Unseen => Value::Null,
            Cell::Broken => "nan".into(),
            Cell::Zero => "zero".into(),
            Cell::Size(size) => ((size * 1000.0).round() / 1000.0).into(),
        });
        json!({ "layer": row.layer, "kind": row.kind, "cells": cells.collect::<Value>() })
    });
    json!({
        "quantity": map.quantity.id(),
        "label": map.quantity.label(),
        "log": map.quantity.is_log(),
        "start": map.start(),
        "width": map.width(),
        "columns": columns,
        "range": map.range().map(|(low, high)| [low, high]),
        "rows": rows.collect::<Value>(),
    })
}
