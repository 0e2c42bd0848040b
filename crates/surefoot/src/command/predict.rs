//! `surefoot predict`: the delivered model of a run on new data.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Console, Role};
use clap::Args;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use surefoot_train::{Prediction, Predictions, Predictor};

const EXAMPLES: &str = "\
Examples:
  surefoot predict runs/patients-001 new.csv
      Prints one line per row of new.csv: the class and the probability of each class, the labels
      and their probabilities, or the value.

  surefoot predict runs/patients-001 new.csv -o predictions.csv
      Writes them to a file.

  surefoot predict runs/digits-001 images.npy --json
      Prints one JSON object per sample.

The data have the layout of the training data: a CSV file with the same feature columns, in any order
and with or without the target, or an .npy array of samples. Encoding, clipping, imputation and
scaling are those of the training.

Exit codes: 0 success, 2 invalid input, 3 internal error.";

/// Predict new data with the delivered model of a run
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Run directory
    run: PathBuf,

    /// New data: a .csv or .npy file
    data: PathBuf,

    /// CSV file to write instead of printing, overwritten if it exists
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print one JSON object per sample on stdout
    #[arg(long)]
    json: bool,
}

/// JSON event of one sample.
#[derive(Serialize)]
struct Row<'a> {
    event: &'static str,
    /// 0-based number of the sample.
    sample: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<&'a str, Option<bool>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    probabilities: BTreeMap<&'a str, f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<&'a [f64]>,
}

impl<'a> Row<'a> {
    fn new(sample: usize, prediction: &Prediction<'a>, names: &'a [String]) -> Self {
        let is_regression = names.is_empty();
        let names = names.iter().map(String::as_str);
        Self {
            event: "prediction",
            sample,
            class: prediction.class,
            labels: names.clone().zip(prediction.labels.iter().copied()).collect(),
            probabilities: names.zip(prediction.values.iter().copied()).collect(),
            values: is_regression.then_some(prediction.values),
        }
    }
}

/// JSON event of the whole.
#[derive(Serialize)]
struct Summary {
    event: &'static str,
    samples: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let console = Console::new(arguments.json, false);
    let predictor = Predictor::open(&arguments.run)?;
    let predictions = predictor.predict_file(&arguments.data)?;
    let samples = predictions.len();
    let file = arguments.output.as_ref().map(|file| file.display().to_string());
    match (&arguments.output, arguments.json) {
        (Some(path), _) => {
            output::file::write(path, predictions.to_csv().as_bytes())?;
            let name = Role::Strong.paint(path.display());
            console.say(&format!("  {:<14} {name} ({samples} samples)", "predictions"));
        }
        (None, true) => print_events(&console, &predictions),
        (None, false) => output::to_stdout(predictions.to_csv().trim_end()),
    }
    console.event(&Summary { event: "predict", samples, file });
    Ok(Exit::Done)
}

fn print_events(console: &Console, predictions: &Predictions) {
    for (sample, prediction) in predictions.iter().enumerate() {
        console.event(&Row::new(sample, &prediction, &predictions.names));
    }
}
