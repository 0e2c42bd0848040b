//! Samples of a separate validation file.

use std::path::Path;

use surefoot_plan::{Data, Source};

use crate::error::{DataError, Origin};
use crate::samples::{Form, Labels, Measure, Samples};
use crate::table::Names;
use crate::{csv, parquet, read};

/// Reads the validation file of a plan as the file of the training samples was read: the same
/// columns, categories and image size.
pub(crate) fn read_like(
    training: &Samples,
    source: &Source,
    data: &Data,
    base: &Path,
) -> Result<Samples, DataError> {
    let columns = Some(&training.columns[..]);
    let labels = &training.label_columns[..];
    match source {
        Source::Csv { path, .. } => {
            let selection = csv::Selection { labels, exclude: &[], categorical: &[], columns };
            csv::csv(&base.join(path), selection, data.task, data.missing)
        }
        Source::Parquet { path, .. } => {
            parquet::parquet(&base.join(path), labels, columns, data.missing)
        }
        Source::Images { path, .. } => {
            let (size, channels) = match training.shape[..] {
                [height, width, channels] => (Some([height, width]), channels),
                _ => (None, 3),
            };
            let source = Source::Images { path: path.clone(), size, channels };
            read(&source, data, 0, base)
        }
        source => read(source, data, 0, base),
    }
}

/// Appends validation samples to training samples.
///
/// # Errors
///
/// If samples or labels have different shapes.
pub(crate) fn join(mut training: Samples, validation: Samples) -> Result<Samples, DataError> {
    let differ = |what: &'static str, expected: String, found: String| {
        let (one, other) = (&training.origin, &validation.origin);
        DataError::new(format!(
            "{one} has {what} {expected} and {other} {found}; both need the same"
        ))
    };
    if training.shape != validation.shape {
        let shapes = [&training.shape, &validation.shape].map(|shape| format!("{shape:?}"));
        let [expected, found] = shapes;
        return Err(differ("samples of shape", expected, found));
    }
    let first = training.len();
    let labels = match (&training.labels, &validation.labels) {
        (
            Labels::Numbers { values, width, form },
            Labels::Numbers { values: more, width: other, form: other_form },
        ) => {
            if (width, training.positions) != (other, validation.positions) {
                return Err(differ("labels per sample:", width.to_string(), other.to_string()));
            }
            // Numbers with a point in one of the files are amounts in both.
            let form = if form == other_form { *form } else { Form::Floats };
            Labels::Numbers { values: [&values[..], more].concat(), width: *width, form }
        }
        (Labels::Classes { .. }, Labels::Classes { .. }) => {
            let mut all = Names::default();
            for labels in [&training.labels, &validation.labels] {
                if let Labels::Classes { ids, names } = labels {
                    ids.iter().for_each(|&id| all.push(&names[id as usize]));
                }
            }
            all.labels()
        }
        (Labels::Classes { .. }, _) => {
            return Err(differ("labels that are", "names".into(), "numbers".into()));
        }
        _ => return Err(differ("labels that are", "numbers".into(), "names".into())),
    };
    training.labels = labels;
    training.features.extend(validation.features);
    if validation.measure == Measure::Amounts {
        training.measure = Measure::Amounts;
    }
    training.notes.extend(validation.notes);
    let joined = |a: Origin, b: Origin| Origin::Joined { files: Box::new([a, b]), first };
    training.origin = joined(training.origin, validation.origin);
    training.label_origin = joined(training.label_origin, validation.label_origin);
    Ok(training)
}
