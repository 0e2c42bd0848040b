//! Optimizers and learning rate schedules of Keras.

use serde_json::Value;

use super::compile::Config;
use super::config::{object, short, tidy};
use crate::{Algorithm, Decay, Optimizer, Schedule};

/// The optimizer, and the schedule of its learning rate.
pub(super) fn optimizer(
    value: &Value,
    warnings: &mut Vec<String>,
) -> Result<(Optimizer, Option<Schedule>), String> {
    let unknown = || format!("the optimizer {} is not supported and is ignored", short(value));
    let (name, config) = object(value).ok_or_else(unknown)?;
    let config = Config(config);
    let number = |key: &str, default: f64| config.number(key).unwrap_or(default);
    let epsilon = number("epsilon", 1e-7);
    let (beta_1, beta_2) = (number("beta_1", 0.9), number("beta_2", 0.999));
    let amsgrad = config.flag("amsgrad");
    let (algorithm, usual_rate) = match name.to_ascii_lowercase().as_str() {
        "sgd" => {
            let momentum = number("momentum", 0.0);
            let nesterov = config.flag("nesterov");
            (Algorithm::Sgd { momentum, nesterov }, 0.01)
        }
        "rmsprop" => {
            let rmsprop = Algorithm::Rmsprop {
                rho: number("rho", 0.9),
                momentum: number("momentum", 0.0),
                epsilon,
                centered: config.flag("centered"),
            };
            (rmsprop, 0.001)
        }
        "adagrad" => {
            let adagrad = Algorithm::Adagrad {
                initial_accumulator_value: number("initial_accumulator_value", 0.1),
                epsilon,
            };
            (adagrad, 0.001)
        }
        "adadelta" => {
            let rho = number("rho", 0.95);
            (Algorithm::Adadelta { rho, epsilon }, 0.001)
        }
        "adam" => {
            let adam = Algorithm::Adam { beta_1, beta_2, epsilon, amsgrad };
            (adam, 0.001)
        }
        "adamw" => {
            let adamw = Algorithm::Adamw { beta_1, beta_2, epsilon, amsgrad };
            (adamw, 0.001)
        }
        "nadam" => {
            let nadam = Algorithm::Nadam { beta_1, beta_2, epsilon };
            (nadam, 0.001)
        }
        _ => return Err(unknown()),
    };
    let (learning_rate, mut schedule) = rate(config, usual_rate, warnings)?;
    // Keras 1 and 2: the rate is divided by 1 + decay * step.
    let decay_rate = number("decay", 0.0);
    if decay_rate > 0.0 {
        match schedule {
            None => schedule = Some(Decay::InverseTime { decay_steps: 1, decay_rate }.into()),
            Some(_) => warnings.push(
                "the optimizer's `decay` is ignored, because it has a learning rate schedule"
                    .to_owned(),
            ),
        }
    }
    for key in ["use_ema", "gradient_accumulation_steps"] {
        let set = config
            .get(key)
            .is_some_and(|value| value.as_bool() != Some(false) && value.as_f64() != Some(0.0));
        if set {
            warnings.push(format!("the optimizer's `{key}` is not supported and is ignored"));
        }
    }
    let usual_decay = if matches!(algorithm, Algorithm::Adamw { .. }) { 0.004 } else { 0.0 };
    let optimizer = Optimizer {
        algorithm,
        learning_rate,
        weight_decay: number("weight_decay", usual_decay),
        clipvalue: config.number("clipvalue"),
        clipnorm: config.number("clipnorm"),
        global_clipnorm: config.number("global_clipnorm"),
    };
    Ok((optimizer, schedule))
}

/// The learning rate: a number, or a schedule.
fn rate(
    config: Config<'_>,
    usual: f64,
    warnings: &mut Vec<String>,
) -> Result<(f64, Option<Schedule>), String> {
    // Keras before 2.3 called it `lr`.
    let value = config.get("learning_rate").or_else(|| config.get("lr"));
    let Some(Value::Object(_)) = value else {
        let rate = value.and_then(Value::as_f64).map_or(usual, tidy);
        return Ok((rate, None));
    };
    let unknown = || {
        format!(
            "the learning rate schedule {} is not supported",
            value.map(short).unwrap_or_default()
        )
    };
    let (class, inner) = value.and_then(object).ok_or_else(unknown)?;
    let inner = Config(inner);
    let initial = inner
        .number("initial_learning_rate")
        .ok_or_else(|| format!("{}, and the optimizer is ignored", unknown()))?;
    match schedule(class, inner, initial) {
        Some((rate, schedule)) => Ok((rate, Some(schedule))),
        None => {
            warnings.push(format!("{}; the rate stays at {initial}", unknown()));
            Ok((initial, None))
        }
    }
}

fn schedule(class: &str, config: Config<'_>, initial: f64) -> Option<(f64, Schedule)> {
    let decay_steps = config.count("decay_steps")?;
    match class {
        "ExponentialDecay" => {
            let decay_rate = config.number("decay_rate")?;
            let decay = if config.flag("staircase") {
                Decay::Step { decay_steps, decay_rate }
            } else {
                Decay::Exponential { decay_steps, decay_rate }
            };
            let warmup_steps = 0;
            Some((initial, Schedule { decay, warmup_steps }))
        }
        "InverseTimeDecay" if !config.flag("staircase") => {
            let decay =
                Decay::InverseTime { decay_steps, decay_rate: config.number("decay_rate")? };
            Some((initial, decay.into()))
        }
        "CosineDecay" => {
            let decay = Decay::Cosine {
                decay_steps: Some(decay_steps),
                alpha: config.number("alpha").unwrap_or(0.0),
            };
            match config.number("warmup_target") {
                None => Some((initial, Schedule { decay, warmup_steps: 0 })),
                // A warm-up starts at zero here.
                Some(target) if initial == 0.0 => {
                    let warmup_steps = config.count("warmup_steps").unwrap_or(0);
                    Some((target, Schedule { decay, warmup_steps }))
                }
                Some(_) => None,
            }
        }
        _ => None,
    }
}
