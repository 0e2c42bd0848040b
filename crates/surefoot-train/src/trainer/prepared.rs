//! A plan with its data and initial weights, checked against each other.

use crate::error::TrainError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use surefoot_data::Dataset;
use surefoot_plan::{Document, LayerShape, Plan, ShapeError, TargetShape, Task, Weight};
use surefoot_record::{Digest, Record};

/// Header entry: the folder that a plan's files are relative to.
pub(super) const BASE: &str = "base";
/// Header entry: the copy of the Keras file in the run directory.
pub(super) const KERAS_COPY: &str = "initial_model";
/// Header entry: the Keras file, relative to the run directory, whose weights a repair attempt
/// starts from where they fit.
pub(super) const ADOPTED: &str = "initial_weights";

/// A plan, its data and its initial weights, ready to be trained.
#[derive(Debug)]
pub struct PreparedPlan {
    pub(crate) plan: Plan,
    /// The plan as recorded.
    pub(crate) text: String,
    pub(crate) name: String,
    pub(crate) base: PathBuf,
    pub(crate) data: Arc<Dataset>,
    pub(crate) shapes: Vec<LayerShape>,
    /// Initial weights instead of random ones.
    pub(crate) weights: Vec<Weight>,
    /// Initial weights that are used where they fit.
    pub(crate) adopted: Vec<Weight>,
    pub(crate) keras_file: Option<PathBuf>,
    /// The source of the plan, for errors that mark a line.
    document: Option<Document>,
}

/// A model to start from.
pub(super) struct InitialModel {
    pub(super) weights: Vec<Weight>,
    pub(super) input_shape: Option<Vec<usize>>,
}

impl PreparedPlan {
    /// Loads the data of a plan. Files are relative to `base`.
    pub fn new(plan: Plan, base: &Path) -> Result<Self, TrainError> {
        let data = load_data(&plan, base)?;
        Self::with_data(plan, base, data)
    }

    /// Uses `data` that are loaded already.
    pub fn with_data(plan: Plan, base: &Path, data: Arc<Dataset>) -> Result<Self, TrainError> {
        let text = plan.to_toml();
        Self::assemble(plan, text, base, data, None, None)
    }

    /// Loads the plan of a document and its data.
    pub fn from_document(document: Document, base: &Path) -> Result<Self, TrainError> {
        let plan = document.plan()?;
        let data = load_data(&plan, base)?;
        let text = document.text().to_owned();
        Self::assemble(plan, text, base, data, None, Some(document))
    }

    /// As [`from_document`](Self::from_document), with data that are loaded already.
    pub fn from_document_with_data(
        document: Document,
        base: &Path,
        data: Arc<Dataset>,
    ) -> Result<Self, TrainError> {
        let plan = document.plan()?;
        let text = document.text().to_owned();
        Self::assemble(plan, text, base, data, None, Some(document))
    }

    /// Restores the inputs of a recorded run. `base` replaces the recorded folder of its files.
    ///
    /// Fails if the data differ from those of the run.
    pub fn from_record(record: &Record, base: Option<&Path>) -> Result<Self, TrainError> {
        record.check_plan()?;
        let document = recorded_document(record)?;
        let plan = document.plan()?;
        let base = base.map_or_else(|| recorded_folder(record), Path::to_owned);
        let data = load_data(&plan, &base)?;
        let text = record.plan().to_owned();
        let initial = super::keras::recorded(record, KERAS_COPY)?;
        let mut prepared = Self::assemble(plan, text, &base, data, initial, Some(document))?;
        if let Some(model) = super::keras::recorded(record, ADOPTED)? {
            prepared.adopted = model.weights;
        }
        let recorded = record.header().environment.data;
        if recorded.is_some_and(|data| data != Digest(prepared.data.digest)) {
            return Err(TrainError::DataChanged { run: record.dir().to_owned() });
        }
        Ok(prepared)
    }

    /// Names the run; the plan's own name takes precedence.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        if self.plan.name.is_none() {
            name.clone_into(&mut self.name);
        }
        self
    }

    pub(super) fn assemble(
        plan: Plan,
        text: String,
        base: &Path,
        data: Arc<Dataset>,
        initial: Option<InitialModel>,
        document: Option<Document>,
    ) -> Result<Self, TrainError> {
        if let Some(expected) = initial.as_ref().and_then(|model| model.input_shape.as_ref())
            && *expected != data.input_shape
        {
            return Err(TrainError::InputShape {
                expected: expected.clone(),
                found: data.input_shape.clone(),
            });
        }
        // The layers of a Keras file are not in the document.
        let source = document.as_ref().filter(|_| initial.is_none());
        let shapes = layer_shapes(&plan, &data).map_err(|error| match source {
            Some(document) => document.shape_error(&error).into(),
            None => TrainError::from(error),
        })?;
        Ok(Self {
            name: plan.name.clone().unwrap_or_else(|| "run".to_owned()),
            plan,
            text,
            base: base.to_owned(),
            data,
            shapes,
            weights: initial.map_or_else(Vec::new, |model| model.weights),
            adopted: Vec::new(),
            keras_file: None,
            document,
        })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The source of the plan, as it is recorded.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The data.
    pub fn data(&self) -> &Arc<Dataset> {
        &self.data
    }

    /// The layers with their output shapes.
    pub fn shapes(&self) -> &[LayerShape] {
        &self.shapes
    }

    /// Marks the line of the plan that `error` is about, if there is one.
    pub(crate) fn explain(&self, error: TrainError) -> TrainError {
        let Some(document) = self.document.as_ref().filter(|_| self.keras_file.is_none()) else {
            return error;
        };
        let TrainError::TooFewSymbols { layer, rows, largest } = error else {
            return error;
        };
        let path = self.shapes.iter().find(|shape| shape.name == layer);
        let error = ShapeError {
            path: path.map(|shape| shape.path.clone()).unwrap_or_default(),
            message: format!("the data have symbols up to {largest}"),
            label: Some(format!("`{layer}` has input_dim = {rows}")),
            help: Some(format!("set input_dim = {}", largest + 1)),
            layer,
        };
        document.shape_error(&error).into()
    }

    /// The data of a changed plan, if its layers fit them.
    pub(crate) fn data_of(&self, plan: &Plan) -> Result<Arc<Dataset>, TrainError> {
        let data = match plan.data == self.plan.data && plan.seed == self.plan.seed {
            true => Arc::clone(&self.data),
            false => load_data(plan, &self.base)?,
        };
        layer_shapes(plan, &data)?;
        Ok(data)
    }
}

pub(super) fn load_data(plan: &Plan, base: &Path) -> Result<Arc<Dataset>, TrainError> {
    Ok(Arc::new(surefoot_data::load(&plan.data, plan.seed, base)?))
}

fn layer_shapes(plan: &Plan, data: &Dataset) -> Result<Vec<LayerShape>, ShapeError> {
    let targets = match data.task {
        Task::Binary => TargetShape::Binary,
        Task::MultiClass => TargetShape::Classes(data.classes),
        Task::MultiLabel => TargetShape::Labels(data.target_width),
        Task::Regression => TargetShape::Numbers(data.target_width),
    };
    plan.check_sequence_shapes(&data.input_shape, data.integer_input, &targets, data.positions)
}

/// Returns true if `document` states the plan of a recorded run.
pub fn is_plan_of(document: &Document, record: &Record) -> Result<bool, TrainError> {
    record.check_plan()?;
    let recorded = recorded_document(record)?;
    let plan = recorded.plan()?;
    if document.text() == recorded.text() || document.plan().is_ok_and(|given| given == plan) {
        return Ok(true);
    }
    // A run of a Keras file starts from a plan without layers.
    super::keras::is_plan_of(document, record, &plan)
}

/// The plan of a run as a document.
pub fn recorded_document(record: &Record) -> Result<Document, TrainError> {
    let path = record.dir().join("plan.toml");
    Ok(Document::parse(record.plan(), path.display().to_string())?)
}

/// The folder that the files of a plan file are relative to. The copy of a plan in a run directory
/// refers to the files of the original.
pub fn plan_folder(plan: &Path) -> Result<PathBuf, TrainError> {
    let folder = match plan.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    if let Ok(record) = Record::open(folder) {
        return Ok(recorded_folder(&record));
    }
    std::path::absolute(folder).map_err(|source| TrainError::Io {
        action: "resolve",
        path: folder.to_owned(),
        source,
    })
}

fn recorded_folder(record: &Record) -> PathBuf {
    let base = record.header().more.get(BASE).and_then(|base| base.as_str());
    base.map_or_else(|| record.dir().to_owned(), PathBuf::from)
}
