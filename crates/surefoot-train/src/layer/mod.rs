//! Layers at work: forward, and backward by hand.
//!
//! A model is compiled into a list of [`Stage`]s. Composite layers (a residual block, a
//! transformer block) become several stages, so that the list is flat and every stage can be
//! observed, sharded and synchronized the same way.
//!
//! Between stages a vector is `[batch, features]`, a sequence `[batch, steps, features]`, and an
//! image `[batch, channels, height, width]`, the layout of convolutions. Where a layer is
//! defined on the last dimension of a channels-last image, it permutes and says so.

pub(crate) mod attention;
pub(crate) mod conv;
pub(crate) mod dense;
pub(crate) mod embedding;
pub(crate) mod masking;
pub(crate) mod norm;
pub(crate) mod pool;
pub(crate) mod recurrent;
pub(crate) mod shape;

use crate::compute::Compute;
use crate::kernel::activation::gradient_from_output;
use crate::tensor::Tensor;
use surefoot_plan::Activation;
use surefoot_random::{Key, Purpose};

/// The number of a parameter in the model's list.
pub(crate) type ParameterId = usize;

/// One step of the forward pass, and its gradient.
///
/// `forward` keeps on the tape of the [`Pass`] what `backward` takes from it, in reverse order.
pub(crate) trait Stage<B: Compute>: Send + Sync {
    /// The stage's output for `x`.
    fn forward(&self, x: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B>;

    /// The gradient of the stage's input, given that of its output; parameters' gradients go to
    /// the pass.
    fn backward(&self, gradient: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B>;

    /// The stage as one that exchanges statistics between shards, if it is.
    fn synchronous(&self) -> Option<&dyn Synchronous<B>> {
        None
    }
}

/// A stage whose output for one shard depends on all shards of the batch.
pub(crate) trait Synchronous<B: Compute> {
    /// This shard's part of the statistics of the forward pass.
    fn gather(&self, x: &Tensor<B>) -> Vec<f64>;

    /// The statistics of two neighbouring parts together; called along a fixed tree.
    fn merge(&self, left: &[f64], right: &[f64]) -> Vec<f64>;

    /// The output, given the statistics of the whole batch.
    fn apply(&self, x: Tensor<B>, whole: &[f64], pass: &mut Pass<'_, B>) -> Tensor<B>;

    /// This shard's part of the sums of the backward pass; added along the same tree.
    fn gather_backward(&self, gradient: &Tensor<B>, pass: &mut Pass<'_, B>) -> Vec<f64>;

    /// The input's gradient, given the sums over the whole batch.
    fn apply_backward(
        &self,
        gradient: Tensor<B>,
        whole: &[f64],
        pass: &mut Pass<'_, B>,
    ) -> Tensor<B>;

    /// The moving statistics that a training step updates, with the batch's values.
    fn moving(&self, whole: &[f64]) -> Vec<MovingUpdate>;
}

/// `parameter = parameter * momentum + batch * (1 - momentum)`
pub(crate) struct MovingUpdate {
    pub(crate) parameter: ParameterId,
    pub(crate) momentum: f64,
    pub(crate) batch: Vec<f64>,
}

/// Purpose of a pass.
#[derive(Clone, Copy)]
pub(crate) enum Mode<'a> {
    /// Training: dropout is on, drawn by the key of each sample.
    Training { seed: u64, epoch: u64, samples: &'a [u64] },
    /// Evaluation: dropout is off, batch normalization uses its moving statistics.
    Inference,
}

/// Values that a stage keeps for its backward pass.
pub(crate) enum Kept<B: Compute> {
    Tensor(Tensor<B>),
    Origin(B::Origin),
}

/// One shard on its way through the stages and back.
pub(crate) struct Pass<'a, B: Compute> {
    pub(crate) parameters: &'a [Tensor<B>],
    pub(crate) mode: Mode<'a>,
    pub(crate) gradients: Vec<Option<Tensor<B>>>,
    pub(crate) device: &'a B::Device,
    tape: Vec<Kept<B>>,
    skips: Vec<Tensor<B>>,
    /// `[batch, steps, 1]`: 0 for the steps that the last masking layer hides, 1 for others.
    pub(crate) mask: Option<Tensor<B>>,
}

impl<'a, B: Compute> Pass<'a, B> {
    pub(crate) fn new(parameters: &'a [Tensor<B>], mode: Mode<'a>, device: &'a B::Device) -> Self {
        Self {
            parameters,
            mode,
            gradients: vec![None; parameters.len()],
            device,
            tape: Vec::new(),
            skips: Vec::new(),
            mask: None,
        }
    }

    pub(crate) fn training(&self) -> bool {
        matches!(self.mode, Mode::Training { .. })
    }

    pub(crate) fn parameter(&self, id: ParameterId) -> &'a Tensor<B> {
        &self.parameters[id]
    }

    /// Keeps `tensor` for the backward pass; nothing is kept in an evaluation.
    pub(crate) fn keep(&mut self, tensor: &Tensor<B>) {
        if self.training() {
            self.tape.push(Kept::Tensor(tensor.clone()));
        }
    }

    pub(crate) fn keep_origin(&mut self, origin: B::Origin) {
        if self.training() {
            self.tape.push(Kept::Origin(origin));
        }
    }

    /// Returns the value that was kept last.
    pub(crate) fn take(&mut self) -> Tensor<B> {
        match self.tape.pop() {
            Some(Kept::Tensor(tensor)) => tensor,
            _ => unreachable!("a stage takes what it kept, in reverse order"),
        }
    }

    pub(crate) fn take_origin(&mut self) -> B::Origin {
        match self.tape.pop() {
            Some(Kept::Origin(origin)) => origin,
            _ => unreachable!("a stage takes what it kept, in reverse order"),
        }
    }

    pub(crate) fn learn(&mut self, id: ParameterId, gradient: Tensor<B>) {
        self.gradients[id] = Some(gradient);
    }

    /// Random factors for dropout: 0 with probability `rate`, else `1 / (1 - rate)`, one row for
    /// each sample, drawn by its key, so that they do not depend on how the batch is cut.
    pub(crate) fn dropout_mask(&self, rate: f64, site: u64, shape: &[usize]) -> Option<Tensor<B>> {
        let Mode::Training { seed, epoch, samples } = self.mode else {
            return None;
        };
        if rate == 0.0 {
            return None;
        }
        let width: usize = shape[1..].iter().product();
        let mut mask = vec![0.0; samples.len() * width];
        let keep = 1.0 - rate;
        let key = Key::new(seed, Purpose::Dropout).epoch(epoch).site(site);
        for (row, &sample) in mask.chunks_exact_mut(width.max(1)).zip(samples) {
            key.sample(sample).fill_bernoulli_f32(keep, (1.0 / keep) as f32, row);
        }
        Some(Tensor::from_values(mask, shape, self.device))
    }
}

/// Applies `activation` and keeps what its gradient needs.
pub(crate) fn activate<B: Compute>(
    activation: Activation,
    x: Tensor<B>,
    pass: &mut Pass<'_, B>,
) -> Tensor<B> {
    if activation == Activation::Linear {
        return x;
    }
    let image = activation == Activation::Softmax && x.shape().len() == 4;
    let x = if image { channels_last(x) } else { x };
    if !gradient_from_output(activation) {
        pass.keep(&x);
    }
    let y = B::activate(activation, x);
    pass.keep(&y);
    if image { channels_first(y) } else { y }
}

/// The gradient of [`activate`].
pub(crate) fn activate_backward<B: Compute>(
    activation: Activation,
    gradient: Tensor<B>,
    pass: &mut Pass<'_, B>,
) -> Tensor<B> {
    if activation == Activation::Linear {
        return gradient;
    }
    let y = pass.take();
    let x = (!gradient_from_output(activation)).then(|| pass.take());
    let image = activation == Activation::Softmax && y.shape().len() == 4;
    let gradient = if image { channels_last(gradient) } else { gradient };
    let gradient = B::activate_backward(activation, x.as_ref(), &y, gradient);
    if image { channels_first(gradient) } else { gradient }
}

/// `[batch, channels, height, width]` to `[batch, height, width, channels]`.
pub(crate) fn channels_last<B: Compute>(x: Tensor<B>) -> Tensor<B> {
    x.permute(&[0, 2, 3, 1])
}

/// `[batch, height, width, channels]` to `[batch, channels, height, width]`.
pub(crate) fn channels_first<B: Compute>(x: Tensor<B>) -> Tensor<B> {
    x.permute(&[0, 3, 1, 2])
}

/// An activation as a separate layer.
pub(crate) struct Activate(pub(crate) Activation);

impl<B: Compute> Stage<B> for Activate {
    fn forward(&self, x: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        activate(self.0, x, pass)
    }

    fn backward(&self, gradient: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        activate_backward(self.0, gradient, pass)
    }
}

/// Sets values to zero at random.
pub(crate) struct Dropout {
    pub(crate) rate: f64,
    pub(crate) site: u64,
}

impl<B: Compute> Stage<B> for Dropout {
    fn forward(&self, x: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        match pass.dropout_mask(self.rate, self.site, &x.shape()) {
            Some(mask) => {
                pass.keep(&mask);
                x.mul(&mask)
            }
            None => x,
        }
    }

    fn backward(&self, gradient: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        if self.rate == 0.0 {
            return gradient;
        }
        gradient.mul(&pass.take())
    }
}

/// The start of a residual branch: remembers its input.
pub(crate) struct Fork;

impl<B: Compute> Stage<B> for Fork {
    fn forward(&self, x: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        pass.skips.push(x.clone());
        x
    }

    fn backward(&self, gradient: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        match pass.skips.pop() {
            Some(skip) => gradient.add(&skip),
            None => unreachable!("every fork has its join"),
        }
    }
}

/// Exchanges the value of a residual branch with what its [`Fork`] remembered, for layers of the
/// shortcut.
pub(crate) struct Swap;

impl<B: Compute> Stage<B> for Swap {
    fn forward(&self, x: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        match pass.skips.last_mut() {
            Some(skip) => std::mem::replace(skip, x),
            None => unreachable!("every swap is between a fork and a join"),
        }
    }

    fn backward(&self, gradient: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        self.forward(gradient, pass)
    }
}

/// The end of a residual branch: adds what the matching [`Fork`] remembered.
pub(crate) struct Join;

impl<B: Compute> Stage<B> for Join {
    fn forward(&self, x: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        match pass.skips.pop() {
            Some(skip) => x.add(&skip),
            None => unreachable!("every join has its fork"),
        }
    }

    fn backward(&self, gradient: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        pass.skips.push(gradient.clone());
        gradient
    }
}
