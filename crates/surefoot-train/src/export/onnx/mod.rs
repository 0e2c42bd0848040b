//! An ONNX file.

mod graph;
mod proto;
mod recurrent;

use super::step::{Affine, Attention, Step, steps};
use crate::kernel::conv::Window;
use crate::predict::Predictor;
use graph::Builder;
use proto::{Attribute, Element, model, value};
use surefoot_data::Preprocessing;
use surefoot_plan::Activation;

/// Version of the operators: the first in which `Shape` can return a part of a shape.
const OPERATORS: i64 = 15;
/// Version of the format that goes with it.
const FORMAT: i64 = 8;

/// The file of a model. Its input is `samples`, its output `outputs`.
pub(super) fn file(predictor: &Predictor) -> Vec<u8> {
    let preprocessing = predictor.preprocessing();
    let mut writer = Writer {
        graph: Builder::new(),
        x: "samples".to_owned(),
        kept: Vec::new(),
        mask: String::new(),
    };
    for weight in predictor.weights() {
        let name = format!("{}.{}", weight.layer, weight.name);
        writer.graph.array(&name, &weight.shape, &weight.values);
    }
    writer.prepare(preprocessing);
    for (step, shape) in steps(predictor) {
        writer.step(&step, &shape);
    }
    let output = predictor.layers().pop().map_or_else(Vec::new, |layer| layer.output_shape);
    if let Some(scaling) = &preprocessing.target_scaling {
        let row = |values: &[f64]| values.iter().map(|&value| value as f32).collect::<Vec<f32>>();
        let divisor = writer.graph.row(&row(&scaling.divisor));
        let offset = writer.graph.row(&row(&scaling.offset));
        writer.apply("Mul", &divisor);
        writer.apply("Add", &offset);
    }
    writer.graph.rename(&writer.x, "outputs");
    let graph = writer.graph.finish(
        value("samples", Some(&preprocessing.input_shape)),
        value("outputs", Some(&output)),
    );
    model([FORMAT, OPERATORS], &graph, &metadata(preprocessing)).into_bytes()
}

/// Task, classes and columns, the last two as JSON.
fn metadata(preprocessing: &Preprocessing) -> [(&'static str, String); 3] {
    let columns = preprocessing.columns.iter();
    let columns: Vec<_> = columns.map(|column| (&column.name, &column.categories)).collect();
    [
        ("task", preprocessing.task.clone()),
        ("classes", serde_json::json!(preprocessing.classes).to_string()),
        ("columns", serde_json::json!(columns).to_string()),
    ]
}

/// Appends operations to a graph.
struct Writer {
    graph: Builder,
    /// Name of the current value.
    x: String,
    /// Values that a [`Step::Join`] adds.
    kept: Vec<String>,
    /// Name of the mask of the last [`Step::Masking`]: 0 for hidden steps, 1 for others.
    mask: String,
}

impl Writer {
    /// Applies an operator to the current value and another one.
    fn apply(&mut self, operator: &str, other: &str) {
        self.x = self.graph.apply(operator, &[&self.x, other]);
    }

    /// Applies an operator with attributes to the current value.
    fn map(&mut self, operator: &str, attributes: Vec<Attribute>) {
        self.x = self.graph.node(operator, &[&self.x], attributes);
    }

    fn reshape(&mut self, shape: &[i64]) {
        let shape = self.graph.integers(shape);
        self.apply("Reshape", &shape);
    }

    fn transpose(&mut self, order: &[i64]) {
        self.map("Transpose", vec![Attribute::ints("perm", order.iter().copied())]);
    }

    fn cast(&mut self, element: Element) {
        self.map("Cast", vec![Attribute::int("to", element as i64)]);
    }

    /// Clips, imputes and scales encoded samples.
    fn prepare(&mut self, preprocessing: &Preprocessing) {
        let samples = self.x.clone();
        if !preprocessing.limits.is_empty() {
            let bound = |i: usize, free: f32| -> Vec<f32> {
                let limits = preprocessing.limits.iter();
                limits.map(|limits| limits.map_or(free, |limits| limits[i])).collect()
            };
            let low = self.graph.row(&bound(0, f32::NEG_INFINITY));
            let high = self.graph.row(&bound(1, f32::INFINITY));
            self.apply("Max", &low);
            self.apply("Min", &high);
        }
        if !preprocessing.means.is_empty() {
            let means = self.graph.row(&preprocessing.means);
            let nan = self.graph.apply("IsNaN", &[&samples]);
            let infinite = self.graph.apply("IsInf", &[&samples]);
            let missing = self.graph.apply("Or", &[&nan, &infinite]);
            self.x = self.graph.apply("Where", &[&missing, &means, &self.x]);
        }
        if let Some(scaling) = &preprocessing.scaling {
            let offset = self.graph.doubles(&scaling.offset);
            let divisor = self.graph.doubles(&scaling.divisor);
            self.cast(Element::F64);
            self.apply("Sub", &offset);
            self.apply("Div", &divisor);
            self.cast(Element::F32);
        }
    }

    /// Appends a step to which the samples come in `shape`.
    fn step(&mut self, step: &Step, shape: &[usize]) {
        match step {
            Step::Product { kernel, bias } => self.product(kernel, bias.as_deref()),
            Step::Conv { kernel, bias, window } => {
                let mut inputs = vec![kernel.as_str()];
                inputs.extend(bias.as_deref());
                let mut attributes = geometry(window, shape);
                attributes.push(Attribute::ints("dilations", axes(window.dilation, shape)));
                self.channels_first("Conv", &inputs, attributes, shape);
            }
            Step::Pool { is_max, window } => {
                let operator = if *is_max { "MaxPool" } else { "AveragePool" };
                self.channels_first(operator, &[], geometry(window, shape), shape);
            }
            Step::GlobalPool { is_max } => {
                let axes = Attribute::ints("axes", 1..shape.len() as i64);
                let operator = if *is_max { "ReduceMax" } else { "ReduceMean" };
                self.map(operator, vec![axes, Attribute::int("keepdims", 0)]);
            }
            Step::Reshape(shape) => self.reshape(&sizes(shape)),
            Step::BatchNorm { mean, variance, affine, epsilon } => {
                let epsilon = self.graph.number(*epsilon);
                let variance = self.graph.apply("Add", &[variance, &epsilon]);
                let deviation = self.graph.apply("Sqrt", &[&variance]);
                self.apply("Sub", mean);
                self.apply("Div", &deviation);
                self.affine(affine);
            }
            Step::LayerNorm { affine, epsilon } => {
                self.normalize(&[shape.len() as i64], *epsilon);
                self.affine(affine);
            }
            Step::GroupNorm { groups, affine, epsilon } => {
                let channels = shape.last().map_or(1, |&channels| channels);
                let (groups, each) = (*groups as i64, (channels / (*groups).max(1)) as i64);
                self.reshape(&[0, -1, groups, each]);
                self.normalize(&[1, 3], *epsilon);
                self.reshape(&sizes(shape));
                self.affine(affine);
            }
            Step::Embedding { table } => {
                self.cast(Element::I64);
                self.x = self.graph.apply("Gather", &[table, &self.x]);
            }
            Step::PositionEmbedding { table } => self.apply("Add", table),
            Step::Masking { value } => self.masking(*value),
            Step::Recurrent(layer) => self.recurrent(layer),
            Step::Attention(layer) => self.attention(layer),
            Step::Activate(activation) => self.x = self.activate(&self.x.clone(), *activation),
            Step::Fork => self.kept.push(self.x.clone()),
            Step::Swap => {
                if let Some(kept) = self.kept.last_mut() {
                    std::mem::swap(kept, &mut self.x);
                }
            }
            Step::Join => {
                let kept = self.kept.pop().unwrap_or_else(|| self.x.clone());
                self.apply("Add", &kept);
            }
        }
    }

    /// `x @ kernel + bias`.
    fn product(&mut self, kernel: &str, bias: Option<&str>) {
        self.apply("MatMul", kernel);
        if let Some(bias) = bias {
            self.apply("Add", bias);
        }
    }

    fn affine(&mut self, affine: &Affine) {
        if let Some(gamma) = &affine.gamma {
            self.apply("Mul", gamma);
        }
        if let Some(beta) = &affine.beta {
            self.apply("Add", beta);
        }
    }

    /// Zero mean and unit variance over `axes`.
    fn normalize(&mut self, axes: &[i64], epsilon: f64) {
        let axes = || vec![Attribute::ints("axes", axes.iter().copied())];
        let mean = self.graph.node("ReduceMean", &[&self.x], axes());
        self.apply("Sub", &mean);
        let square = self.graph.apply("Mul", &[&self.x, &self.x]);
        let variance = self.graph.node("ReduceMean", &[&square], axes());
        let epsilon = self.graph.number(epsilon);
        let variance = self.graph.apply("Add", &[&variance, &epsilon]);
        let deviation = self.graph.apply("Sqrt", &[&variance]);
        self.apply("Div", &deviation);
    }

    /// Applies an operator that expects channels before the other dimensions.
    fn channels_first(
        &mut self,
        operator: &str,
        arrays: &[&str],
        attributes: Vec<Attribute>,
        shape: &[usize],
    ) {
        let is_sequence = shape.len() == 2;
        self.transpose(if is_sequence { &[0, 2, 1] } else { &[0, 3, 1, 2] });
        let inputs: Vec<&str> =
            std::iter::once(self.x.as_str()).chain(arrays.iter().copied()).collect();
        self.x = self.graph.node(operator, &inputs, attributes);
        self.transpose(if is_sequence { &[0, 2, 1] } else { &[0, 2, 3, 1] });
    }

    fn attention(&mut self, layer: &Attention) {
        let x = self.x.clone();
        let (heads, key_dim) = (layer.heads as i64, layer.key_dim as i64);
        let bias = |name: &str| layer.has_bias.then(|| format!("{}{name}_bias", layer.prefix));
        let kernel = |name: &str| format!("{}{name}_kernel", layer.prefix);
        let [query, key, value] = ["query", "key", "value"].map(|name| {
            self.x.clone_from(&x);
            self.product(&kernel(name), bias(name).as_deref());
            self.reshape(&[0, 0, heads, key_dim]);
            self.transpose(if name == "key" { &[0, 2, 3, 1] } else { &[0, 2, 1, 3] });
            self.x.clone()
        });
        let root = self.graph.number((layer.key_dim as f64).sqrt());
        self.x = self.graph.apply("MatMul", &[&query, &key]);
        self.apply("Div", &root);
        self.map("Softmax", vec![Attribute::int("axis", -1)]);
        self.apply("MatMul", &value);
        self.transpose(&[0, 2, 1, 3]);
        self.reshape(&[0, 0, heads * key_dim]);
        self.product(&kernel("output"), bias("output").as_deref());
    }

    /// Applies an activation to `x` and returns the result.
    fn activate(&mut self, x: &str, activation: Activation) -> String {
        let graph = &mut self.graph;
        match activation {
            Activation::Linear => x.to_owned(),
            Activation::Relu => graph.apply("Relu", &[x]),
            Activation::LeakyRelu { negative_slope } => {
                graph.node("LeakyRelu", &[x], vec![Attribute::float("alpha", negative_slope)])
            }
            Activation::Elu { alpha } => {
                graph.node("Elu", &[x], vec![Attribute::float("alpha", alpha)])
            }
            Activation::Selu => graph.apply("Selu", &[x]),
            Activation::Gelu { approximate } => {
                let inner = if approximate {
                    let cubic = graph.number(0.044715);
                    let square = graph.apply("Mul", &[x, x]);
                    let square = graph.apply("Mul", &[&square, &cubic]);
                    let term = graph.apply("Mul", &[&square, x]);
                    let sum = graph.apply("Add", &[x, &term]);
                    let factor = graph.number((2.0 / std::f64::consts::PI).sqrt());
                    let scaled = graph.apply("Mul", &[&sum, &factor]);
                    graph.apply("Tanh", &[&scaled])
                } else {
                    let factor = graph.number(std::f64::consts::FRAC_1_SQRT_2);
                    let scaled = graph.apply("Mul", &[x, &factor]);
                    graph.apply("Erf", &[&scaled])
                };
                let (one, half) = (graph.number(1.0), graph.number(0.5));
                let share = graph.apply("Add", &[&inner, &one]);
                let share = graph.apply("Mul", &[&share, &half]);
                graph.apply("Mul", &[x, &share])
            }
            Activation::Silu => {
                let gate = graph.apply("Sigmoid", &[x]);
                graph.apply("Mul", &[x, &gate])
            }
            Activation::Tanh => graph.apply("Tanh", &[x]),
            Activation::Sigmoid => graph.apply("Sigmoid", &[x]),
            Activation::HardSigmoid { slope } => {
                let options = vec![Attribute::float("alpha", slope), Attribute::float("beta", 0.5)];
                graph.node("HardSigmoid", &[x], options)
            }
            Activation::Softplus => graph.apply("Softplus", &[x]),
            Activation::Softmax => graph.node("Softmax", &[x], vec![Attribute::int("axis", -1)]),
        }
    }
}

/// A shape for `Reshape`, with the batch as it is.
fn sizes(shape: &[usize]) -> Vec<i64> {
    std::iter::once(0).chain(shape.iter().map(|&size| size as i64)).collect()
}

/// The values of the dimensions that samples of a shape have: the width alone for sequences.
fn axes(values: [usize; 2], shape: &[usize]) -> impl Iterator<Item = i64> {
    values.into_iter().skip(usize::from(shape.len() == 2)).map(|value| value as i64)
}

fn geometry(window: &Window, shape: &[usize]) -> Vec<Attribute> {
    vec![
        Attribute::ints("kernel_shape", axes(window.size, shape)),
        Attribute::ints("strides", axes(window.stride, shape)),
        Attribute::ints("pads", axes(window.before, shape).chain(axes(window.after, shape))),
    ]
}
