//! The preparation of a data set, to be repeated on new samples.

use std::path::Path;

use serde::{Deserialize, Serialize};
use surefoot_plan::{Missing, Task};

use crate::error::{DataError, Place, Position};
use crate::scale::Scaling;
use crate::{csv, npy};

/// Everything that turns a file of new samples into the inputs of a model, and its outputs into
/// classes: fitted on the training part, and saved with the model.
///
/// The steps are applied in the order encode, clip, impute, scale.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preprocessing {
    /// Task: `binary`, `multi_class`, `multi_label` or `regression`.
    pub task: String,
    /// Names of the classes by their number, or of the labels; empty for a regression.
    pub classes: Vec<String>,
    /// Columns of the target, where the data have columns.
    pub labels: Vec<String>,
    /// Feature columns in the order of the inputs; empty if the data have no columns.
    pub columns: Vec<Column>,
    /// Shape of one sample after encoding: channels last, no batch.
    pub input_shape: Vec<usize>,
    /// Positions of a sample that have a target each: the steps of a sequence, otherwise 1.
    pub positions: usize,
    /// Range that each feature or channel is clipped to; `None` where it is not clipped, empty if
    /// nothing is.
    pub limits: Vec<Option<[f32; 2]>>,
    /// Replacement of a missing value in each feature or channel; empty if missing values are
    /// errors.
    pub means: Vec<f32>,
    /// Scaling of each feature or channel.
    pub scaling: Option<Scaling>,
    /// Scaling of the targets of a regression, undone by predictions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_scaling: Option<Scaling>,
}

/// A feature column of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Name in the header.
    pub name: String,
    /// Categories in ascending order, one input each; `None` for a column of numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub categories: Option<Vec<String>>,
}

impl Column {
    /// A column of numbers.
    pub(crate) fn number(name: impl Into<String>) -> Column {
        Column { name: name.into(), categories: None }
    }

    /// Names of the inputs that the column becomes.
    pub fn inputs(&self) -> Vec<String> {
        match &self.categories {
            None => vec![self.name.clone()],
            Some(all) => all.iter().map(|category| format!("{}={category}", self.name)).collect(),
        }
    }
}

impl Preprocessing {
    /// The task; a regression if the name is unknown.
    pub fn task(&self) -> Task {
        Task::named(&self.task).unwrap_or(Task::Regression)
    }

    /// Values of one sample.
    pub fn width(&self) -> usize {
        self.input_shape.iter().product()
    }

    /// Reads the samples of a CSV or NPY file as inputs of the model.
    ///
    /// A CSV file has the feature columns of the training data in any order; other columns, such as
    /// the target, are ignored.
    ///
    /// # Errors
    ///
    /// If a column is missing, the shape differs, or a value is missing or not a number.
    pub fn read(&self, path: &Path) -> Result<Vec<f32>, DataError> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        let mut features = match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("npy") => npy::features(path, &self.input_shape, self.missing())?,
            Some("csv" | "tsv" | "txt") => csv::features(path, self, self.missing())?,
            _ => {
                let what = "new data are read from CSV and NPY files";
                return Err(DataError::unsupported(path, what, "convert it to .csv or .npy"));
            }
        };
        self.apply(&mut features);
        Ok(features)
    }

    /// Clips, imputes and scales encoded samples in place.
    pub fn apply(&self, features: &mut [f32]) {
        let channels = self.input_shape.last().map_or(1, |&channels| channels.max(1));
        for values in features.chunks_mut(channels) {
            for (value, limits) in values.iter_mut().zip(&self.limits) {
                if let Some([low, high]) = limits
                    && value.is_finite()
                {
                    *value = value.clamp(*low, *high);
                }
            }
            for (value, mean) in values.iter_mut().zip(&self.means) {
                if !value.is_finite() {
                    *value = *mean;
                }
            }
        }
        if let Some(scaling) = &self.scaling {
            scaling.apply(features);
        }
    }

    /// Checks that every value is the number of a symbol below `symbols`, as an embedding needs.
    ///
    /// # Errors
    ///
    /// Names the first sample with another value.
    pub fn check_symbols(&self, features: &[f32], symbols: usize) -> Result<(), DataError> {
        let is_symbol = |value: f32| value.fract() == 0.0 && (0.0..symbols as f32).contains(&value);
        match features.iter().position(|&value| !is_symbol(value)) {
            None => Ok(()),
            Some(at) => {
                let width = self.width().max(1);
                let position = Position::Element { sample: at / width, index: vec![at % width] };
                let place = Box::new(Place { file: "the data".into(), position });
                Err(DataError::value(
                    place,
                    format!(
                        "{} is not a symbol; the model takes whole numbers from 0 to {}",
                        features[at],
                        symbols - 1
                    ),
                ))
            }
        }
    }

    fn missing(&self) -> Missing {
        match self.means.is_empty() {
            true => Missing::Refuse,
            false => Missing::Impute,
        }
    }
}
