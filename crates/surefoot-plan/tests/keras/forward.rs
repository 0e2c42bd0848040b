//! A plain forward pass: the oracle for imported weights.

use std::collections::HashMap;

use surefoot_plan::keras::KerasModel;
use surefoot_plan::{Activation, Layer, Weight};

use crate::windows::{Windows, convolve, pooled};

/// A sample on its way through the model: row-major, channels last.
pub(crate) struct Sample {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f64>,
}

/// The arrays of one layer by name.
type Arrays<'a> = HashMap<&'a str, &'a Weight>;

/// The model's outputs for a batch.
pub(crate) fn forward(model: &KerasModel, shape: &[usize], inputs: &[f64]) -> Vec<f64> {
    let size: usize = shape[1..].iter().product();
    let mut outputs = Vec::new();
    for input in inputs.chunks(size) {
        let mut sample = Sample { shape: shape[1..].to_vec(), values: input.to_vec() };
        for layer in &model.layers {
            let name = layer.name().unwrap();
            let own = model.weights.iter().filter(|weight| weight.layer == name);
            let arrays = own.map(|weight| (weight.name.as_str(), weight)).collect();
            sample = apply(layer, &arrays, sample);
        }
        outputs.extend(sample.values);
    }
    outputs
}

fn apply(layer: &Layer, arrays: &Arrays<'_>, x: Sample) -> Sample {
    let last = *x.shape.last().unwrap();
    match layer {
        Layer::Dense(dense) => {
            let rows = x.values.chunks(last);
            let values = rows
                .flat_map(|row| {
                    let mut out = product(row, arrays["kernel"]);
                    add_bias(&mut out, arrays.get("bias"));
                    activate(dense.activation, &mut out);
                    out
                })
                .collect();
            let mut shape = x.shape;
            *shape.last_mut().unwrap() = dense.units;
            Sample { shape, values }
        }
        Layer::Conv1d(conv) => {
            let image = as_image(x);
            let kernel = arrays["kernel"];
            let [filters, channels, width] = kernel.shape[..] else { panic!() };
            let kernel = Weight { shape: vec![filters, channels, 1, width], ..kernel.clone() };
            let windows = Windows {
                size: [1, conv.kernel_size],
                strides: [1, conv.strides],
                dilation: [1, conv.dilation_rate],
                padding: conv.padding,
            };
            let bias = arrays.get("bias").copied();
            as_sequence(convolve(image, &kernel, bias, &windows, conv.activation))
        }
        Layer::Conv2d(conv) => {
            let windows = Windows {
                size: conv.kernel_size,
                strides: conv.strides,
                dilation: conv.dilation_rate,
                padding: conv.padding,
            };
            let bias = arrays.get("bias").copied();
            convolve(x, arrays["kernel"], bias, &windows, conv.activation)
        }
        Layer::MaxPool1d(pool) | Layer::AveragePool1d(pool) => {
            let windows = Windows {
                size: [1, pool.pool_size],
                strides: [1, pool.strides.unwrap_or(pool.pool_size)],
                dilation: [1, 1],
                padding: pool.padding,
            };
            as_sequence(pooled(as_image(x), &windows, matches!(layer, Layer::MaxPool1d(_))))
        }
        Layer::MaxPool2d(pool) | Layer::AveragePool2d(pool) => {
            let windows = Windows {
                size: pool.pool_size,
                strides: pool.strides.unwrap_or(pool.pool_size),
                dilation: [1, 1],
                padding: pool.padding,
            };
            pooled(x, &windows, matches!(layer, Layer::MaxPool2d(_)))
        }
        Layer::GlobalMaxPool(_) | Layer::GlobalAveragePool(_) => {
            let of_channel = |c: usize| x.values.iter().skip(c).step_by(last).copied();
            let values = (0..last)
                .map(|c| match layer {
                    Layer::GlobalMaxPool(_) => of_channel(c).fold(f64::MIN, f64::max),
                    _ => of_channel(c).sum::<f64>() / (x.values.len() / last) as f64,
                })
                .collect();
            Sample { shape: vec![last], values }
        }
        Layer::Flatten(_) => Sample { shape: vec![x.values.len()], values: x.values },
        Layer::Reshape(reshape) => {
            let known: i64 = reshape.target_shape.iter().filter(|&&n| n > 0).product();
            let open = x.values.len() / known as usize;
            let sizes = reshape.target_shape.iter();
            let shape = sizes.map(|&n| if n < 0 { open } else { n as usize }).collect();
            Sample { shape, values: x.values }
        }
        Layer::Dropout(_) => x,
        Layer::BatchNorm(norm) => {
            let mean = &arrays["moving_mean"].values;
            let variance = &arrays["moving_variance"].values;
            let values = x.values.iter().enumerate();
            let values = values
                .map(|(i, value)| {
                    let (mean, variance) = (mean[i % last].into(), variance[i % last].into());
                    normalised(*value, mean, variance, norm.epsilon, arrays, i % last)
                })
                .collect();
            Sample { shape: x.shape, values }
        }
        Layer::LayerNorm(norm) => grouped(x, |index| index / last, norm.epsilon, arrays),
        Layer::GroupNorm(norm) => {
            let group = last / norm.groups;
            grouped(x, |index| index % last / group, norm.epsilon, arrays)
        }
        Layer::Embedding(table) => {
            let rows = &arrays["embeddings"].values;
            let pick = |&id: &f64| {
                let start = id as usize * table.output_dim;
                rows[start..start + table.output_dim].iter().map(|&v| f64::from(v))
            };
            let mut shape = x.shape;
            shape.push(table.output_dim);
            Sample { shape, values: x.values.iter().flat_map(pick).collect() }
        }
        Layer::SimpleRnn(rnn) => {
            scan(x, arrays, rnn.bidirectional, rnn.return_sequences, |x, h, _, w| {
                let mut next = product(x, w["kernel"]);
                add_bias(&mut next, w.get("bias"));
                add(&mut next, &product(h, w["recurrent_kernel"]));
                activate(rnn.activation, &mut next);
                next
            })
        }
        Layer::Lstm(rnn) => {
            scan(x, arrays, rnn.bidirectional, rnn.return_sequences, |x, h, cell, w| {
                let mut gates = product(x, w["kernel"]);
                add_bias(&mut gates, w.get("bias"));
                add(&mut gates, &product(h, w["recurrent_kernel"]));
                let mut gates: Vec<Vec<f64>> =
                    gates.chunks(rnn.units).map(<[f64]>::to_vec).collect();
                for gate in [0, 1, 3] {
                    activate(rnn.recurrent_activation, &mut gates[gate]);
                }
                activate(rnn.activation, &mut gates[2]);
                for (i, cell) in cell.iter_mut().enumerate() {
                    *cell = gates[1][i] * *cell + gates[0][i] * gates[2][i];
                }
                let mut next = cell.clone();
                activate(rnn.activation, &mut next);
                next.iter().zip(&gates[3]).map(|(value, gate)| value * gate).collect()
            })
        }
        Layer::Gru(rnn) => {
            scan(x, arrays, rnn.bidirectional, rnn.return_sequences, |x, h, _, w| {
                let units = rnn.units;
                let bias: Vec<f64> = w["bias"].values.iter().map(|&v| f64::from(v)).collect();
                let mut from_input = product(x, w["kernel"]);
                add(&mut from_input, &bias[..3 * units]);
                let mut from_state = product(h, w["recurrent_kernel"]);
                if rnn.reset_after {
                    add(&mut from_state, &bias[3 * units..]);
                }
                let gates = from_input.iter().zip(&from_state).map(|(a, b)| a + b);
                let mut gates: Vec<f64> = gates.take(2 * units).collect();
                activate(rnn.recurrent_activation, &mut gates);
                let (update, reset) = gates.split_at(units);
                let mut candidate = from_input[2 * units..].to_vec();
                if rnn.reset_after {
                    let kept = from_state[2 * units..].iter().zip(reset).map(|(s, r)| s * r);
                    add(&mut candidate, &kept.collect::<Vec<_>>());
                } else {
                    let kept: Vec<f64> = h.iter().zip(reset).map(|(h, r)| h * r).collect();
                    add(&mut candidate, &product(&kept, w["recurrent_kernel"])[2 * units..]);
                }
                activate(rnn.activation, &mut candidate);
                (0..units).map(|i| update[i] * h[i] + (1.0 - update[i]) * candidate[i]).collect()
            })
        }
        Layer::Activation(layer) => {
            let mut values = x.values;
            values.chunks_mut(last).for_each(|row| activate(layer.activation, row));
            Sample { shape: x.shape, values }
        }
        other => panic!("{other:?} is not imported from Keras"),
    }
}

/// One row times a matrix `[in, out]`.
fn product(row: &[f64], matrix: &Weight) -> Vec<f64> {
    let [rows, columns] = matrix.shape[..] else { panic!() };
    assert_eq!(rows, row.len());
    let entry = |r: usize, c: usize| f64::from(matrix.values[r * columns + c]);
    (0..columns).map(|c| (0..rows).map(|r| row[r] * entry(r, c)).sum()).collect()
}

fn add(to: &mut [f64], other: &[f64]) {
    to.iter_mut().zip(other).for_each(|(a, b)| *a += b);
}

pub(crate) fn add_bias(to: &mut [f64], bias: Option<&&Weight>) {
    if let Some(bias) = bias {
        to.iter_mut().zip(&bias.values).for_each(|(a, &b)| *a += f64::from(b));
    }
}

pub(crate) fn activate(activation: Activation, row: &mut [f64]) {
    if activation == Activation::Softmax {
        let sum: f64 = row.iter().map(|x| x.exp()).sum();
        row.iter_mut().for_each(|x| *x = x.exp() / sum);
        return;
    }
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    for x in row {
        *x = match activation {
            Activation::Relu => x.max(0.0),
            Activation::LeakyRelu { negative_slope } => {
                if *x > 0.0 {
                    *x
                } else {
                    negative_slope * *x
                }
            }
            Activation::Elu { alpha } => {
                if *x > 0.0 {
                    *x
                } else {
                    alpha * x.exp_m1()
                }
            }
            Activation::Selu => {
                let (scale, alpha) = (1.050_700_987_355_480_5, 1.673_263_242_354_377_2);
                scale * if *x > 0.0 { *x } else { alpha * x.exp_m1() }
            }
            Activation::Gelu { approximate } => {
                assert!(!approximate);
                *x * normal_distribution(*x)
            }
            Activation::Silu => *x * sigmoid(*x),
            Activation::Tanh => x.tanh(),
            Activation::Sigmoid => sigmoid(*x),
            Activation::HardSigmoid { slope } => (slope * *x + 0.5).clamp(0.0, 1.0),
            Activation::Softplus => x.exp().ln_1p(),
            Activation::Softmax | Activation::Linear => *x,
        };
    }
}

/// The distribution function of the normal distribution, by its series around zero.
fn normal_distribution(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= x * x / f64::from(2 * n + 1);
        sum += term;
    }
    0.5 + sum * (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

fn normalised(
    value: f64,
    mean: f64,
    variance: f64,
    epsilon: f64,
    arrays: &Arrays<'_>,
    channel: usize,
) -> f64 {
    let get = |name: &str| arrays.get(name).map(|array| f64::from(array.values[channel]));
    let unit = (value - mean) / (variance + epsilon).sqrt();
    unit * get("gamma").unwrap_or(1.0) + get("beta").unwrap_or(0.0)
}

/// Normalises the values of each group, then scales each channel.
fn grouped(x: Sample, group: impl Fn(usize) -> usize, epsilon: f64, arrays: &Arrays<'_>) -> Sample {
    let channels = *x.shape.last().unwrap();
    let values = (0..x.values.len())
        .map(|index| {
            let members = (0..x.values.len()).filter(|&other| group(other) == group(index));
            let members: Vec<f64> = members.map(|other| x.values[other]).collect();
            let count = members.len() as f64;
            let mean = members.iter().sum::<f64>() / count;
            let variance = members.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
            normalised(x.values[index], mean, variance, epsilon, arrays, index % channels)
        })
        .collect();
    Sample { shape: x.shape, values }
}

fn as_image(x: Sample) -> Sample {
    Sample { shape: [&[1], &x.shape[..]].concat(), values: x.values }
}

fn as_sequence(x: Sample) -> Sample {
    Sample { shape: x.shape[1..].to_vec(), values: x.values }
}

/// Runs a cell over the steps, in both directions if the layer is bidirectional. The cell takes the
/// input, the state, its memory and its arrays, and returns the next state.
fn scan(
    x: Sample,
    arrays: &Arrays<'_>,
    bidirectional: bool,
    sequences: bool,
    cell: impl Fn(&[f64], &[f64], &mut Vec<f64>, &Arrays<'_>) -> Vec<f64>,
) -> Sample {
    let [steps, features] = x.shape[..] else { panic!() };
    let run = |prefix: &str, backwards: bool| -> Vec<Vec<f64>> {
        let own =
            arrays.iter().filter_map(|(name, array)| Some((name.strip_prefix(prefix)?, *array)));
        let own: Arrays<'_> = own.collect();
        let units = own["recurrent_kernel"].shape[0];
        let (mut state, mut memory) = (vec![0.0; units], vec![0.0; units]);
        let mut states = vec![Vec::new(); steps];
        for step in 0..steps {
            let step = if backwards { steps - 1 - step } else { step };
            let input = &x.values[step * features..(step + 1) * features];
            state = cell(input, &state, &mut memory, &own);
            states[step] = state.clone();
        }
        states
    };
    let mut states;
    let mut end;
    if bidirectional {
        states = run("forward_", false);
        end = states[steps - 1].clone();
        let backward = run("backward_", true);
        end.extend(&backward[0]);
        states.iter_mut().zip(backward).for_each(|(state, other)| state.extend(other));
    } else {
        states = run("", false);
        end = states[steps - 1].clone();
    }
    if sequences {
        Sample { shape: vec![steps, end.len()], values: states.concat() }
    } else {
        Sample { shape: vec![end.len()], values: end }
    }
}
