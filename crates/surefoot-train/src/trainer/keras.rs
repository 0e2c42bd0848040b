//! Keras files to start from.

use super::prepared::{InitialModel, KERAS_COPY, PreparedPlan, load_data};
use crate::error::TrainError;
use std::path::Path;
use surefoot_plan::keras::{self, KerasModel};
use surefoot_plan::{Document, Plan};
use surefoot_record::Record;

impl PreparedPlan {
    /// Takes layers and weights from a Keras file, and the loss and optimizer that it was compiled
    /// with where `document` has none.
    pub fn from_keras(
        document: Document,
        file: &Path,
        keras: KerasModel,
        base: &Path,
    ) -> Result<Self, TrainError> {
        let plan = plan(&document, &keras)?;
        let data = load_data(&plan, base)?;
        let text = plan.to_toml();
        let initial = Some(InitialModel::from(keras));
        let mut prepared = Self::assemble(plan, text, base, data, initial, Some(document))?;
        prepared.keras_file = Some(file.to_owned());
        Ok(prepared)
    }
}

impl From<KerasModel> for InitialModel {
    fn from(keras: KerasModel) -> Self {
        Self { weights: keras.weights, input_shape: keras.input_shape }
    }
}

/// The plan of `document` with the model of a Keras file.
fn plan(document: &Document, keras: &KerasModel) -> Result<Plan, TrainError> {
    let mut plan = document.plan_with_model(keras.layers.clone(), keras.loss)?;
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

/// Returns true if `document` with the Keras file of `record` is `expected`.
pub(super) fn is_plan_of(
    document: &Document,
    record: &Record,
    expected: &Plan,
) -> Result<bool, TrainError> {
    let keras = load(record, KERAS_COPY)?;
    Ok(keras.is_some_and(|keras| plan(document, &keras).is_ok_and(|given| given == *expected)))
}

/// The model that the header of `record` names under `key`.
pub(super) fn recorded(record: &Record, key: &str) -> Result<Option<InitialModel>, TrainError> {
    Ok(load(record, key)?.map(InitialModel::from))
}

fn load(record: &Record, key: &str) -> Result<Option<KerasModel>, TrainError> {
    let name = record.header().more.get(key).and_then(|name| name.as_str());
    Ok(name.map(|name| keras::load(&record.dir().join(name))).transpose()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use surefoot_plan::{Decay, Dense, Layer, Loss, Optimizer};

    /// The plan of a document without a model, with a Keras file that was compiled with the mean
    /// absolute error and SGD with a decay.
    fn with_model(training: &str) -> Plan {
        let text = format!(
            "[data]\nsource = {{ kind = \"csv\", path = \"t.csv\" }}\n[training]\nepochs = 1\n{training}"
        );
        let keras = KerasModel {
            layers: vec![Layer::Dense(Dense::new(1))],
            input_shape: None,
            weights: Vec::new(),
            loss: Some(Loss::Mae),
            optimizer: Some(Optimizer::sgd()),
            schedule: Some(Decay::InverseTime { decay_steps: 1, decay_rate: 0.01 }.into()),
            warnings: Vec::new(),
        };
        plan(&Document::parse(&text, "plan.toml").unwrap(), &keras).unwrap()
    }

    #[test]
    fn a_compiled_loss_and_optimizer_are_used_without_a_task() {
        let training = with_model("").training;
        assert_eq!((training.loss, training.optimizer), (Loss::Mae, Optimizer::sgd()));
        assert_eq!(training.schedule.decay.name(), "inverse_time");
    }

    #[test]
    fn the_plan_takes_precedence_over_what_was_compiled() {
        let training = with_model("loss = \"mse\"\noptimizer = \"adam\"\n").training;
        assert_eq!((training.loss, training.optimizer), (Loss::Mse, Optimizer::adam()));
        assert_eq!(training.schedule.decay.name(), "constant");
    }
}
