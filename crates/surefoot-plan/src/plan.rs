//! The top level of a plan.

use crate::document::Document;
use crate::error::{Fault, PlanError};
use crate::language::{Fields, Reader, Term, any, changed, tagged};
use crate::shape::{self, LayerShape, ShapeError, TargetShape};
use crate::tree::{Node, Tree};
use crate::{Data, Diagnose, Layer, Loss, Repair, Rules, Source, Training, Watch};
use std::fmt::Write;
use std::path::Path;

/// Version of the plan format.
pub const VERSION: u32 = 1;

/// A training plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Version of the plan format; a newer version is an error.
    pub version: u32,
    /// Name of the plan.
    pub name: Option<String>,
    /// Seed of every random draw of the run, below 2^63 (the largest TOML integer).
    pub seed: u64,
    /// Rules of diagnosis and repair.
    pub rules: Rules,
    /// Data to learn from.
    pub data: Data,
    /// The layers, from the input to the output.
    pub model: Vec<Layer>,
    /// Training options.
    pub training: Training,
    /// Statistics to observe, and how often.
    pub watch: Watch,
    /// Thresholds of the diagnosis.
    pub diagnose: Diagnose,
    /// Options of the repair.
    pub repair: Repair,
}

/// A model from another file, and the loss that it was compiled with.
#[derive(Clone, Debug)]
pub(crate) struct Import {
    pub(crate) layers: Vec<Layer>,
    pub(crate) loss: Option<Loss>,
}

impl Plan {
    /// A plan with seed 0 and defaults for everything else.
    pub fn new(data: Data, model: Vec<Layer>, training: Training) -> Self {
        Self {
            version: VERSION,
            name: None,
            seed: 0,
            rules: Rules::default(),
            data,
            model,
            training,
            watch: Watch::default(),
            diagnose: Diagnose::default(),
            repair: Repair::default(),
        }
    }

    /// Reads a plan from TOML. Errors name `origin`, usually the file.
    pub fn parse(source: &str, origin: impl Into<String>) -> Result<Self, PlanError> {
        Document::parse(source, origin)?.plan()
    }

    /// Reads a plan from a file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, PlanError> {
        Document::load(path)?.plan()
    }

    /// Checks a plan that was made or changed by a program as if it were read from a file.
    /// Errors show lines of the printed plan.
    pub fn validate(&self) -> Result<(), PlanError> {
        Self::parse(&self.to_toml(), "the plan").map(|_| ())
    }

    /// Prints the plan as TOML, without keys at their defaults. Reading it returns the same plan.
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
        if self.rules != Rules::default() {
            top.push(("rules", self.rules.write()));
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
            ("[repair]", changed(&self.repair, &Repair::of(self.rules))),
        ];
        for (header, lines) in optional {
            if !lines.is_empty() {
                section(&mut text, Some(header), &lines);
            }
        }
        text
    }

    /// Infers the shapes of all layers for samples of shape `input` and checks the last against
    /// the loss and the targets. `integers` is true if the input consists of whole numbers.
    pub fn check_shapes(
        &self,
        input: &[usize],
        integers: bool,
        targets: &TargetShape,
    ) -> Result<Vec<LayerShape>, ShapeError> {
        self.check_sequence_shapes(input, integers, targets, 1)
    }

    /// As [`check_shapes`](Self::check_shapes), with such targets at each of `positions` positions of
    /// a sample.
    pub fn check_sequence_shapes(
        &self,
        input: &[usize],
        integers: bool,
        targets: &TargetShape,
        positions: usize,
    ) -> Result<Vec<LayerShape>, ShapeError> {
        let shapes = shape::infer(&self.model, input, integers)?;
        if let Some(last) = shapes.last() {
            shape::check_output(last, &self.training.loss, targets, positions)?;
        }
        Ok(shapes)
    }

    /// Reads a plan from the tree of its document. An import replaces the model of the document, which
    /// is still checked for errors if present; its loss is used if the document has none.
    pub(crate) fn read(root: &Node, import: Option<Import>) -> Result<Self, Fault> {
        version(root)?;
        if matches!(&root.value, Tree::Table(entries) if entries.is_empty()) {
            return Err(Fault::new(0..0, "the plan is empty".to_owned())
                .help("a plan needs `[data]`, `[[model]]` and `[training]`".to_owned()));
        }
        if let Some(entry) = root.get("tune") {
            let message = "this is a study, not a plan".to_owned();
            return Err(Fault::new(entry.span.clone(), message)
                .help("run it with `surefoot tune`".to_owned()));
        }
        let mut reader = Reader::open(root, "plan", "a plan".to_owned())?;
        let mut plan =
            Self::new(Data::new(Source::circles()), Vec::new(), Training::new(1, Loss::Mse));
        reader.take("version");
        reader.maybe("name", &mut plan.name, any);
        reader.optional("seed", &mut plan.seed, any);
        reader.optional("rules", &mut plan.rules, any);
        plan.repair = Repair::of(plan.rules);

        match reader.take("data") {
            Some(entry) => {
                let data = table(&entry.node, "data", |f| f.fill(&mut plan.data));
                reader.attempt(data);
            }
            None => reader.miss("data", "a table"),
        }
        let mut loss = None;
        match import {
            Some(import) => {
                reader.optional("model", &mut plan.model, any);
                plan.model = import.layers;
                loss = import.loss;
            }
            None => reader.required("model", &mut plan.model, any),
        }
        match reader.take("training") {
            Some(entry) => {
                let usual = loss.or_else(|| plan.data.known_task().map(Loss::of_task));
                let training = table(&entry.node, "training", |f| {
                    plan.training.fields_of(f, usual);
                });
                let training = training.map_err(|fault| match fault.message.as_str() {
                    "missing key `loss`" => {
                        fault.help("or set `task` in `[data]`, which implies a loss".to_owned())
                    }
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

/// Checks the version before anything else: a newer format may have unknown keys.
fn version(root: &Node) -> Result<(), Fault> {
    let Some(entry) = root.get("version") else {
        return Ok(());
    };
    match u64::read(&entry.node, "version")? {
        0 => Err(Fault::new(entry.node.span.clone(), "`version` must be at least 1".to_owned())),
        version if version > u64::from(VERSION) => Err(Fault::new(
            entry.node.span.clone(),
            "the plan needs a newer version of Surefoot".to_owned(),
        )
        .label(format!("this version reads up to {VERSION}"))
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
