//! The table of steps.

use surefoot_diagnose::Observation;

use super::{Batch, Kind, Schema, field};

pub(super) fn schema() -> Schema {
    Schema {
        fields: vec![
            field("step", Kind::Int, false),
            field("epoch", Kind::Int, false),
            field("loss", Kind::Float, false),
            field("metric", Kind::Float, true),
            field("mae", Kind::Float, true),
            field("learning_rate", Kind::Float, true),
            field("top_class_share", Kind::Float, true),
            // Number of the step's rows in the other table, so that a reader detects missing ones
            // after a crash.
            field("layer_rows", Kind::Int, false),
        ],
    }
}

/// Adds the row of a step with `layer_rows` rows in the table of layers.
pub(crate) fn push(batch: &mut Batch, observation: &Observation, layer_rows: usize) {
    batch
        .row()
        .int(observation.step)
        .int(observation.epoch)
        .float(observation.loss)
        .float(observation.metric)
        .float(observation.mae)
        .float(observation.learning_rate)
        .float(observation.top_class_share)
        .int(layer_rows as u64);
}

/// The step without layers and input, and how many rows those have in the table of layers.
///
/// `None` if a value is missing that every row has.
pub(crate) fn read(batch: &Batch, row: usize) -> Option<(Observation, u64)> {
    let mut row = batch.read(row);
    let mut observation = Observation::default();
    observation.step = row.int()?;
    observation.epoch = row.int()?;
    observation.loss = row.float()?;
    observation.metric = row.float();
    observation.mae = row.float();
    observation.learning_rate = row.float();
    observation.top_class_share = row.float();
    Some((observation, row.int()?))
}
