//! Study files.
//!
//! A study is a TOML file: a plan with ranges in place of values, or a command to run. `[tune]` configures
//! the search, and `[parameters]` lists parameters that are not in the plan. `docs/tune.md` is the
//! reference.
//!
//! ```
//! use surefoot_tune::Study;
//!
//! let study = Study::parse(
//!     r#"
//!     [tune]
//!     trials = 20
//!
//!     [data]
//!     source = "circles"
//!
//!     [[model]]
//!     layer = "dense"
//!     units = { log_int = [2, 64] }
//!     activation = { choice = ["relu", "tanh"] }
//!
//!     [[model]]
//!     layer = "dense"
//!     units = 1
//!     activation = "sigmoid"
//!
//!     [training]
//!     epochs = 20
//!     optimizer = { name = "adam", learning_rate = { log_uniform = [1e-4, 1.0] } }
//!     "#,
//!     "circles.toml",
//! )?;
//! let names: Vec<&str> = study.space.parameters().iter().map(|p| p.name.as_str()).collect();
//! assert_eq!(names, ["model.0.units", "model.0.activation", "training.optimizer.learning_rate"]);
//! let point = study.space.point(|parameter| parameter.domain.at(0.0));
//! let plan = study.plan(&point)?.expect("a plan");
//! assert_eq!(plan.training.optimizer.learning_rate, 1e-4);
//! # Ok::<(), surefoot_plan::PlanError>(())
//! ```

mod duration;
mod place;
mod ranges;
mod read;
mod settings;
mod template;

pub use duration::parse as parse_duration;
pub(crate) use settings::DEFAULTS;
pub use settings::{ObjectiveKind, StudyConfig};

use crate::space::{Point, Space};
use crate::storage::NewStudy;
use std::path::Path;
use surefoot_plan::{Document, Plan, PlanError, Snippet};
use template::Template;

/// Supported version of the study format.
pub const VERSION: u32 = 1;

/// A search space with its search configuration and trial definition.
#[derive(Clone, Debug)]
pub struct Study {
    /// Unique name in a store.
    pub name: String,
    /// Search space.
    pub space: Space,
    /// Search configuration.
    pub settings: StudyConfig,
    /// Trial definition.
    pub task: Task,
    document: Document,
}

/// Trial definition.
#[derive(Clone, Debug)]
pub enum Task {
    /// Trains a plan with the values of the trial.
    Plan(Template),
    /// Runs a shell command.
    Command(String),
    /// Calls a function of the program that runs the search, by this name.
    Function(String),
}

impl Study {
    /// Parses a study. `origin` names the text in errors.
    pub fn parse(text: &str, origin: impl Into<String>) -> Result<Study, PlanError> {
        read::study(Document::parse(text, origin)?)
    }

    /// Loads a study, named after the file unless it has a name.
    pub fn load(path: impl AsRef<Path>) -> Result<Study, PlanError> {
        read::study(Document::load(path)?)
    }

    /// Reads a study from a document with command-line overrides.
    pub fn of(document: Document) -> Result<Study, PlanError> {
        document.read(read::study)
    }

    /// The text of the study.
    pub fn text(&self) -> &str {
        self.document.text()
    }

    /// The text without budget keys. Workers of the same study must agree on it.
    pub fn fingerprint(&self) -> String {
        template::without(self.text(), "tune", &settings::BUDGET)
    }

    /// The text without budget and search keys. Trials of studies that agree on it are comparable.
    pub fn comparable_text(&self) -> String {
        let search = [&settings::BUDGET[..], &settings::SEARCH].concat();
        template::without(self.text(), "tune", &search)
    }

    /// Entry of the study in a storage.
    pub fn entry(&self) -> NewStudy {
        NewStudy {
            name: self.name.clone(),
            fingerprint: self.fingerprint(),
            document: self.text().to_owned(),
            space: self.space.clone(),
            direction: self.settings.direction,
            seed: self.settings.seed,
        }
    }

    /// The plan of a trial as TOML; `None` for commands.
    pub fn plan_text(&self, point: &Point) -> Option<String> {
        match &self.task {
            Task::Plan(template) => Some(template.fill(point)),
            Task::Command(_) | Task::Function(_) => None,
        }
    }

    /// The plan of a trial; `None` for commands.
    pub fn plan(&self, point: &Point) -> Result<Option<Plan>, PlanError> {
        let Task::Plan(template) = &self.task else {
            return Ok(None);
        };
        let text = template.fill(point);
        match Plan::parse(&text, self.document.origin()) {
            Ok(plan) => Ok(Some(plan)),
            Err(error) => Err(self.relocated(error, &text, template, point)),
        }
    }

    /// Maps an error in a trial's plan to the line of the study.
    fn relocated(
        &self,
        error: PlanError,
        text: &str,
        template: &Template,
        point: &Point,
    ) -> PlanError {
        let Some(shown) = error.snippet else {
            return error;
        };
        let path = template.source(point, place::path_of(text, &shown));
        let place = self.document.error_at(&path.join("."), "", None);
        let snippet = match place.snippet {
            // The same line; the error may be in a part of it.
            Some(found) if found.text == shown.text => {
                Some(Box::new(Snippet { line: found.line, ..*shown }))
            }
            found => found,
        };
        let mut error = PlanError { snippet, ..error };
        match path.as_slice() {
            [key] if error.message == format!("unknown key `{key}`") => {
                read::unknown_section(&mut error, key);
            }
            // A table in place of a value was probably meant as a range.
            _ if error.label.as_deref() == Some("this is a table") && error.help.is_none() => {
                error.help = Some(format!("a range has one of: {}", ranges::RANGES.join(", ")));
            }
            _ => {}
        }
        error
    }
}

#[cfg(test)]
mod tests;
