//! From a lifted script and its types to findings. One file per family of rules.

mod bound;
mod checkpoints;
mod code;
mod deciding;
mod environment;
mod fitted;
mod held;
mod part;
mod position;
mod randomness;
mod repeated;
mod restoring;
mod skipping;
mod switches;
mod written;

use crate::calculus::{Origin, Site, Typing, Variable};
use crate::library::{Family, Global};
use crate::lift::facts::{Lifted, Role, Thing};
use crate::project::Project;
use crate::{CheckConfig, Checkpoint, Finding, Note, Place, Rule};

/// What the rules look at.
pub(crate) struct Script<'s> {
    /// The script.
    pub lifted: &'s Lifted,
    /// Its types.
    pub typing: &'s Typing,
    /// All files.
    pub project: &'s Project,
    /// What is assumed.
    pub settings: &'s CheckConfig,
}

/// What the rules say of a script.
#[derive(Default)]
pub(crate) struct Report {
    /// What is wrong with it.
    pub findings: Vec<Finding>,
    /// What its checkpoints must hold.
    pub checkpoints: Vec<Checkpoint>,
    /// What it calls that is not known, by name.
    pub unknown: Vec<(String, Finding)>,
}

/// What is wrong with a script, and what its checkpoints must hold.
pub(crate) fn apply(script: &Script<'_>) -> Report {
    let mut findings = Vec::new();
    let checkpoints = checkpoints::find(script, &mut findings);
    restoring::find(script, &mut findings);
    randomness::find(script, &mut findings);
    environment::find(script, &mut findings);
    switches::find(script, &mut findings);
    Report { findings, checkpoints, unknown: switches::unknown(script) }
}

impl Script<'_> {
    fn place(&self, site: Site) -> Place {
        self.lifted.place(site)
    }

    /// What stands at a place.
    fn text(&self, place: &Place) -> &str {
        let text = &self.project.script(place.file).source.text;
        text.get(place.range.clone()).unwrap_or_default()
    }

    /// How people call a place: the line, with the file if it is another than `beside`.
    fn line(&self, site: Site, beside: Site) -> String {
        let place = self.place(site);
        let source = &self.project.script(place.file).source;
        let (line, _) = source.line_and_column(place.range.start);
        if place.file == self.place(beside).file {
            format!("line {line}")
        } else {
            format!("{}:{line}", source.path.display())
        }
    }

    fn finding(&self, rule: Rule, site: Site, message: String, help: String) -> Finding {
        Finding { rule, place: self.place(site), message, help, notes: Vec::new() }
    }

    fn note(&self, site: Site, text: impl Into<String>) -> Note {
        Note { place: self.place(site), text: text.into() }
    }

    /// Everything from outside that reaches an output.
    fn reaching(&self) -> Vec<Origin> {
        let mut origins: Vec<Origin> = self
            .typing
            .outputs()
            .iter()
            .flat_map(|output| output.kind.external().copied())
            .collect();
        origins.sort_unstable();
        origins.dedup();
        origins
    }

    /// Whether the script trains anything.
    fn trains(&self) -> bool {
        self.lifted.trains
    }

    fn symbol(&self, origin: &Origin) -> Option<&str> {
        origin.symbol.map(|symbol| self.lifted.program.symbol_name(symbol))
    }

    fn name_of(&self, variable: Variable) -> &str {
        self.lifted.program.name(variable)
    }
}

/// What people call a generator.
fn generator_name(thing: &Thing) -> String {
    match thing.role {
        Role::Global(global) | Role::Worker(global) => global_name(global).to_owned(),
        Role::Generator(Family::Pipeline) => "the shuffled pipeline".to_owned(),
        Role::Generator(Family::Torch | Family::NumPy | Family::Python | Family::TensorFlow) => {
            format!("the generator `{}`", thing.name)
        }
        _ => thing.name.clone(),
    }
}

fn global_name(global: Global) -> &'static str {
    match global {
        Global::Torch => "PyTorch's generator",
        Global::NumPy => "NumPy's global generator",
        Global::Python => "Python's global generator",
        Global::TensorFlow => "the global generator of Keras and TensorFlow",
    }
}

/// Names in a row: "a", "a and b", "a, b and c".
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [some @ .., last] => format!("{} and {last}", some.join(", ")),
    }
}
