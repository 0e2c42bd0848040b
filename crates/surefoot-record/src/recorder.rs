//! Writes the record of a run while it trains.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use surefoot_diagnose::{Evaluation, Observation};

use crate::append::Appender;
use crate::array::Array;
use crate::checkpoint::Checkpoint;
use crate::checkpoint_dir;
use crate::digest::Digest;
use crate::digest_log;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::header::{Environment, FORMAT, Header, StoredHeader};
use crate::layout::Layout;
use crate::live_table::LiveTable;
use crate::resume::InterruptedRun;
use crate::step_digest::StepDigest;
use crate::summary::RunSummary;
use crate::table::Schema;
use crate::tensor_file::{write_atomically, write_model};
use crate::writer::{Chunk, Files, Writer};

/// Layers and steps after which a chunk is passed to the writing thread: a quarter of a megabyte,
/// or 1 ms of the shortest steps.
const CHUNK: usize = 512;
/// or when it is so old, so that a slow run can be followed.
const CHUNK_AGE: Duration = Duration::from_secs(1);

/// Writes the record of a run while it trains.
///
/// [`observe`](Recorder::observe) and [`digest`](Recorder::digest) take well under a microsecond:
/// they fill a buffer that a thread encodes and writes. Memory is bounded; if the disk cannot keep
/// up, `observe` blocks and nothing is dropped. If writing fails, the error is returned by the next
/// call that returns a `Result`, everything written before stays readable, and nothing more is
/// written.
///
/// Dropping a recorder writes its buffers and leaves a run that can be resumed.
/// [`finish`](Recorder::finish) ends the run.
#[derive(Debug)]
pub struct Recorder {
    pub(crate) layout: Layout,
    pub(crate) header: StoredHeader,
    pub(crate) writer: Writer,
    pub(crate) events: Appender,
    chunk: Chunk,
    /// Layers and steps in the chunk.
    chunk_size: usize,
    chunk_begun: Instant,
    /// The newest step that was observed or checkpointed.
    pub(crate) last_step: u64,
    pub(crate) last_checkpoint: Option<u64>,
    keep: usize,
    /// Held for as long as the recorder lives.
    _lock: File,
}

impl Recorder {
    /// Creates a run in a new directory: `runs/<name>-001`, or with the first free number.
    ///
    /// Characters other than letters, digits and `-_.` in the name become hyphens. The plan is
    /// stored verbatim.
    pub fn create(runs: &Path, name: &str, plan_source: &str, header: Header) -> Result<Recorder> {
        Recorder::create_with(runs, name, plan_source, header, &[])
    }

    /// As [`create`](Recorder::create), with copies of `files`, each under the name given with it. The
    /// copies are durable before the directory is a run.
    pub fn create_with(
        runs: &Path,
        name: &str,
        plan_source: &str,
        header: Header,
        files: &[(&Path, String)],
    ) -> Result<Recorder> {
        check_names(&header)?;
        let layout = Layout::create(runs, name)?;
        let path = layout.plan();
        Recorder::create_or_clear(layout, (&path, plan_source), header, files)
    }

    /// Creates a run of a program that another framework trains, described by `program` as JSON, in a
    /// new directory as [`create`](Recorder::create) does.
    pub fn create_for_program(
        runs: &Path,
        name: &str,
        program: &str,
        header: Header,
    ) -> Result<Recorder> {
        check_names(&header)?;
        let layout = Layout::create(runs, name)?;
        let path = layout.program();
        Recorder::create_or_clear(layout, (&path, program), header, &[])
    }

    /// Creates a run in the directory `dir`, which must not exist.
    pub fn create_at(dir: &Path, plan_source: &str, header: Header) -> Result<Recorder> {
        check_names(&header)?;
        if let Some(parent) = dir.parent() {
            fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
        }
        fs::create_dir(dir).map_err(Error::io("create", dir))?;
        let layout = Layout::of(dir);
        let path = layout.plan();
        Recorder::create_or_clear(layout, (&path, plan_source), header, &[])
    }

    /// Returns true if the process that created a directory died before the run was usable.
    pub fn is_hardly_begun(dir: &Path) -> bool {
        Layout::of(dir).is_hardly_begun()
    }

    fn create_or_clear(
        layout: Layout,
        source: (&Path, &str),
        header: Header,
        files: &[(&Path, String)],
    ) -> Result<Recorder> {
        let created = Recorder::create_in(&layout, source, header, files);
        if created.is_err() {
            // Nothing was recorded in it yet.
            let _ = fs::remove_dir_all(layout.dir());
        }
        created
    }

    fn create_in(
        layout: &Layout,
        (path, source): (&Path, &str),
        header: Header,
        files: &[(&Path, String)],
    ) -> Result<Recorder> {
        let lock = layout.lock()?;
        fs::write(path, source).map_err(Error::io("write", path))?;
        for (file, name) in files {
            let path = layout.dir().join(name);
            fs::copy(file, &path)
                .and_then(|_| File::open(&path)?.sync_all())
                .map_err(Error::io("copy the model to", &path))?;
        }
        let header =
            StoredHeader { format: FORMAT, plan_digest: Digest::of(source.as_bytes()), header };
        let files = Files {
            steps: LiveTable::create(layout.steps(), Schema::steps())?,
            layers: LiveTable::create(
                layout.layers(),
                Schema::layers(&header.header.facts.layers),
            )?,
            digests: Appender::create(&layout.digests())?,
            layer_count: header.header.facts.layers.len(),
            part_count: header.header.digest_parts.len(),
        };
        let events = Appender::create(&layout.events())?;
        let checkpoints = layout.checkpoints();
        fs::create_dir(&checkpoints).map_err(Error::io("create", &checkpoints))?;
        // The header makes the directory a run, so it comes last and at once.
        let json = serde_json::to_vec_pretty(&header).map_err(|error| Error::Unrecordable {
            what: "the header".to_owned(),
            reason: error.to_string(),
        })?;
        let (path, partial) = (layout.header(), layout.partial_header());
        fs::write(&partial, json)
            .and_then(|()| fs::rename(&partial, &path))
            .map_err(Error::io("write", &path))?;
        let mut recorder = Recorder::start(layout.clone(), header, files, events, lock)?;
        recorder.event(&Event::Started {
            step: 0,
            environment: recorder.header.header.environment.clone(),
        })?;
        Ok(recorder)
    }

    pub(crate) fn start(
        layout: Layout,
        header: StoredHeader,
        files: Files,
        events: Appender,
        lock: File,
    ) -> Result<Recorder> {
        let writer = Writer::start(&layout, files)?;
        Ok(Recorder {
            layout,
            header,
            writer,
            events,
            chunk: Chunk::default(),
            chunk_size: 0,
            chunk_begun: Instant::now(),
            last_step: 0,
            last_checkpoint: None,
            keep: 2,
            _lock: lock,
        })
    }

    /// Goes on with a run that was interrupted or killed.
    ///
    /// Gives the newest valid checkpoint, to which the record has been cut back; whoever trains on
    /// from there completes it to the record of a run that was never interrupted, with one event
    /// more. Without any checkpoint the record is empty again, and training starts over.
    ///
    /// Fails if the run is finished, in use by another process, or its plan was changed.
    pub fn resume(dir: &Path, environment: &Environment) -> Result<(Recorder, Option<Checkpoint>)> {
        InterruptedRun::open(dir)?.resume(environment)
    }

    /// The run directory.
    pub fn dir(&self) -> &Path {
        self.layout.dir()
    }

    /// The static facts of the run.
    pub fn header(&self) -> &Header {
        &self.header.header
    }

    /// Sets how many checkpoints are kept: at least 1, by default 2, so that a damaged one has a
    /// predecessor.
    pub fn keep_checkpoints(&mut self, count: usize) {
        self.keep = count.max(1);
    }

    /// Records a step. Steps come in order, each with as many layers as the header or with none.
    pub fn observe(&mut self, observation: &Observation) {
        self.last_step = observation.step;
        self.chunk_size += 1 + observation.layers.len();
        self.chunk.observe(observation);
        if self.chunk_size >= CHUNK || self.chunk_begun.elapsed() >= CHUNK_AGE {
            self.flush();
        }
    }

    /// Records the digest of the state after a step, with as many parts as the header. Steps come
    /// in order.
    pub fn digest(&mut self, step: &StepDigest) {
        let parts = self.header.header.digest_parts.len();
        self.chunk.digest(step, parts);
        if self.chunk.digests.len() >= CHUNK * digest_log::record_size(parts) {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let next = self.writer.spent();
        self.writer.write(std::mem::replace(&mut self.chunk, next));
        self.chunk_size = 0;
        self.chunk_begun = Instant::now();
    }

    /// Records something that happened. It can be read at once.
    pub fn event(&mut self, event: &Event) -> Result<()> {
        self.writer.check()?;
        let unrecordable =
            |reason: String| Error::Unrecordable { what: "an event".to_owned(), reason };
        if let Event::Other(value) = event
            && !(value["event"].is_string() && value["step"].is_u64())
        {
            let reason = format!("{value} is not an object with `event` and `step`");
            return Err(unrecordable(reason));
        }
        let mut line = serde_json::to_vec(event).map_err(|e| unrecordable(e.to_string()))?;
        line.push(b'\n');
        self.events.append(&line)
    }

    /// Records an evaluation as an event.
    pub fn evaluation(&mut self, evaluation: &Evaluation) -> Result<()> {
        self.event(&Event::from(evaluation))
    }

    /// Makes everything recorded so far durable.
    pub fn sync(&mut self) -> Result<()> {
        self.flush();
        self.writer.sync()?;
        self.events.sync()
    }

    /// Makes everything recorded so far durable, then the checkpoint; so a checkpoint is never
    /// ahead of its record. Records the event, and removes checkpoints that are too old.
    ///
    /// Gives the digest of the checkpoint.
    pub fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<Digest> {
        self.flush();
        let marks = self.writer.sync()?;
        self.events.sync()?;
        let dir = self.layout.checkpoints();
        let plan_digest = self.header.plan_digest;
        checkpoint_dir::write(&dir, checkpoint, plan_digest, marks, self.keep)?;
        let digest = checkpoint.digest();
        self.last_step = self.last_step.max(checkpoint.step);
        if self.last_checkpoint != Some(checkpoint.step) {
            self.last_checkpoint = Some(checkpoint.step);
            self.event(&Event::Checkpoint {
                step: checkpoint.step,
                epoch: checkpoint.epoch,
                digest,
            })?;
        }
        Ok(digest)
    }

    /// Writes `plan.final.toml`, the plan as delivered, durably.
    pub fn write_final_plan(&mut self, source: &str) -> Result<()> {
        write_atomically(&self.layout.final_plan(), source.as_bytes())
    }

    /// Writes `program.final.json`, the program as delivered, durably.
    pub fn write_final_program(&mut self, json: &str) -> Result<()> {
        write_atomically(&self.layout.final_program(), json.as_bytes())
    }

    /// Writes `preprocessing.json`, the preparation of inputs for the delivered model, durably.
    pub fn write_preprocessing(&mut self, json: &str) -> Result<()> {
        write_atomically(&self.layout.preprocessing(), json.as_bytes())
    }

    /// Writes `model.safetensors`, the delivered model, durably. The bytes do not depend on the
    /// order of the arrays.
    pub fn write_model(&mut self, arrays: &[Array]) -> Result<()> {
        write_model(&self.layout.model(), arrays)
    }

    /// Ends the run: records the event, closes the tables as Parquet, and when all that is durable
    /// writes `summary.json`.
    pub fn finish(mut self, summary: &RunSummary) -> Result<()> {
        self.event(&Event::Finished { step: self.last_step })?;
        self.flush();
        let mut files = self.writer.finish()?;
        // Most of this is waiting for the disk, so it is waited for together.
        std::thread::scope(|scope| {
            let steps = scope.spawn(|| files.steps.close());
            let layers = scope.spawn(|| files.layers.close());
            let others = self.events.sync().and_then(|()| files.digests.sync());
            let closed = [steps.join(), layers.join()];
            closed.into_iter().try_for_each(|closed| {
                closed.unwrap_or_else(|_| {
                    Err(Error::Failed {
                        path: self.layout.dir().to_owned(),
                        reason: "closing the observations panicked".to_owned(),
                    })
                })
            })?;
            others
        })?;
        files.steps.remove_live()?;
        files.layers.remove_live()?;
        let json = format!("{}\n", summary.to_json_line());
        write_atomically(&self.layout.summary(), json.as_bytes())?;
        self.layout.remove_lock();
        Ok(())
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // A failure has been returned by an earlier call or is of no interest any more.
        if !self.chunk.is_empty() {
            self.flush();
        }
    }
}

/// Layers are identified by name in the tables.
fn check_names(header: &Header) -> Result<()> {
    let mut names = std::collections::BTreeSet::new();
    for layer in &header.facts.layers {
        if !names.insert(&layer.name) {
            return Err(Error::Unrecordable {
                what: "the header".to_owned(),
                reason: format!("two layers are called `{}`", layer.name),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
