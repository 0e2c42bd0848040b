//! Reading observations back, step by step.

use std::path::PathBuf;

use surefoot_diagnose::Observation;

use crate::error::{Error, Result};
use crate::layout::TablePaths;
use crate::table::{Batch, Schema, layers, parquet, steps, stream};

/// The observations of a run, step by step, up to the last whole one.
///
/// While the run trains, [`refresh`](Observations::refresh) continues after the end.
#[derive(Debug)]
pub struct Observations {
    steps: Rows,
    /// `None` if only the steps are read.
    layers: Option<Rows>,
    layer_count: usize,
    /// A step whose layers are not all there yet, and the number of missing rows.
    partial: Option<(Observation, u64)>,
    ended: bool,
}

impl Observations {
    pub(crate) fn new(steps: Rows, layers: Option<Rows>, layer_count: usize) -> Observations {
        Observations { steps, layers, layer_count, partial: None, ended: false }
    }

    /// Continues after the end with what was written since. Reads only the new part of the files.
    ///
    /// Returns false if the files are missing or shorter than what was read, as after a run was
    /// resumed; then the run has to be read again from the start.
    pub fn refresh(&mut self) -> Result<bool> {
        self.ended = false;
        let layers = self.layers.as_mut().map_or(Ok(true), Rows::refresh)?;
        Ok(self.steps.refresh()? && layers)
    }

    /// Returns true if a file is missing.
    pub(crate) fn is_missing(&self) -> bool {
        let missing = |rows: &Rows| matches!(rows.source, Source::Nothing);
        missing(&self.steps) || self.layers.as_ref().is_some_and(missing)
    }

    fn read(&mut self) -> Result<Option<Observation>> {
        let (mut observation, mut missing) = match self.partial.take() {
            Some(partial) => partial,
            None => {
                let Some((batch, row)) = self.steps.next()? else {
                    return Ok(None);
                };
                match steps::read(batch, row) {
                    Some(step) => step,
                    None => return self.steps.unreadable(),
                }
            }
        };
        if let Some(layers) = &mut self.layers {
            while missing > 0 {
                let read = match layers.next()? {
                    None => {
                        self.partial = Some((observation, missing));
                        return layers.unreadable();
                    }
                    Some((batch, row)) => {
                        layers::read_into(batch, row, &mut observation, self.layer_count)
                    }
                };
                if read.is_none() {
                    return layers.unreadable();
                }
                missing -= 1;
            }
        }
        Ok(Some(observation))
    }
}

impl Iterator for Observations {
    type Item = Result<Observation>;

    fn next(&mut self) -> Option<Result<Observation>> {
        if self.ended {
            return None;
        }
        let observation = self.read().transpose();
        self.ended = !matches!(observation, Some(Ok(_)));
        observation
    }
}

/// The rows of a table, wherever it is.
#[derive(Debug)]
pub(crate) struct Rows {
    source: Source,
    batch: Option<Batch>,
    row: usize,
}

#[derive(Debug)]
enum Source {
    Live(stream::Reader),
    Closed(parquet::Reader, PathBuf),
    /// The run was killed before it made the table.
    Nothing,
}

impl Rows {
    /// The closed table if `closed`, the live one otherwise.
    pub(crate) fn open(paths: TablePaths, schema: Schema, closed: bool) -> Result<Rows> {
        let source = if closed {
            Source::Closed(parquet::Reader::open(&paths.closed, schema)?, paths.closed)
        } else {
            let live = stream::Reader::open(&paths.live, schema)?;
            live.map_or(Source::Nothing, Source::Live)
        };
        Ok(Rows { source, batch: None, row: 0 })
    }

    fn refresh(&mut self) -> Result<bool> {
        match &mut self.source {
            Source::Live(reader) => reader.refresh(),
            Source::Closed(..) => Ok(true),
            Source::Nothing => Ok(false),
        }
    }

    /// The batch and the row in it that come next.
    fn next(&mut self) -> Result<Option<(&Batch, usize)>> {
        while self.batch.as_ref().is_none_or(|batch| self.row >= batch.rows) {
            let batch = match &mut self.source {
                Source::Live(reader) => reader.next_batch()?,
                Source::Closed(reader, _) => reader.next_batch()?,
                Source::Nothing => None,
            };
            if batch.is_none() {
                return Ok(None);
            }
            self.batch = batch;
            self.row = 0;
        }
        let row = self.row;
        self.row += 1;
        Ok(self.batch.as_ref().map(|batch| (batch, row)))
    }

    /// Handles an invalid row: the end of a live table, which a crash may have torn; damage in a
    /// closed one.
    fn unreadable<T>(&self) -> Result<Option<T>> {
        match &self.source {
            Source::Closed(_, path) => {
                Err(Error::damaged(path, "rows are missing or out of order"))
            }
            _ => Ok(None),
        }
    }
}
