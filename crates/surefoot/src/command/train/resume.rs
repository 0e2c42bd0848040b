//! `--resume`: finds out what a run was started with.

use super::Arguments;
use super::environment;
use super::job::{Job, apply_settings, folder_of, plan_of_keras, read_document};
use super::recorded::Recorded;
use crate::failure::Failure;
use crate::output::Console;
use crate::output::summary::Ending;
use std::path::{Path, PathBuf};
use surefoot_diagnose::Split;
use surefoot_plan::Plan;
use surefoot_record::{Digest, Event, Record, Status};

/// What became of a run.
pub(super) enum Reopened {
    /// It is to be gone on with.
    Job(Box<Job>),
    /// It is over, in that way; that has been said.
    Finished(Status),
}

/// Opens the run in `dir` to go on with it.
pub(super) fn reopen(
    dir: &Path,
    arguments: &Arguments,
    console: &Console,
) -> Result<Reopened, Failure> {
    // Without a slash at its end, so that it can be printed with one.
    let dir: PathBuf = dir.components().collect();
    let run = Record::open(&dir)?;
    let recorded = Recorded::read(&run)?;
    check_same_plan(&recorded, &dir, arguments)?;
    if let Some(summary) = run.summary()? {
        tell_finished(&run, console)?;
        return Ok(Reopened::Finished(summary.status));
    }
    let base = arguments.plan.as_deref().map(folder_of).transpose()?;
    let job = recorded.job(&run, base);
    let mut job = job.map_err(|failure| match arguments.plan {
        Some(_) => failure,
        None => failure.help(format!(
            "if the data have moved with their plan, name it too: \
             surefoot train PLAN --resume {}",
            dir.display()
        )),
    })?;
    let data = Digest(job.data.digest);
    let now = environment::of(data, arguments.workers(), arguments.device);
    for difference in environment::differences(&run.header().environment, &now) {
        console.warn(&format!(
            "{difference}; the result may differ from that of an uninterrupted run"
        ));
    }
    job.resumes = Some(run);
    Ok(Reopened::Job(Box::new(job)))
}

/// A plan and settings on the command line must be those of the run.
fn check_same_plan(recorded: &Recorded, dir: &Path, arguments: &Arguments) -> Result<(), Failure> {
    let document = match &arguments.plan {
        Some(path) => read_document(path, arguments)?,
        None => {
            let mut document = recorded.document.clone();
            apply_settings(&mut document, arguments)?;
            document
        }
    };
    let same = |given: &Plan| *given == recorded.plan;
    // A run of a Keras file was started from a plan without a model, and perhaps without a loss.
    if document.plan().is_ok_and(|given| same(&given))
        || recorded
            .keras
            .as_ref()
            .is_some_and(|keras| plan_of_keras(&document, keras).is_ok_and(|given| same(&given)))
        || document.text() == recorded.document.text()
    {
        return Ok(());
    }
    let culprit = match &arguments.plan {
        Some(path) => path.display().to_string(),
        None => "the plan with these settings".to_owned(),
    };
    Err(Failure::input(format!(
        "{culprit} is not the plan that {} was started with",
        dir.display()
    ))
    .help(format!(
        "leave it out to go on with the run's own: surefoot train --resume {}",
        dir.display()
    )))
}

fn tell_finished(run: &Record, console: &Console) -> Result<(), Failure> {
    let Some(mut summary) = run.summary()? else {
        return Ok(());
    };
    // It may have been copied or moved since.
    summary.run = run.dir().display().to_string();
    console.note(&format!("{} is finished; this is how it ended", summary.run));
    let test = run.evaluations()?.into_iter().rev().find(|e| e.split == Split::Test);
    let best = delivered(run)?.unwrap_or(run.events()?);
    let best = best.into_iter().rev().find_map(|event| match event {
        Event::Best { epoch, .. } => Some(epoch),
        _ => None,
    });
    let ending =
        Ending { summary: &summary, epoch: best, test: test.map(|evaluation| evaluation.metric) };
    console.say(&ending.text());
    console.mention(&ending.next());
    console.event(&summary);
    Ok(())
}

/// The events of the attempt that a run delivered; none if it delivered the plan as given, or if
/// its record is not there any more.
fn delivered(run: &Record) -> Result<Option<Vec<Event>>, Failure> {
    let events = run.events()?;
    let number = events.iter().rev().find_map(|event| match event {
        Event::Delivered { attempt, .. } => Some(*attempt),
        _ => None,
    });
    let attempt = events.iter().find_map(|event| match event {
        Event::Attempt(attempt) if Some(attempt.number) == number => Some(attempt),
        _ => None,
    });
    let attempt = attempt.and_then(|attempt| Record::open(&run.dir().join(&attempt.run)).ok());
    Ok(attempt.map(|attempt| attempt.events()).transpose()?)
}
