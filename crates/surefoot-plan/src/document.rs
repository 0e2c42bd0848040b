//! Documents: the text of a plan, where everything is in it, and settings from the command line.

use crate::error::{Fault, PlanError};
use crate::set;
use crate::shape::ShapeError;
use crate::tree::Node;
use crate::{Layer, Plan};
use std::ops::Range;
use std::path::Path;

/// The text of a plan.
///
/// A document is what errors point into and what `--set` changes:
///
/// ```
/// # let text = r#"
/// # [data]
/// # source = "circles"
/// # [[model]]
/// # layer = "dense"
/// # units = 1
/// # [training]
/// # epochs = 5
/// # "#;
/// use surefoot_plan::Document;
///
/// let mut document = Document::parse(text, "circles.toml")?;
/// document.set("training.optimizer.learning_rate", "0.1")?;
/// let plan = document.plan()?;
/// assert_eq!(plan.training.optimizer.learning_rate, 0.1);
/// # Ok::<(), surefoot_plan::PlanError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Document {
    origin: String,
    /// As it was read.
    given: Parsed,
    /// As it is after the settings.
    now: Parsed,
    settings: Vec<Setting>,
}

#[derive(Clone, Debug)]
struct Parsed {
    text: String,
    root: Node,
}

#[derive(Clone, Debug)]
struct Setting {
    key: String,
    value: String,
}

impl Document {
    /// Parses TOML. `origin` is what errors call the text, usually its file.
    pub fn parse(text: impl Into<String>, origin: impl Into<String>) -> Result<Self, PlanError> {
        let (text, origin) = (text.into(), origin.into());
        let given = Parsed::new(text.clone()).map_err(|fault| fault.within(&text, &origin))?;
        Ok(Self { origin, now: given.clone(), given, settings: Vec::new() })
    }

    /// Reads and parses a file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, PlanError> {
        let path = path.as_ref();
        let origin = path.display().to_string();
        match std::fs::read(path).map(String::from_utf8) {
            Ok(Ok(text)) => Self::parse(text, origin),
            Ok(Err(_)) => Err(Fault::new(0..0, "this is not UTF-8 text".to_owned())
                .help("it has to be a TOML file".to_owned())
                .blamed(origin)),
            Err(error) => {
                Err(Fault::new(0..0, format!("this file cannot be read: {error}")).blamed(origin))
            }
        }
    }

    /// Sets `key`, a path into the document with list entries as numbers from 0
    /// (`model.2.units`), to `value`: TOML, or else a string.
    ///
    /// Whether the key and the value make sense shows when the plan is read.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), PlanError> {
        let setting = Setting { key: key.to_owned(), value: value.to_owned() };
        let changed = set::set(&self.now.text, key, value)
            .and_then(|text| Parsed::new(text).map_err(|fault| fault.message));
        match changed {
            Ok(parsed) => {
                self.now = parsed;
                self.settings.push(setting);
                Ok(())
            }
            Err(message) => Err(Fault::new(0..0, message).blamed(setting.to_string())),
        }
    }

    /// The text, with all settings in it.
    pub fn text(&self) -> &str {
        &self.now.text
    }

    /// Whether the document has `key`, a path as in [`set`](Self::set).
    pub fn contains(&self, key: &str) -> bool {
        let path: Vec<&str> = key.split('.').collect();
        set::find(&self.now.root, &path).is_some()
    }

    /// What errors call the text.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Reads the plan.
    pub fn plan(&self) -> Result<Plan, PlanError> {
        Plan::read(&self.now.root, None).map_err(|fault| self.blame(fault, None))
    }

    /// Reads the plan with another model, which then need not be in the document.
    pub fn plan_with_model(&self, model: Vec<Layer>) -> Result<Plan, PlanError> {
        let plan = Plan::read(&self.now.root, Some(model.clone()))
            .map_err(|fault| self.blame(fault, Some(model)))?;
        plan.validate()?;
        Ok(plan)
    }

    /// Where a layer is in [`text`](Self::text). The path has the layer's index in the model, then
    /// in the residual block that contains it, and so on.
    pub fn locate(&self, path: &[usize]) -> Option<Range<usize>> {
        self.now.locate(path)
    }

    /// An error about `key`, a path as in [`set`](Self::set), with its line where it has one: for
    /// those who read more out of a document than a plan.
    pub fn error_at(
        &self,
        key: &str,
        message: impl Into<String>,
        help: Option<String>,
    ) -> PlanError {
        let path: Vec<&str> = key.split('.').collect();
        // What is not there is missed where it belongs.
        let place = (1..=path.len()).rev().find_map(|len| set::find(&self.now.root, &path[..len]));
        let fault = Fault {
            span: place.clone().unwrap_or(0..0),
            message: message.into(),
            label: None,
            help,
        };
        match place {
            Some(_) => fault.within(&self.now.text, &self.origin),
            None => fault.blamed(self.origin.clone()),
        }
    }

    /// Reads something out of the document, and finds out whether what is wrong comes from a setting
    /// or from the file as it was given.
    pub fn read<T>(self, read: impl Fn(Document) -> Result<T, PlanError>) -> Result<T, PlanError> {
        let settings = self.settings.clone();
        let given = Self { now: self.given.clone(), settings: Vec::new(), ..self.clone() };
        let error = match read(self) {
            Err(error) if !settings.is_empty() => error,
            result => return result,
        };
        match read(given) {
            Err(given) if given.message == error.message => Err(given),
            _ => Err(blamed(error, &settings)),
        }
    }

    /// A shape error with the line of the layer it belongs to.
    pub fn shape_error(&self, error: &ShapeError) -> PlanError {
        let fault = |span| Fault {
            span,
            message: error.message.clone(),
            label: error.label.clone(),
            help: error.help.clone(),
        };
        for parsed in [&self.given, &self.now] {
            if let Some(span) = parsed.locate(&error.path) {
                return fault(span).within(&parsed.text, &self.origin);
            }
        }
        fault(0..0).blamed(self.origin.clone())
    }

    /// Finds out whether a fault comes from a setting or from the file as it was given.
    fn blame(&self, fault: Fault, model: Option<Vec<Layer>>) -> PlanError {
        let culprit = self.settings.iter().find(|setting| {
            let place = set::added(&self.given.root, &self.now.root, &setting.key);
            place.is_some_and(|place| place.contains(&fault.span.start))
        });
        if let Some(setting) = culprit {
            return fault.blamed(setting.to_string());
        }
        match Plan::read(&self.given.root, model) {
            Err(given) if given.message == fault.message && given.label == fault.label => {
                given.within(&self.given.text, &self.origin)
            }
            _ => {
                let settings: Vec<_> = self.settings.iter().map(Setting::to_string).collect();
                let help = match (&fault.help, settings.is_empty()) {
                    (None, false) => Some(format!("this is the plan after {}", settings.join(" "))),
                    _ => fault.help.clone(),
                };
                Fault { help, ..fault }.within(&self.now.text, &self.origin)
            }
        }
    }
}

impl Parsed {
    fn new(text: String) -> Result<Self, Fault> {
        match toml_edit::Document::parse(text.as_str()) {
            Ok(document) => {
                let root = Node::of(document.as_table());
                Ok(Self { text, root })
            }
            Err(error) => {
                let end = text.trim_end().len();
                Err(Fault::new(
                    error.span().unwrap_or(end..end),
                    format!("this is not TOML: {}", error.message().trim()),
                ))
            }
        }
    }

    fn locate(&self, path: &[usize]) -> Option<Range<usize>> {
        let (first, inner) = path.split_first()?;
        let mut node = self.root.get("model")?.node.at(*first)?;
        for index in inner {
            node = node.get("layers")?.node.at(*index)?;
        }
        let tag = node.get("layer").map(|entry| &entry.node);
        Some(tag.unwrap_or(node).span.clone())
    }
}

/// An error that the file as it was given does not have: that of the setting whose key is in its
/// line, if it is one.
fn blamed(error: PlanError, settings: &[Setting]) -> PlanError {
    let line = error.snippet.as_ref().map(|snippet| snippet.text.as_str());
    let is_in_line = |setting: &&Setting| {
        let last = setting.key.rsplit('.').find(|part| part.parse::<usize>().is_err());
        line.is_some_and(|line| last.is_some_and(|key| line.contains(key)))
    };
    let mut culprits = settings.iter().filter(is_in_line);
    match (culprits.next(), culprits.next()) {
        (Some(setting), None) => PlanError { origin: setting.to_string(), snippet: None, ..error },
        _ => {
            let settings: Vec<_> = settings.iter().map(Setting::to_string).collect();
            PlanError { origin: format!("{} after {}", error.origin, settings.join(" ")), ..error }
        }
    }
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "--set {}={}", self.key, self.value)
    }
}
