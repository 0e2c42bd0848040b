//! Repeats a recorded run.

use super::stretch::Stretch;
use super::{Arguments, tell_differences};
use crate::command::train::environment;
use crate::command::train::job::Job;
use crate::command::train::recorded::Recorded;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Console;
use crate::output::replay::{Disagreement, Verdict};
use crate::output::screen::Screen;
use std::path::PathBuf;
use std::time::Instant;
use surefoot_record::{DigestLog, Event, Part, Quantity, Run as Record, StepDigest};
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
        record: &record,
        log: &log,
        stretch,
        job: &job,
    };
    on_device!(arguments.device, |B, device| replay.run::<B>(device))
}

struct Replay<'a> {
    arguments: &'a Arguments,
    console: &'a Console,
    record: &'a Record,
    log: &'a DigestLog,
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
        self.check_parts(&outline.digest_parts)?;
        self.tell_environments(&environment::of(
            outline.data,
            workers,
            self.arguments.device,
        ))?;
        if self.record.summary()?.is_none() {
            let steps = self.log.last_step().unwrap_or(0);
            let name = self.record.dir().display();
            self.console.note(&format!(
                "{name} is not finished; it is recorded up to step {steps}"
            ));
        }
        let screen = Screen::new(self.console);
        let interrupt = Interrupt::listen(|| {})?;
        self.console.event(&serde_json::json!({
            "event": "replaying",
            "run": self.name(),
            "start": stretch.start(),
            "from": stretch.from,
            "to": stretch.to,
        }));

        let begun = Instant::now();
        if let Some(checkpoint) = &stretch.begin {
            run.restore(checkpoint)?;
        }
        let mut checked = 0;
        let mut found = self.standing(run.standing_digest());
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
                found = self.disagreement(digest);
                checked += u64::from(found.is_none() && digest.step >= stretch.from);
                found.is_none() && !interrupt.asked()
            });
            if let Some(bar) = bar {
                bar.clear();
            }
        }
        let verdict = Verdict {
            run: self.name(),
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
                "run": self.name(),
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

    fn name(&self) -> String {
        self.record.dir().display().to_string()
    }

    /// What was executed elsewhere is told first, with the step since which it was.
    fn tell_environments(&self, now: &surefoot_record::Environment) -> Result<(), Failure> {
        let then = &self.record.header().environment;
        tell_differences(then, now, self.console);
        for event in self.record.events()? {
            let Event::Resumed { step, environment } = event else {
                continue;
            };
            for difference in environment::differences(then, &environment) {
                let when = format!("since it was resumed after step {step}");
                self.console.warn(&format!("{difference} {when}"));
            }
        }
        Ok(())
    }

    /// The digests have to cover what this version's cover.
    fn check_parts(&self, parts: &[Part]) -> Result<(), Failure> {
        if self.record.header().digest_parts == parts {
            return Ok(());
        }
        let message = format!(
            "the digests of {} do not cover what this version's cover",
            self.name()
        );
        Err(Failure::input(message).help("replay it with the surefoot that recorded it"))
    }

    /// Whether the state that it begins with is the recorded one. Of a checkpoint neither the batch
    /// nor the loss is known.
    fn standing(&self, digest: &StepDigest) -> Option<Disagreement> {
        let mut found = self.disagreement(digest)?;
        if digest.step > 0 {
            let known = |part: &Part| !matches!(part.quantity, Quantity::Batch | Quantity::Loss);
            found.parts.retain(known);
            found.losses = None;
        }
        (!found.parts.is_empty() || digest.step == 0).then_some(found)
    }

    /// How a step differs from the recorded one. One that is not recorded has nothing to differ from.
    fn disagreement(&self, digest: &StepDigest) -> Option<Disagreement> {
        let (recorded, parts) = self.log.at(digest.step)?;
        if recorded == digest.digest {
            return None;
        }
        let names = &self.record.header().digest_parts;
        Some(Disagreement::new(digest.step, names, &parts, &digest.parts))
    }
}
