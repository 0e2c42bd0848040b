//! The thread that encodes and writes, so that training does not wait for it.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use surefoot_diagnose::Observation;

use crate::append::Appender;
use crate::checkpoint::Marks;
use crate::digest_log;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::live_table::LiveTable;
use crate::step_digest::StepDigest;
use crate::table::{layers, steps};

/// Chunks under way at most. With those of [`CHUNK`](crate::recorder) this bounds the memory, and
/// it is enough to ride out a slow disk for some tenths of a second of the shortest steps.
const UNDER_WAY: usize = 8;

/// Observations since the last chunk. Written chunks are reused, so a running training allocates
/// nothing.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    /// The first `filled` are new; the others only lend their memory.
    observations: Vec<Observation>,
    filled: usize,
    pub(crate) digests: Vec<u8>,
    /// Step whose digest has the wrong number of parts.
    misfit: Option<u64>,
}

impl Chunk {
    pub(crate) fn observe(&mut self, observation: &Observation) {
        match self.observations.get_mut(self.filled) {
            Some(old) => old.clone_from(observation),
            None => self.observations.push(observation.clone()),
        }
        self.filled += 1;
    }

    /// Adds the digest of a step, which must have `parts` parts.
    pub(crate) fn digest(&mut self, step: &StepDigest, parts: usize) {
        if step.parts.len() != parts {
            self.misfit.get_or_insert(step.step);
        }
        digest_log::push(&mut self.digests, step);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.filled == 0 && self.digests.is_empty()
    }

    fn clear(&mut self) {
        self.filled = 0;
        self.digests.clear();
        self.misfit = None;
    }
}

enum Message {
    Chunk(Chunk),
    /// Makes everything durable and replies with the row counts; `None` on failure.
    Sync(SyncSender<Option<Marks>>),
}

/// The files that the thread writes.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) steps: LiveTable,
    pub(crate) layers: LiveTable,
    pub(crate) digests: Appender,
    pub(crate) layer_count: usize,
    /// Number of parts of a digest.
    pub(crate) part_count: usize,
}

impl Files {
    fn write(&mut self, chunk: &Chunk) -> Result<()> {
        for observation in &chunk.observations[..chunk.filled] {
            let layers = observation.layers.len();
            if layers != 0 && layers != self.layer_count {
                return Err(Error::Unrecordable {
                    what: format!("the observation of step {}", observation.step),
                    reason: format!(
                        "it has {layers} layers and the header has {}",
                        self.layer_count
                    ),
                });
            }
            let rows = layers::push(&mut self.layers.pending, observation);
            steps::push(&mut self.steps.pending, observation, rows);
        }
        if let Some(step) = chunk.misfit {
            return Err(Error::Unrecordable {
                what: format!("the digest of step {step}"),
                reason: format!("it has not the {} parts of the header", self.part_count),
            });
        }
        // Layers first: a step in the file then has its layers.
        self.layers.write()?;
        self.steps.write()?;
        if !chunk.digests.is_empty() {
            self.digests.append(&chunk.digests)?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<Marks> {
        self.layers.file.sync()?;
        self.steps.file.sync()?;
        self.digests.sync()?;
        Ok(Marks {
            steps: self.steps.rows(),
            layers: self.layers.rows(),
            digests: self.digests.length() / digest_log::record_size(self.part_count) as u64,
        })
    }
}

/// The first thing that went wrong in the thread.
#[derive(Debug, Default)]
struct Failure {
    /// The error until it is returned, and its message.
    first: Mutex<Option<(Option<Error>, String)>>,
}

impl Failure {
    fn set(&self, error: Error) {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| {
            let said = error.to_string();
            (Some(error), said)
        });
    }

    fn is_set(&self) -> bool {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.is_some()
    }

    /// Returns the error to the first caller and its message to later ones.
    fn get(&self, layout: &Layout) -> Result<()> {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *first {
            None => Ok(()),
            Some((error, said)) => Err(error.take().unwrap_or_else(|| Error::Failed {
                path: layout.dir().to_owned(),
                reason: said.clone(),
            })),
        }
    }
}

/// The thread that encodes and writes.
#[derive(Debug)]
pub(crate) struct Writer {
    layout: Layout,
    /// `None` once the thread is to end.
    sender: Option<SyncSender<Message>>,
    /// Chunks that were written come back here. The lock is never waited for.
    spent: Mutex<Receiver<Chunk>>,
    thread: Option<JoinHandle<Files>>,
    /// Makes the directory durable as it was created. Beside the other, which must not wait that
    /// long. `None` when that has been seen to.
    directory: Mutex<Option<JoinHandle<()>>>,
    failure: Arc<Failure>,
}

impl Writer {
    pub(crate) fn start(layout: &Layout, files: Files) -> Result<Writer> {
        let (sender, receiver) = sync_channel(UNDER_WAY);
        let (give_back, spent) = channel();
        let failure = Arc::new(Failure::default());
        let thread = std::thread::Builder::new()
            .name("record".to_owned())
            .spawn({
                let failure = Arc::clone(&failure);
                move || work(files, &receiver, &give_back, &failure)
            })
            .map_err(Error::io("start a thread to write", layout.dir()))?;
        let directory = std::thread::Builder::new()
            .name("record-directory".to_owned())
            .spawn({
                let (failure, layout) = (Arc::clone(&failure), layout.clone());
                move || {
                    if let Err(error) = sync_directory(&layout) {
                        failure.set(error);
                    }
                }
            })
            .map_err(Error::io("start a thread to write", layout.dir()))?;
        Ok(Writer {
            directory: Mutex::new(Some(directory)),
            layout: layout.clone(),
            sender: Some(sender),
            spent: Mutex::new(spent),
            thread: Some(thread),
            failure,
        })
    }

    /// Hands a chunk over; waits if the thread lags behind. A failure shows at the next [`check`].
    ///
    /// [`check`]: Writer::check
    pub(crate) fn write(&self, chunk: Chunk) {
        self.send(Message::Chunk(chunk));
    }

    /// Returns an empty chunk, reusing a written one if possible.
    pub(crate) fn spent(&self) -> Chunk {
        let spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        spent.try_recv().unwrap_or_default()
    }

    /// The first failure, if there was one.
    pub(crate) fn check(&self) -> Result<()> {
        self.failure.get(&self.layout)
    }

    /// Makes everything handed over so far durable.
    pub(crate) fn sync(&self) -> Result<Marks> {
        let (sender, receiver) = sync_channel(1);
        self.send(Message::Sync(sender));
        let marks = receiver.recv().ok().flatten();
        self.wait_for_directory();
        self.check()?;
        marks.ok_or_else(|| self.gone())
    }

    /// Ends the thread after everything is written and returns the files.
    pub(crate) fn finish(&mut self) -> Result<Files> {
        self.sender = None;
        let files = self.thread.take().and_then(|thread| thread.join().ok());
        self.wait_for_directory();
        self.check()?;
        files.ok_or_else(|| self.gone())
    }

    fn wait_for_directory(&self) {
        let mut directory = self.directory.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = directory.take()
            && thread.join().is_err()
        {
            self.failure.set(self.gone());
        }
    }

    fn send(&self, message: Message) {
        let sent = self.sender.as_ref().map(|sender| sender.send(message));
        if !matches!(sent, Some(Ok(()))) {
            self.failure.set(self.gone());
        }
    }

    fn gone(&self) -> Error {
        Error::Failed {
            path: self.layout.dir().to_owned(),
            reason: "the thread that writes it has ended".to_owned(),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn work(
    mut files: Files,
    receiver: &Receiver<Message>,
    give_back: &Sender<Chunk>,
    failure: &Failure,
) -> Files {
    for message in receiver {
        // After a failure nothing more is written, so the record has no gaps.
        let failed = failure.is_set();
        match message {
            Message::Chunk(_) if failed => {}
            Message::Chunk(mut chunk) => {
                if let Err(error) = files.write(&chunk) {
                    failure.set(error);
                }
                chunk.clear();
                // The receiver may be gone.
                let _ = give_back.send(chunk);
            }
            Message::Sync(reply) => {
                let marks = if failed { None } else { Some(files.sync()) };
                let marks = marks.and_then(|marks| marks.map_err(|e| failure.set(e)).ok());
                // The receiver may be gone.
                let _ = reply.send(marks);
            }
        }
    }
    files
}

fn sync_directory(layout: &Layout) -> Result<()> {
    for path in [layout.source(), layout.header()] {
        std::fs::File::open(&path)
            .and_then(|file| file.sync_all())
            .map_err(Error::io("write", &path))?;
    }
    // Not every system has directories that can be opened and synchronised.
    for dir in [Some(layout.dir()), layout.dir().parent()].into_iter().flatten() {
        if let Ok(dir) = std::fs::File::open(dir) {
            let _ = dir.sync_all();
        }
    }
    Ok(())
}
