//! The text of a plan, with positions for errors and `--set` options from the command line.

use crate::error::{Fault, PlanError};
use crate::plan::Import;
use crate::set;
use crate::shape::ShapeError;
use crate::tree::Node;
use crate::{Layer, Loss, Plan};
use std::ops::Range;
use std::path::Path;

/// The text of a plan. Errors point into it, and `--set` options change it.
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
    /// Without settings.
    given: Parsed,
    /// With all settings.
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
    /// Parses TOML. Errors name `origin`, usually the file.
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
            Ok(Err(_)) => Err(Fault::new(0..0, "the file is not UTF-8 text".to_owned())
                .help("a TOML file is required".to_owned())
                .blamed(origin)),
            Err(error) => {
                Err(Fault::new(0..0, format!("cannot read the file: {error}")).blamed(origin))
            }
        }
    }

    /// Sets `key`, a path into the document with list entries as numbers from 0
    /// (`model.2.units`), to `value`: TOML, or else a string.
    ///
    /// The key and the value are checked when the plan is read.
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

    /// The text, with all settings applied.
    pub fn text(&self) -> &str {
        &self.now.text
    }

    /// Returns true if the document has `key`, a path as in [`set`](Self::set).
    pub fn contains(&self, key: &str) -> bool {
        let path: Vec<&str> = key.split('.').collect();
        set::find(&self.now.root, &path).is_some()
    }

    /// Name of the text in errors.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Reads the plan.
    pub fn plan(&self) -> Result<Plan, PlanError> {
        Plan::read(&self.now.root, None).map_err(|fault| self.blame(fault, None))
    }

    /// Reads the plan with another model; the document may then omit its own. It may also omit the
    /// loss if the model was compiled with one.
    pub fn plan_with_model(
        &self,
        layers: Vec<Layer>,
        loss: Option<Loss>,
    ) -> Result<Plan, PlanError> {
        let import = Some(Import { layers, loss });
        let plan = Plan::read(&self.now.root, import.clone())
            .map_err(|fault| self.blame(fault, import))?;
        plan.validate()?;
        Ok(plan)
    }

    /// Position of a layer in [`text`](Self::text). The path has the index of the layer in the
    /// model, then in the residual block that contains it, and so on.
    pub fn locate(&self, path: &[usize]) -> Option<Range<usize>> {
        self.now.locate(path)
    }

    /// Creates an error about `key`, a path as in [`set`](Self::set), with its line if it has one.
    /// For readers of other keys than those of a plan.
    pub fn error_at(
        &self,
        key: &str,
        message: impl Into<String>,
        help: Option<String>,
    ) -> PlanError {
        let path: Vec<&str> = key.split('.').collect();
        // An absent key is reported at the table it belongs to.
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

    /// Calls `read` with the document and attributes its error to a setting or to the file.
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

    /// Adds the line of the layer to a shape error.
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

    /// Attributes a fault to a setting or to the file.
    fn blame(&self, fault: Fault, import: Option<Import>) -> PlanError {
        let culprit = self.settings.iter().find(|setting| {
            let place = set::added(&self.given.root, &self.now.root, &setting.key);
            place.is_some_and(|place| place.contains(&fault.span.start))
        });
        if let Some(setting) = culprit {
            return fault.blamed(setting.to_string());
        }
        match Plan::read(&self.given.root, import) {
            Err(given) if given.message == fault.message && given.label == fault.label => {
                given.within(&self.given.text, &self.origin)
            }
            _ => {
                let settings: Vec<_> = self.settings.iter().map(Setting::to_string).collect();
                let help = match (&fault.help, settings.is_empty()) {
                    (None, false) => {
                        Some(format!("this line is from the plan after {}", settings.join(" ")))
                    }
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
                    format!("invalid TOML: {}", error.message().trim()),
                ))
            }
        }
    }

    fn locate(&self, path: &[usize]) -> Option<Range<usize>> {
        let (first, inner) = path.split_first()?;
        let mut node = self.root.get("model")?.node.at(*first)?;
        for index in inner {
            let layers = &node.get("layers")?.node;
            node = match layers.at(*index) {
                Some(layer) => layer,
                // The layers of a shortcut are numbered after those of the branch.
                None => {
                    let count = (0..).take_while(|&i| layers.at(i).is_some()).count();
                    node.get("shortcut")?.node.at(index.checked_sub(count)?)?
                }
            };
        }
        let tag = node.get("layer").map(|entry| &entry.node);
        Some(tag.unwrap_or(node).span.clone())
    }
}

/// Attributes an error that the file itself does not have to the only setting whose key is in its
/// line, if there is one.
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
