//! Trains a job on one device, from the record's first file to its summary.

use super::Arguments;
use super::environment;
use super::job::Job;
use super::resume::KERAS_COPY;
use super::watcher::Onlooker;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::outline::{Facts, Overview};
use crate::output::progress::Bar;
use crate::output::summary::Ending;
use crate::output::{Console, Role, to_stderr};
use serde::Serialize;
use std::path::Path;
use surefoot_record::{Array, Event, Header, MetricSummary, Recorder, RunSummary, Status};
use surefoot_train::{Compute, End, Outline, Report, Run};

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

/// What programs are told instead of a summary when a run was interrupted.
#[derive(Serialize)]
struct Stopped {
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
    let workers = arguments.workers();
    let mut run = Run::<B>::new(&job.plan, &job.data, &job.weights, workers, device)
        .map_err(|error| job.explain(error))?;
    let outline = run.outline();
    let overview = Overview {
        plan: &job.plan,
        data: &job.data,
        shapes: &job.shapes,
        outline: &outline,
        device: arguments.device,
        workers,
    };
    let mut opening = Opening {
        event: "outline",
        step: None,
        run: None,
        facts: overview.facts(),
    };
    if arguments.dry_run {
        console.say(overview.text().trim_end());
        console.event(&opening);
        return Ok(Exit::Done);
    }

    let bar = console.draws().then(|| Bar::new(outline.metric));
    let interrupt = listen(bar.as_ref(), arguments.quiet)?;
    let (mut recorder, from) = match &job.resumes {
        None => (create(job, arguments, &outline)?, 0),
        Some(resumed) => {
            let (recorder, checkpoint) =
                Recorder::resume(resumed.dir(), &environment::of(job, arguments))?;
            if let Some(checkpoint) = &checkpoint {
                run.restore(checkpoint)?;
            }
            (recorder, checkpoint.map_or(0, |checkpoint| checkpoint.step))
        }
    };
    let dir = recorder.dir().display().to_string();
    let steps = outline
        .steps_per_epoch
        .saturating_mul(job.plan.training.epochs);
    opening.step = Some(from);
    opening.run = Some(dir.clone());
    opening.event = "started";
    console.mention(&overview.text());
    if job.resumes.is_some() {
        opening.event = "resumed";
        console.note(&format!("{dir} goes on from step {from} of {steps}"));
    }
    console.event(&opening);

    // From here on there is a run, and whatever happens to it, it can be gone on with.
    let resumable =
        |failure: Failure| failure.help(format!("go on later with: surefoot train --resume {dir}"));
    let mut onlooker = Onlooker::new(console, interrupt, bar);
    let report = run.train(&mut recorder, &mut onlooker);
    let last_loss = onlooker.loss;
    drop(onlooker);
    let report = report.map_err(|error| resumable(error.into()))?;
    if report.end == End::Interrupted {
        tell_interrupted(&report, steps, dir, arguments.quiet, console);
        return Ok(Exit::Interrupted);
    }
    let summary = summarize(&report, &outline, last_loss, dir.clone());
    deliver(job, recorder, &report, &summary).map_err(|error| resumable(error.into()))?;
    if let Some(test) = &report.test {
        console.event(&Event::from(test));
    }
    let ending = Ending {
        summary: &summary,
        epoch: report.best.as_ref().map(|best| best.epoch),
        test: report.test.as_ref().map(|test| test.metric),
    };
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
fn listen(bar: Option<&Bar>, quiet: bool) -> Result<Interrupt, Failure> {
    let bar = bar.map(Bar::handle);
    Interrupt::listen(move || {
        let say = || to_stderr("stopping after this step; Ctrl-C again stops at once");
        match &bar {
            _ if quiet => {}
            Some(bar) => bar.suspend(say),
            None => say(),
        }
    })
}

/// Begins the record of a new run.
fn create(job: &Job, arguments: &Arguments, outline: &Outline) -> Result<Recorder, Failure> {
    let mut header = Header {
        facts: outline.facts.clone(),
        observe_every: outline.rhythm.every.unwrap_or(0),
        environment: environment::of(job, arguments),
        ..Header::default()
    };
    header.more.extend(job.facts_for_resuming());
    let quartiles = outline.rhythm.quartiles.unwrap_or(0);
    header
        .more
        .insert("quartiles_every".to_owned(), quartiles.into());
    header
        .more
        .insert("shards".to_owned(), outline.shards.into());
    let copy = job
        .keras_file
        .as_deref()
        .map(|file| (file, copy_name(file)));
    if let Some((_, name)) = &copy {
        header
            .more
            .insert(KERAS_COPY.to_owned(), name.clone().into());
    }
    let recorder = Recorder::create(&arguments.runs, &job.name, &job.text, header)?;
    if let Some((file, name)) = copy {
        let target = recorder.dir().join(name);
        std::fs::copy(file, &target).map_err(|error| {
            // Nothing was recorded in it yet.
            let _ = std::fs::remove_dir_all(recorder.dir());
            Failure::broken(format!(
                "cannot copy the model to {}: {error}",
                target.display()
            ))
        })?;
    }
    Ok(recorder)
}

fn copy_name(file: &Path) -> String {
    let extension = file
        .extension()
        .map(|extension| extension.to_string_lossy());
    format!("initial.{}", extension.as_deref().unwrap_or("keras"))
}

/// How it ended.
///
/// A run has failed if it ended in numbers that are none, even if a model from before is delivered.
fn summarize(report: &Report, outline: &Outline, last_loss: f64, run: String) -> RunSummary {
    let best = report.best.as_ref();
    let metric = best.and_then(|best| best.metric);
    let sound = last_loss.is_finite()
        && metric.is_some_and(f64::is_finite)
        && best.is_some_and(|best| best.loss.is_finite());
    RunSummary {
        status: if sound {
            Status::Normal
        } else {
            Status::Failed
        },
        problems: Vec::new(),
        remedies: Vec::new(),
        metric: MetricSummary {
            name: outline.metric.to_owned(),
            before: report.last.as_ref().and_then(|last| last.metric),
            after: metric,
        },
        steps: report.steps,
        seconds: report.training.as_secs_f64(),
        digest: report.digest,
        run,
    }
}

/// Writes the model and closes the record.
fn deliver(
    job: &Job,
    mut recorder: Recorder,
    report: &Report,
    summary: &RunSummary,
) -> surefoot_record::Result<()> {
    let model: Vec<Array> = report
        .model
        .iter()
        .map(|weight| {
            let name = format!("{}.{}", weight.layer, weight.name);
            Array::new(name, &weight.shape, weight.values.clone())
        })
        .collect();
    recorder.write_model(&model)?;
    recorder.write_final_plan(&job.text)?;
    if let Some(test) = &report.test {
        recorder.evaluation(test)?;
    }
    recorder.finish(summary)
}

fn tell_interrupted(report: &Report, steps: u64, run: String, quiet: bool, console: &Console) {
    if !quiet {
        let command = Role::Literal.paint(format!("surefoot train --resume {run}"));
        to_stderr(&format!(
            "interrupted after step {} of {steps}; go on with\n  {command}",
            report.steps
        ));
    }
    console.event(&Stopped {
        event: "interrupted",
        step: report.steps,
        run,
    });
}
