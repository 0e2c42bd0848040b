//! Repeats a recorded run.

use super::Arguments;
use super::original::Original;
use super::range::StepRange;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Console;
use crate::output::replay::ReplayResult;
use crate::output::screen::Screen;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use surefoot_record::Record;
use surefoot_train::{Compute, PreparedPlan, current_environment, on_device};

pub(super) fn run(arguments: &Arguments, console: &Console) -> Result<Exit, Failure> {
    // Removes a trailing slash.
    let dir: PathBuf = arguments.path.components().collect();
    let record = Record::open(&dir)?;
    if let Some(program) = record.program() {
        return super::program::run(arguments, &dir, program, console);
    }
    let log = record.digests()?;
    let range = StepRange::choose(&record, &log, (arguments.from, arguments.to), console)?;
    let prepared = PreparedPlan::from_record(&record, arguments.base.as_deref());
    let prepared = prepared.map_err(|error| match &arguments.base {
        Some(_) => Failure::from(error),
        None => Failure::from(error)
            .help("if the plan's files have moved, give their folder: --base DIR"),
    })?;
    let replay = Replay {
        arguments,
        console,
        original: Original { record: &record, log: &log },
        range,
        prepared: &prepared,
    };
    on_device!(arguments.device, |B, device| replay.run::<B>(device))
}

struct Replay<'a> {
    arguments: &'a Arguments,
    console: &'a Console,
    original: Original<'a>,
    range: StepRange,
    prepared: &'a PreparedPlan,
}

impl Replay<'_> {
    fn run<B: Compute>(&self, device: B::Device) -> Result<Exit, Failure> {
        let range = &self.range;
        let workers = self.arguments.workers();
        let mut run = self.prepared.start::<B>(workers, device)?;
        let outline = Arc::clone(run.outline());
        self.original.check_parts(&outline.digest_parts)?;
        let now = current_environment(outline.data, workers, self.arguments.device);
        self.original.print_environments(&now, self.console)?;
        if self.original.record.summary()?.is_none() {
            let steps = self.original.log.last_step().unwrap_or(0);
            let name = self.original.name();
            self.console
                .note(&format!("{name} is not finished; its last recorded step is {steps}"));
        }
        let screen = Screen::new(self.console);
        let interrupt = Interrupt::listen(|| {})?;
        self.console.event(&serde_json::json!({
            "event": "replaying",
            "run": self.original.name(),
            "start": range.start(),
            "from": range.from,
            "to": range.to,
        }));

        let begun = Instant::now();
        if let Some(checkpoint) = &range.begin {
            run.restore(checkpoint)?;
        }
        let mut checked = 0;
        let mut found = self.original.standing(run.standing_digest());
        // The state before the first step counts as checked; a checkpoint does not.
        if found.is_none() && range.start() == 0 && range.from == 0 {
            checked += 1;
        }
        if found.is_none() {
            let mut bar = screen.bar(outline.metric, None);
            run.replay(range.to, |progress, digest| {
                if let Some(bar) = &mut bar {
                    bar.step(progress);
                }
                found = self.original.disagreement(digest);
                checked += u64::from(found.is_none() && digest.step >= range.from);
                found.is_none() && !interrupt.asked()
            });
            if let Some(bar) = bar {
                bar.clear();
            }
        }
        let result = ReplayResult {
            run: self.original.name(),
            beginning: range.beginning(),
            start: range.start(),
            from: range.from,
            to: range.to,
            checked,
            repeated: run.step() - range.start(),
            seconds: begun.elapsed().as_secs_f64(),
            disagreement: found,
            faults: self.original.faults(&self.prepared.data().input_shape)?,
        };
        if result.disagreement.is_none() && run.step() < range.to {
            self.console.event(&serde_json::json!({
                "event": "interrupted",
                "step": run.step(),
                "run": self.original.name(),
            }));
            let (step, to) = (run.step(), range.to);
            crate::output::to_stderr(&format!(
                "interrupted after step {step} of {to}; all digests so far agree"
            ));
            return Ok(Exit::Interrupted);
        }
        self.console.say(&result.text());
        self.console.event(&result.event());
        Ok(if result.agrees() { Exit::Done } else { Exit::No })
    }
}
