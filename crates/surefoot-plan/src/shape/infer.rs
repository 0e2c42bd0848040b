//! The shapes of all layers, one after the other.

use super::{LayerShape, ShapeError};
use crate::names::Namer;
use crate::{Layer, MultiHeadAttention, Padding, Transformer};

/// The shapes of all layers, depth first; a residual block follows the layers in it.
///
/// `whole` says whether the input consists of whole numbers, as an embedding needs.
pub fn infer(
    layers: &[Layer],
    input: &[usize],
    whole: bool,
) -> Result<Vec<LayerShape>, ShapeError> {
    let mut walk = Walk::default();
    walk.list(layers, "", &mut Vec::new(), input.to_vec(), whole)?;
    Ok(walk.shapes)
}

#[derive(Default)]
struct Walk {
    namer: Namer,
    shapes: Vec<LayerShape>,
}

impl Walk {
    /// Goes through a list of layers and gives what comes out of it.
    fn list(
        &mut self,
        layers: &[Layer],
        scope: &str,
        path: &mut Vec<usize>,
        mut input: Vec<usize>,
        mut whole: bool,
    ) -> Result<Vec<usize>, ShapeError> {
        for (index, layer) in layers.iter().enumerate() {
            let name = self.namer.name(layer, layers, scope);
            path.push(index);
            let step = match layer {
                Layer::Residual(block) => {
                    let output = self.list(&block.layers, &name, path, input.clone(), whole)?;
                    same(&input, output)
                }
                _ => step(layer, &input, whole),
            };
            let step = step.map_err(|need| need.at(path, &name, &input))?;
            whole &= matches!(layer, Layer::Flatten(_) | Layer::Reshape(_));
            self.shapes.push(LayerShape {
                name,
                kind: layer.kind(),
                path: path.clone(),
                input: std::mem::replace(&mut input, step.output.clone()),
                output: step.output,
                parameters: step.parameters,
            });
            path.pop();
        }
        Ok(input)
    }
}

/// What a layer makes of its input.
struct Step {
    output: Vec<usize>,
    parameters: usize,
}

impl Step {
    fn new(output: Vec<usize>, parameters: usize) -> Result<Self, Need> {
        Ok(Self { output, parameters })
    }
}

/// What a layer needs and did not get.
struct Need {
    what: String,
    help: Option<String>,
}

impl Need {
    fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), help: None }
    }

    fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    fn at(self, path: &[usize], name: &str, input: &[usize]) -> ShapeError {
        ShapeError {
            path: path.to_vec(),
            layer: name.to_owned(),
            message: format!("layer `{name}` cannot take an input of shape {input:?}"),
            label: Some(self.what),
            help: self.help,
        }
    }
}

fn step(layer: &Layer, input: &[usize], whole: bool) -> Result<Step, Need> {
    let Some(&last) = input.last() else {
        return Err(Need::new("it needs at least one dimension"));
    };
    match layer {
        Layer::Dense(dense) => {
            let mut output = input.to_vec();
            output.pop();
            output.push(dense.units);
            Step::new(output, affine(last, dense.units, dense.use_bias))
        }
        Layer::Conv1d(conv) => {
            let [steps, channels] = sequence(input)?;
            let steps = window(
                [steps],
                [conv.kernel_size],
                [conv.strides],
                [conv.dilation_rate],
                conv.padding,
            )?;
            let taps = conv.kernel_size.saturating_mul(channels);
            let parameters = affine(taps, conv.filters, conv.use_bias);
            Step::new(vec![steps[0], conv.filters], parameters)
        }
        Layer::Conv2d(conv) => {
            let [height, width, channels] = image(input)?;
            let [height, width] = window(
                [height, width],
                conv.kernel_size,
                conv.strides,
                conv.dilation_rate,
                conv.padding,
            )?;
            let [rows, columns] = conv.kernel_size;
            let taps = rows.saturating_mul(columns).saturating_mul(channels);
            let parameters = affine(taps, conv.filters, conv.use_bias);
            Step::new(vec![height, width, conv.filters], parameters)
        }
        Layer::MaxPool1d(pool) | Layer::AveragePool1d(pool) => {
            let [steps, channels] = sequence(input)?;
            let strides = pool.strides.unwrap_or(pool.pool_size);
            let steps = window([steps], [pool.pool_size], [strides], [1], pool.padding)?;
            Step::new(vec![steps[0], channels], 0)
        }
        Layer::MaxPool2d(pool) | Layer::AveragePool2d(pool) => {
            let [height, width, channels] = image(input)?;
            let strides = pool.strides.unwrap_or(pool.pool_size);
            let size = [height, width];
            let [height, width] = window(size, pool.pool_size, strides, [1, 1], pool.padding)?;
            Step::new(vec![height, width, channels], 0)
        }
        Layer::GlobalMaxPool(_) | Layer::GlobalAveragePool(_) => match input.len() {
            2 | 3 => Step::new(vec![last], 0),
            _ => Err(Need::new("it needs [steps, features] or [height, width, channels]")),
        },
        Layer::Flatten(_) => Step::new(vec![count(input)], 0),
        Layer::Reshape(reshape) => Step::new(reshaped(input, &reshape.target_shape)?, 0),
        Layer::Dropout(_) | Layer::Activation(_) => Step::new(input.to_vec(), 0),
        Layer::BatchNorm(norm) => scaled(input, norm.center, norm.scale),
        Layer::LayerNorm(norm) => scaled(input, norm.center, norm.scale),
        Layer::GroupNorm(norm) if last % norm.groups == 0 => scaled(input, norm.center, norm.scale),
        Layer::GroupNorm(norm) => Err(Need::new(format!(
            "it needs channels (here {last}) that divide into {} groups",
            norm.groups
        ))
        .help(format!("set `groups` to a divisor of {last}"))),
        Layer::Embedding(embedding) => match input {
            [steps] if whole => Step::new(
                vec![*steps, embedding.output_dim],
                embedding.input_dim.saturating_mul(embedding.output_dim),
            ),
            [_] => Err(Need::new("it needs whole numbers")
                .help("an embedding comes first in a model, and its data must not be scaled")),
            _ => Err(Need::new("it needs whole numbers of shape [steps]")),
        },
        Layer::PositionEmbedding(_) => {
            let [steps, features] = sequence(input)?;
            Step::new(input.to_vec(), steps.saturating_mul(features))
        }
        Layer::SimpleRnn(rnn) => {
            let [steps, features] = sequence(input)?;
            let once = affine(features.saturating_add(rnn.units), rnn.units, rnn.use_bias);
            recurrent(steps, rnn.units, rnn.return_sequences, rnn.bidirectional, once)
        }
        Layer::Lstm(rnn) => {
            let [steps, features] = sequence(input)?;
            let gate = affine(features.saturating_add(rnn.units), rnn.units, rnn.use_bias);
            let once = gate.saturating_mul(4);
            recurrent(steps, rnn.units, rnn.return_sequences, rnn.bidirectional, once)
        }
        Layer::Gru(rnn) => {
            let [steps, features] = sequence(input)?;
            let gate = affine(features.saturating_add(rnn.units), rnn.units, rnn.use_bias);
            // Reset after the product, the recurrent part has a bias of its own.
            let second = match rnn.use_bias && rnn.reset_after {
                true => rnn.units,
                false => 0,
            };
            let once = gate.saturating_add(second).saturating_mul(3);
            recurrent(steps, rnn.units, rnn.return_sequences, rnn.bidirectional, once)
        }
        Layer::MultiHeadAttention(attention) => {
            let [_, features] = sequence(input)?;
            Step::new(input.to_vec(), attention_parameters(attention, features)?)
        }
        Layer::Transformer(block) => {
            let [_, features] = sequence(input)?;
            Step::new(input.to_vec(), transformer_parameters(block, features)?)
        }
        Layer::Residual(_) => unreachable!("a residual block is gone through by its list"),
    }
}

fn same(input: &[usize], output: Vec<usize>) -> Result<Step, Need> {
    if output == input {
        return Step::new(output, 0);
    }
    Err(Need::new(format!("its layers make {output:?} of it, which cannot be added to {input:?}"))
        .help("the layers of a residual block have to give back the shape they get"))
}

fn sequence(input: &[usize]) -> Result<[usize; 2], Need> {
    input.try_into().map_err(|_| {
        let need = Need::new("it needs [steps, features]");
        match input {
            [size] => need.help(format!(
                "a `reshape` with target_shape = [{size}, 1] makes a sequence of it"
            )),
            [_, _, channels] => need.help(format!(
                "a `reshape` with target_shape = [-1, {channels}] makes a sequence of it"
            )),
            _ => need,
        }
    })
}

fn image(input: &[usize]) -> Result<[usize; 3], Need> {
    input.try_into().map_err(|_| {
        let need = Need::new("it needs [height, width, channels]");
        match input {
            [height, width] => need.help(format!(
                "a `reshape` with target_shape = [{height}, {width}, 1] adds the channels"
            )),
            _ => need,
        }
    })
}

/// How often a window fits, in each direction.
fn window<const N: usize>(
    input: [usize; N],
    size: [usize; N],
    strides: [usize; N],
    dilation: [usize; N],
    padding: Padding,
) -> Result<[usize; N], Need> {
    let reach: [usize; N] = std::array::from_fn(|i| {
        let gaps = size[i].saturating_sub(1).saturating_mul(dilation[i]);
        gaps.saturating_add(1)
    });
    if padding == Padding::Valid && (0..N).any(|i| reach[i] > input[i]) {
        let reach: Vec<_> = reach.iter().map(usize::to_string).collect();
        return Err(Need::new(format!(
            "its window covers {}, more than the input has",
            reach.join(" x ")
        ))
        .help("a smaller window, less pooling before, or padding = \"same\""));
    }
    Ok(std::array::from_fn(|i| match padding {
        Padding::Valid => (input[i] - reach[i]) / strides[i].max(1) + 1,
        Padding::Same => input[i].div_ceil(strides[i].max(1)),
    }))
}

fn reshaped(input: &[usize], target: &[i64]) -> Result<Vec<usize>, Need> {
    let values = count(input);
    let known =
        target.iter().filter_map(|size| usize::try_from(*size).ok()).fold(1, usize::saturating_mul);
    let open = target.iter().any(|size| *size < 0);
    let fits = match open {
        true => known > 0 && values.is_multiple_of(known),
        false => known == values,
    };
    if !fits {
        return Err(Need::new(format!("its {values} values do not fill {target:?}")));
    }
    Ok(target
        .iter()
        .map(|size| usize::try_from(*size).unwrap_or_else(|_| values / known.max(1)))
        .collect())
}

fn scaled(input: &[usize], center: bool, scale: bool) -> Result<Step, Need> {
    let channels = input.last().copied().unwrap_or_default();
    let arrays = usize::from(center) + usize::from(scale);
    Step::new(input.to_vec(), channels.saturating_mul(arrays))
}

fn recurrent(
    steps: usize,
    units: usize,
    sequences: bool,
    bidirectional: bool,
    once: usize,
) -> Result<Step, Need> {
    let ways = if bidirectional { 2 } else { 1 };
    let units = units.saturating_mul(ways);
    let output = match sequences {
        true => vec![steps, units],
        false => vec![units],
    };
    Step::new(output, once.saturating_mul(ways))
}

fn attention_parameters(attention: &MultiHeadAttention, features: usize) -> Result<usize, Need> {
    let heads = attention.num_heads;
    let width = match attention.key_dim {
        Some(key_dim) => heads.saturating_mul(key_dim),
        None if features.is_multiple_of(heads) => features,
        None => {
            return Err(divisible(features, heads).help("or state `key_dim`, the size of a head"));
        }
    };
    Ok(affine(features, width, attention.use_bias).saturating_mul(3).saturating_add(affine(
        width,
        features,
        attention.use_bias,
    )))
}

fn transformer_parameters(block: &Transformer, features: usize) -> Result<usize, Need> {
    if !features.is_multiple_of(block.num_heads) {
        return Err(divisible(features, block.num_heads));
    }
    let attention = affine(features, features, true).saturating_mul(4);
    let feed_forward = affine(features, block.feed_forward, true).saturating_add(affine(
        block.feed_forward,
        features,
        true,
    ));
    let norms = features.saturating_mul(4);
    Ok(attention.saturating_add(feed_forward).saturating_add(norms))
}

fn divisible(features: usize, heads: usize) -> Need {
    Need::new(format!("it needs features (here {features}) that divide into {heads} heads"))
}

/// Values of a product with a matrix and, perhaps, a bias.
fn affine(inputs: usize, outputs: usize, bias: bool) -> usize {
    inputs.saturating_add(usize::from(bias)).saturating_mul(outputs)
}

fn count(shape: &[usize]) -> usize {
    shape.iter().copied().fold(1, usize::saturating_mul)
}

#[cfg(test)]
mod tests;
