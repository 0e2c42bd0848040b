//! Dense: a product with a matrix on the last dimension.

use super::{ParameterId, Pass, Stage, activate, activate_backward, channels_first, channels_last};
use crate::compute::Compute;
use crate::tensor::Tensor;
use surefoot_plan::Activation;

/// `activation(x W + b)`
pub(crate) struct Dense {
    pub(crate) kernel: ParameterId,
    pub(crate) bias: Option<ParameterId>,
    pub(crate) activation: Activation,
    /// True if an earlier stage has parameters.
    pub(crate) with_input_gradient: bool,
}

impl<B: Compute> Stage<B> for Dense {
    fn forward(&self, x: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        let image = x.shape().len() == 4;
        let x = if image { channels_last(x) } else { x };
        let y = linear(&x, self.kernel, self.bias, pass);
        let y = if image { channels_first(y) } else { y };
        activate(self.activation, y, pass)
    }

    fn backward(&self, gradient: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        let gradient = activate_backward(self.activation, gradient, pass);
        let image = gradient.shape().len() == 4;
        let gradient = if image { channels_last(gradient) } else { gradient };
        let gradient =
            linear_backward(gradient, self.kernel, self.bias, self.with_input_gradient, pass);
        if image && self.with_input_gradient { channels_first(gradient) } else { gradient }
    }
}

/// `x W + b` on the last dimension; keeps `x`.
pub(crate) fn linear<B: Compute>(
    x: &Tensor<B>,
    kernel: ParameterId,
    bias: Option<ParameterId>,
    pass: &mut Pass<'_, B>,
) -> Tensor<B> {
    let kernel = pass.parameter(kernel);
    let bias = bias.map(|id| pass.parameter(id));
    let mut shape = x.shape();
    let rows = as_rows(x);
    pass.keep(&rows);
    let y = B::product(&rows, kernel, bias);
    if shape.len() == 2 {
        return y;
    }
    if let Some(last) = shape.last_mut() {
        *last = kernel.shape()[1];
    }
    y.reshape(&shape)
}

/// The gradient of [`linear`]; without `with_x` the gradient it returns is not to be used.
pub(crate) fn linear_backward<B: Compute>(
    gradient: Tensor<B>,
    kernel: ParameterId,
    bias: Option<ParameterId>,
    with_x: bool,
    pass: &mut Pass<'_, B>,
) -> Tensor<B> {
    let mut shape = gradient.shape();
    let gradient = as_rows(&gradient);
    let x = pass.take();
    let weights = pass.parameter(kernel);
    let gradients = B::product_backward(&x, weights, &gradient, with_x);
    pass.learn(kernel, gradients.kernel);
    if let Some(bias) = bias {
        pass.learn(bias, gradients.bias);
    }
    let Some(d_x) = gradients.x else {
        return gradient;
    };
    if shape.len() == 2 {
        return d_x;
    }
    if let Some(last) = shape.last_mut() {
        *last = weights.shape()[0];
    }
    d_x.reshape(&shape)
}

fn as_rows<B: Compute>(x: &Tensor<B>) -> Tensor<B> {
    let shape = x.shape();
    match shape.len() {
        2 => x.clone(),
        _ => {
            let last = shape[shape.len() - 1];
            x.clone().reshape(&[x.len() / last, last])
        }
    }
}
