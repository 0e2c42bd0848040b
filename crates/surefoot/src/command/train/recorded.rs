//! What a run was started with, from its record.

use super::job::{Job, recorded_folder};
use crate::failure::Failure;
use std::path::PathBuf;
use surefoot_plan::keras::{self, KerasModel};
use surefoot_plan::{Document, Plan};
use surefoot_record::{Digest, Record};

/// The header's entry for the copy of the Keras file in the run directory.
pub(super) const KERAS_COPY: &str = "initial_model";
/// The header's entry for the Keras file whose weights an attempt of a repair started from, where
/// they fit; relative to its directory.
pub(super) const ADOPTED: &str = "initial_weights";

/// The plan of a run, and the Keras file that it was started from.
pub(crate) struct Recorded {
    pub(super) document: Document,
    pub(super) plan: Plan,
    pub(super) keras: Option<KerasModel>,
}

impl Recorded {
    /// Reads it.
    pub(crate) fn read(run: &Record) -> Result<Self, Failure> {
        run.check_plan()?;
        let document = document(run)?;
        let plan = document.plan()?;
        let keras = keras_file(run, KERAS_COPY)?;
        Ok(Self { document, plan, keras })
    }

    /// With the data, which have to be those of the run. `base` is where the plan's files are, if
    /// they are not where they were.
    pub(crate) fn job(self, run: &Record, base: Option<PathBuf>) -> Result<Job, Failure> {
        let base = base.unwrap_or_else(|| recorded_folder(run));
        let text = run.plan().to_owned();
        let mut job = Job::prepare(self.document, self.plan, text, base, "run", self.keras)?;
        if let Some(model) = keras_file(run, ADOPTED)? {
            job.adopted = model.weights;
        }
        let recorded = run.header().environment.data;
        if recorded.is_some_and(|data| data != Digest(job.data.digest)) {
            return Err(Failure::input(format!(
                "the data are not those that {} was started with",
                run.dir().display()
            ))
            .help("restore them, or start a new run from its plan.toml"));
        }
        Ok(job)
    }
}

/// The plan of a run as a document.
pub(crate) fn document(run: &Record) -> Result<Document, Failure> {
    let path = run.dir().join("plan.toml");
    Ok(Document::parse(run.plan(), path.display().to_string())?)
}

/// The Keras file that the header names under `key`.
fn keras_file(run: &Record, key: &str) -> Result<Option<KerasModel>, Failure> {
    let name = run.header().more.get(key).and_then(|name| name.as_str());
    Ok(match name {
        None => None,
        Some(name) => Some(keras::load(&run.dir().join(name))?),
    })
}
