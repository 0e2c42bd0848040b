//! A table of observations while it is written.

use crate::append::Appender;
use crate::error::{Error, Result};
use crate::layout::{TablePaths, remove};
use crate::table::{Batch, Schema, parquet, stream};

/// A table of observations while it is written.
#[derive(Debug)]
pub(crate) struct LiveTable {
    paths: TablePaths,
    schema: Schema,
    pub(crate) file: Appender,
    /// Rows in the file.
    rows: u64,
    /// Rows to be written next.
    pub(crate) pending: Batch,
    encoded: Vec<u8>,
}

impl LiveTable {
    /// Creates an empty table, replacing an existing one.
    pub(crate) fn create(paths: TablePaths, schema: Schema) -> Result<LiveTable> {
        let mut file = Appender::create(&paths.live)?;
        file.append(&stream::preamble(&schema))?;
        Ok(LiveTable::new(paths, schema, file, 0))
    }

    fn new(paths: TablePaths, schema: Schema, file: Appender, rows: u64) -> LiveTable {
        LiveTable { pending: Batch::new(&schema), encoded: Vec::new(), paths, schema, file, rows }
    }

    /// Goes on with a table after its first `rows` rows; the rest is cut off.
    ///
    /// Fails without changing anything if there are fewer.
    pub(crate) fn resume(paths: TablePaths, schema: Schema, rows: u64) -> Result<LiveTable> {
        if rows == 0 {
            return LiveTable::create(paths, schema);
        }
        let Some(mut reader) = stream::Reader::open(&paths.live, schema.clone())? else {
            return LiveTable::reopen(paths, schema, rows);
        };
        let mut kept = 0;
        while kept < rows {
            let end = reader.position();
            let Some(mut batch) = reader.next_batch()? else {
                return Err(too_short(&paths.live, kept, rows));
            };
            let wanted = rows - kept;
            if batch.rows as u64 > wanted {
                // Checkpoints end batches, so only a table that was reopened comes here.
                batch.truncate(wanted as usize);
                let file = Appender::open(&paths.live, end)?;
                let mut table = LiveTable::new(paths, schema, file, kept);
                table.pending = batch;
                table.write()?;
                return Ok(table);
            }
            kept += batch.rows as u64;
        }
        let file = Appender::open(&paths.live, reader.position())?;
        Ok(LiveTable::new(paths, schema, file, rows))
    }

    /// Makes a live table of the first rows of a closed one: the run was killed after it had closed
    /// its tables and before it had written its summary.
    fn reopen(paths: TablePaths, schema: Schema, rows: u64) -> Result<LiveTable> {
        let mut reader = parquet::Reader::open(&paths.closed, schema.clone())?;
        let closed = paths.closed.clone();
        // Under another name until it is complete.
        let aside = TablePaths { live: paths.live.with_extension("partial"), closed: paths.closed };
        let mut table = LiveTable::create(aside, schema)?;
        while table.rows < rows {
            let Some(mut batch) = reader.next_batch()? else {
                return Err(too_short(&closed, table.rows, rows));
            };
            batch.truncate(usize::try_from(rows - table.rows).unwrap_or(usize::MAX));
            table.pending = batch;
            table.write()?;
        }
        table.file.sync()?;
        table.file.rename(&paths.live)?;
        table.paths.live = paths.live;
        Ok(table)
    }

    /// Rows in the file.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes the pending rows as a batch.
    pub(crate) fn write(&mut self) -> Result<()> {
        if self.pending.rows == 0 {
            return Ok(());
        }
        self.encoded.clear();
        stream::encode(&mut self.encoded, &self.pending);
        self.file.append(&self.encoded)?;
        self.rows += self.pending.rows as u64;
        self.pending.clear();
        Ok(())
    }

    /// Writes the table as Parquet and makes that durable. The live file stays.
    pub(crate) fn close(&self) -> Result<()> {
        let reader = stream::Reader::open(&self.paths.live, self.schema.clone())?;
        let mut reader = reader.ok_or_else(|| too_short(&self.paths.live, 0, self.rows))?;
        let mut closed = 0;
        parquet::write(&self.paths.closed, &self.schema, || {
            let batch = reader.next_batch()?;
            match &batch {
                Some(batch) => closed += batch.rows as u64,
                // Never replace rows that were written by a table that lacks them.
                None if closed < self.rows => {
                    return Err(too_short(&self.paths.live, closed, self.rows));
                }
                None => {}
            }
            Ok(batch)
        })
    }

    /// Removes the live file of a table that is closed.
    pub(crate) fn remove_live(self) -> Result<()> {
        remove(&self.paths.live)
    }

    /// Removes the closed file of a table that continues.
    pub(crate) fn remove_closed(&self) -> Result<()> {
        remove(&self.paths.closed)
    }
}

fn too_short(path: &std::path::Path, found: u64, wanted: u64) -> Error {
    Error::damaged(path, format!("it has {found} whole rows instead of {wanted}"))
}
