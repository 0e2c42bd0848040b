//! Keras's layers as layers of a plan.

use serde_json::Value;

use super::chain::{Chain, Node};
use super::recurrent;
use super::settings::{Settings, short};
use super::{Fault, Version};
use crate::{
    Activation, ActivationLayer, Conv1d, Conv2d, Dense, Dropout, Embedding, Flatten, GlobalPool,
    Initializer, Layer, Pool1d, Pool2d, Reshape,
};

/// The classes that [`convert`] understands.
const KNOWN: [&str; 28] = [
    "Activation",
    "AveragePooling1D",
    "AveragePooling2D",
    "BatchNormalization",
    "Bidirectional",
    "Conv1D",
    "Conv2D",
    "Dense",
    "Dropout",
    "ELU",
    "Embedding",
    "Flatten",
    "GRU",
    "GlobalAveragePooling1D",
    "GlobalAveragePooling2D",
    "GlobalMaxPooling1D",
    "GlobalMaxPooling2D",
    "GroupNormalization",
    "InputLayer",
    "LSTM",
    "LayerNormalization",
    "LeakyReLU",
    "MaxPooling1D",
    "MaxPooling2D",
    "ReLU",
    "Reshape",
    "SimpleRNN",
    "Softmax",
];

/// The layers of a chain, one for each of its nodes.
pub(super) fn convert(
    chain: &Chain<'_>,
    version: Version,
    warnings: &mut Vec<String>,
) -> Result<Vec<Layer>, Fault> {
    let unknown: Vec<(String, String)> = chain
        .nodes
        .iter()
        .filter_map(|node| {
            let class = recurrent::unknown_inside(node.class, node.config)
                .or_else(|| (!KNOWN.contains(&node.class)).then(|| node.class.to_owned()))?;
            Some((class, node.name.clone()))
        })
        .collect();
    if !unknown.is_empty() {
        return Err(Fault::UnknownLayers { unknown, known: KNOWN.to_vec() });
    }
    let mut rank = chain.input.rank();
    let mut layers = Vec::with_capacity(chain.nodes.len());
    for node in &chain.nodes {
        let layer = layer(node, version, rank, warnings)?;
        rank = rank_after(&layer, rank);
        layers.push(layer);
    }
    Ok(layers)
}

/// The number of dimensions of a layer's output, without the batch.
fn rank_after(layer: &Layer, rank: Option<usize>) -> Option<usize> {
    let steps = |all: bool| Some(if all { 2 } else { 1 });
    match layer {
        Layer::Flatten(_) | Layer::GlobalMaxPool(_) | Layer::GlobalAveragePool(_) => Some(1),
        Layer::Reshape(reshape) => Some(reshape.target_shape.len()),
        Layer::Embedding(_) => rank.map(|rank| rank + 1),
        Layer::SimpleRnn(rnn) => steps(rnn.return_sequences),
        Layer::Lstm(rnn) => steps(rnn.return_sequences),
        Layer::Gru(rnn) => steps(rnn.return_sequences),
        _ => rank,
    }
}

fn layer(
    node: &Node<'_>,
    version: Version,
    rank: Option<usize>,
    warnings: &mut Vec<String>,
) -> Result<Layer, Fault> {
    let settings = Settings { layer: &node.name, version, values: node.config };
    precision(&settings, warnings)?;
    settings.leave_out(
        &[
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
        ],
        warnings,
    );
    if let Some(activation) = settings.activation_layer(node.class, rank)? {
        let name = Some(node.name.clone());
        return Ok(Layer::Activation(ActivationLayer { name, activation }));
    }
    match node.class {
        "Dense" => settings.dense(warnings).map(Layer::Dense),
        "Conv1D" => settings.conv1d(warnings).map(Layer::Conv1d),
        "Conv2D" => settings.conv2d(warnings).map(Layer::Conv2d),
        "MaxPooling1D" => settings.pool1d().map(Layer::MaxPool1d),
        "AveragePooling1D" => settings.pool1d().map(Layer::AveragePool1d),
        "MaxPooling2D" => settings.pool2d().map(Layer::MaxPool2d),
        "AveragePooling2D" => settings.pool2d().map(Layer::AveragePool2d),
        "GlobalMaxPooling1D" | "GlobalMaxPooling2D" => {
            settings.global_pool().map(Layer::GlobalMaxPool)
        }
        "GlobalAveragePooling1D" | "GlobalAveragePooling2D" => {
            settings.global_pool().map(Layer::GlobalAveragePool)
        }
        "Flatten" => settings.flatten().map(Layer::Flatten),
        "Reshape" => settings.reshape().map(Layer::Reshape),
        "Dropout" => settings.dropout().map(Layer::Dropout),
        "BatchNormalization" => settings.batch_norm(rank, warnings).map(Layer::BatchNorm),
        "LayerNormalization" => settings.layer_norm(rank, warnings).map(Layer::LayerNorm),
        "GroupNormalization" => settings.group_norm(rank, warnings).map(Layer::GroupNorm),
        "Embedding" => settings.embedding(warnings).map(Layer::Embedding),
        class => recurrent::layer(class, &settings, warnings),
    }
}

/// Surefoot computes in single precision, whatever the layer's policy.
fn precision(settings: &Settings<'_>, warnings: &mut Vec<String>) -> Result<(), Fault> {
    let policy = match settings.get("dtype") {
        Some(Value::Object(policy)) => {
            policy.get("config").and_then(|config| config.get("name")).and_then(Value::as_str)
        }
        Some(Value::String(policy)) => Some(policy.as_str()),
        _ => None,
    };
    match policy {
        None | Some("float32") => Ok(()),
        Some("float64" | "float16" | "bfloat16" | "mixed_float16" | "mixed_bfloat16") => {
            warnings.push(format!(
                "layer `{}` computes in {} in Keras; Surefoot computes in float32",
                settings.layer,
                policy.unwrap_or_default()
            ));
            Ok(())
        }
        Some(other) => Err(settings
            .refuse(format!("its `dtype` is \"{other}\", and it can be a floating-point type"))),
    }
}

impl Settings<'_> {
    pub(super) fn name(&self) -> Option<String> {
        Some(self.layer.to_owned())
    }

    fn kernel_initializer(&self, warnings: &mut Vec<String>) -> Initializer {
        self.initializer("kernel_initializer", Initializer::GlorotUniform, warnings)
    }

    fn bias_initializer(&self, warnings: &mut Vec<String>) -> Initializer {
        self.initializer("bias_initializer", Initializer::Zeros, warnings)
    }

    fn dense(&self, warnings: &mut Vec<String>) -> Result<Dense, Fault> {
        Ok(Dense {
            name: self.name(),
            units: self.count("units")?,
            activation: self.activation("activation", Activation::Linear)?,
            use_bias: self.flag("use_bias", true)?,
            kernel_initializer: self.kernel_initializer(warnings),
            bias_initializer: self.bias_initializer(warnings),
            kernel_regularizer: self.regularizer("kernel_regularizer", warnings),
            bias_regularizer: self.regularizer("bias_regularizer", warnings),
        })
    }

    fn conv1d(&self, warnings: &mut Vec<String>) -> Result<Conv1d, Fault> {
        let [kernel_size] = self.kernel_size()?;
        let [strides] = self.sizes("strides")?.unwrap_or([1]);
        let [dilation_rate] = self.sizes("dilation_rate")?.unwrap_or([1]);
        Ok(Conv1d {
            name: self.name(),
            filters: self.count("filters")?,
            kernel_size,
            strides,
            padding: self.padding()?,
            dilation_rate,
            activation: self.activation("activation", Activation::Linear)?,
            use_bias: self.flag("use_bias", true)?,
            kernel_initializer: self.kernel_initializer(warnings),
            bias_initializer: self.bias_initializer(warnings),
            kernel_regularizer: self.regularizer("kernel_regularizer", warnings),
            bias_regularizer: self.regularizer("bias_regularizer", warnings),
        })
    }

    fn conv2d(&self, warnings: &mut Vec<String>) -> Result<Conv2d, Fault> {
        Ok(Conv2d {
            name: self.name(),
            filters: self.count("filters")?,
            kernel_size: self.kernel_size()?,
            strides: self.sizes("strides")?.unwrap_or([1, 1]),
            padding: self.padding()?,
            dilation_rate: self.sizes("dilation_rate")?.unwrap_or([1, 1]),
            activation: self.activation("activation", Activation::Linear)?,
            use_bias: self.flag("use_bias", true)?,
            kernel_initializer: self.kernel_initializer(warnings),
            bias_initializer: self.bias_initializer(warnings),
            kernel_regularizer: self.regularizer("kernel_regularizer", warnings),
            bias_regularizer: self.regularizer("bias_regularizer", warnings),
        })
    }

    /// The window of a convolution, after the checks that all convolutions share.
    fn kernel_size<const N: usize>(&self) -> Result<[usize; N], Fault> {
        self.channels_last()?;
        match self.number_or("groups", 1.0)? {
            1.0 => {}
            groups => {
                return Err(self.refuse(format!("its `groups` is {groups}, and it can only be 1")));
            }
        }
        self.sizes("kernel_size")?.ok_or_else(|| {
            Fault::damaged(format!("layer `{}`", self.layer), "`kernel_size` is missing")
        })
    }

    fn pool1d(&self) -> Result<Pool1d, Fault> {
        self.channels_last()?;
        let [pool_size] = self.sizes("pool_size")?.unwrap_or([2]);
        Ok(Pool1d {
            name: self.name(),
            pool_size,
            strides: self.sizes("strides")?.map(|[strides]| strides),
            padding: self.padding()?,
        })
    }

    fn pool2d(&self) -> Result<Pool2d, Fault> {
        self.channels_last()?;
        Ok(Pool2d {
            name: self.name(),
            pool_size: self.sizes("pool_size")?.unwrap_or([2, 2]),
            strides: self.sizes("strides")?,
            padding: self.padding()?,
        })
    }

    fn global_pool(&self) -> Result<GlobalPool, Fault> {
        self.channels_last()?;
        if self.flag("keepdims", false)? {
            return Err(self.refuse("its `keepdims` is true, and it can only be false"));
        }
        Ok(GlobalPool { name: self.name() })
    }

    fn flatten(&self) -> Result<Flatten, Fault> {
        self.channels_last()?;
        Ok(Flatten { name: self.name() })
    }

    fn reshape(&self) -> Result<Reshape, Fault> {
        let shape = self.get("target_shape").and_then(Value::as_array);
        let shape = shape.and_then(|shape| shape.iter().map(Value::as_i64).collect());
        Ok(Reshape {
            name: self.name(),
            target_shape: shape.ok_or_else(|| {
                Fault::damaged(
                    format!("layer `{}`", self.layer),
                    "`target_shape` is not a list of whole numbers",
                )
            })?,
        })
    }

    fn dropout(&self) -> Result<Dropout, Fault> {
        if let Some(shape) = self.get("noise_shape") {
            return Err(self.refuse(format!(
                "its `noise_shape` is {}, and it can only be null",
                short(shape)
            )));
        }
        let rate = self.number_or("rate", 0.0)?;
        if !(0.0..1.0).contains(&rate) {
            return Err(
                self.refuse(format!("its `rate` is {rate}, and it can be from 0 to below 1"))
            );
        }
        Ok(Dropout { name: self.name(), rate })
    }

    fn embedding(&self, warnings: &mut Vec<String>) -> Result<Embedding, Fault> {
        if self.flag("mask_zero", false)? {
            return Err(self.refuse(
                "its `mask_zero` is true: the layers after it would skip the zeros in Keras, and \
                 do not here",
            ));
        }
        let usual = Initializer::RandomUniform { minval: -0.05, maxval: 0.05 };
        Ok(Embedding {
            name: self.name(),
            input_dim: self.count("input_dim")?,
            output_dim: self.count("output_dim")?,
            embeddings_initializer: self.initializer("embeddings_initializer", usual, warnings),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::chain::flatten;
    use super::*;

    /// Reads a model of one layer, with the warnings.
    fn one(class: &str, config: Value) -> Result<(Layer, Vec<String>), String> {
        let layer = json!({"class_name": class, "config": config});
        let model = json!({"class_name": "Sequential", "config": {"layers": [layer]}});
        let mut warnings = Vec::new();
        let chain = flatten(&model, &mut warnings).unwrap();
        let layers = convert(&chain, Version::Three, &mut warnings);
        let mut layers = layers.map_err(|fault| fault.to_string())?;
        Ok((layers.remove(0), warnings))
    }

    #[test]
    fn settings_that_would_change_the_outputs_are_refused_by_name() {
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
    fn settings_that_only_matter_in_training_are_warned_about() {
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
    fn a_class_of_the_users_own_is_unknown_even_if_it_is_called_dense() {
        let layer = json!({
            "class_name": "Dense",
            "registered_name": "mine>Dense",
            "config": {"units": 1}
        });
        let model = json!({"class_name": "Sequential", "config": {"layers": [layer]}});
        let chain = flatten(&model, &mut Vec::new()).unwrap();
        let fault = convert(&chain, Version::Three, &mut Vec::new()).unwrap_err();
        assert!(fault.to_string().contains("mine>Dense"));
    }
}
