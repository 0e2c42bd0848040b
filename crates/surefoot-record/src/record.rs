//! Reads the record of a run, whether it ended or not.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::SystemTime;

use surefoot_diagnose::{Diagnosis, Evaluation, Quantity, Split};

use crate::array::Array;
use crate::checkpoint::Checkpoint;
use crate::checkpoint_dir;
use crate::digest::Digest;
use crate::digest_log::{self, DigestLog};
use crate::error::{Error, Result};
use crate::event::{Event, parse_lines};
use crate::header::{Header, StoredHeader};
use crate::layout::{Layout, read_if_there};
use crate::observations::{Observations, Rows};
use crate::replay::{self, Entry, Replay};
use crate::summary::RunSummary;
use crate::table::Schema;
use crate::tensor_file::read_model;

/// Read-only access to a run directory.
///
/// The run may be finished, killed or still training; then the data written so far is read.
#[derive(Debug)]
pub struct Record {
    layout: Layout,
    header: StoredHeader,
    source: String,
}

impl Record {
    /// Opens a run directory.
    pub fn open(dir: &Path) -> Result<Record> {
        let layout = Layout::of(dir);
        let header = layout.read_header()?;
        let path = layout.source();
        let source = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        Ok(Record { layout, header, source })
    }

    /// The run directory.
    pub fn dir(&self) -> &Path {
        self.layout.dir()
    }

    /// The original plan; empty for a [program](Record::program).
    pub fn plan(&self) -> &str {
        if self.program().is_some() { "" } else { &self.source }
    }

    /// Description, as JSON, of the program that trained, if it was not a plan.
    pub fn program(&self) -> Option<&str> {
        self.layout.program().exists().then_some(&self.source)
    }

    /// An error unless the plan is the one that the run was started with.
    pub fn check_plan(&self) -> Result<()> {
        match Digest::of(self.source.as_bytes()) == self.header.plan_digest {
            true => Ok(()),
            false => Err(Error::PlanChanged { path: self.layout.source() }),
        }
    }

    /// The delivered plan, once it is written.
    pub fn final_plan(&self) -> Result<Option<String>> {
        let path = self.layout.final_plan();
        let text = read_if_there(&path)?.map(String::from_utf8).transpose();
        text.map_err(|error| Error::damaged(&path, error))
    }

    /// The static facts of the run.
    pub fn header(&self) -> &Header {
        &self.header.header
    }

    /// The steps with everything that was observed, up to the last whole one.
    pub fn observations(&self) -> Result<Observations> {
        self.read(true)
    }

    /// The steps without their layers and input, which is much less to read.
    pub fn steps(&self) -> Result<Observations> {
        self.read(false)
    }

    fn read(&self, with_layers: bool) -> Result<Observations> {
        if self.is_closed() {
            return self.read_from(true, with_layers);
        }
        let live = self.read_from(false, with_layers)?;
        // It may have been closed, and the live files removed, in this very moment.
        if live.is_missing() && self.is_closed() {
            return self.read_from(true, with_layers);
        }
        Ok(live)
    }

    fn read_from(&self, closed: bool, with_layers: bool) -> Result<Observations> {
        let infos = &self.header.header.facts.layers;
        let steps = Rows::open(self.layout.steps(), Schema::steps(), closed)?;
        let layers = if with_layers {
            let schema = Schema::layers(infos);
            Some(Rows::open(self.layout.layers(), schema, closed)?)
        } else {
            None
        };
        Ok(Observations::new(steps, layers, infos.len()))
    }

    /// Returns true if both tables are closed. The live files are removed only after that.
    fn is_closed(&self) -> bool {
        self.layout.steps().closed.exists() && self.layout.layers().closed.exists()
    }

    /// All events, in order.
    pub fn events(&self) -> Result<Vec<Event>> {
        Ok(self.events_from(0)?.0)
    }

    /// The events from a byte of `events.jsonl` on, and the byte after the last one: pass it to the
    /// next call to read only what is new.
    pub fn events_from(&self, start: u64) -> Result<(Vec<Event>, u64)> {
        let path = self.layout.events();
        let mut content = Vec::new();
        match fs::File::open(&path) {
            Ok(mut file) => {
                let read = file.seek(SeekFrom::Start(start));
                let read = read.and_then(|_| file.read_to_end(&mut content));
                read.map_err(Error::io("read", &path))?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io("read", &path)(error)),
        }
        let (events, bytes) = parse_lines(&content);
        Ok((events, start + bytes as u64))
    }

    /// Returns true if a process of this machine is training the run.
    pub fn is_training(&self) -> bool {
        self.layout.is_locked()
    }

    /// Time of the last change of the record, if known.
    pub fn modified(&self) -> Option<SystemTime> {
        let (steps, events) = (self.layout.steps(), self.layout.events());
        let files = [steps.live, steps.closed, events, self.layout.summary()];
        let times = files.iter().filter_map(|file| fs::metadata(file).ok()?.modified().ok());
        times.max()
    }

    /// Time at which the run was created, if known.
    pub fn created(&self) -> Option<SystemTime> {
        fs::metadata(self.layout.header()).ok()?.modified().ok()
    }

    /// The evaluations, in order.
    pub fn evaluations(&self) -> Result<Vec<Evaluation>> {
        let events = self.events()?;
        Ok(events.iter().filter_map(Event::evaluation).collect())
    }

    /// The digests of the states after the steps, in order.
    ///
    /// Fails if they are of an older kind that cannot be compared with those of today, or if the
    /// run is over and some are missing.
    pub fn digests(&self) -> Result<DigestLog> {
        self.header.check_current(&self.layout.header())?;
        let path = self.layout.digests();
        let log = digest_log::read(&path, self.header().digest_parts.len())?;
        if self.summary()?.is_some() {
            let last = log.last_step().unwrap_or(0);
            let steps = self.events()?.last().map_or(0, Event::step);
            if last < steps {
                let reason = format!("it ends at step {last}, and the run at step {steps}");
                return Err(Error::damaged(&path, reason));
            }
        }
        Ok(log)
    }

    /// Visits the steps up to `until` and their evaluations, in their original order.
    pub fn visit(&self, until: u64, visit: impl FnMut(Entry<'_>)) -> Result<()> {
        replay::visit(self.observations()?, &self.evaluations()?, until, visit)
    }

    /// Feeds the steps and evaluations to `diagnosis`, with the findings that live training had.
    ///
    /// [`Diagnosis::finish`] is called if the record has all planned steps.
    pub fn replay(&self, diagnosis: &mut Diagnosis) -> Result<Replay> {
        replay::replay(self.observations()?, &self.evaluations()?, diagnosis, true)
    }

    /// Returns the quantities that a diagnosis of this record can use.
    pub fn available(&self) -> Result<BTreeSet<Quantity>> {
        let facts = &self.header().facts;
        let observed = self.header().observe_every > 0 && !facts.layers.is_empty();
        let validated = self.evaluations()?.iter().any(|e| e.split == Split::Validation);
        let model = facts.task.is_some() && facts.loss.is_some() && !facts.layers.is_empty();
        let all = [
            (Quantity::Loss, true),
            (Quantity::Metric, facts.metric.is_some()),
            (Quantity::Gradients, observed),
            (Quantity::Weights, observed),
            (Quantity::Outputs, observed),
            (Quantity::Validation, validated),
            (Quantity::Model, model),
        ];
        Ok(all.into_iter().filter_map(|(quantity, there)| there.then_some(quantity)).collect())
    }

    /// The newest valid checkpoint; `None` if there are no checkpoints.
    pub fn checkpoint(&self) -> Result<Option<Checkpoint>> {
        let dir = self.layout.checkpoints();
        checkpoint_dir::newest(&dir, |stored| Ok(stored.checkpoint))
    }

    /// The steps of which there are checkpoint files, newest first.
    pub fn checkpoint_steps(&self) -> Result<Vec<u64>> {
        let files = checkpoint_dir::list(&self.layout.checkpoints())?;
        Ok(files.into_iter().map(|(step, _)| step).collect())
    }

    /// The checkpoint of a step.
    pub fn checkpoint_at(&self, step: u64) -> Result<Checkpoint> {
        Checkpoint::read(&checkpoint_dir::path_of(&self.layout.checkpoints(), step))
    }

    /// Preparation of inputs for the delivered model, as JSON; `None` if there is no model.
    pub fn preprocessing(&self) -> Result<Option<Vec<u8>>> {
        read_if_there(&self.layout.preprocessing())
    }

    /// Arrays of the delivered model, sorted by name; `None` if there is no model.
    pub fn model(&self) -> Result<Option<Vec<Array>>> {
        read_model(&self.layout.model())
    }

    /// Summary of a finished run; `None` before.
    pub fn summary(&self) -> Result<Option<RunSummary>> {
        let path = self.layout.summary();
        let Some(text) = read_if_there(&path)? else {
            return Ok(None);
        };
        let summary = serde_json::from_slice(&text);
        summary.map_err(|error| Error::damaged(&path, error))
    }
}
