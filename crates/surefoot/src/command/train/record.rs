//! Begins the record of a run.

use super::Arguments;
use super::care::Care;
use super::job::Job;
use super::recorded::KERAS_COPY;
use crate::failure::Failure;
use std::path::Path;
use surefoot_record::{Environment, Header, Recorder};
use surefoot_train::Outline;

/// The folder of a run's attempts, inside it.
pub(super) const ATTEMPTS: &str = "attempts";

/// What is known of a run before its first step.
pub(crate) fn header(job: &Job, outline: &Outline, environment: Environment, care: Care) -> Header {
    let mut header = Header {
        facts: outline.facts.clone(),
        observe_every: outline.rhythm.every.unwrap_or(0),
        digest_parts: outline.digest_parts.clone(),
        environment,
        ..Header::default()
    };
    let quartiles = outline.rhythm.quartiles.unwrap_or(0);
    header.more.extend([
        job.fact_for_resuming(),
        care.fact(),
        ("quartiles_every".to_owned(), quartiles.into()),
        ("shards".to_owned(), outline.shards.into()),
    ]);
    header
}

/// Begins the record of a new run.
pub(super) fn create(
    job: &Job,
    arguments: &Arguments,
    mut header: Header,
) -> Result<Recorder, Failure> {
    let copy = job.keras_file.as_deref().map(|file| (file, copy_name(file)));
    if let Some((_, name)) = &copy {
        header.more.insert(KERAS_COPY.to_owned(), name.clone().into());
    }
    let recorder = Recorder::create(&arguments.runs, &job.name, &job.text, header)?;
    if let Some((file, name)) = copy {
        let target = recorder.dir().join(name);
        std::fs::copy(file, &target).map_err(|error| {
            // Nothing was recorded in it yet.
            let _ = std::fs::remove_dir_all(recorder.dir());
            Failure::broken(format!("cannot copy the model to {}: {error}", target.display()))
        })?;
    }
    Ok(recorder)
}

fn copy_name(file: &Path) -> String {
    let extension = file.extension().map(|extension| extension.to_string_lossy());
    format!("initial.{}", extension.as_deref().unwrap_or("keras"))
}

/// Removes the attempts of a run that is to be gone on with: its repair starts over.
pub(super) fn remove_attempts(run: &Path) -> Result<(), Failure> {
    let attempts = run.join(ATTEMPTS);
    match std::fs::remove_dir_all(&attempts) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::broken(format!("cannot remove {}: {error}", attempts.display())))
        }
        _ => Ok(()),
    }
}
