//! Activations, initializers and regularizers of Keras.

use serde_json::{Map, Value};

use super::config::{LayerConfig, object, short};
use super::{Result, Version};
use crate::language::Term;
use crate::{Activation, Initializer, Regularizer};

impl LayerConfig<'_> {
    /// The activation under `key`: a name, or an activation layer.
    pub(crate) fn activation(&self, key: &str) -> Result<Option<Activation>> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let unknown = || self.unsupported(key, &Activation::names().join(", "));
        match object(value).ok_or_else(unknown)? {
            (class, Some(config)) => {
                let config = Self { rank: None, ..self.inner(class, config) };
                config.activation_layer()?.ok_or_else(unknown).map(Some)
            }
            (name, None) => named_activation(name, self.version).ok_or_else(unknown).map(Some),
        }
    }

    /// The activation of an activation layer; `None` for other classes.
    pub(crate) fn activation_layer(&self) -> Result<Option<Activation>> {
        Ok(Some(match self.class {
            "Activation" => self.activation("activation")?.unwrap_or_default(),
            "LeakyReLU" => Activation::LeakyRelu {
                negative_slope: match self.number("negative_slope")? {
                    Some(slope) => slope,
                    None => self.number_or("alpha", 0.3)?,
                },
            },
            "ELU" => Activation::Elu { alpha: self.number_or("alpha", 1.0)? },
            "ReLU" => self.relu()?,
            "Softmax" => {
                self.last_axis()?;
                Activation::Softmax
            }
            _ => return Ok(None),
        }))
    }

    fn relu(&self) -> Result<Activation> {
        self.absent("max_value")?;
        if self.number_or("threshold", 0.0)? != 0.0 {
            return Err(self.unsupported("threshold", "only 0"));
        }
        Ok(match self.number_or("negative_slope", 0.0)? {
            0.0 => Activation::Relu,
            negative_slope => Activation::LeakyRelu { negative_slope },
        })
    }

    /// Rejects an `axis` other than the last. The axes of Keras include the batch.
    pub(super) fn last_axis(&self) -> Result<()> {
        let Some(value) = self.get("axis") else {
            return Ok(());
        };
        let axis = match value {
            Value::Array(axes) => match axes.as_slice() {
                [axis] => axis.as_i64(),
                _ => None,
            },
            axis => axis.as_i64(),
        };
        let last = match (axis, self.rank) {
            (Some(-1), _) => true,
            (Some(axis), Some(rank)) => i64::try_from(rank).is_ok_and(|rank| axis == rank),
            _ => false,
        };
        if last { Ok(()) } else { Err(self.unsupported("axis", "only the last, -1")) }
    }

    /// The initializer under `key`; an unknown one is ignored with a warning.
    pub(crate) fn initializer(&self, key: &str) -> Option<Initializer> {
        let value = self.get(key)?;
        let known = self.known_initializer(key);
        if known.is_none() {
            self.warn(format!(
                "`{key}` {} is not supported; the default is used where weights are initialized \
                 again",
                short(value)
            ));
        }
        known
    }

    pub(super) fn known_initializer(&self, key: &str) -> Option<Initializer> {
        object(self.get(key)?).and_then(|(class, config)| initializer(class, config))
    }

    /// The regularizer under `key`; an unknown one is ignored with a warning.
    pub(crate) fn regularizer(&self, key: &str) -> Option<Regularizer> {
        let value = self.get(key)?;
        let known = object(value).and_then(|(class, config)| regularizer(class, config));
        if known.is_none() {
            self.ignore(&[key]);
        }
        known
    }
}

fn named_activation(name: &str, version: Version) -> Option<Activation> {
    Some(match name {
        "relu" => Activation::Relu,
        "leaky_relu" => Activation::LeakyRelu { negative_slope: 0.2 },
        "elu" => Activation::Elu { alpha: 1.0 },
        "selu" => Activation::Selu,
        "gelu" => Activation::Gelu { approximate: false },
        "silu" | "swish" => Activation::Silu,
        "tanh" => Activation::Tanh,
        "sigmoid" => Activation::Sigmoid,
        "hard_sigmoid" => Activation::HardSigmoid {
            slope: match version {
                Version::Two => 0.2,
                Version::Three => 1.0 / 6.0,
            },
        },
        "softplus" => Activation::Softplus,
        "softmax" => Activation::Softmax,
        "linear" => Activation::Linear,
        _ => return None,
    })
}

fn number(config: Option<&Map<String, Value>>, key: &str, default: f64) -> Option<f64> {
    match config.and_then(|config| config.get(key)) {
        None | Some(Value::Null) => Some(default),
        Some(value) => value.as_f64().map(super::config::tidy),
    }
}

fn initializer(class: &str, config: Option<&Map<String, Value>>) -> Option<Initializer> {
    Some(match class {
        "Zeros" | "zeros" | "zero" => Initializer::Zeros,
        "Ones" | "ones" | "one" => Initializer::Ones,
        "Constant" | "constant" => Initializer::Constant { value: number(config, "value", 0.0)? },
        "RandomNormal" | "random_normal" | "normal" => Initializer::RandomNormal {
            mean: number(config, "mean", 0.0)?,
            stddev: number(config, "stddev", 0.05)?,
        },
        "RandomUniform" | "random_uniform" | "uniform" => Initializer::RandomUniform {
            minval: number(config, "minval", -0.05)?,
            maxval: number(config, "maxval", 0.05)?,
        },
        "TruncatedNormal" | "truncated_normal" => Initializer::TruncatedNormal {
            mean: number(config, "mean", 0.0)?,
            stddev: number(config, "stddev", 0.05)?,
        },
        "GlorotNormal" | "glorot_normal" => Initializer::GlorotNormal,
        "GlorotUniform" | "glorot_uniform" => Initializer::GlorotUniform,
        "HeNormal" | "he_normal" => Initializer::HeNormal,
        "HeUniform" | "he_uniform" => Initializer::HeUniform,
        "LecunNormal" | "lecun_normal" => Initializer::LecunNormal,
        "LecunUniform" | "lecun_uniform" => Initializer::LecunUniform,
        "Orthogonal" | "OrthogonalInitializer" | "orthogonal" => {
            Initializer::Orthogonal { gain: number(config, "gain", 1.0)? }
        }
        "VarianceScaling" | "variance_scaling" => variance_scaling(config)?,
        _ => return None,
    })
}

/// Keras before 2.4 writes its named initializers as variance scaling.
fn variance_scaling(config: Option<&Map<String, Value>>) -> Option<Initializer> {
    let text = |key: &str| config?.get(key)?.as_str();
    let scale = number(config, "scale", 1.0)?;
    let uniform = match text("distribution")? {
        "uniform" => true,
        "normal" | "truncated_normal" => false,
        _ => return None,
    };
    match (text("mode")?, uniform) {
        ("fan_avg", true) if scale == 1.0 => Some(Initializer::GlorotUniform),
        ("fan_avg", false) if scale == 1.0 => Some(Initializer::GlorotNormal),
        ("fan_in", true) if scale == 2.0 => Some(Initializer::HeUniform),
        ("fan_in", false) if scale == 2.0 => Some(Initializer::HeNormal),
        ("fan_in", true) if scale == 1.0 => Some(Initializer::LecunUniform),
        ("fan_in", false) if scale == 1.0 => Some(Initializer::LecunNormal),
        _ => None,
    }
}

fn regularizer(class: &str, config: Option<&Map<String, Value>>) -> Option<Regularizer> {
    // A bare name means Keras's default strength.
    let part = |key: &str| number(config, key, if config.is_some() { 0.0 } else { 0.01 });
    Some(match class {
        "L1" | "l1" => Regularizer { l1: part("l1")?, l2: 0.0 },
        "L2" | "l2" => Regularizer { l1: 0.0, l2: part("l2")? },
        "L1L2" | "l1_l2" => Regularizer { l1: part("l1")?, l2: part("l2")? },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use serde_json::json;

    use super::*;

    fn with<T>(values: Value, version: Version, read: impl FnOnce(LayerConfig<'_>) -> T) -> T {
        read(LayerConfig {
            class: "ReLU",
            layer: "x",
            version,
            values: values.as_object().unwrap(),
            rank: None,
            warnings: &RefCell::default(),
        })
    }

    fn activation(value: Value, version: Version) -> std::result::Result<Activation, String> {
        with(json!({ "activation": value }), version, |config| config.activation("activation"))
            .map(Option::unwrap_or_default)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn hard_sigmoid_depends_on_the_version() {
        let slope = |slope| Ok(Activation::HardSigmoid { slope });
        assert_eq!(activation(json!("hard_sigmoid"), Version::Two), slope(0.2));
        assert_eq!(activation(json!("hard_sigmoid"), Version::Three), slope(1.0 / 6.0));
    }

    #[test]
    fn an_activation_may_be_a_layer() {
        let value = json!({"class_name": "LeakyReLU", "config": {"alpha": 0.30000001192092896}});
        let expected = Activation::LeakyRelu { negative_slope: 0.3 };
        assert_eq!(activation(value, Version::Two), Ok(expected));
    }

    #[test]
    fn unknown_activations_are_named() {
        let function = json!({"class_name": "function", "config": "mine"});
        for value in [json!("mish"), function, json!(3)] {
            let error = activation(value.clone(), Version::Three).unwrap_err();
            assert!(error.contains(&short(&value)), "{error}");
            assert!(error.contains("hard_sigmoid"), "{error}");
        }
    }

    #[test]
    fn relu_with_a_maximum_is_rejected_and_with_a_slope_is_leaky() {
        let relu = |values| {
            with(values, Version::Three, |config| {
                config.activation_layer().map_err(|error| error.to_string())
            })
        };
        assert_eq!(relu(json!({})), Ok(Some(Activation::Relu)));
        let leaky = Activation::LeakyRelu { negative_slope: 0.1 };
        assert_eq!(relu(json!({"negative_slope": 0.1})), Ok(Some(leaky)));
        assert!(relu(json!({"max_value": 6.0})).unwrap_err().contains("max_value"));
        assert!(relu(json!({"threshold": 1.0})).unwrap_err().contains("threshold"));
    }

    #[test]
    fn the_last_axis_counts_from_either_end() {
        let axis = |axis: Value, rank| {
            with(json!({ "axis": axis }), Version::Two, |config| {
                LayerConfig { rank, ..config }.last_axis().is_ok()
            })
        };
        assert!(axis(json!(-1), None));
        assert!(axis(json!([3]), Some(3)));
        assert!(axis(json!(1), Some(1)));
        assert!(!axis(json!(1), Some(3)));
        assert!(!axis(json!(1), None));
        assert!(!axis(json!([1, 2]), Some(2)));
    }

    #[test]
    fn old_variance_scaling_is_recognised() {
        let scaling = |scale: f64, mode: &str, distribution: &str| {
            let config = json!({"scale": scale, "mode": mode, "distribution": distribution});
            initializer("VarianceScaling", config.as_object())
        };
        assert_eq!(scaling(1.0, "fan_avg", "uniform"), Some(Initializer::GlorotUniform));
        assert_eq!(scaling(2.0, "fan_in", "truncated_normal"), Some(Initializer::HeNormal));
        assert_eq!(scaling(1.0, "fan_in", "normal"), Some(Initializer::LecunNormal));
        assert_eq!(scaling(3.0, "fan_in", "normal"), None);
        assert_eq!(scaling(1.0, "fan_in", "untruncated_normal"), None);
    }

    #[test]
    fn an_unknown_initializer_is_a_warning() {
        let value = json!({"kernel_initializer": {"class_name": "Identity", "config": {}}});
        let (read, warnings) = with(value, Version::Two, |config| {
            (config.initializer("kernel_initializer"), config.warnings.take())
        });
        assert_eq!(read, None);
        assert!(warnings[0].contains("Identity"), "{warnings:?}");
    }

    #[test]
    fn regularizers_are_read_in_every_form() {
        let config = json!({"l2": 0.009999999776482582});
        let l2 = |l2| Some(Regularizer { l1: 0.0, l2 });
        assert_eq!(regularizer("L2", config.as_object()), l2(0.01));
        assert_eq!(regularizer("L1L2", config.as_object()), l2(0.01));
        assert_eq!(regularizer("l2", None), l2(0.01));
        assert_eq!(regularizer("OrthogonalRegularizer", None), None);
    }
}
