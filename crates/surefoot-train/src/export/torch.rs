//! The source of a PyTorch module.

use super::step::{Affine, Cell, Step, steps};
use crate::predict::Predictor;
use std::fmt::Write as _;
use surefoot_plan::Activation;

/// Operations that the generated code calls.
const RUNTIME: &str = include_str!("runtime.py");

/// The source of a module with the class `Model`.
pub(super) fn module(predictor: &Predictor, weights: &str) -> String {
    let preprocessing = predictor.preprocessing();
    let mut text = format!(
        "\"\"\"PyTorch module of a trained model, written by `surefoot export`.\n\n\
         Model()(samples) returns the outputs for encoded samples of shape [batch, {}].\n\"\"\"\n\n\
         WEIGHTS = {}\nTASK = {}\nCLASSES = {}\n",
        preprocessing.input_shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
        literal(weights),
        literal(&preprocessing.task),
        list(preprocessing.classes.iter().map(|class| literal(class))),
    );
    let columns = preprocessing.columns.iter().map(|column| {
        let categories = column.categories.as_ref();
        let categories = categories.map(|all| list(all.iter().map(|category| literal(category))));
        format!("({}, {})", literal(&column.name), or_none(categories))
    });
    let or_absent = |values: Vec<String>| or_none((!values.is_empty()).then(|| list(values)));
    let means = preprocessing.means.iter().map(f32::to_string).collect();
    let limits = preprocessing.limits.iter().map(|limits| match limits {
        Some([low, high]) => format!("[{low}, {high}]"),
        None => "[float(\"-inf\"), float(\"inf\")]".to_owned(),
    });
    let scaling = preprocessing.scaling.as_ref().map(|scaling| {
        let numbers = |values: &[f64]| list(values.iter().map(|value| format!("{value:?}")));
        format!("[{}, {}]", numbers(&scaling.offset), numbers(&scaling.divisor))
    });
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# Name and categories of each feature column.");
    let _ = writeln!(text, "COLUMNS = {}", list(columns));
    let _ = writeln!(text, "MEANS = {}", or_absent(means));
    let _ = writeln!(text, "LIMITS = {}", or_absent(limits.collect()));
    let _ = writeln!(text, "SCALING = {}\n", or_none(scaling));
    text.push_str(RUNTIME);
    text.push_str(
        "\n\nclass Model(torch.nn.Module):\n    def __init__(self, weights=WEIGHTS):\n        \
         super().__init__()\n        arrays = load(weights)\n        \
         self.arrays = torch.nn.ParameterDict(\n            \
         {name.replace(\".\", \"|\"): torch.nn.Parameter(array, \".moving_\" not in name) for name, array \
         in arrays.items()}\n        )\n\n    def forward(self, x):\n        \
         w = lambda name: self.arrays[name.replace(\".\", \"|\")]\n        x = prepare(x)\n",
    );
    let mut kept = 0;
    for (step, _) in steps(predictor) {
        let line = match &step {
            Step::Fork => {
                kept += 1;
                format!("kept_{kept} = x")
            }
            Step::Swap => format!("x, kept_{kept} = kept_{kept}, x"),
            Step::Join => {
                kept -= 1;
                format!("x = x + kept_{}", kept + 1)
            }
            Step::Masking { value } => format!("x, mask = masking(x, {value:?})"),
            other => format!("x = {}", expression(other)),
        };
        let _ = writeln!(text, "        {line}");
    }
    if let Some(scaling) = &preprocessing.target_scaling {
        let row = |values: &[f64]| list(values.iter().map(|value| format!("{value:?}")));
        let (offset, divisor) = (row(&scaling.offset), row(&scaling.divisor));
        let _ = writeln!(text, "        x = x * torch.tensor({divisor}) + torch.tensor({offset})");
    }
    text.push_str("        return x\n");
    text
}

fn expression(step: &Step) -> String {
    match step {
        Step::Product { kernel, bias } => {
            format!("product(x, {}, {})", array(kernel), optional(bias.as_ref()))
        }
        Step::Conv { kernel, bias, window } => format!(
            "conv(x, {}, {}, {}, {}, {})",
            array(kernel),
            optional(bias.as_ref()),
            pads(window.before, window.after),
            pair(window.stride),
            pair(window.dilation),
        ),
        Step::Pool { is_max, window } => format!(
            "pool(x, {}, {}, {}, {})",
            boolean(*is_max),
            pair(window.size),
            pads(window.before, window.after),
            pair(window.stride),
        ),
        Step::GlobalPool { is_max } => format!("global_pool(x, {})", boolean(*is_max)),
        Step::Reshape(shape) => {
            let shape: Vec<String> = shape.iter().map(usize::to_string).collect();
            format!("x.reshape(len(x), {})", shape.join(", "))
        }
        Step::BatchNorm { mean, variance, affine, epsilon } => {
            let (mean, variance) = (array(mean), array(variance));
            format!("batch_norm(x, {mean}, {variance}, {}, {epsilon:?})", both(affine))
        }
        Step::LayerNorm { affine, epsilon } => {
            format!("layer_norm(x, {}, {epsilon:?})", both(affine))
        }
        Step::GroupNorm { groups, affine, epsilon } => {
            format!("group_norm(x, {groups}, {}, {epsilon:?})", both(affine))
        }
        Step::Embedding { table } => format!("{}[x.long()]", array(table)),
        Step::PositionEmbedding { table } => format!("x + {}", array(table)),
        Step::Recurrent(layer) => {
            let arrays = layer.prefixes().into_iter().map(|prefix| {
                let bias = layer.has_bias.then(|| array(&format!("{prefix}bias")));
                let [kernel, recurrent] =
                    ["kernel", "recurrent_kernel"].map(|name| array(&format!("{prefix}{name}")));
                format!("({kernel}, {recurrent}, {})", or_none(bias))
            });
            let (cell, reset_after) = match layer.cell {
                Cell::Simple => ("simple", false),
                Cell::Lstm => ("lstm", false),
                Cell::Gru { reset_after } => ("gru", reset_after),
            };
            format!(
                "recurrent(x, {}, \"{cell}\", ({}), ({}), {}, {}{})",
                list(arrays),
                activation(layer.activation),
                activation(layer.gates),
                boolean(reset_after),
                boolean(layer.returns_sequences),
                if layer.is_masked { ", mask" } else { "" },
            )
        }
        Step::Attention(layer) => {
            let projections = ["query", "key", "value", "output"].map(|name| {
                let name = format!("{}{name}_", layer.prefix);
                let bias = layer.has_bias.then(|| array(&format!("{name}bias")));
                format!("({}, {})", array(&format!("{name}kernel")), or_none(bias))
            });
            let (heads, key_dim) = (layer.heads, layer.key_dim);
            format!("attention(x, {heads}, {key_dim}, {})", projections.join(", "))
        }
        Step::Activate(function) => format!("activate(x, {})", activation(*function)),
        Step::Masking { .. } | Step::Fork | Step::Swap | Step::Join => "x".to_owned(),
    }
}

/// Name and option of an activation.
fn activation(activation: Activation) -> String {
    let option = match activation {
        Activation::LeakyRelu { negative_slope } => format!("{negative_slope:?}"),
        Activation::Elu { alpha } => format!("{alpha:?}"),
        Activation::Gelu { approximate } => boolean(approximate).to_owned(),
        Activation::HardSigmoid { slope } => format!("{slope:?}"),
        _ => "None".to_owned(),
    };
    format!("\"{}\", {option}", activation.name())
}

fn array(name: &str) -> String {
    format!("w({})", literal(name))
}

fn optional(name: Option<&String>) -> String {
    or_none(name.map(|name| array(name)))
}

fn or_none(value: Option<String>) -> String {
    value.unwrap_or_else(|| "None".to_owned())
}

fn both(affine: &Affine) -> String {
    format!("{}, {}", optional(affine.gamma.as_ref()), optional(affine.beta.as_ref()))
}

fn boolean(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

fn pair([height, width]: [usize; 2]) -> String {
    format!("({height}, {width})")
}

/// Padding in the order of `torch.nn.functional.pad`: the last dimension first.
fn pads(before: [usize; 2], after: [usize; 2]) -> String {
    format!("({}, {}, {}, {})", before[1], after[1], before[0], after[0])
}

fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(", "))
}

/// A Python string; its escapes are those of JSON.
fn literal(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
