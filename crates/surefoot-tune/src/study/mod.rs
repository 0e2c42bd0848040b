//! Studies: what to search, how, and for how long, as data.
//!
//! A study is a TOML file. Either it is a plan with ranges where values were, or it names a command
//! that any program in any language can stand behind. What concerns the search is in `[tune]`,
//! parameters that are nowhere in the plan are in `[parameters]`. `docs/tune.md` is the reference.
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
mod wrong;

pub use duration::parse as parse_duration;
pub(crate) use settings::DEFAULTS;
pub use settings::{ObjectiveKind, StudyConfig};
pub(crate) use wrong::{is_not, wrong_key};

use crate::space::{Point, Space};
use std::path::Path;
use surefoot_plan::{Document, Plan, PlanError, Snippet};
use template::Template;

/// The version of the language of studies this crate reads.
pub const VERSION: u32 = 1;

/// What to search, how, and for how long.
#[derive(Clone, Debug)]
pub struct Study {
    /// A name that no other study of a store has.
    pub name: String,
    /// Where to look.
    pub space: Space,
    /// How to look, and for how long.
    pub settings: StudyConfig,
    /// What a trial does.
    pub task: Task,
    document: Document,
}

/// What a trial does.
#[derive(Clone, Debug)]
pub enum Task {
    /// Trains the plan that the template gives with the values of the trial in it.
    Plan(Template),
    /// Runs a command of the system's shell.
    Command(String),
}

impl Study {
    /// Reads a study from TOML. `origin` is what errors call the text, usually its file.
    pub fn parse(text: &str, origin: impl Into<String>) -> Result<Study, PlanError> {
        read::study(Document::parse(text, origin)?)
    }

    /// Reads a study from a file, and calls it after the file if it has no name of its own.
    pub fn load(path: impl AsRef<Path>) -> Result<Study, PlanError> {
        read::study(Document::load(path)?)
    }

    /// Reads a study from a document, with the settings of the command line in it.
    pub fn of(document: Document) -> Result<Study, PlanError> {
        document.read(read::study)
    }

    /// The text of the study.
    pub fn text(&self) -> &str {
        self.document.text()
    }

    /// What has to be the same for two to work at the same study: all but how long it takes.
    pub fn fingerprint(&self) -> String {
        template::without(self.text(), "tune", &settings::BUDGET)
    }

    /// What has to be the same for the trials of two studies to be comparable: all but how they were searched
    /// for.
    pub fn comparable_text(&self) -> String {
        let search = [&settings::BUDGET[..], &settings::SEARCH].concat();
        template::without(self.text(), "tune", &search)
    }

    /// The plan of a trial as TOML; `None` if trials are commands.
    pub fn plan_text(&self, point: &Point) -> Option<String> {
        match &self.task {
            Task::Plan(template) => Some(template.fill(point)),
            Task::Command(_) => None,
        }
    }

    /// The plan of a trial; `None` if trials are commands.
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

    /// An error of a trial's plan, with its line in the study: nobody has the text of that plan.
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
            // The same line: what is wrong may be a part of it.
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
            // A table where a value has to be was meant to be a range.
            _ if error.label.as_deref() == Some("this is a table") && error.help.is_none() => {
                error.help = Some(format!("a range has one of: {}", ranges::RANGES.join(", ")));
            }
            _ => {}
        }
        error
    }

    /// An error about a key of the study.
    pub fn complaint(&self, key: &str, message: impl Into<String>) -> PlanError {
        self.document.error_at(key, message, None)
    }
}

#[cfg(test)]
mod tests;
