//! The recorded run, and differences of a replay from it.

use super::print_differences;
use crate::failure::Failure;
use crate::output::Console;
use crate::output::replay::Disagreement;
use surefoot_plan::Document;
use surefoot_record::{DigestLog, Environment, Event, Part, Quantity, Record, StepDigest};
use surefoot_train::{environment_warnings, model_digest};

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

    /// Checks that the record is complete and the delivered model is that of the summary. Returns a
    /// sentence for each fault.
    pub(crate) fn faults(&self, input_shape: &[usize]) -> Result<Vec<String>, Failure> {
        let mut faults = Vec::new();
        if let Some(step) = self.log.first_gap() {
            faults.push(format!("digests.bin has no entry for step {step}"));
        }
        let Some(summary) = self.record.summary()? else {
            return Ok(faults);
        };
        if self.log.excess_bytes() > 0 {
            let bytes = self.log.excess_bytes();
            faults.push(format!("digests.bin has {bytes} bytes after its last valid entry"));
        }
        let (Some(plan), Some(model)) = (self.record.final_plan()?, self.record.model()?) else {
            faults.push("plan.final.toml or model.safetensors is missing".to_owned());
            return Ok(faults);
        };
        let plan = Document::parse(plan, "plan.final.toml".to_owned())?.plan()?;
        if model_digest(&plan, input_shape, &model) != Some(summary.digest) {
            faults.push("model.safetensors does not have the digest in summary.json".to_owned());
        }
        Ok(faults)
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
