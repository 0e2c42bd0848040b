//! Predictions of the delivered model of a run.

use crate::error::TrainError;
use crate::metric::{predicted_class, predicted_label};
use crate::network::Network;
use crate::parameters::Parameters;
use crate::run::leaves;
use crate::shard::{Examples, infer};
use crate::{Compute, Cpu};
use std::path::Path;
use surefoot_data::Preprocessing;
use surefoot_diagnose::LayerInfo;
use surefoot_plan::{Activation, Document, Layer, Loss, Plan, Task, Weight};
use surefoot_record::{Array, Record};

/// Samples computed at once.
const CHUNK: usize = 256;

/// The delivered model of a run, with the preprocessing of its training data.
///
/// # Examples
///
/// ```no_run
/// use std::path::Path;
/// use surefoot_train::Predictor;
///
/// let predictor = Predictor::open(Path::new("runs/patients-001"))?;
/// let predictions = predictor.predict_file(Path::new("new.csv"))?;
/// print!("{}", predictions.to_csv());
/// # Ok::<(), surefoot_train::TrainError>(())
/// ```
pub struct Predictor {
    plan: Plan,
    preprocessing: Preprocessing,
    network: Network<Cpu>,
    parameters: Parameters,
}

impl Predictor {
    /// Opens the delivered model of a finished run.
    ///
    /// # Errors
    ///
    /// If the run has no model yet, or its files do not belong together.
    pub fn open(run: &Path) -> Result<Self, TrainError> {
        let record = Record::open(run)?;
        let unfinished = || TrainError::NoModel { run: run.to_owned() };
        let text = record.final_plan()?.ok_or_else(unfinished)?;
        let arrays = record.model()?.ok_or_else(unfinished)?;
        let preprocessing = record.preprocessing()?.ok_or_else(unfinished)?;
        let damaged = |reason: String| TrainError::ForeignModel { run: run.to_owned(), reason };
        let preprocessing: Preprocessing = serde_json::from_slice(&preprocessing)
            .map_err(|error| damaged(format!("preprocessing.json: {error}")))?;
        let name = run.join("plan.final.toml").display().to_string();
        let plan = Document::parse(&text, name)?.plan()?;
        let network = Network::<Cpu>::new(&plan.model, &preprocessing.input_shape);
        let mut parameters = Parameters::new(network.declarations.clone(), plan.seed);
        let expected = parameters.declarations().len();
        let loaded = arrays
            .iter()
            .filter(|array| weight(array).is_some_and(|weight| parameters.load(&weight)));
        let loaded = loaded.count();
        if loaded != expected || loaded != arrays.len() {
            return Err(damaged(format!(
                "model.safetensors has {} arrays, of which {loaded} belong to the {expected} of the \
                 plan",
                arrays.len()
            )));
        }
        Ok(Self { plan, preprocessing, network, parameters })
    }

    /// The delivered plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The preprocessing of the training data.
    pub fn preprocessing(&self) -> &Preprocessing {
        &self.preprocessing
    }

    /// The layers without residual blocks around them.
    pub(crate) fn layers(&self) -> Vec<LayerInfo> {
        self.network.layers()
    }

    /// The arrays of the model.
    pub fn weights(&self) -> Vec<Weight> {
        self.parameters.weights().collect()
    }

    /// Predicts the samples of a CSV or NPY file in the layout of the training data. The target
    /// column may be absent.
    pub fn predict_file(&self, path: &Path) -> Result<Predictions, TrainError> {
        let features = self.preprocessing.read(path)?;
        self.predict_inputs(&features)
    }

    /// Predicts samples that are encoded, but not yet clipped, imputed and scaled.
    pub fn predict(&self, samples: &[f32]) -> Result<Predictions, TrainError> {
        let mut features = samples.to_vec();
        self.preprocessing.apply(&mut features);
        self.predict_inputs(&features)
    }

    fn predict_inputs(&self, features: &[f32]) -> Result<Predictions, TrainError> {
        for layer in leaves(&self.plan.model) {
            if let Layer::Embedding(embedding) = layer {
                self.preprocessing.check_symbols(features, embedding.input_dim)?;
            }
        }
        Ok(self.decode(self.outputs(features)))
    }

    /// Outputs of the model for preprocessed samples.
    pub fn outputs(&self, features: &[f32]) -> Vec<f32> {
        let device = Default::default();
        let examples = Examples::new(features, &self.preprocessing.input_shape);
        let uploaded = self.parameters.upload::<Cpu>(&device);
        let count = features.len() / self.preprocessing.width().max(1);
        let ids: Vec<usize> = (0..count).collect();
        let mut outputs = Vec::with_capacity(count * self.network.width);
        for ids in ids.chunks(CHUNK) {
            let chunk = infer(&self.network, &uploaded, &examples, ids, &device);
            Cpu::read(&chunk, |values| outputs.extend_from_slice(values));
        }
        outputs
    }

    fn decode(&self, outputs: Vec<f32>) -> Predictions {
        // A sequence has a row of outputs for each of its positions.
        let width = (self.network.width / self.preprocessing.positions.max(1)).max(1);
        let loss = self.plan.training.loss;
        if self.preprocessing.task() == Task::Regression {
            let mut values: Vec<f64> = outputs.into_iter().map(f64::from).collect();
            if let Some(scaling) = &self.preprocessing.target_scaling {
                scaling.undo(&mut values);
            }
            return Predictions { values, width, ..Predictions::default() };
        }
        if self.preprocessing.task() == Task::MultiLabel {
            let labels = outputs.iter().map(|&output| predicted_label(output, loss)).collect();
            let values: Vec<f64> = match self.meaning() {
                Some(Outputs::Logits) => outputs.iter().map(|&output| logistic(output)).collect(),
                Some(Outputs::Probabilities) => outputs.into_iter().map(f64::from).collect(),
                None => Vec::new(),
            };
            let width = if values.is_empty() { 0 } else { width };
            let names = self.preprocessing.classes.clone();
            return Predictions { names, labels, values, width, ..Predictions::default() };
        }
        let classes = outputs.chunks(width).map(|row| predicted_class(row, loss)).collect();
        let names = self.preprocessing.classes.clone();
        let mut values = Vec::new();
        if let Some(meaning) = self.meaning() {
            for row in outputs.chunks(width) {
                values.extend(probabilities(row, meaning));
            }
        }
        let width = if values.is_empty() { 0 } else { width.max(2) };
        Predictions { names, classes, values, width, ..Predictions::default() }
    }

    /// Relation of the outputs of a classifier to probabilities; `None` if there is none.
    fn meaning(&self) -> Option<Outputs> {
        match self.plan.training.loss {
            Loss::BinaryCrossentropy { from_logits: true }
            | Loss::CategoricalCrossentropy { from_logits: true }
            | Loss::SparseCategoricalCrossentropy { from_logits: true } => Some(Outputs::Logits),
            _ => {
                let last = leaves(&self.plan.model).into_iter().rev().find_map(Layer::activation);
                match last? {
                    Activation::Sigmoid | Activation::Softmax => Some(Outputs::Probabilities),
                    _ => None,
                }
            }
        }
    }
}

/// Relation of outputs to probabilities.
#[derive(Clone, Copy)]
enum Outputs {
    Logits,
    Probabilities,
}

/// The probability of each class. A single output is that of the second class.
fn probabilities(row: &[f32], meaning: Outputs) -> Vec<f64> {
    let values = row.iter().map(|&value| f64::from(value));
    match (row, meaning) {
        ([one], _) => {
            let second = match meaning {
                Outputs::Logits => logistic(*one),
                Outputs::Probabilities => f64::from(*one),
            };
            vec![1.0 - second, second]
        }
        (_, Outputs::Probabilities) => values.collect(),
        (_, Outputs::Logits) => {
            let largest = values.clone().fold(f64::NEG_INFINITY, f64::max);
            let parts: Vec<f64> = values.map(|value| libm::exp(value - largest)).collect();
            let whole: f64 = parts.iter().sum();
            parts.into_iter().map(|part| part / whole).collect()
        }
    }
}

fn logistic(logit: f32) -> f64 {
    1.0 / (1.0 + libm::exp(-f64::from(logit)))
}

/// An array of a model file as a weight: its name is that of the layer and of the array.
fn weight(array: &Array) -> Option<Weight> {
    let (layer, name) = array.name.rsplit_once('.')?;
    Some(Weight {
        layer: layer.to_owned(),
        name: name.to_owned(),
        shape: array.shape.clone(),
        values: array.as_f32()?.to_vec(),
    })
}

/// Predictions for samples, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Predictions {
    /// Names of the classes or labels; empty for a regression.
    pub names: Vec<String>,
    /// Predicted class of each sample, by its number; `None` if the model put out NaN. Empty for a
    /// regression and for labels.
    pub classes: Vec<Option<usize>>,
    /// Predicted labels of a multi-label task, as many per sample as there are names; `None` if the
    /// model put out NaN.
    pub labels: Vec<Option<bool>>,
    /// `width` numbers per sample: the probabilities of the classes or labels, or the values of a
    /// regression.
    pub values: Vec<f64>,
    /// Numbers per sample; 0 for a classifier whose outputs are not probabilities.
    pub width: usize,
}

/// Prediction for one sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction<'a> {
    /// Name of the predicted class.
    pub class: Option<&'a str>,
    /// Predicted labels of a multi-label task.
    pub labels: &'a [Option<bool>],
    /// Probabilities of the classes or labels, or values of a regression.
    pub values: &'a [f64],
}

impl Predictions {
    /// Number of samples.
    pub fn len(&self) -> usize {
        match (self.classes.len(), self.labels.len()) {
            (0, 0) => self.values.len() / self.width.max(1),
            (0, labels) => labels / self.names.len().max(1),
            (classes, _) => classes,
        }
    }

    /// Returns true if there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Prediction for each sample.
    pub fn iter(&self) -> impl Iterator<Item = Prediction<'_>> {
        let labels = if self.labels.is_empty() { 0 } else { self.names.len() };
        (0..self.len()).map(move |sample| Prediction {
            labels: &self.labels[sample * labels..][..labels],
            class: self
                .classes
                .get(sample)
                .and_then(|class| self.names.get((*class)?))
                .map(String::as_str),
            values: &self.values[sample * self.width..][..self.width],
        })
    }

    /// Column names: `class` and `p(NAME)` for classes, `NAME` and `p(NAME)` for labels, `value` or
    /// `value_1`, ... for numbers.
    pub fn columns(&self) -> Vec<String> {
        if self.names.is_empty() {
            return match self.width {
                1 => vec!["value".to_owned()],
                width => (1..=width).map(|number| format!("value_{number}")).collect(),
            };
        }
        let probabilities = self.names.iter().take(self.width).map(|name| format!("p({name})"));
        match self.labels.is_empty() {
            true => std::iter::once("class".to_owned()).chain(probabilities).collect(),
            false => self.names.iter().cloned().chain(probabilities).collect(),
        }
    }

    /// The predictions as CSV, with a header and one line per sample.
    pub fn to_csv(&self) -> String {
        let mut text = self.columns().iter().map(|name| cell(name)).collect::<Vec<_>>().join(",");
        text.push('\n');
        for prediction in self.iter() {
            let mut cells = Vec::new();
            if !self.classes.is_empty() {
                cells.push(cell(prediction.class.unwrap_or_default()));
            }
            let label = |label: &Option<bool>| match label {
                Some(label) => u8::from(*label).to_string(),
                None => String::new(),
            };
            cells.extend(prediction.labels.iter().map(label));
            // Outputs are single precision; more digits say nothing.
            cells.extend(prediction.values.iter().map(|value| (*value as f32).to_string()));
            text.push_str(&cells.join(","));
            text.push('\n');
        }
        text
    }
}

/// A CSV cell, quoted if it has to be.
fn cell(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Trainer;
    use std::fmt::Write as _;
    use std::fs;
    use tempfile::TempDir;

    const PATIENTS: &str = "\
[data]
source = { kind = \"csv\", path = \"patients.csv\", label = \"ill\", exclude = [\"id\"], categorical = [\"ward\"] }
missing = \"impute\"
outliers = \"clip\"
scale = \"standardise\"
split = { validation = 0.25 }
[[model]]
layer = \"dense\"
units = 8
activation = \"relu\"
[[model]]
layer = \"dense\"
units = 1
activation = \"sigmoid\"
[training]
epochs = 3
batch_size = 16
loss = \"binary_crossentropy\"
";

    /// Rows with an identifier, gaps, an outlier and a column of categories.
    fn patients() -> String {
        let mut text = "id,age,ward,weight,ill\n".to_owned();
        for row in 0..80_u32 {
            let age = match row % 9 {
                0 => String::new(),
                1 => "9999".to_owned(),
                _ => (20 + row * 7 % 60).to_string(),
            };
            let ward = ["north", "south, 2nd", "east"][(row % 3) as usize];
            let weight = 50 + row * 13 % 40;
            let ill = if row * 7 % 60 > 30 { "yes" } else { "no" };
            text.push_str(&format!("{row},{age},\"{ward}\",{weight},{ill}\n"));
        }
        text
    }

    /// A finished run of a plan beside a file of data.
    fn trained(plan: &str, file: &str, content: &str) -> (TempDir, Predictor) {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join(file), content).unwrap();
        let plan = Plan::parse(plan, "plan.toml").unwrap();
        let run = dir.path().join("run");
        Trainer::new(plan).base(dir.path()).record_at(&run).workers(1).train().unwrap();
        let predictor = Predictor::open(&run).unwrap();
        (dir, predictor)
    }

    fn predict(dir: &TempDir, predictor: &Predictor, text: &str) -> Result<Predictions, String> {
        let path = dir.path().join("new.csv");
        fs::write(&path, text).unwrap();
        predictor.predict_file(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn new_data_are_prepared_as_the_training_data_were() {
        let (dir, predictor) = trained(PATIENTS, "patients.csv", &patients());
        let found = predict(&dir, &predictor, &patients()).unwrap();
        assert_eq!(
            (found.len(), found.columns()),
            (80, vec!["class".into(), "p(no)".into(), "p(yes)".into()])
        );
        let plan = predictor.plan();
        let data = surefoot_data::load(&plan.data, plan.seed, dir.path()).unwrap();
        let outputs = predictor.outputs(&data.validation.features);
        let rows: Vec<Prediction<'_>> = found.iter().collect();
        for (&id, &output) in data.validation.ids.iter().zip(&outputs) {
            let row = &rows[id as usize];
            assert_eq!(row.values[1], f64::from(output));
            assert_eq!(row.class, Some(if output > 0.5 { "yes" } else { "no" }));
        }
    }

    #[test]
    fn columns_may_have_another_order_and_the_target_may_be_absent() {
        let (dir, predictor) = trained(PATIENTS, "patients.csv", &patients());
        let one = predict(&dir, &predictor, "age,ward,weight\n40,east,70\n").unwrap();
        let other = predict(&dir, &predictor, "weight,note,ward,age\n70,x,east,40\n").unwrap();
        assert_eq!(one, other);
        assert!(one.to_csv().starts_with("class,p(no),p(yes)\n"));
    }

    #[test]
    fn errors_name_the_column_and_the_value() {
        let (dir, predictor) = trained(PATIENTS, "patients.csv", &patients());
        let error = |text: &str| predict(&dir, &predictor, text).unwrap_err();
        let absent = error("age,ward\n40,east\n");
        assert!(
            absent.contains("has no column \"weight\", which the training data have"),
            "{absent}"
        );
        let unknown = error("age,ward,weight\n40,west,70\n");
        assert!(unknown.contains("\"west\" is not a category"), "{unknown}");
        assert!(unknown.contains("\"east\", \"north\", \"south, 2nd\""), "{unknown}");
        let text = error("age,ward,weight\nold,east,70\n");
        assert!(text.contains("line 2, column \"age\": \"old\" is not a number"), "{text}");
        assert!(error("age,ward,weight\n").contains("new.csv"));
    }

    const LINEAR: &str = "\
[data]
source = { kind = \"linear\", samples = 64, features = 2 }
[[model]]
layer = \"dense\"
units = 1
[training]
epochs = 2
loss = \"mse\"
";

    #[test]
    fn a_regression_predicts_values_and_refuses_gaps() {
        let (dir, predictor) = trained(LINEAR, "unused", "");
        let found = predict(&dir, &predictor, "x1,x2\n0.5,1\n0,0\n").unwrap();
        assert_eq!((found.len(), found.columns()), (2, vec!["value".to_owned()]));
        assert_eq!(found, predictor.predict(&[0.5, 1.0, 0.0, 0.0]).unwrap());
        let error = predict(&dir, &predictor, "x1,x2\n0.5,NaN\n").unwrap_err();
        assert!(error.contains("column \"x2\": the value is missing"), "{error}");
    }

    /// A float32 array as `np.save` writes it.
    fn npy(shape: &str, values: &[f32]) -> Vec<u8> {
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        bytes
    }

    #[test]
    fn arrays_need_the_shape_of_the_training_samples() {
        let (dir, predictor) = trained(LINEAR, "unused", "");
        let path = dir.path().join("new.npy");
        fs::write(&path, npy("(1, 2)", &[0.5, 1.0])).unwrap();
        assert_eq!(predictor.predict_file(&path).unwrap(), predictor.predict(&[0.5, 1.0]).unwrap());
        fs::write(&path, npy("(1, 3)", &[0.5, 1.0, 2.0])).unwrap();
        let error = predictor.predict_file(&path).unwrap_err().to_string();
        assert!(
            error.ends_with("samples of shape [3], but the model takes samples of shape [2]"),
            "{error}"
        );
        let error = predictor.predict_file(Path::new("data.xlsx")).unwrap_err().to_string();
        assert!(error.contains("convert it to .csv or .npy"), "{error}");
    }

    #[test]
    fn symbols_beyond_the_embedding_are_an_error() {
        let plan = "\
[data]
source = { kind = \"parity\", samples = 32, length = 4 }
[[model]]
layer = \"embedding\"
input_dim = 2
output_dim = 2
[[model]]
layer = \"flatten\"
[[model]]
layer = \"dense\"
units = 1
[training]
epochs = 1
loss = { name = \"binary_crossentropy\", from_logits = true }
";
        let (_dir, predictor) = trained(plan, "unused", "");
        let found = predictor.predict(&[0.0, 1.0, 1.0, 0.0]).unwrap();
        assert!((found.values.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let error = predictor.predict(&[0.0, 1.0, 2.0, 0.0]).unwrap_err().to_string();
        assert!(
            error.contains("2 is not a symbol; the model takes whole numbers from 0 to 1"),
            "{error}"
        );
    }

    #[test]
    fn labels_are_predicted_each() {
        let mut weather = String::from("x,rain,snow\n");
        for i in 0..40 {
            let x = i as f32 / 10.0 - 2.0;
            let _ = writeln!(weather, "{x},{},{}", u8::from(x > 0.0), u8::from(x.abs() < 1.0));
        }
        let plan = "\
[data]
source = { kind = \"csv\", path = \"weather.csv\", label = [\"rain\", \"snow\"] }
task = \"multi_label\"
[[model]]
layer = \"dense\"
units = 16
activation = \"tanh\"
[[model]]
layer = \"dense\"
units = 2
activation = \"sigmoid\"
[training]
epochs = 400
optimizer = { name = \"adam\", learning_rate = 0.05 }
";
        let (_dir, predictor) = trained(plan, "weather.csv", &weather);
        let found = predictor.predict(&[-1.9, 1.9, 0.5]).unwrap();
        assert_eq!(found.columns(), ["rain", "snow", "p(rain)", "p(snow)"]);
        let labels: Vec<_> = found.iter().map(|sample| sample.labels.to_vec()).collect();
        let known = |rain, snow| vec![Some(rain), Some(snow)];
        assert_eq!(labels, [known(false, false), known(true, false), known(true, true)]);
        let csv = found.to_csv();
        assert!(csv.starts_with("rain,snow,p(rain),p(snow)\n0,0,0."), "{csv}");
    }

    #[test]
    fn every_step_of_a_sequence_is_predicted() {
        let dir = TempDir::new().unwrap();
        let values: Vec<f32> = (0..120).map(|i| ((i * 7 % 40) as f32 - 19.5) / 10.0).collect();
        let labels: Vec<f32> = values.iter().map(|&x| f32::from(u8::from(x > 0.0))).collect();
        fs::write(dir.path().join("x.npy"), npy("(40, 3, 1)", &values)).unwrap();
        fs::write(dir.path().join("y.npy"), npy("(40, 3, 1)", &labels)).unwrap();
        let plan = "\
[data]
source = { kind = \"npy\", features = \"x.npy\", labels = \"y.npy\" }
task = \"binary\"
[[model]]
layer = \"dense\"
units = 8
activation = \"tanh\"
[[model]]
layer = \"dense\"
units = 1
activation = \"sigmoid\"
[training]
epochs = 200
optimizer = { name = \"adam\", learning_rate = 0.05 }
";
        let plan = Plan::parse(plan, "plan.toml").unwrap();
        let run = dir.path().join("run");
        let trainer = Trainer::new(plan).base(dir.path()).record_at(&run).workers(1);
        assert!(trainer.train().unwrap().summary.metric.after.unwrap() > 0.9);
        let predictor = Predictor::open(&run).unwrap();
        let found = predictor.predict(&[-1.0, 1.0, -1.5, 1.0, 1.0, 1.0]).unwrap();
        let classes: Vec<_> = found.iter().map(|row| row.class.unwrap().to_owned()).collect();
        assert_eq!(classes, ["0", "1", "0", "1", "1", "1"]);
    }

    #[test]
    fn an_unfinished_run_has_no_model() {
        let (dir, _) = trained(LINEAR, "unused", "");
        fs::remove_file(dir.path().join("run/model.safetensors")).unwrap();
        let Err(error) = Predictor::open(&dir.path().join("run")) else {
            panic!("the model is gone");
        };
        assert!(error.to_string().contains("has no delivered model"), "{error}");
    }

    #[test]
    fn cells_with_separators_are_quoted() {
        assert_eq!(cell("south, 2nd"), "\"south, 2nd\"");
        assert_eq!(cell("a \"b\""), "\"a \"\"b\"\"\"");
    }
}
