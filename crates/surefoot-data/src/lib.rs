//! Data sets for plans: generators and files, cleaned, split and scaled.
//!
//! [`load`] turns the `data` of a plan into a [`Dataset`]: it generates samples or reads them from
//! CSV, Parquet, NumPy, IDX or image files, infers the task if the plan does not set it, splits the
//! samples, and cleans and scales the features. The result is a pure function of the plan, the seed
//! and the files' contents: it does not depend on the clock, the order of a folder or the state of a
//! generator.
//!
//! A faulty file gives a [`DataError`] that names the file and the place and advises a fix. No file
//! makes the crate panic.
//!
//! ```
//! use std::path::Path;
//! use surefoot_data::load;
//! use surefoot_plan::{Data, Scale, Source, SplitFractions};
//!
//! let data = Data {
//!     scale: Scale::Standardise,
//!     split: SplitFractions { validation: 0.2, test: 0.1 },
//!     ..Data::new(Source::Moons { samples: 100, noise: 0.1 })
//! };
//! let set = load(&data, 42, Path::new("."))?;
//! assert_eq!((set.train.len, set.validation.len, set.test.len), (70, 20, 10));
//! assert_eq!((set.input_shape, set.classes), (vec![2], 2));
//! # Ok::<(), surefoot_data::DataError>(())
//! ```

mod array;
mod clean;
mod csv;
mod dataset;
mod draft;
mod error;
mod generate;
mod idx;
mod images;
mod memory;
mod missing;
mod npy;
mod npz;
mod parquet;
mod picture;
mod preprocessing;
mod samples;
mod scale;
mod split;
mod table;
mod task;
mod validation;

pub use dataset::{Dataset, Part, Targets};
pub use draft::{Draft, draft};
pub use error::DataError;
pub use memory::available_memory;
pub use preprocessing::{Column, Preprocessing};
pub use scale::Scaling;

use std::path::Path;

use samples::{Measure, Samples};
use split::Division;
use surefoot_plan::{Columns, Data, Missing, Outliers, Scale, Source, SplitFractions, Task};

/// Loads the data of a plan. Files are relative to `base`, the plan's folder.
///
/// # Errors
///
/// If a setting of the plan or a file is faulty, see [`DataError`].
pub fn load(data: &Data, seed: u64, base: &Path) -> Result<Dataset, DataError> {
    let samples = read(&data.source, data, seed, base)?;
    match &data.validation {
        None => prepare(samples, None, data, seed),
        Some(source) => {
            let held_out = validation::read_like(&samples, source, data, base)?;
            let training = samples.len();
            prepare(validation::join(samples, held_out)?, Some(training), data, seed)
        }
    }
}

/// All samples of a source.
fn read(source: &Source, data: &Data, seed: u64, base: &Path) -> Result<Samples, DataError> {
    let missing = data.missing;
    match *source {
        Source::Circles { samples, noise, factor } => {
            generate::circles(seed, samples, noise, factor)
        }
        Source::Blobs { samples, centers, features, spread } => {
            generate::blobs(seed, samples, centers, features, spread)
        }
        Source::Moons { samples, noise } => generate::moons(seed, samples, noise),
        Source::Spirals { samples, classes, turns, noise } => {
            generate::spirals(seed, samples, classes, turns, noise)
        }
        Source::Linear { samples, features, noise } => {
            generate::linear(seed, samples, features, noise)
        }
        Source::Friedman { samples, features, noise } => {
            generate::friedman(seed, samples, features, noise)
        }
        Source::Copy { samples, length, symbols } => generate::copy(seed, samples, length, symbols),
        Source::Parity { samples, length } => generate::parity(seed, samples, length),
        Source::Shapes { samples, size, channels, classes, noise } => {
            generate::shapes(seed, samples, size, channels, classes, noise)
        }
        Source::Csv { ref path, ref label, ref exclude, ref categorical } => {
            let selection =
                csv::Selection { labels: names(label), exclude, categorical, columns: None };
            csv::csv(&base.join(path), selection, data.task, missing)
        }
        Source::Parquet { ref path, ref label } => {
            parquet::parquet(&base.join(path), names(label), None, missing)
        }
        Source::Npy { ref features, ref labels } => {
            npy::npy(&base.join(features), &base.join(labels), missing)
        }
        Source::Npz { ref path, ref features, ref labels } => {
            npz::npz(&base.join(path), features, labels, missing)
        }
        Source::Idx { ref features, ref labels } => {
            idx::idx(&base.join(features), &base.join(labels), missing)
        }
        Source::Images { ref path, size, channels } => {
            images::images(&base.join(path), size, channels)
        }
    }
}

/// Names of the label columns in a plan; empty if there are none.
fn names(label: &Option<Columns>) -> &[String] {
    label.as_ref().map_or(&[], |columns| &columns.0)
}

/// The data set of samples: targets, parts, cleaning, scaling. If there is a validation file, the
/// samples after the first `training` are from it.
fn prepare(
    samples: Samples,
    training: Option<usize>,
    data: &Data,
    seed: u64,
) -> Result<Dataset, DataError> {
    let (samples, kept) = match data.missing {
        Missing::Drop => {
            let (complete, kept) = samples.complete();
            (complete, Some(kept))
        }
        Missing::Keep | Missing::Refuse | Missing::Impute => (samples, None),
    };
    let count = samples.len();
    if count < 2 {
        let origin = samples.origin;
        return Err(match count {
            0 => DataError::empty(origin),
            _ => DataError::new(format!(
                "{origin} has a single sample; it must hold at least two, one to learn from and one to judge by"
            )),
        });
    }
    if let Some(instead) = arithmetic(data).filter(|_| samples.measure == Measure::Symbols) {
        let origin = samples.origin;
        return Err(DataError::new(format!(
            "{origin} gives symbols, which are numbered and not measured; set {instead}"
        )));
    }
    let learnt = task::learnt(
        samples.labels,
        &samples.label_columns,
        samples.positions,
        data.task,
        &samples.label_origin,
    )?;
    let symbols = if data.scale == Scale::None {
        symbols(samples.measure, &samples.shape, &samples.features)
    } else {
        0
    };
    // Samples that are left of the training file.
    let training = training.map(|training| match &kept {
        Some(kept) => kept.partition_point(|&id| id < training as u64),
        None => training,
    });
    let division = match training {
        None => split::divide(data.split, count, seed)?,
        Some(training) if training == count => {
            return Err(DataError::empty(samples.origin.of_sample(count).0));
        }
        Some(training) => Division {
            validation: (training as u64..count as u64).collect(),
            ..split::divide(SplitFractions { validation: 0.0, ..data.split }, training, seed)?
        },
    };
    // The parts are copies.
    samples::check_memory(&samples.origin, size_of_val(&samples.features[..]) as u64)?;
    let width = samples.shape.iter().product();
    let part = |ids| {
        let numbers = learnt.width * samples.positions;
        let mut part = Part::gather(&samples.features, width, &learnt.targets, numbers, ids);
        if let Some(kept) = &kept {
            part.ids.iter_mut().for_each(|id| *id = kept[*id as usize]);
        }
        part
    };
    let mut parts = [division.train, division.validation, division.test].map(part);
    drop(samples.features);

    let mut notes = samples.notes;
    let cleaned = clean::clean(&mut parts, data, &samples.shape, learnt.width * samples.positions);
    let cleaned =
        cleaned.ok_or_else(|| DataError::new(format!("every training sample of {} has an outlier; set outliers = \"clip\" to keep the samples", samples.origin)))?;
    // Clipped or filled-in values need not be whole numbers.
    let symbols = if cleaned.notes.is_empty() { symbols } else { 0 };
    notes.extend(cleaned.notes);
    let scaling = Scaling::fit(data.scale, &parts[0].features, &samples.shape);
    if let Some(scaling) = &scaling {
        for part in &mut parts {
            scaling.apply(&mut part.features);
        }
    }
    if data.target_scale != Scale::None && learnt.task != Task::Regression {
        return Err(DataError::new(format!(
            "{}: the targets are classes; remove data.target_scale, which needs numbers",
            samples.label_origin
        )));
    }
    let target_scaling = match &parts[0].targets {
        Targets::Values(values) => Scaling::fit(data.target_scale, values, &[learnt.width]),
        Targets::Classes(_) => None,
    };
    if let Some(scaling) = &target_scaling {
        for part in &mut parts {
            if let Targets::Values(values) = &mut part.targets {
                scaling.apply(values);
            }
        }
    }
    notes.extend(learnt.notes);
    let [train, validation, test] = parts;
    notes.extend(unlearnable(&train, [&validation, &test], &learnt.classes));
    let preprocessing = Preprocessing {
        task: learnt.task.name().to_owned(),
        classes: learnt.classes.clone(),
        labels: samples.label_columns,
        input_shape: samples.shape.clone(),
        positions: samples.positions,
        limits: cleaned.limits,
        means: cleaned.means,
        scaling,
        target_scaling,
        columns: samples.columns,
    };
    let inputs = preprocessing.columns.iter().flat_map(Column::inputs);
    Ok(Dataset {
        feature_names: inputs.collect(),
        preprocessing,
        digest: dataset::digest([&train, &validation, &test]),
        train,
        validation,
        test,
        input_shape: samples.shape,
        integer_input: symbols > 0,
        symbols,
        task: learnt.task,
        classes: learnt.classes.len(),
        class_names: learnt.classes,
        target_width: learnt.width,
        positions: samples.positions,
        notes,
    })
}

/// The setting to use instead of the first that computes with features, if one does.
fn arithmetic(data: &Data) -> Option<&'static str> {
    if data.scale != Scale::None {
        Some("scale = \"none\"")
    } else if data.outliers != Outliers::Keep {
        Some("outliers = \"keep\"")
    } else if data.missing == Missing::Impute {
        Some("missing = \"refuse\"")
    } else {
        None
    }
}

/// Warns of classes that only the evaluation has.
fn unlearnable(train: &Part, judged: [&Part; 2], classes: &[String]) -> Option<String> {
    let seen = |part: &Part| {
        let mut seen = vec![false; classes.len()];
        if let Targets::Classes(ids) = &part.targets {
            ids.iter().for_each(|&id| seen[id as usize] = true);
        }
        seen
    };
    let (known, asked) = (seen(train), judged.map(seen));
    let unknown: Vec<&str> = (0..classes.len())
        .filter(|&id| !known[id] && asked.iter().any(|part| part[id]))
        .map(|id| classes[id].as_str())
        .collect();
    let first = unknown.first()?;
    Some(format!("{} classes have no samples in the training part, such as {first}", unknown.len()))
}

/// Number of symbols if the features can be used as symbols, otherwise 0.
fn symbols(measure: Measure, shape: &[usize], features: &[f32]) -> usize {
    /// Above it not every whole number is an `f32`.
    const LARGEST: f32 = 16_777_216.0;
    if measure == Measure::Amounts || shape.len() != 1 {
        return 0;
    }
    let last = features.iter().copied().fold(0.0, f32::max);
    if last < LARGEST { last as usize + 1 } else { 0 }
}

#[cfg(test)]
mod abnormal_tests;
#[cfg(test)]
mod robust_tests;
#[cfg(test)]
mod tests;
