//! The steps to repeat, and the checkpoint to start from.

use crate::failure::Failure;
use crate::output::Console;
use crate::output::number::grouped;
use std::io::ErrorKind;
use surefoot_record::{Checkpoint, DigestLog, Error, Record};

/// The steps to check, and the checkpoint to start from.
#[derive(Debug)]
pub(crate) struct StepRange {
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// `None` for the start of the run.
    pub(crate) begin: Option<Checkpoint>,
}

impl StepRange {
    /// The requested steps, if they are recorded.
    pub(crate) fn choose(
        run: &Record,
        log: &DigestLog,
        (from, to): (Option<u64>, Option<u64>),
        console: &Console,
    ) -> Result<Self, Failure> {
        let Some(last) = log.last_step() else {
            let message = format!("{} has no recorded steps", run.dir().display());
            return Err(Failure::input(message).help("it must have trained at least one step"));
        };
        let (from, to) = (from.unwrap_or(0), to.unwrap_or(last));
        if from.max(to) > last {
            return Err(Failure::input(format!(
                "step {} is not in the record: {} ends at step {}",
                grouped(from.max(to)),
                run.dir().display(),
                grouped(last)
            )));
        }
        if from > to {
            return Err(Failure::input(format!(
                "--from {} is after --to {}",
                grouped(from),
                grouped(to)
            )));
        }
        Ok(Self { from, to, begin: nearest(run, from.saturating_sub(1), console)? })
    }

    /// Steps done at the start.
    pub(crate) fn start(&self) -> u64 {
        self.begin.as_ref().map_or(0, |checkpoint| checkpoint.step)
    }

    /// Describes the start.
    pub(crate) fn beginning(&self) -> String {
        match &self.begin {
            None => "from the start".to_owned(),
            Some(checkpoint) => format!("from the checkpoint at step {}", grouped(checkpoint.step)),
        }
    }
}

/// The newest intact checkpoint that is not after `step`.
pub(crate) fn nearest(
    run: &Record,
    step: u64,
    console: &Console,
) -> Result<Option<Checkpoint>, Failure> {
    for saved in run.checkpoint_steps()? {
        if saved > step {
            continue;
        }
        match run.checkpoint_at(saved) {
            Ok(checkpoint) => return Ok(Some(checkpoint)),
            // The run is still training and has just removed it.
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
            Err(error @ Error::Damaged { .. }) => {
                console.warn(&format!("{error}; using an earlier one"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}
