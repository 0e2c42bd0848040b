//! What is to be trained: the plan, its data and its initial weights, all checked.

use super::Arguments;
use crate::failure::Failure;
use crate::output::Console;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use surefoot_data::Dataset;
use surefoot_plan::keras::{self, KerasModel};
use surefoot_plan::{Document, LayerShape, Plan, ShapeError, TargetShape, Task, Weight};
use surefoot_record::Record;
use surefoot_train::TrainError;

/// The header's entry for the folder that a plan's files are relative to.
const BASE: &str = "base";

/// Everything a run starts from.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) plan: Plan,
    /// The plan as it is recorded.
    pub(crate) text: String,
    /// What to call the run.
    pub(crate) name: String,
    /// The folder that the plan's files are relative to.
    pub(crate) base: PathBuf,
    pub(crate) data: Arc<Dataset>,
    pub(crate) shapes: Vec<LayerShape>,
    /// What to start from instead of random weights.
    pub(crate) weights: Vec<Weight>,
    /// What to start from where it fits, as an attempt of a repair does.
    pub(crate) adopted: Vec<Weight>,
    /// The Keras file that model and weights came from.
    pub(crate) keras_file: Option<PathBuf>,
    /// The run to go on with.
    pub(crate) resumes: Option<Record>,
    document: Document,
}

impl Job {
    /// Reads what the command line asks for.
    pub(crate) fn read(arguments: &Arguments, console: &Console) -> Result<Self, Failure> {
        let Some(path) = &arguments.plan else {
            return Err(Failure::input("a plan is needed"));
        };
        let document = read_document(path, arguments)?;
        let keras = match &arguments.model {
            None => None,
            Some(file) => Some(keras::load(file)?),
        };
        let (plan, text) = match &keras {
            None => (document.plan()?, document.text().to_owned()),
            Some(keras) => {
                for warning in &keras.warnings {
                    console.warn(warning);
                }
                let plan = plan_of_keras(&document, keras)?;
                let text = plan.to_toml();
                (plan, text)
            }
        };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let mut job = Self::prepare(document, plan, text, folder_of(path)?, &stem, keras)?;
        job.keras_file.clone_from(&arguments.model);
        Ok(job)
    }

    /// Loads the data and checks that everything fits.
    pub(crate) fn prepare(
        document: Document,
        plan: Plan,
        text: String,
        base: PathBuf,
        fallback_name: &str,
        keras: Option<KerasModel>,
    ) -> Result<Self, Failure> {
        let data = Arc::new(surefoot_data::load(&plan.data, plan.seed, &base)?);
        Self::with_data(document, plan, text, base, fallback_name, keras, data)
    }

    /// Checks that everything fits, with data that are loaded already.
    pub(crate) fn with_data(
        document: Document,
        plan: Plan,
        text: String,
        base: PathBuf,
        fallback_name: &str,
        keras: Option<KerasModel>,
        data: Arc<Dataset>,
    ) -> Result<Self, Failure> {
        if let Some(expected) = keras.as_ref().and_then(|keras| keras.input_shape.as_ref())
            && *expected != data.input_shape
        {
            return Err(Failure::input(format!(
                "the Keras model takes samples of shape {expected:?}, and the data have {:?}",
                data.input_shape
            )));
        }
        let shapes = Self::shapes(&plan, &data).map_err(|error| match keras {
            None => Failure::from(document.shape_error(&error)),
            // The layers are not in the document.
            Some(_) => {
                let failure = Failure::input(error.to_string());
                error.help.into_iter().fold(failure, Failure::help)
            }
        })?;
        Ok(Self {
            name: plan.name.clone().unwrap_or_else(|| fallback_name.to_owned()),
            plan,
            text,
            base,
            data,
            shapes,
            weights: keras.map_or_else(Vec::new, |keras| keras.weights),
            adopted: Vec::new(),
            keras_file: None,
            resumes: None,
            document,
        })
    }

    /// The shapes of a plan's layers with its data.
    pub(crate) fn shapes(plan: &Plan, data: &Dataset) -> Result<Vec<LayerShape>, ShapeError> {
        let targets = match data.task {
            Task::Binary => TargetShape::Binary,
            Task::MultiClass => TargetShape::Classes(data.classes),
            Task::Regression => TargetShape::Numbers(data.target_width),
        };
        plan.check_shapes(&data.input_shape, data.integer_input, &targets)
    }

    /// What the trainer refused, with the line of the plan where there is one.
    pub(crate) fn explain(&self, error: TrainError) -> Failure {
        match error {
            TrainError::TooFewSymbols { ref layer, rows, largest } if self.keras_file.is_none() => {
                let needed = largest + 1;
                let error = ShapeError {
                    path: self
                        .shapes
                        .iter()
                        .find(|shape| shape.name == *layer)
                        .map(|shape| shape.path.clone())
                        .unwrap_or_default(),
                    layer: layer.clone(),
                    message: format!("the data have symbols up to {largest}"),
                    label: Some(format!("`{layer}` has input_dim = {rows}")),
                    help: Some(format!("set input_dim = {needed}")),
                };
                self.document.shape_error(&error).into()
            }
            error => error.into(),
        }
    }

    /// What to add to the header so that the run can be resumed.
    pub(crate) fn fact_for_resuming(&self) -> (String, serde_json::Value) {
        (BASE.to_owned(), self.base.to_string_lossy().into())
    }
}

/// The plan's document with the settings of the command line.
pub(super) fn read_document(path: &Path, arguments: &Arguments) -> Result<Document, Failure> {
    let mut document = Document::load(path)?;
    apply_settings(&mut document, arguments)?;
    Ok(document)
}

pub(super) fn apply_settings(
    document: &mut Document,
    arguments: &Arguments,
) -> Result<(), Failure> {
    for (key, value) in arguments.settings() {
        document.set(&key, &value)?;
    }
    Ok(())
}

/// The plan with the model of a Keras file, and what that was compiled with where the document
/// does not state its own.
pub(super) fn plan_of_keras(document: &Document, keras: &KerasModel) -> Result<Plan, Failure> {
    let mut plan = document.plan_with_model(keras.layers.clone())?;
    if let Some(loss) = keras.loss
        && !document.contains("training.loss")
    {
        plan.training.loss = loss;
    }
    if let Some(optimizer) = keras.optimizer
        && !document.contains("training.optimizer")
    {
        plan.training.optimizer = optimizer;
        if !document.contains("training.schedule") {
            plan.training.schedule = keras.schedule.unwrap_or(plan.training.schedule);
        }
    }
    plan.validate()?;
    Ok(plan)
}

/// The folder that the files of a plan are relative to. The copy of a plan in a run directory
/// still means the files of the original.
pub(crate) fn folder_of(plan: &Path) -> Result<PathBuf, Failure> {
    let folder = match plan.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    if let Ok(run) = Record::open(folder) {
        return Ok(recorded_folder(&run));
    }
    std::path::absolute(folder).map_err(|error| {
        Failure::broken(format!("cannot tell where {} is: {error}", folder.display()))
    })
}

/// The folder that the files of a run's plan are relative to.
pub(super) fn recorded_folder(run: &Record) -> PathBuf {
    let base = run.header().more.get(BASE);
    match base.and_then(|base| base.as_str()) {
        Some(base) => base.into(),
        None => run.dir().to_owned(),
    }
}
