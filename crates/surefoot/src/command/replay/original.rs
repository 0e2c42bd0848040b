//! The recorded run, and differences of a replay from it.

use super::print_differences;
use crate::failure::Failure;
use crate::output::Console;
use crate::output::replay::Disagreement;
use surefoot_record::{DigestLog, Environment, Event, Part, Quantity, Record, StepDigest};
use surefoot_train::environment_warnings;

/// A record and its digests.
pub(crate) struct Original<'a> {
    pub(crate) record: &'a Record,
    pub(crate) log: &'a DigestLog,
}

impl Original<'_> {
    pub(crate) fn name(&self) -> String {
        self.record.dir().display().to_string()
    }

    /// Prints differences of the environment, with the step since which they apply.
    pub(crate) fn print_environments(
        &self,
        now: &Environment,
        console: &Console,
    ) -> Result<(), Failure> {
        let then = &self.record.header().environment;
        print_differences(then, now, console);
        for event in self.record.events()? {
            let Event::Resumed { step, environment } = event else {
                continue;
            };
            for difference in environment_warnings(then, &environment) {
                let when = format!("since it was resumed after step {step}");
                console.warn(&format!("{difference} {when}"));
            }
        }
        Ok(())
    }

    /// Checks that the recorded digests cover the same parts.
    pub(crate) fn check_parts(&self, parts: &[Part]) -> Result<(), Failure> {
        if self.record.header().digest_parts == parts {
            return Ok(());
        }
        let message =
            format!("the digests of {} cover other parts than those of this version", self.name());
        Err(Failure::input(message).help("replay it with the surefoot that recorded it"))
    }

    /// Compares the initial state with the recorded one. The batch and the loss of a checkpoint are
    /// unknown.
    pub(crate) fn standing(&self, digest: &StepDigest) -> Option<Disagreement> {
        let mut found = self.disagreement(digest)?;
        if digest.step > 0 {
            let known = |part: &Part| !matches!(part.quantity, Quantity::Batch | Quantity::Loss);
            found.parts.retain(known);
            found.losses = None;
        }
        (!found.parts.is_empty() || digest.step == 0).then_some(found)
    }

    /// Compares a step with the recorded one, if it is recorded.
    pub(crate) fn disagreement(&self, digest: &StepDigest) -> Option<Disagreement> {
        let (recorded, parts) = self.log.at(digest.step)?;
        if recorded == digest.digest {
            return None;
        }
        let names = &self.record.header().digest_parts;
        Some(Disagreement::new(digest.step, names, &parts, &digest.parts))
    }
}
