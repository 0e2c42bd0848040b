//! Trains a job on one device, from the record's first file to its summary.

use super::Arguments;
use super::care::{self, Care};
use super::delivery::Delivery;
use super::environment;
use super::examiner::Examiner;
use super::job::Job;
use super::mending::Surgery;
use super::record;
use super::watcher::Onlooker;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::outline::{Facts, Overview};
use crate::output::screen::Screen;
use crate::output::summary::Ending;
use crate::output::{Console, Role, to_stderr};
use serde::Serialize;
use std::time::Instant;
use surefoot_diagnose::{Diagnosis, Finding};
use surefoot_record::{Event, Recorder, Status};
use surefoot_train::{Compute, End, Run};

/// What programs are told before the first step.
#[derive(Serialize)]
struct Opening<'a> {
    event: &'static str,
    /// Steps done.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    #[serde(flatten)]
    facts: Facts<'a>,
}

/// What is said instead of a summary when a run was interrupted.
#[derive(Serialize)]
struct Interrupted {
    event: &'static str,
    step: u64,
    run: String,
}

pub(super) fn run<B: Compute>(
    job: &Job,
    arguments: &Arguments,
    console: &Console,
    device: B::Device,
) -> Result<Exit, Failure> {
    let care = Care::of(arguments, job)?;
    let thresholds = care::thresholds(&job.plan)?;
    let workers = arguments.workers();
    let mut run = Run::<B>::new(&job.plan, &job.data, &job.weights, workers, device.clone())
        .map_err(|error| job.explain(error))?;
    run.adopt(&job.adopted);
    let outline = run.outline();
    let overview = Overview {
        plan: &job.plan,
        data: &job.data,
        shapes: &job.shapes,
        outline: &outline,
        device: arguments.device,
        workers,
    };
    let mut opening = Opening { event: "outline", step: None, run: None, facts: overview.facts() };
    if arguments.dry_run {
        console.say(overview.text().trim_end());
        console.event(&opening);
        return Ok(Exit::Done);
    }

    let screen = Screen::new(console);
    let interrupt = listen(&screen, arguments.quiet)?;
    let now = environment::of(outline.data, workers, arguments.device);
    let (recorder, checkpoint) = match &job.resumes {
        None => {
            let header = record::header(job, &outline, now, care);
            (record::create(job, arguments, header)?, None)
        }
        Some(resumed) => Recorder::resume(resumed.dir(), &now)?,
    };
    let dir = recorder.dir().display().to_string();
    let steps = outline.steps_per_epoch.saturating_mul(job.plan.training.epochs);
    let diagnosis = Diagnosis::new(outline.facts.clone(), thresholds.clone());
    let mut examiner = Examiner::new(recorder, diagnosis, &screen, steps);
    let from = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.step);
    opening.step = Some(from);
    opening.run = Some(dir.clone());
    opening.event = "started";
    console.mention(&overview.text());
    if let Some(resumed) = &job.resumes {
        record::remove_attempts(resumed.dir())?;
        if let Some(checkpoint) = &checkpoint {
            run.restore(checkpoint)?;
            examiner.catch_up(from)?;
        }
        opening.event = "resumed";
        console.note(&format!("{dir} goes on from step {from} of {steps}"));
    }
    console.event(&opening);

    // From here on there is a run, and whatever happens to it, it can be gone on with.
    let resumable =
        |failure: Failure| failure.help(format!("go on later with: surefoot train --resume {dir}"));
    let begun = Instant::now();
    let bar = screen.bar(outline.metric, None);
    let alarm = care.repairs().then(|| examiner.alarm());
    let mut onlooker = Onlooker::new(interrupt.clone(), bar, alarm);
    let report = run.train(&mut examiner, &mut onlooker);
    let last_loss = onlooker.loss;
    drop((onlooker, run));
    let report = report.map_err(|error| resumable(error.into()))?;
    if report.end == End::Interrupted {
        let when = format!("after step {} of {steps}", report.steps);
        return Ok(tell_interrupted(&when, report.steps, dir, arguments, console));
    }
    if report.end == End::Finished {
        examiner.finish().map_err(|error| resumable(error.into()))?;
    }
    let repaired = match examiner.problem().cloned() {
        Some(finding) if care.repairs() => {
            let surgery = Surgery {
                job,
                arguments,
                screen: &screen,
                interrupt,
                care,
                thresholds: &thresholds,
                metric: outline.metric,
                device: &device,
            };
            let repaired = surgery.mend::<B>(&finding, &mut examiner, &report);
            Some(repaired.map_err(resumable)?)
        }
        _ => None,
    };
    if repaired.as_ref().is_some_and(|repaired| repaired.interrupted) {
        let when = "while looking for a remedy";
        return Ok(tell_interrupted(when, report.steps, dir, arguments, console));
    }
    let problems: Vec<Finding> = examiner.problems().cloned().collect();
    let delivery = Delivery {
        job,
        outline: &outline,
        given: &report,
        last_loss,
        problems: &problems,
        repaired: repaired.as_ref(),
        seconds: begun.elapsed().as_secs_f64(),
        run: dir.clone(),
    };
    let summary = delivery.summary();
    let delivered = delivery.report();
    delivery.hand_over(examiner.recorder, &summary).map_err(|error| resumable(error.into()))?;
    if let Some(test) = &delivered.test {
        console.event(&Event::from(test));
    }
    let ending = Ending {
        summary: &summary,
        epoch: delivered.best.as_ref().map(|best| best.epoch),
        test: delivered.test.as_ref().map(|test| test.metric),
    };
    if !summary.problems.is_empty() {
        console.mention("");
    }
    console.say(&ending.text());
    console.mention(&ending.next());
    console.event(&summary);
    Ok(exit_of(summary.status))
}

/// A run that failed is a no.
pub(super) fn exit_of(status: Status) -> Exit {
    match status {
        Status::Normal | Status::Repaired => Exit::Done,
        Status::Failed => Exit::No,
    }
}

/// From now on Ctrl-C asks.
fn listen(screen: &Screen, quiet: bool) -> Result<Interrupt, Failure> {
    let screen = screen.clone();
    Interrupt::listen(move || {
        if !quiet {
            screen.above(|| to_stderr("stopping after this step; Ctrl-C again stops at once"));
        }
    })
}

fn tell_interrupted(
    when: &str,
    step: u64,
    run: String,
    arguments: &Arguments,
    console: &Console,
) -> Exit {
    if !arguments.quiet {
        let command = Role::Literal.paint(format!("surefoot train --resume {run}"));
        to_stderr(&format!("interrupted {when}; go on with\n  {command}"));
    }
    console.event(&Interrupted { event: "interrupted", step, run });
    Exit::Interrupted
}
