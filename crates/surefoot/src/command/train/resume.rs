//! `--resume`: opens a recorded run.

use super::{Arguments, read_document};
use crate::failure::Failure;
use crate::output::Console;
use crate::output::summary::Ending;
use std::path::{Path, PathBuf};
use surefoot_diagnose::Split;
use surefoot_record::{Digest, Event, Record, Status};
use surefoot_train::{
    PreparedPlan, current_environment, environment_warnings, is_plan_of, plan_folder,
    recorded_document,
};

/// A run that was opened.
pub(super) enum Reopened {
    /// It can continue.
    Unfinished(Box<Record>, Box<PreparedPlan>),
    /// It has ended; its summary was printed.
    Finished(Status),
}

/// Opens the run in `dir`.
pub(super) fn reopen(
    dir: &Path,
    arguments: &Arguments,
    console: &Console,
) -> Result<Reopened, Failure> {
    // Removes a trailing slash.
    let dir: PathBuf = dir.components().collect();
    let record = Record::open(&dir)?;
    check_same_plan(&record, arguments)?;
    if let Some(summary) = record.summary()? {
        print_finished(&record, console)?;
        return Ok(Reopened::Finished(summary.status));
    }
    let base = arguments.plan.as_deref().map(plan_folder).transpose()?;
    let prepared = PreparedPlan::from_record(&record, base.as_deref());
    let prepared = prepared.map_err(|error| match arguments.plan {
        Some(_) => Failure::from(error),
        None => Failure::from(error).help(format!(
            "if the data have moved with their plan, name it too: \
             surefoot train PLAN --resume {}",
            dir.display()
        )),
    })?;
    let data = Digest(prepared.data().digest);
    let now = current_environment(data, arguments.workers(), arguments.device);
    for difference in environment_warnings(&record.header().environment, &now) {
        console.warn(&format!(
            "{difference}; the result may differ from that of an uninterrupted run"
        ));
    }
    Ok(Reopened::Unfinished(Box::new(record), Box::new(prepared)))
}

/// Checks that a plan and settings on the command line are those of the run.
fn check_same_plan(record: &Record, arguments: &Arguments) -> Result<(), Failure> {
    let document = match &arguments.plan {
        Some(path) => read_document(path, arguments)?,
        None => {
            let mut document = recorded_document(record)?;
            arguments.apply_settings(&mut document)?;
            document
        }
    };
    if is_plan_of(&document, record)? {
        return Ok(());
    }
    let given = match &arguments.plan {
        Some(path) => path.display().to_string(),
        None => "the plan with these settings".to_owned(),
    };
    let dir = record.dir().display();
    Err(Failure::input(format!("{given} differs from the plan that {dir} was started with"))
        .help(format!("omit it to continue with the run's own: surefoot train --resume {dir}")))
}

fn print_finished(record: &Record, console: &Console) -> Result<(), Failure> {
    let Some(mut summary) = record.summary()? else {
        return Ok(());
    };
    // The directory may have been moved.
    summary.run = record.dir().display().to_string();
    console.note(&format!("{} is finished; this is its summary", summary.run));
    let test = record.evaluations()?.into_iter().rev().find(|e| e.split == Split::Test);
    let events = delivered_events(record)?.unwrap_or(record.events()?);
    let best = events.into_iter().rev().find_map(|event| match event {
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

/// The events of the delivered attempt; `None` if the plan as given was delivered or the record of
/// the attempt is gone.
fn delivered_events(record: &Record) -> Result<Option<Vec<Event>>, Failure> {
    let events = record.events()?;
    let number = events.iter().rev().find_map(|event| match event {
        Event::Delivered { attempt, .. } => Some(*attempt),
        _ => None,
    });
    let attempt = events.iter().find_map(|event| match event {
        Event::Attempt(attempt) if Some(attempt.number) == number => Some(attempt),
        _ => None,
    });
    let attempt = attempt.and_then(|attempt| Record::open(&record.dir().join(&attempt.run)).ok());
    Ok(attempt.map(|attempt| attempt.events()).transpose()?)
}
