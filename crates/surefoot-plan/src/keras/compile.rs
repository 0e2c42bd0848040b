//! Arguments of `model.compile(..)`: loss, optimizer and schedule.
//!
//! None of them is needed to use a model, so an unsupported one is ignored with a warning.

use serde_json::{Map, Value};

use super::config::{object, short, tidy};
use super::optimizer::optimizer;
use crate::{Loss, Optimizer, Schedule};

/// The training arguments in a file.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Compiled {
    pub(super) loss: Option<Loss>,
    pub(super) optimizer: Option<Optimizer>,
    pub(super) schedule: Option<Schedule>,
}

/// Reads `training_config` (HDF5) or `compile_config` (archive).
pub(super) fn read(training: Option<&Value>, warnings: &mut Vec<String>) -> Compiled {
    let Some(training) = training else {
        return Compiled::default();
    };
    let get = |key: &str| training.get(key).filter(|value| !value.is_null());
    let mut compiled = Compiled::default();
    if let Some(value) = get("loss") {
        compiled.loss = loss(value).map_err(|reason| warnings.push(reason)).ok();
    }
    if get("loss_weights").is_some() {
        warnings.push("the loss weights that the model was compiled with are ignored".to_owned());
    }
    if let Some(value) = get("optimizer").or_else(|| get("optimizer_config")) {
        match optimizer(value, warnings) {
            Ok((optimizer, schedule)) => {
                compiled.optimizer = Some(optimizer);
                compiled.schedule = schedule;
            }
            Err(reason) => warnings.push(reason),
        }
    }
    compiled
}

fn loss(value: &Value) -> Result<Loss, String> {
    let unknown = || format!("the loss {} is not supported and is ignored", short(value));
    let value = match value {
        Value::Array(losses) => match losses.as_slice() {
            [one] => one,
            _ => return Err(unknown()),
        },
        one => one,
    };
    let (name, config) = object(value).ok_or_else(unknown)?;
    let config = Config(config);
    let from_logits = config.flag("from_logits");
    let loss = match name {
        "binary_crossentropy" | "BinaryCrossentropy" | "bce" | "BCE" => {
            Loss::BinaryCrossentropy { from_logits }
        }
        "categorical_crossentropy" | "CategoricalCrossentropy" => {
            Loss::CategoricalCrossentropy { from_logits }
        }
        "sparse_categorical_crossentropy" | "SparseCategoricalCrossentropy" => {
            Loss::SparseCategoricalCrossentropy { from_logits }
        }
        "mse" | "MSE" | "mean_squared_error" | "MeanSquaredError" => Loss::Mse,
        "mae" | "MAE" | "mean_absolute_error" | "MeanAbsoluteError" => Loss::Mae,
        // Some versions of Keras 3 do not write `delta`, and read the file as 1 themselves.
        "huber" | "huber_loss" | "Huber" => {
            Loss::Huber { delta: config.number("delta").unwrap_or(1.0) }
        }
        "hinge" | "Hinge" => Loss::Hinge,
        "kl_divergence" | "kld" | "KLD" | "kullback_leibler_divergence" | "KLDivergence" => {
            Loss::KlDivergence
        }
        "poisson" | "Poisson" => Loss::Poisson,
        _ => return Err(unknown()),
    };
    let ignored =
        |key: &str| format!("the loss {name} with its `{key}` is not supported and is ignored");
    for key in ["label_smoothing", "ignore_class"] {
        if config.get(key).is_some_and(|value| value.as_f64() != Some(0.0)) {
            return Err(ignored(key));
        }
    }
    if config.get("axis").is_some_and(|axis| axis.as_i64() != Some(-1)) {
        return Err(ignored("axis"));
    }
    match config.text("reduction") {
        None | Some("auto" | "sum_over_batch_size" | "mean") => Ok(loss),
        Some(_) => Err(ignored("reduction")),
    }
}

/// The configuration of a loss, an optimizer or a schedule.
#[derive(Clone, Copy)]
pub(super) struct Config<'a>(pub(super) Option<&'a Map<String, Value>>);

impl<'a> Config<'a> {
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.0?.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn number(&self, key: &str) -> Option<f64> {
        self.get(key)?.as_f64().map(tidy)
    }

    pub(super) fn count(&self, key: &str) -> Option<u64> {
        let value = self.get(key)?;
        // Keras accepts, and writes, 1000.0 steps.
        value
            .as_u64()
            .or_else(|| value.as_f64().filter(|n| n.fract() == 0.0 && *n >= 0.0).map(|n| n as u64))
    }

    pub(super) fn flag(&self, key: &str) -> bool {
        self.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.get(key)?.as_str()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Algorithm, Decay};

    const KERAS_2: &str = include_str!("../../tests/keras/fixtures/keras2_compiled.json");
    const KERAS_3: &str = include_str!("../../tests/keras/fixtures/keras3_compiled.json");

    /// Output of each Keras version for the same calls of `compile`.
    fn cases() -> Vec<(Compiled, Vec<String>)> {
        let read_all = |text: &str| -> Vec<(Compiled, Vec<String>)> {
            let cases: Vec<Value> = serde_json::from_str(text).unwrap();
            cases
                .iter()
                .map(|case| {
                    let mut warnings = Vec::new();
                    (read(Some(case), &mut warnings), warnings)
                })
                .collect()
        };
        let (two, three) = (read_all(KERAS_2), read_all(KERAS_3));
        for (index, (two, three)) in two.iter().zip(&three).enumerate() {
            // Keras 3.15 does not write Huber's delta.
            if index != 3 {
                assert_eq!(two.0, three.0, "case {index}");
            }
        }
        two
    }

    #[test]
    fn losses_are_read_as_keras_writes_them() {
        let losses: Vec<Option<Loss>> = cases().into_iter().map(|case| case.0.loss).collect();
        let probabilities = false;
        assert_eq!(
            losses,
            [
                Some(Loss::Mse),
                Some(Loss::BinaryCrossentropy { from_logits: true }),
                Some(Loss::Mae),
                Some(Loss::Huber { delta: 2.0 }),
                Some(Loss::SparseCategoricalCrossentropy { from_logits: probabilities }),
                Some(Loss::CategoricalCrossentropy { from_logits: probabilities }),
                Some(Loss::Hinge),
                Some(Loss::KlDivergence),
                Some(Loss::Poisson),
                Some(Loss::Mse),
                None,
                None,
                Some(Loss::BinaryCrossentropy { from_logits: probabilities }),
            ]
        );
    }

    #[test]
    fn optimizers_are_read_as_keras_writes_them() {
        let plain = |algorithm, learning_rate| Optimizer {
            algorithm,
            learning_rate,
            weight_decay: 0.0,
            clipvalue: None,
            clipnorm: None,
            global_clipnorm: None,
        };
        let (beta_1, beta_2, epsilon, amsgrad) = (0.9, 0.999, 1e-7, false);
        let adam = Algorithm::Adam { beta_1, beta_2, epsilon, amsgrad };
        let sgd = Algorithm::Sgd { momentum: 0.0, nesterov: false };
        let expected = [
            Some(plain(Algorithm::Sgd { momentum: 0.9, nesterov: true }, 0.1)),
            Some(plain(
                Algorithm::Rmsprop { rho: 0.8, momentum: 0.1, epsilon, centered: true },
                0.002,
            )),
            Some(plain(Algorithm::Adagrad { initial_accumulator_value: 0.2, epsilon }, 0.03)),
            Some(plain(Algorithm::Adadelta { rho: 0.9, epsilon: 1e-6 }, 0.5)),
            Some(Optimizer {
                clipnorm: Some(1.0),
                ..plain(Algorithm::Adam { beta_1: 0.8, beta_2, epsilon, amsgrad: true }, 0.001)
            }),
            Some(Optimizer {
                weight_decay: 0.01,
                global_clipnorm: Some(5.0),
                ..plain(Algorithm::Adamw { beta_1, beta_2, epsilon, amsgrad }, 0.004)
            }),
            Some(Optimizer {
                clipvalue: Some(0.5),
                ..plain(Algorithm::Nadam { beta_1, beta_2, epsilon }, 0.005)
            }),
            Some(plain(adam, 0.01)),
            Some(plain(sgd, 0.1)),
            Some(plain(sgd, 0.2)),
            None,
            Some(plain(adam, 0.001)),
            Some(plain(sgd, 0.3)),
        ];
        let optimizers: Vec<_> = cases().into_iter().map(|case| case.0.optimizer).collect();
        assert_eq!(optimizers, expected);
    }

    #[test]
    fn supported_schedules_are_read() {
        let schedules: Vec<_> = cases().into_iter().map(|case| case.0.schedule).collect();
        let cosine = |decay_steps, alpha| Decay::Cosine { decay_steps: Some(decay_steps), alpha };
        let step = Decay::Step { decay_steps: 100, decay_rate: 0.9 };
        let schedule = |decay, warmup_steps| Some(Schedule { decay, warmup_steps });
        assert_eq!(schedules[7], schedule(step, 0));
        assert_eq!(schedules[8], schedule(cosine(1000, 0.1), 0));
        assert_eq!(schedules[9], schedule(cosine(900, 0.0), 100));
        assert_eq!(schedules[12], None);
    }

    #[test]
    fn unsupported_arguments_are_warnings() {
        let warnings: Vec<Vec<String>> = cases().into_iter().map(|case| case.1).collect();
        let about = |case: usize, word: &str| {
            assert!(
                warnings[case].iter().any(|warning| warning.contains(word)),
                "{word}: {:?}",
                warnings[case]
            );
        };
        for (case, warnings) in warnings.iter().take(10).enumerate() {
            assert_eq!(warnings, &Vec::<String>::new(), "case {case}");
        }
        about(10, "Adamax");
        about(10, "LogCosh");
        about(11, "use_ema");
        about(11, "label_smoothing");
        about(12, "PolynomialDecay");
    }

    #[test]
    fn early_keras_2_has_lr_and_decay() {
        let training = json!({
            "loss": "mse",
            "optimizer_config": {
                "class_name": "SGD",
                "config": {"lr": 0.05, "momentum": 0.0, "decay": 1e-4, "nesterov": false}
            }
        });
        let mut warnings = Vec::new();
        let compiled = read(Some(&training), &mut warnings);
        assert_eq!(compiled.optimizer.unwrap().learning_rate, 0.05);
        let decay = Decay::InverseTime { decay_steps: 1, decay_rate: 1e-4 };
        assert_eq!(compiled.schedule, Some(decay.into()));
        assert!(warnings.is_empty(), "{warnings:?}");
    }

    #[test]
    fn an_uncompiled_model_has_no_training_arguments() {
        let mut warnings = Vec::new();
        assert_eq!(read(None, &mut warnings), Compiled::default());
        assert_eq!(read(Some(&json!({})), &mut warnings), Compiled::default());
        assert!(warnings.is_empty());
    }
}
