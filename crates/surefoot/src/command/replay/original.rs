//! The recorded run that is repeated, and how a repetition differs from it.

use super::tell_differences;
use crate::command::train::environment;
use crate::failure::Failure;
use crate::output::Console;
use crate::output::replay::Disagreement;
use surefoot_record::{DigestLog, Environment, Event, Part, Quantity, Record, StepDigest};

/// A record and its digests.
pub(crate) struct Original<'a> {
    pub(crate) record: &'a Record,
    pub(crate) log: &'a DigestLog,
}

impl Original<'_> {
    pub(crate) fn name(&self) -> String {
        self.record.dir().display().to_string()
    }

    /// What was executed elsewhere is told first, with the step since which it was.
    pub(crate) fn tell_environments(
        &self,
        now: &Environment,
        console: &Console,
    ) -> Result<(), Failure> {
        let then = &self.record.header().environment;
        tell_differences(then, now, console);
        for event in self.record.events()? {
            let Event::Resumed { step, environment } = event else {
                continue;
            };
            for difference in environment::differences(then, &environment) {
                let when = format!("since it was resumed after step {step}");
                console.warn(&format!("{difference} {when}"));
            }
        }
        Ok(())
    }

    /// The digests have to cover what this version's cover.
    pub(crate) fn check_parts(&self, parts: &[Part]) -> Result<(), Failure> {
        if self.record.header().digest_parts == parts {
            return Ok(());
        }
        let message =
            format!("the digests of {} do not cover what this version's cover", self.name());
        Err(Failure::input(message).help("replay it with the surefoot that recorded it"))
    }

    /// Whether the state that it begins with is the recorded one. Of a checkpoint neither the batch
    /// nor the loss is known.
    pub(crate) fn standing(&self, digest: &StepDigest) -> Option<Disagreement> {
        let mut found = self.disagreement(digest)?;
        if digest.step > 0 {
            let known = |part: &Part| !matches!(part.quantity, Quantity::Batch | Quantity::Loss);
            found.parts.retain(known);
            found.losses = None;
        }
        (!found.parts.is_empty() || digest.step == 0).then_some(found)
    }

    /// How a step differs from the recorded one. One that is not recorded has nothing to differ from.
    pub(crate) fn disagreement(&self, digest: &StepDigest) -> Option<Disagreement> {
        let (recorded, parts) = self.log.at(digest.step)?;
        if recorded == digest.digest {
            return None;
        }
        let names = &self.record.header().digest_parts;
        Some(Disagreement::new(digest.step, names, &parts, &digest.parts))
    }
}
