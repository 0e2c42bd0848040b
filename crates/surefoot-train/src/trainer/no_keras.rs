//! Stands in for Keras files in a build without them.

use super::prepared::InitialModel;
use crate::error::TrainError;
use surefoot_plan::{Document, Plan};
use surefoot_record::Record;

pub(super) fn is_plan_of(_: &Document, _: &Record, _: &Plan) -> Result<bool, TrainError> {
    Ok(false)
}

pub(super) fn recorded(record: &Record, key: &str) -> Result<Option<InitialModel>, TrainError> {
    match record.header().more.get(key) {
        None => Ok(None),
        Some(_) => Err(TrainError::NoKeras { run: record.dir().to_owned() }),
    }
}
