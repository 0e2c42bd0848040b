//! Which steps are repeated, and from where.

use crate::failure::Failure;
use crate::output::Console;
use crate::output::number::grouped;
use std::io::ErrorKind;
use surefoot_record::{Checkpoint, DigestLog, Error, Record};

/// The steps to check, and the checkpoint to begin at.
#[derive(Debug)]
pub(crate) struct Stretch {
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// None is the start of the run.
    pub(crate) begin: Option<Checkpoint>,
}

impl Stretch {
    /// What was asked for, if it is in the record.
    pub(crate) fn choose(
        run: &Record,
        log: &DigestLog,
        (from, to): (Option<u64>, Option<u64>),
        console: &Console,
    ) -> Result<Self, Failure> {
        let Some(last) = log.last_step() else {
            let message = format!("{} has no step that could be checked", run.dir().display());
            return Err(Failure::input(message).help("a run has, once it has begun to train"));
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
                "there is no step from {} to {}",
                grouped(from),
                grouped(to)
            )));
        }
        Ok(Self { from, to, begin: nearest(run, from.saturating_sub(1), console)? })
    }

    /// The number of steps done where it begins.
    pub(crate) fn start(&self) -> u64 {
        self.begin.as_ref().map_or(0, |checkpoint| checkpoint.step)
    }

    /// Where it begins, in words.
    pub(crate) fn beginning(&self) -> String {
        match &self.begin {
            None => "from the start".to_owned(),
            Some(checkpoint) => format!("from the checkpoint at step {}", grouped(checkpoint.step)),
        }
    }
}

/// The newest checkpoint that is whole and not after `step`; none if there is none but the start.
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
            // The run goes on, and has removed it in this very moment.
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
            Err(error @ Error::Damaged { .. }) => {
                console.warn(&format!("{error}; an earlier one is used"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}
