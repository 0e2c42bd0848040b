//! Building blocks of shape rules.

use super::ShapeError;
use crate::Padding;

/// Input of a layer.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    /// At least one dimension.
    pub(crate) shape: &'a [usize],
    /// True if the values are whole numbers.
    pub(crate) integers: bool,
}

impl Input<'_> {
    /// The last dimension: features or channels.
    pub(crate) fn last(&self) -> usize {
        self.shape.last().copied().unwrap_or_default()
    }

    /// The dimensions of a sequence, `[steps, features]`.
    pub(crate) fn sequence(&self) -> Result<[usize; 2], Mismatch> {
        self.shape.try_into().map_err(|_| {
            let mismatch = Mismatch::new("it needs [steps, features]");
            match self.shape {
                [size] => mismatch.help(format!(
                    "add a `reshape` with target_shape = [{size}, 1] to make it a sequence"
                )),
                [_, _, channels] => mismatch.help(format!(
                    "add a `reshape` with target_shape = [-1, {channels}] to make it a sequence"
                )),
                _ => mismatch,
            }
        })
    }

    /// The dimensions of an image, `[height, width, channels]`.
    pub(crate) fn image(&self) -> Result<[usize; 3], Mismatch> {
        self.shape.try_into().map_err(|_| {
            let mismatch = Mismatch::new("it needs [height, width, channels]");
            match self.shape {
                [height, width] => mismatch.help(format!(
                    "add a `reshape` with target_shape = [{height}, {width}, 1] for the channels"
                )),
                _ => mismatch,
            }
        })
    }
}

/// Output of a layer.
pub(crate) struct Output {
    pub(crate) shape: Vec<usize>,
    /// Number of trained values.
    pub(crate) parameters: usize,
}

impl Output {
    pub(crate) fn new(shape: Vec<usize>, parameters: usize) -> Result<Self, Mismatch> {
        Ok(Self { shape, parameters })
    }
}

/// Requirement of a layer that its input does not meet.
pub(crate) struct Mismatch {
    requirement: String,
    help: Option<String>,
}

impl Mismatch {
    pub(crate) fn new(requirement: impl Into<String>) -> Self {
        Self { requirement: requirement.into(), help: None }
    }

    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    pub(super) fn at(self, path: &[usize], name: &str, input: &[usize]) -> ShapeError {
        ShapeError {
            path: path.to_vec(),
            layer: name.to_owned(),
            message: format!("layer `{name}` cannot take an input of shape {input:?}"),
            label: Some(self.requirement),
            help: self.help,
        }
    }
}

/// Number of positions of a window in each direction.
pub(crate) fn window<const N: usize>(
    input: [usize; N],
    size: [usize; N],
    strides: [usize; N],
    dilation: [usize; N],
    padding: Padding,
) -> Result<[usize; N], Mismatch> {
    let reach: [usize; N] = std::array::from_fn(|i| {
        let gaps = size[i].saturating_sub(1).saturating_mul(dilation[i]);
        gaps.saturating_add(1)
    });
    if padding == Padding::Valid && (0..N).any(|i| reach[i] > input[i]) {
        let reach = reach.map(|size| size.to_string()).join(" x ");
        return Err(Mismatch::new(format!("its window covers {reach}, more than the input has"))
            .help("use a smaller window, less pooling before it, or padding = \"same\""));
    }
    Ok(std::array::from_fn(|i| match padding {
        Padding::Valid => (input[i] - reach[i]) / strides[i].max(1) + 1,
        Padding::Same => input[i].div_ceil(strides[i].max(1)),
    }))
}

/// An output of the input's shape, with `arrays` trained values for each channel.
pub(crate) fn per_channel(input: Input<'_>, arrays: usize) -> Result<Output, Mismatch> {
    Output::new(input.shape.to_vec(), input.last().saturating_mul(arrays))
}

/// Checks that the heads of an attention divide the features; returns the number of features.
pub(crate) fn divide_into_heads(features: usize, heads: usize) -> Result<usize, Mismatch> {
    match features.is_multiple_of(heads) {
        true => Ok(features),
        false => Err(Mismatch::new(format!(
            "it needs features (here {features}) that divide into {heads} heads"
        ))),
    }
}

/// Number of values of a weight matrix and an optional bias.
pub(crate) fn affine(inputs: usize, outputs: usize, bias: bool) -> usize {
    inputs.saturating_add(usize::from(bias)).saturating_mul(outputs)
}

/// Number of values in a shape.
pub(crate) fn size(shape: &[usize]) -> usize {
    shape.iter().copied().fold(1, usize::saturating_mul)
}
