//! The small vocabularies: activations, initializers, regularizers, padding.

use serde_json::{Map, Value};

use super::settings::{Settings, object, short};
use super::{Fault, Version};
use crate::{Activation, Initializer, Padding, Regularizer};

impl Settings<'_> {
    /// The activation under `key`: a name, or an activation layer.
    pub(super) fn activation(&self, key: &str, default: Activation) -> Result<Activation, Fault> {
        let Some(value) = self.get(key) else {
            return Ok(default);
        };
        let unknown = || {
            self.refuse(format!(
                "its `{key}` is {}, and it can be relu, leaky_relu, elu, selu, gelu, silu, tanh, \
                 sigmoid, hard_sigmoid, softplus, softmax or linear",
                short(value)
            ))
        };
        match object(value).ok_or_else(unknown)? {
            (class, Some(config)) => {
                self.inner(config).activation_layer(class, None)?.ok_or_else(unknown)
            }
            (name, None) => named_activation(name, self.version).ok_or_else(unknown),
        }
    }

    /// The activation that a layer of its own is; `None` if it is not one. `rank` is that of its
    /// input, if known.
    pub(super) fn activation_layer(
        &self,
        class: &str,
        rank: Option<usize>,
    ) -> Result<Option<Activation>, Fault> {
        Ok(Some(match class {
            "Activation" => self.activation("activation", Activation::Linear)?,
            "LeakyReLU" => Activation::LeakyRelu {
                negative_slope: match self.number("negative_slope")? {
                    Some(slope) => slope,
                    None => self.number_or("alpha", 0.3)?,
                },
            },
            "ELU" => Activation::Elu { alpha: self.number_or("alpha", 1.0)? },
            "ReLU" => self.relu()?,
            "Softmax" => {
                self.last_axis(rank)?;
                Activation::Softmax
            }
            _ => return Ok(None),
        }))
    }

    fn relu(&self) -> Result<Activation, Fault> {
        if let Some(max) = self.number("max_value")? {
            return Err(self.refuse(format!("its `max_value` is {max}, and it can only be null")));
        }
        let threshold = self.number_or("threshold", 0.0)?;
        if threshold != 0.0 {
            return Err(
                self.refuse(format!("its `threshold` is {threshold}, and it can only be 0"))
            );
        }
        let negative_slope = self.number_or("negative_slope", 0.0)?;
        Ok(if negative_slope == 0.0 {
            Activation::Relu
        } else {
            Activation::LeakyRelu { negative_slope }
        })
    }

    /// Refuses an `axis` that is not the last one. `rank` leaves out the batch, Keras's axes do not.
    pub(super) fn last_axis(&self, rank: Option<usize>) -> Result<(), Fault> {
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
        let last = match (axis, rank) {
            (Some(-1), _) => true,
            (Some(axis), Some(rank)) => i64::try_from(rank).is_ok_and(|rank| axis == rank),
            _ => false,
        };
        if last {
            Ok(())
        } else {
            Err(self
                .refuse(format!("its `axis` is {}, and it can only be the last, -1", short(value))))
        }
    }

    /// The initializer under `key`; one that is not known is left out with a warning.
    pub(super) fn initializer(
        &self,
        key: &str,
        default: Initializer,
        warnings: &mut Vec<String>,
    ) -> Initializer {
        let Some(value) = self.get(key) else {
            return default;
        };
        let known = object(value).and_then(|(class, config)| initializer(class, config));
        known.unwrap_or_else(|| {
            warnings.push(format!(
                "layer `{}`: the `{key}` {} has no counterpart; Surefoot's default is used where \
                 the layer starts anew",
                self.layer,
                short(value)
            ));
            default
        })
    }

    /// The regularizer under `key`; one that is not known is left out with a warning.
    pub(super) fn regularizer(&self, key: &str, warnings: &mut Vec<String>) -> Regularizer {
        let Some(value) = self.get(key) else {
            return Regularizer::default();
        };
        let known = object(value).and_then(|(class, config)| regularizer(class, config));
        known.unwrap_or_else(|| {
            self.left_out(key, warnings);
            Regularizer::default()
        })
    }

    /// Warns about settings that matter in training and have no counterpart.
    pub(super) fn leave_out(&self, keys: &[&str], warnings: &mut Vec<String>) {
        for key in keys.iter().filter(|key| self.get(key).is_some()) {
            self.left_out(key, warnings);
        }
    }

    fn left_out(&self, key: &str, warnings: &mut Vec<String>) {
        let value = self.get(key).map(short).unwrap_or_default();
        warnings.push(format!(
            "layer `{}`: the `{key}` {value} has no counterpart and is left out",
            self.layer
        ));
    }

    pub(super) fn padding(&self) -> Result<Padding, Fault> {
        match self.text("padding")? {
            None | Some("valid") => Ok(Padding::Valid),
            Some("same") => Ok(Padding::Same),
            Some(other) => Err(self.refuse(format!(
                "its `padding` is \"{other}\", and it can be \"valid\" or \"same\""
            ))),
        }
    }

    pub(super) fn channels_last(&self) -> Result<(), Fault> {
        match self.text("data_format")? {
            None | Some("channels_last") => Ok(()),
            Some(other) => Err(self.refuse(format!(
                "its `data_format` is \"{other}\", and it can only be \"channels_last\""
            ))),
        }
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
        Some(value) => value.as_f64().map(super::settings::tidy),
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

/// Keras before 2.4 writes its named initializers as the variance scaling that they are.
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
    use serde_json::json;

    use super::*;

    fn with<T>(values: Value, version: Version, read: impl FnOnce(Settings<'_>) -> T) -> T {
        read(Settings { layer: "x", version, values: values.as_object().unwrap() })
    }

    fn activation(value: Value, version: Version) -> Result<Activation, String> {
        with(json!({ "activation": value }), version, |settings| {
            settings.activation("activation", Activation::Linear)
        })
        .map_err(|fault| fault.to_string())
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
    fn unknown_activations_are_refused_by_name() {
        let function = json!({"class_name": "function", "config": "mine"});
        for value in [json!("mish"), function, json!(3)] {
            let error = activation(value.clone(), Version::Three).unwrap_err();
            assert!(error.contains(&short(&value)), "{error}");
            assert!(error.contains("hard_sigmoid"), "{error}");
        }
    }

    #[test]
    fn relu_with_a_ceiling_is_refused_and_with_a_slope_is_leaky() {
        let relu = |values| {
            with(values, Version::Three, |settings| {
                settings.activation_layer("ReLU", None).map_err(|fault| fault.to_string())
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
            with(json!({ "axis": axis }), Version::Two, |settings| settings.last_axis(rank).is_ok())
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
        let mut warnings = Vec::new();
        let value = json!({"kernel_initializer": {"class_name": "Identity", "config": {}}});
        let read = with(value, Version::Two, |settings| {
            settings.initializer("kernel_initializer", Initializer::Ones, &mut warnings)
        });
        assert_eq!(read, Initializer::Ones);
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
