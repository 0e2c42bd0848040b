//! The table of layers: one row for each gradient, weight, output and input seen at a step.

use surefoot_diagnose::{LayerInfo, LayerObservation, Observation, Quartiles, Summary};

use super::{Batch, Kind, RowReader, Schema, field};

/// Tensor of a row. The discriminants are positions in [`WHAT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Gradient = 0,
    Weight = 1,
    Output = 2,
    Input = 3,
}

/// The texts of the column `what`.
const WHAT: [&str; 4] = ["gradient", "weight", "output", "input"];

pub(super) fn schema(layers: &[LayerInfo]) -> Schema {
    let names = layers.iter().map(|layer| layer.name.clone()).collect();
    let what = WHAT.map(str::to_owned).to_vec();
    let count = |name| field(name, Kind::Int, true);
    let number = |name| field(name, Kind::Float, true);
    Schema {
        fields: vec![
            field("step", Kind::Int, false),
            // Null, like the name, in the row of the input.
            count("layer"),
            field("name", Kind::Text(names), true),
            field("what", Kind::Text(what), false),
            count("count"),
            count("nan"),
            count("inf"),
            count("zeros"),
            number("mean"),
            number("variance"),
            number("skewness"),
            number("kurtosis"),
            number("min"),
            number("max"),
            number("l1"),
            number("l2"),
            number("abs_mean"),
            number("linf"),
            number("q1"),
            number("median"),
            number("q3"),
            // With the gradient, the weight and the output respectively.
            number("dead_units"),
            number("update_ratio"),
            number("saturated"),
        ],
    }
}

/// Adds the rows of a step and returns their number.
pub(crate) fn push(batch: &mut Batch, observation: &Observation) -> usize {
    let before = batch.rows;
    let step = observation.step;
    if observation.input.is_some() {
        push_row(batch, step, None, What::Input, observation.input, None);
    }
    for (layer, seen) in observation.layers.iter().enumerate() {
        let mut add = |what, summary: Option<Summary>, extra: Option<f64>| {
            if summary.is_some() || extra.is_some() {
                push_row(batch, step, Some(layer), what, summary, extra);
            }
        };
        add(What::Gradient, seen.gradient, seen.dead_units);
        add(What::Weight, seen.weight, seen.update_ratio);
        add(What::Output, seen.output, seen.saturated);
    }
    batch.rows - before
}

fn push_row(
    batch: &mut Batch,
    step: u64,
    layer: Option<usize>,
    what: What,
    summary: Option<Summary>,
    extra: Option<f64>,
) {
    let mut row = batch.row();
    row.int(step).int(layer.map(|layer| layer as u64)).text(layer).text(what as usize);
    match summary {
        Some(s) => {
            row.int(s.count).int(s.nan).int(s.inf).int(s.zeros);
            row.float(s.mean)
                .float(s.variance)
                .float(s.skewness)
                .float(s.kurtosis)
                .float(s.min)
                .float(s.max)
                .float(s.l1)
                .float(s.l2)
                .float(s.abs_mean)
                .float(s.linf);
        }
        None => {
            for _ in 0..4 {
                row.int(None);
            }
            for _ in 0..10 {
                row.float(None);
            }
        }
    }
    let quartiles = summary.and_then(|summary| summary.quartiles);
    row.float(quartiles.map(|q| q.q1))
        .float(quartiles.map(|q| q.median))
        .float(quartiles.map(|q| q.q3));
    for owner in [What::Gradient, What::Weight, What::Output] {
        row.float(extra.filter(|_| owner == what));
    }
}

/// Puts a row into the observation it belongs to, which has as many layers as the run once it has
/// one.
///
/// `None` if the row makes no sense.
pub(crate) fn read_into(
    batch: &Batch,
    row: usize,
    observation: &mut Observation,
    layer_count: usize,
) -> Option<()> {
    let mut row = batch.read(row);
    if row.int()? != observation.step {
        return None;
    }
    let layer = row.int();
    let _name = row.text();
    let what = row.text()?;
    let summary = read_summary(&mut row);
    let (dead_units, update_ratio, saturated) = (row.float(), row.float(), row.float());
    if what == What::Input as usize {
        observation.input = summary;
        return Some(());
    }
    let layer = usize::try_from(layer?).ok()?;
    if layer >= layer_count {
        return None;
    }
    observation.layers.resize(layer_count, LayerObservation::default());
    let seen = observation.layers.get_mut(layer)?;
    if what == What::Gradient as usize {
        seen.gradient = summary;
        seen.dead_units = dead_units;
    } else if what == What::Weight as usize {
        seen.weight = summary;
        seen.update_ratio = update_ratio;
    } else if what == What::Output as usize {
        seen.output = summary;
        seen.saturated = saturated;
    } else {
        return None;
    }
    Some(())
}

/// Reads the summary, if any, and advances past its columns.
fn read_summary(row: &mut RowReader<'_>) -> Option<Summary> {
    let counts = [row.int(), row.int(), row.int(), row.int()];
    let numbers: [Option<f64>; 10] = std::array::from_fn(|_| row.float());
    let quartiles = [row.float(), row.float(), row.float()];
    let [Some(count), Some(nan), Some(inf), Some(zeros)] = counts else {
        return None;
    };
    let [mean, variance, skewness, kurtosis, min, max, l1, l2, abs_mean, linf] = numbers;
    let quartiles = match quartiles {
        [Some(q1), Some(median), Some(q3)] => Some(Quartiles { q1, median, q3 }),
        _ => None,
    };
    Some(Summary {
        count,
        nan,
        inf,
        zeros,
        mean: mean?,
        variance: variance?,
        skewness: skewness?,
        kurtosis: kurtosis?,
        min: min?,
        max: max?,
        l1: l1?,
        l2: l2?,
        abs_mean: abs_mean?,
        linf: linf?,
        quartiles,
    })
}
