//! Convolutions over images and sequences.

use super::{ParameterId, Pass, Stage, activate, activate_backward};
use crate::compute::Compute;
use crate::kernel::conv::Window;
use crate::tensor::Tensor;
use surefoot_plan::Activation;

/// Convolution, bias, activation. A sequence is an image of height 1.
pub(crate) struct Conv {
    pub(crate) kernel: ParameterId,
    pub(crate) bias: Option<ParameterId>,
    pub(crate) activation: Activation,
    pub(crate) window: Window,
    pub(crate) sequence: bool,
    /// True if an earlier stage has parameters.
    pub(crate) with_input_gradient: bool,
}

impl Conv {
    fn kernel<B: Compute>(&self, pass: &Pass<'_, B>) -> Tensor<B> {
        let kernel = pass.parameter(self.kernel).clone();
        if !self.sequence {
            return kernel;
        }
        let shape = kernel.shape();
        kernel.reshape(&[shape[0], shape[1], 1, shape[2]])
    }
}

impl<B: Compute> Stage<B> for Conv {
    fn forward(&self, x: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        let x = if self.sequence { as_image(x) } else { x };
        pass.keep(&x);
        let bias = self.bias.map(|id| pass.parameter(id));
        let y = B::convolve(&x, &self.kernel(pass), bias, &self.window);
        let y = if self.sequence { as_sequence(y) } else { y };
        activate(self.activation, y, pass)
    }

    fn backward(&self, gradient: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        let gradient = activate_backward(self.activation, gradient, pass);
        let gradient = if self.sequence { as_image(gradient) } else { gradient };
        let x = pass.take();
        let kernel = self.kernel(pass);
        let gradients =
            B::convolve_backward(&x, &kernel, &gradient, &self.window, self.with_input_gradient);
        let shape = pass.parameter(self.kernel).shape();
        pass.learn(self.kernel, gradients.kernel.reshape(&shape));
        if let Some(bias) = self.bias {
            pass.learn(bias, gradients.bias);
        }
        match gradients.x {
            Some(d_x) if self.sequence => as_sequence(d_x),
            Some(d_x) => d_x,
            None => gradient,
        }
    }
}

/// `[batch, steps, channels]` to `[batch, channels, 1, steps]`.
pub(crate) fn as_image<B: Compute>(x: Tensor<B>) -> Tensor<B> {
    let shape = x.shape();
    x.permute(&[0, 2, 1]).reshape(&[shape[0], shape[2], 1, shape[1]])
}

/// `[batch, channels, 1, steps]` to `[batch, steps, channels]`.
pub(crate) fn as_sequence<B: Compute>(x: Tensor<B>) -> Tensor<B> {
    let shape = x.shape();
    x.reshape(&[shape[0], shape[1], shape[3]]).permute(&[0, 2, 1])
}
