//! Repeats a recorded run.

use super::Arguments;
use super::original::Original;
use super::stretch::Stretch;
use crate::command::train::environment;
use crate::command::train::job::Job;
use crate::command::train::recorded::Recorded;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Console;
use crate::output::replay::Verdict;
use crate::output::screen::Screen;
use std::path::PathBuf;
use std::time::Instant;
use surefoot_record::Record;
use surefoot_train::{Compute, Run, on_device};

pub(super) fn run(arguments: &Arguments, console: &Console) -> Result<Exit, Failure> {
    // Without a slash at its end, so that it can be printed with one.
    let dir: PathBuf = arguments.path.components().collect();
    let record = Record::open(&dir)?;
    let log = record.digests()?;
    let stretch = Stretch::choose(&record, &log, (arguments.from, arguments.to), console)?;
    let job = Recorded::read(&record)?.job(&record, arguments.base.clone());
    let job = job.map_err(|failure| match &arguments.base {
        Some(_) => failure,
        None => failure.help("if the plan's files have moved, say where they are: --base DIR"),
    })?;
    let replay = Replay {
        arguments,
        console,
        original: Original { record: &record, log: &log },
        stretch,
        job: &job,
    };
    on_device!(arguments.device, |B, device| replay.run::<B>(device))
}

struct Replay<'a> {
    arguments: &'a Arguments,
    console: &'a Console,
    original: Original<'a>,
    stretch: Stretch,
    job: &'a Job,
}

impl Replay<'_> {
    fn run<B: Compute>(&self, device: B::Device) -> Result<Exit, Failure> {
        let (job, stretch) = (self.job, &self.stretch);
        let workers = self.arguments.workers();
        let mut run = Run::<B>::new(&job.plan, &job.data, &job.weights, workers, device)
            .map_err(|error| job.explain(error))?;
        run.adopt(&job.adopted);
        let outline = run.outline();
        self.original.check_parts(&outline.digest_parts)?;
        let now = environment::of(outline.data, workers, self.arguments.device);
        self.original.tell_environments(&now, self.console)?;
        if self.original.record.summary()?.is_none() {
            let steps = self.original.log.last_step().unwrap_or(0);
            let name = self.original.name();
            self.console
                .note(&format!("{name} is not finished; it is recorded up to step {steps}"));
        }
        let screen = Screen::new(self.console);
        let interrupt = Interrupt::listen(|| {})?;
        self.console.event(&serde_json::json!({
            "event": "replaying",
            "run": self.original.name(),
            "start": stretch.start(),
            "from": stretch.from,
            "to": stretch.to,
        }));

        let begun = Instant::now();
        if let Some(checkpoint) = &stretch.begin {
            run.restore(checkpoint)?;
        }
        let mut checked = 0;
        let mut found = self.original.standing(run.standing_digest());
        // The state before the first step is one that is checked, a checkpoint's is known.
        if found.is_none() && stretch.start() == 0 && stretch.from == 0 {
            checked += 1;
        }
        if found.is_none() {
            let mut bar = screen.bar(outline.metric, None);
            run.replay(stretch.to, |progress, digest| {
                if let Some(bar) = &mut bar {
                    bar.step(progress);
                }
                found = self.original.disagreement(digest);
                checked += u64::from(found.is_none() && digest.step >= stretch.from);
                found.is_none() && !interrupt.asked()
            });
            if let Some(bar) = bar {
                bar.clear();
            }
        }
        let verdict = Verdict {
            run: self.original.name(),
            beginning: stretch.beginning(),
            start: stretch.start(),
            from: stretch.from,
            to: stretch.to,
            checked,
            repeated: run.step() - stretch.start(),
            seconds: begun.elapsed().as_secs_f64(),
            disagreement: found,
        };
        if verdict.disagreement.is_none() && run.step() < stretch.to {
            self.console.event(&serde_json::json!({
                "event": "interrupted",
                "step": run.step(),
                "run": self.original.name(),
            }));
            let (step, to) = (run.step(), stretch.to);
            crate::output::to_stderr(&format!(
                "interrupted after step {step} of {to}; the steps before agree"
            ));
            return Ok(Exit::Interrupted);
        }
        self.console.say(&verdict.text());
        self.console.event(&verdict.event());
        Ok(match verdict.disagreement {
            None => Exit::Done,
            Some(_) => Exit::No,
        })
    }
}
