//! Keras's recurrent layers, alone and inside `Bidirectional`.

use serde_json::{Map, Value};

use super::Fault;
use super::settings::{Settings, short};
use crate::{Activation, Gru, Initializer, Layer, Lstm, SimpleRnn};

/// The class of a wrapped layer that is not known, as `Bidirectional(ConvLSTM1D)`.
pub(super) fn unknown_inside(class: &str, config: &Map<String, Value>) -> Option<String> {
    if class != "Bidirectional" {
        return None;
    }
    let inner = config.get("layer")?.get("class_name")?.as_str()?;
    (!is_recurrent(inner)).then(|| format!("Bidirectional({inner})"))
}

fn is_recurrent(class: &str) -> bool {
    matches!(class, "SimpleRNN" | "LSTM" | "GRU")
}

/// A recurrent layer, or two in a `Bidirectional`.
pub(super) fn layer(
    class: &str,
    settings: &Settings<'_>,
    warnings: &mut Vec<String>,
) -> Result<Layer, Fault> {
    if class == "Bidirectional" {
        return bidirectional(settings, warnings);
    }
    if settings.flag("go_backwards", false)? {
        return Err(settings.refuse("its `go_backwards` is true, and it can only be false"));
    }
    one_way(class, settings, false, warnings)
}

fn bidirectional(settings: &Settings<'_>, warnings: &mut Vec<String>) -> Result<Layer, Fault> {
    let mode = settings.values.get("merge_mode");
    if mode.is_some_and(|mode| mode.as_str() != Some("concat")) {
        return Err(settings.refuse(format!(
            "its `merge_mode` is {}, and it can only be \"concat\"",
            mode.map(short).unwrap_or_default()
        )));
    }
    let part = |key: &str| -> Option<(&str, Settings<'_>)> {
        let value = settings.get(key)?;
        let class = value.get("class_name")?.as_str()?;
        Some((class, settings.inner(value.get("config")?.as_object()?)))
    };
    let Some((class, forward)) = part("layer") else {
        return Err(Fault::damaged(format!("layer `{}`", settings.layer), "`layer` is missing"));
    };
    if forward.flag("go_backwards", false)? {
        return Err(settings.refuse("its forward layer has `go_backwards`"));
    }
    let layer = one_way(class, &forward, true, warnings)?;
    if let Some((class, backward)) = part("backward_layer") {
        let other = one_way(class, &backward, true, &mut Vec::new())?;
        if other != layer || !backward.flag("go_backwards", false)? {
            return Err(settings.refuse(
                "its backward layer differs from its forward layer, and they can only be the same",
            ));
        }
    }
    Ok(layer)
}

fn one_way(
    class: &str,
    settings: &Settings<'_>,
    bidirectional: bool,
    warnings: &mut Vec<String>,
) -> Result<Layer, Fault> {
    for key in ["stateful", "return_state", "time_major"] {
        if settings.flag(key, false)? {
            return Err(settings.refuse(format!("its `{key}` is true, and it can only be false")));
        }
    }
    for key in ["dropout", "recurrent_dropout"] {
        let rate = settings.number_or(key, 0.0)?;
        if rate != 0.0 {
            warnings.push(format!(
                "layer `{}`: the `{key}` {rate} inside the layer has no counterpart and is left out",
                settings.layer
            ));
        }
    }
    settings.leave_out(&["bias_regularizer"], warnings);
    if bidirectional {
        // Alone, a layer's own settings have been looked at already.
        settings.leave_out(
            &[
                "activity_regularizer",
                "kernel_constraint",
                "bias_constraint",
                "recurrent_constraint",
            ],
            warnings,
        );
    }

    let name = Some(settings.layer.to_owned());
    let units = settings.count("units")?;
    let activation = settings.activation("activation", Activation::Tanh)?;
    let use_bias = settings.flag("use_bias", true)?;
    let kernel_initializer =
        settings.initializer("kernel_initializer", Initializer::GlorotUniform, warnings);
    let recurrent_initializer = settings.initializer(
        "recurrent_initializer",
        Initializer::Orthogonal { gain: 1.0 },
        warnings,
    );
    let bias_initializer = settings.initializer("bias_initializer", Initializer::Zeros, warnings);
    let kernel_regularizer = settings.regularizer("kernel_regularizer", warnings);
    let recurrent_regularizer = settings.regularizer("recurrent_regularizer", warnings);
    let return_sequences = settings.flag("return_sequences", false)?;
    Ok(match class {
        "LSTM" => Layer::Lstm(Lstm {
            name,
            units,
            activation,
            recurrent_activation: settings
                .activation("recurrent_activation", Activation::Sigmoid)?,
            use_bias,
            unit_forget_bias: settings.flag("unit_forget_bias", true)?,
            kernel_initializer,
            recurrent_initializer,
            bias_initializer,
            kernel_regularizer,
            recurrent_regularizer,
            return_sequences,
            bidirectional,
        }),
        "GRU" => Layer::Gru(Gru {
            name,
            units,
            activation,
            recurrent_activation: settings
                .activation("recurrent_activation", Activation::Sigmoid)?,
            use_bias,
            // Files from before there was a choice do not mention it.
            reset_after: settings.flag("reset_after", false)?,
            kernel_initializer,
            recurrent_initializer,
            bias_initializer,
            kernel_regularizer,
            recurrent_regularizer,
            return_sequences,
            bidirectional,
        }),
        _ => Layer::SimpleRnn(SimpleRnn {
            name,
            units,
            activation,
            use_bias,
            kernel_initializer,
            recurrent_initializer,
            bias_initializer,
            kernel_regularizer,
            recurrent_regularizer,
            return_sequences,
            bidirectional,
        }),
    })
}
