//! Translation of Keras layers.

use std::cell::RefCell;

use serde_json::{Map, Value};

use super::chain::{Chain, Piece};
use super::config::LayerConfig;
use super::{KerasErrorKind, Result, Version};
use crate::language::Find;
use crate::layer::Role;
use crate::{Layer, Residual};

/// Wraps a recurrent layer; the layer becomes bidirectional.
const BIDIRECTIONAL: &str = "Bidirectional";

/// Classes without a counterpart, and what to do about them.
const ADVICE: [(&str, &str); 1] =
    [("Concatenate", "it joins branches; only two branches that an Add layer joins are supported")];

/// Translates the layers of a chain, one for each node.
pub(super) fn convert(
    chain: &Chain<'_>,
    version: Version,
    warnings: &mut Vec<String>,
) -> Result<Vec<Layer>> {
    for node in &chain.nodes {
        if let Some((_, advice)) = ADVICE.iter().find(|(class, _)| *class == node.class) {
            let reason = format!("its class is `{}`: {advice}", node.class);
            return Err(KerasErrorKind::unsupported(&node.name, reason));
        }
    }
    let classes = Layer::keras_classes();
    let unknown: Vec<(String, String)> = chain
        .nodes
        .iter()
        .filter_map(|node| {
            let class = unknown_class(node.class, node.config, &classes)?;
            Some((class, node.name.clone()))
        })
        .collect();
    if !unknown.is_empty() {
        let mut known: Vec<_> = classes.iter().map(|(class, _)| *class).collect();
        known.extend([BIDIRECTIONAL, "InputLayer", "TimeDistributed", "Add"]);
        known.sort_unstable();
        return Err(KerasErrorKind::UnknownLayers { unknown, known });
    }
    let ignored = RefCell::default();
    let mut rank = chain.input.rank();
    let mut layers = Vec::with_capacity(chain.nodes.len());
    let mut nodes = chain.nodes.iter();
    // Ranks of the inputs of the blocks around a layer.
    let mut forks = Vec::new();
    for piece in &chain.pieces {
        match piece {
            Piece::Fork => forks.push(rank),
            Piece::Swap => rank = forks.last().copied().flatten(),
            Piece::Join(_) => {
                forks.pop();
            }
            Piece::Layer => {
                let Some(node) = nodes.next() else {
                    continue;
                };
                let layer = layer(&LayerConfig {
                    class: node.class,
                    layer: &node.name,
                    version,
                    values: node.config,
                    rank,
                    warnings: &ignored,
                })?;
                rank = layer.rank(rank);
                layers.push(layer);
            }
        }
    }
    warnings.extend(ignored.into_inner());
    Ok(layers)
}

/// The layers of a chain with residual blocks around those between a fork and a join.
pub(super) fn assemble(pieces: &[Piece], layers: &[Layer]) -> Vec<Layer> {
    let mut layers = layers.iter().cloned();
    let mut lists = vec![Vec::new()];
    // Branches whose shortcut is being read.
    let mut branches: Vec<Option<Vec<Layer>>> = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Layer => {
                if let (Some(list), Some(layer)) = (lists.last_mut(), layers.next()) {
                    list.push(layer);
                }
            }
            Piece::Fork => {
                lists.push(Vec::new());
                branches.push(None);
            }
            Piece::Swap => {
                if let (Some(list), Some(branch)) = (lists.last_mut(), branches.last_mut()) {
                    *branch = Some(std::mem::take(list));
                }
            }
            Piece::Join(name) => {
                let last = lists.pop().unwrap_or_default();
                let (layers, shortcut) = match branches.pop().flatten() {
                    Some(branch) => (branch, Some(last)),
                    None => (last, None),
                };
                if let Some(list) = lists.last_mut() {
                    let name = Some(name.clone());
                    list.push(Layer::Residual(Residual { name, layers, shortcut }));
                }
            }
        }
    }
    lists.pop().unwrap_or_default()
}

/// The class of a layer, or of the layer inside a `Bidirectional`, if it is unknown.
fn unknown_class(
    class: &str,
    config: &Map<String, Value>,
    classes: &[(&str, Role)],
) -> Option<String> {
    let role = |class: &str| classes.iter().find(|(name, _)| *name == class).map(|found| found.1);
    if class != BIDIRECTIONAL {
        return role(class).is_none().then(|| class.to_owned());
    }
    let inner = config.get("layer")?.get("class_name")?.as_str()?;
    (role(inner) != Some(Role::Recurrent)).then(|| format!("{BIDIRECTIONAL}({inner})"))
}

fn layer(config: &LayerConfig<'_>) -> Result<Layer> {
    if config.class == BIDIRECTIONAL {
        return bidirectional(config);
    }
    check_precision(config)?;
    config.ignore(&[
        "activity_regularizer",
        "kernel_constraint",
        "bias_constraint",
        "recurrent_constraint",
        "embeddings_constraint",
        "embeddings_regularizer",
        "beta_regularizer",
        "gamma_regularizer",
        "beta_constraint",
        "gamma_constraint",
    ]);
    Layer::from_keras(config)
        .unwrap_or_else(|| Err(config.refuse(format!("its class `{}` is unknown", config.class))))
}

fn bidirectional(config: &LayerConfig<'_>) -> Result<Layer> {
    let mode = config.values.get("merge_mode");
    if mode.is_some_and(|mode| mode.as_str() != Some("concat")) {
        return Err(config.unsupported("merge_mode", "only \"concat\""));
    }
    let part = |key: &str| -> Option<(&str, &Map<String, Value>)> {
        let value = config.get(key)?;
        Some((value.get("class_name")?.as_str()?, value.get("config")?.as_object()?))
    };
    let Some((class, values)) = part("layer") else {
        let part = format!("layer `{}`", config.layer);
        return Err(KerasErrorKind::damaged(part, "`layer` is missing"));
    };
    let forward = layer(&config.inner(class, values))?;
    if let Some((class, values)) = part("backward_layer") {
        let mut values = values.clone();
        let reversed = values.remove("go_backwards") == Some(Value::Bool(true));
        let warnings = RefCell::default();
        let backward = LayerConfig { class, values: &values, warnings: &warnings, ..*config };
        if !reversed || layer(&backward)? != forward {
            return Err(config.refuse("its backward layer differs from its forward layer"));
        }
    }
    let mut layer = forward;
    if let Some(bidirectional) = Find::key(&mut layer, "bidirectional") {
        *bidirectional = true;
    }
    Ok(layer)
}

/// Warns about layers that compute in another precision; Surefoot computes in single precision.
fn check_precision(config: &LayerConfig<'_>) -> Result<()> {
    let policy = match config.get("dtype") {
        Some(Value::Object(policy)) => {
            policy.get("config").and_then(|config| config.get("name")).and_then(Value::as_str)
        }
        Some(Value::String(policy)) => Some(policy.as_str()),
        _ => None,
    };
    match policy {
        None | Some("float32") => Ok(()),
        Some(
            policy @ ("float64" | "float16" | "bfloat16" | "mixed_float16" | "mixed_bfloat16"),
        ) => {
            config.warn(format!("computes in {policy} in Keras; Surefoot computes in float32"));
            Ok(())
        }
        Some(_) => Err(config.unsupported("dtype", "a floating-point type")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::chain::flatten;
    use super::*;

    /// Reads a model of one layer and its warnings.
    fn one(class: &str, config: Value) -> std::result::Result<(Layer, Vec<String>), String> {
        let layer = json!({"class_name": class, "config": config});
        let model = json!({"class_name": "Sequential", "config": {"layers": [layer]}});
        let mut warnings = Vec::new();
        let chain = flatten(&model, &mut warnings).unwrap();
        let layers = convert(&chain, Version::Three, &mut warnings);
        let mut layers = layers.map_err(|error| error.to_string())?;
        Ok((layers.remove(0), warnings))
    }

    #[test]
    fn options_that_change_the_outputs_are_rejected() {
        let conv = json!({"filters": 2, "kernel_size": [3, 3]});
        let embedding = json!({"input_dim": 2, "output_dim": 2});
        let rnn = json!({"units": 2});
        for (class, mut config, key, value) in [
            ("Conv2D", conv.clone(), "data_format", json!("channels_first")),
            ("Conv2D", conv, "groups", json!(2)),
            ("Conv1D", json!({"filters": 2, "kernel_size": 3}), "padding", json!("causal")),
            ("MaxPooling2D", json!({}), "data_format", json!("channels_first")),
            ("GlobalMaxPooling1D", json!({}), "keepdims", json!(true)),
            ("Flatten", json!({}), "data_format", json!("channels_first")),
            ("Dropout", json!({"rate": 0.5}), "noise_shape", json!([1, 2])),
            ("Dropout", json!({}), "rate", json!(1.0)),
            ("BatchNormalization", json!({}), "axis", json!(1)),
            ("BatchNormalization", json!({}), "renorm", json!(true)),
            ("LayerNormalization", json!({}), "axis", json!([1, 2])),
            ("LayerNormalization", json!({}), "rms_scaling", json!(true)),
            ("GroupNormalization", json!({}), "groups", json!(-1)),
            ("Embedding", embedding, "mask_zero", json!(true)),
            ("LSTM", rnn.clone(), "stateful", json!(true)),
            ("LSTM", rnn.clone(), "return_state", json!(true)),
            ("LSTM", rnn.clone(), "go_backwards", json!(true)),
            ("GRU", rnn, "time_major", json!(true)),
            ("Dense", json!({"units": 1}), "dtype", json!("int8_from_float32")),
            ("Softmax", json!({}), "axis", json!(1)),
        ] {
            config["name"] = json!("mine");
            assert!(key == "rate" || one(class, config.clone()).is_ok(), "{class}");
            config[key] = value;
            let message = one(class, config).unwrap_err();
            assert!(message.contains("layer `mine`"), "{message}");
            assert!(message.contains(&format!("`{key}` is")), "{message}");
        }
    }

    #[test]
    fn options_that_only_matter_in_training_are_warnings() {
        let max_norm = json!({"class_name": "MaxNorm", "config": {"max_value": 2}});
        for (class, key, value) in [
            ("Dense", "kernel_constraint", max_norm.clone()),
            ("Dense", "activity_regularizer", json!("l2")),
            ("Dense", "dtype", json!("mixed_float16")),
            ("BatchNormalization", "gamma_initializer", json!("zeros")),
            ("BatchNormalization", "beta_regularizer", json!("l2")),
            ("GRU", "recurrent_dropout", json!(0.5)),
            ("GRU", "bias_regularizer", json!("l2")),
            ("GRU", "recurrent_constraint", max_norm),
        ] {
            let mut config = json!({"name": "mine", "units": 1});
            assert_eq!(one(class, config.clone()).unwrap().1, [""; 0]);
            config[key] = value;
            let warnings = one(class, config).unwrap().1;
            assert_eq!(warnings.len(), 1, "{class} {key}: {warnings:?}");
            assert!(warnings[0].contains("layer `mine`"), "{warnings:?}");
        }
    }

    #[test]
    fn both_directions_must_be_the_same() {
        let lstm = |units: u8, backwards: bool| json!({"class_name": "LSTM", "config": {"units": units, "go_backwards": backwards}});
        let with = |key: &str, value: Value| {
            let mut config = json!({"layer": lstm(2, false), "merge_mode": "concat"});
            config[key] = value;
            one("Bidirectional", config)
        };
        let (layer, _) = with("backward_layer", lstm(2, true)).unwrap();
        assert!(matches!(layer, Layer::Lstm(lstm) if lstm.bidirectional));
        assert!(with("backward_layer", lstm(3, true)).unwrap_err().contains("differs"));
        assert!(with("backward_layer", lstm(2, false)).unwrap_err().contains("differs"));
        assert!(with("merge_mode", json!("sum")).unwrap_err().contains("`merge_mode`"));
        assert!(with("merge_mode", json!(null)).unwrap_err().contains("`merge_mode`"));
        let other = json!({"class_name": "ConvLSTM1D", "config": {}});
        assert!(with("layer", other).unwrap_err().contains("Bidirectional(ConvLSTM1D)"));
    }

    #[test]
    fn masking_keeps_its_value() {
        let (layer, _) = one("Masking", json!({"name": "pad", "mask_value": -1.0})).unwrap();
        let masking = crate::Masking { name: Some("pad".to_owned()), mask_value: -1.0 };
        assert_eq!(layer, Layer::Masking(masking));
    }

    #[test]
    fn blocks_have_the_layers_between_fork_and_join() {
        let dense = |units| Layer::Dense(crate::Dense::new(units));
        let join = |name: &str| Piece::Join(name.to_owned());
        let l = || Piece::Layer;
        let pieces = [
            l(),
            Piece::Fork,
            l(),
            Piece::Fork,
            l(),
            join("inner"),
            Piece::Swap,
            l(),
            join("outer"),
            l(),
        ];
        let layers: Vec<Layer> = (1..6).map(dense).collect();
        let named = |name: &str, layers, shortcut| {
            Layer::Residual(Residual { name: Some(name.to_owned()), layers, shortcut })
        };
        let inner = named("inner", vec![dense(3)], None);
        let outer = named("outer", vec![dense(2), inner], Some(vec![dense(4)]));
        assert_eq!(assemble(&pieces, &layers), [dense(1), outer, dense(5)]);
    }

    #[test]
    fn a_custom_class_called_dense_is_unknown() {
        let layer = json!({
            "class_name": "Dense",
            "registered_name": "mine>Dense",
            "config": {"units": 1}
        });
        let model = json!({"class_name": "Sequential", "config": {"layers": [layer]}});
        let chain = flatten(&model, &mut Vec::new()).unwrap();
        let error = convert(&chain, Version::Three, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("mine>Dense"));
    }
}
