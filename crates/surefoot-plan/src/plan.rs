//! The plan as a whole: its top level, read and printed.

use crate::document::Document;
use crate::error::{Fault, PlanError};
use crate::language::{Fields, Reader, Term, any, changed, tagged};
use crate::shape::{self, LayerShape, ShapeError, TargetShape};
use crate::tree::{Node, Tree};
use crate::{Data, Diagnose, Layer, Loss, Repair, Source, Training, Watch};
use std::fmt::Write;
use std::path::Path;

/// The version of the language this crate reads and writes.
pub const VERSION: u32 = 1;

/// All that determines a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The version of the plan's language; a plan from a newer version is refused.
    pub version: u32,
    /// A name for people.
    pub name: Option<String>,
    /// The seed of every random draw of the run. TOML's numbers end at 2^63 - 1.
    pub seed: u64,
    /// What to learn from.
    pub data: Data,
    /// The layers, from the input to the output.
    pub model: Vec<Layer>,
    /// How to learn.
    pub training: Training,
    /// What to observe, and how often.
    pub watch: Watch,
    /// Where symptoms become problems.
    pub diagnose: Diagnose,
    /// How problems are repaired.
    pub repair: Repair,
}

impl Plan {
    /// A plan with seed 0 that watches as much as is cheap.
    pub fn new(data: Data, model: Vec<Layer>, training: Training) -> Self {
        Self {
            version: VERSION,
            name: None,
            seed: 0,
            data,
            model,
            training,
            watch: Watch::default(),
            diagnose: Diagnose::default(),
            repair: Repair::default(),
        }
    }

    /// Reads a plan from TOML. `origin` is what errors call the text, usually its file.
    pub fn parse(source: &str, origin: impl Into<String>) -> Result<Self, PlanError> {
        Document::parse(source, origin)?.plan()
    }

    /// Reads a plan from a file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, PlanError> {
        Document::load(path)?.plan()
    }

    /// Checks a plan that was made or changed by a program as if it had been read from a file.
    /// An error shows the line that printing the plan would give.
    pub fn validate(&self) -> Result<(), PlanError> {
        Self::parse(&self.to_toml(), "the plan").map(|_| ())
    }

    /// The plan as TOML, without what is at its default. Reading it gives the same plan.
    pub fn to_toml(&self) -> String {
        let mut top = Vec::new();
        if self.version != VERSION {
            top.push(("version", self.version.to_string()));
        }
        if let Some(name) = &self.name {
            top.push(("name", name.write()));
        }
        if self.seed != 0 {
            top.push(("seed", self.seed.write()));
        }
        let start =
            Plan::new(Data::new(self.data.source.clone()), Vec::new(), Training::new(1, Loss::Mse));
        let mut text = String::new();
        section(&mut text, None, &top);
        section(&mut text, Some("[data]"), &changed(&self.data, &start.data));
        for layer in &self.model {
            section(&mut text, Some("[[model]]"), &tagged(layer));
        }
        let training = changed(&self.training, &start.training);
        section(&mut text, Some("[training]"), &training);
        let optional = [
            ("[watch]", changed(&self.watch, &start.watch)),
            ("[diagnose]", changed(&self.diagnose, &start.diagnose)),
            ("[repair]", changed(&self.repair, &start.repair)),
        ];
        for (header, lines) in optional {
            if !lines.is_empty() {
                section(&mut text, Some(header), &lines);
            }
        }
        text
    }

    /// Infers the shapes of all layers for samples of shape `input` and checks the last against
    /// the loss and the targets. `whole` says whether the input consists of whole numbers.
    pub fn check_shapes(
        &self,
        input: &[usize],
        whole: bool,
        targets: &TargetShape,
    ) -> Result<Vec<LayerShape>, ShapeError> {
        let shapes = shape::infer(&self.model, input, whole)?;
        if let Some(last) = shapes.last() {
            shape::check_output(last, &self.training.loss, targets)?;
        }
        Ok(shapes)
    }

    /// Reads a plan from the tree of its document. With `model` given, the document's is read for
    /// its errors if it is there but not used.
    pub(crate) fn read(root: &Node, model: Option<Vec<Layer>>) -> Result<Self, Fault> {
        version(root)?;
        if matches!(&root.value, Tree::Table(entries) if entries.is_empty()) {
            return Err(Fault::new(0..0, "the plan is empty".to_owned())
                .help("a plan needs `[data]`, `[[model]]` and `[training]`".to_owned()));
        }
        if let Some(entry) = root.get("tune") {
            let message = "this is a study, not a plan".to_owned();
            return Err(Fault::new(entry.span.clone(), message)
                .help("`surefoot tune` searches a study".to_owned()));
        }
        let mut reader = Reader::open(root, "plan", "a plan".to_owned())?;
        let mut plan =
            Self::new(Data::new(Source::circles()), Vec::new(), Training::new(1, Loss::Mse));
        reader.take("version");
        reader.maybe("name", &mut plan.name, any);
        reader.optional("seed", &mut plan.seed, any);

        match reader.take("data") {
            Some(entry) => {
                let data = table(&entry.node, "data", |f| f.fill(&mut plan.data));
                reader.attempt(data);
            }
            None => reader.miss("data", "a table"),
        }
        match model {
            Some(layers) => {
                reader.optional("model", &mut plan.model, any);
                plan.model = layers;
            }
            None => reader.required("model", &mut plan.model, any),
        }
        match reader.take("training") {
            Some(entry) => {
                let task = plan.data.known_task();
                let training = table(&entry.node, "training", |f| {
                    plan.training.fields_of(f, task);
                });
                let training = training.map_err(|fault| match fault.message.as_str() {
                    "missing key `loss`" => fault.help(
                        "or state the `task` in `[data]`, and the loss follows from it".to_owned(),
                    ),
                    _ => fault,
                });
                reader.attempt(training);
            }
            None => reader.miss("training", "a table"),
        }
        if let Some(entry) = reader.take("watch") {
            let watch = table(&entry.node, "watch", |f| f.fill(&mut plan.watch));
            reader.attempt(watch);
        }
        if let Some(entry) = reader.take("diagnose") {
            let diagnose = table(&entry.node, "diagnose", |f| f.fill(&mut plan.diagnose));
            reader.attempt(diagnose);
        }
        if let Some(entry) = reader.take("repair") {
            let repair = table(&entry.node, "repair", |f| f.fill(&mut plan.repair));
            reader.attempt(repair);
        }
        reader.finish()?;
        Ok(plan)
    }
}

fn table(node: &Node, key: &str, fields: impl FnOnce(&mut Reader<'_>)) -> Result<(), Fault> {
    let mut reader = Reader::open(node, key, format!("`[{key}]`"))?;
    fields(&mut reader);
    reader.finish()
}

/// A newer version goes before all else: it may have keys this one does not know.
fn version(root: &Node) -> Result<(), Fault> {
    let Some(entry) = root.get("version") else {
        return Ok(());
    };
    match u64::read(&entry.node, "version")? {
        0 => Err(Fault::new(entry.node.span.clone(), "`version` must be at least 1".to_owned())),
        version if version > u64::from(VERSION) => Err(Fault::new(
            entry.node.span.clone(),
            "the plan was made for a newer Surefoot".to_owned(),
        )
        .label(format!("this Surefoot reads version {VERSION}"))
        .help("update Surefoot".to_owned())),
        _ => Ok(()),
    }
}

fn section(text: &mut String, header: Option<&str>, lines: &[(&'static str, String)]) {
    if !text.is_empty() {
        text.push('\n');
    }
    if let Some(header) = header {
        text.push_str(header);
        text.push('\n');
    }
    for (key, value) in lines {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{key} = {value}");
    }
}
