//! Resumes a run that was interrupted or killed.
//!
//! A checkpoint stores the number of rows in the tables and the digest log, and its event follows
//! all earlier events. The record is truncated to that state, so a resumed run completes it to the
//! record of an uninterrupted one.

use std::fs::{self, File};
use std::path::Path;

use crate::append::Appender;
use crate::checkpoint::{Checkpoint, Marks, Stored};
use crate::checkpoint_dir;
use crate::digest::Digest;
use crate::digest_log;
use crate::error::{Error, Result};
use crate::event::{Event, parse_lines};
use crate::header::{Environment, StoredHeader};
use crate::layout::{Layout, read_if_there, remove};
use crate::live_table::LiveTable;
use crate::recorder::Recorder;
use crate::table::Schema;
use crate::writer::Files;

/// A run that was interrupted or killed: locked, and still as it was left.
///
/// A program that finds out late whether it can continue the run, such as a script that has to reach
/// its training loop first, holds this until then. Dropping it leaves the run as it was.
#[derive(Debug)]
pub struct InterruptedRun {
    layout: Layout,
    header: StoredHeader,
    lock: File,
}

impl InterruptedRun {
    /// Locks the run in `dir`.
    ///
    /// Fails if the run is finished, in use by another process, or its plan was changed.
    pub fn open(dir: &Path) -> Result<InterruptedRun> {
        let layout = Layout::of(dir);
        // Before the lock, which would leave a file in a directory that is not a run.
        let header = layout.read_header()?;
        header.check_current(&layout.header())?;
        let lock = layout.lock()?;
        if layout.summary().exists() {
            layout.remove_lock();
            return Err(Error::Finished { path: dir.to_owned() });
        }
        check_plan(&layout, &header)?;
        Ok(InterruptedRun { layout, header, lock })
    }

    /// Cuts the record back to the newest usable checkpoint and continues from there, as
    /// [`Recorder::resume`] does.
    pub fn resume(self, environment: &Environment) -> Result<(Recorder, Option<Checkpoint>)> {
        let InterruptedRun { layout, header, lock } = self;
        let found = checkpoint_dir::newest(&layout.checkpoints(), |stored| {
            let files = cut_files(&layout, &header, &stored)?;
            Ok((stored.checkpoint, files))
        })?;
        let (checkpoint, files) = match found {
            Some((checkpoint, files)) => (Some(checkpoint), files),
            None => (None, open_files(&layout, &header, Marks::default())?),
        };
        layout.remove_temporary()?;
        files.steps.remove_closed()?;
        files.layers.remove_closed()?;
        let step = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.step);
        for (newer, path) in checkpoint_dir::list(&layout.checkpoints())? {
            if newer > step {
                remove(&path)?;
            }
        }
        let recorder = reopen(layout, header, files, lock, checkpoint.as_ref(), environment)?;
        Ok((recorder, checkpoint))
    }
}

fn check_plan(layout: &Layout, header: &StoredHeader) -> Result<()> {
    let path = layout.source();
    let plan = fs::read(&path).map_err(Error::io("read", &path))?;
    if Digest::of(&plan) == header.plan_digest { Ok(()) } else { Err(Error::PlanChanged { path }) }
}

/// The files cut back to a checkpoint, if it belongs to them and they reach that far.
fn cut_files(layout: &Layout, header: &StoredHeader, stored: &Stored) -> Result<Files> {
    if stored.plan_digest != header.plan_digest {
        let path = checkpoint_dir::path_of(&layout.checkpoints(), stored.checkpoint.step);
        return Err(Error::damaged(&path, "it belongs to another plan"));
    }
    open_files(layout, header, stored.marks)
}

fn open_files(layout: &Layout, header: &StoredHeader, marks: Marks) -> Result<Files> {
    let schema = Schema::layers(&header.header.facts.layers);
    let part_count = header.header.digest_parts.len();
    let digests = marks.digests * digest_log::record_size(part_count) as u64;
    Ok(Files {
        steps: LiveTable::resume(layout.steps(), Schema::steps(), marks.steps)?,
        layers: LiveTable::resume(layout.layers(), schema, marks.layers)?,
        digests: Appender::open(&layout.digests(), digests)?,
        layer_count: header.header.facts.layers.len(),
        part_count,
    })
}

fn reopen(
    layout: Layout,
    header: StoredHeader,
    files: Files,
    lock: File,
    checkpoint: Option<&Checkpoint>,
    environment: &Environment,
) -> Result<Recorder> {
    let (length, missing) = cut_events(&layout, &header, checkpoint)?;
    let events = Appender::open(&layout.events(), length)?;
    let mut recorder = Recorder::start(layout, header, files, events, lock)?;
    recorder.last_checkpoint = checkpoint.map(|checkpoint| checkpoint.step);
    recorder.last_step = recorder.last_checkpoint.unwrap_or(0);
    if let Some(event) = missing {
        recorder.event(&event)?;
    }
    recorder
        .event(&Event::Resumed { step: recorder.last_step, environment: environment.clone() })?;
    Ok(recorder)
}

/// Length of the events up to a checkpoint, and the checkpoint's event if a crash prevented it from
/// being written.
fn cut_events(
    layout: &Layout,
    header: &StoredHeader,
    checkpoint: Option<&Checkpoint>,
) -> Result<(u64, Option<Event>)> {
    let Some(checkpoint) = checkpoint else {
        let environment = header.header.environment.clone();
        return Ok((0, Some(Event::Started { step: 0, environment })));
    };
    let content = read_if_there(&layout.events())?.unwrap_or_default();
    let mut length = 0;
    for line in content.split_inclusive(|&byte| byte == b'\n') {
        let (events, whole) = parse_lines(line);
        let Some(event) = events.first() else {
            break;
        };
        length += whole as u64;
        if matches!(event, Event::Checkpoint { step, .. } if *step == checkpoint.step) {
            return Ok((length, None));
        }
    }
    let digest = checkpoint.digest();
    let (step, epoch) = (checkpoint.step, checkpoint.epoch);
    Ok((length, Some(Event::Checkpoint { step, epoch, digest })))
}

#[cfg(test)]
mod tests;
