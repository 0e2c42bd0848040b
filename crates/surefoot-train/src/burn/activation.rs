//! Activations composed of Burn's operations.

use super::Burn;
use crate::kernel::activation::{GELU_CUBE, GELU_SCALE, SELU_ALPHA, SELU_SCALE};
use crate::tensor::Tensor;
use burn_backend::Backend;
use surefoot_plan::Activation;

/// `activation(x)`
pub(crate) fn forward<B: Backend>(activation: Activation, x: &Tensor<Burn<B>>) -> Tensor<Burn<B>> {
    let exponential =
        |alpha: f32| x.clone().clamp(-88.0, 0.0).exp().add_scalar(-1.0).mul_scalar(alpha);
    match activation {
        Activation::Linear => x.clone(),
        Activation::Relu => Tensor(B::relu(x.0.clone())),
        Activation::LeakyRelu { negative_slope } => {
            let below = x.clone().mul_scalar(negative_slope as f32);
            x.clone().where_above_zero(x, below)
        }
        Activation::Elu { alpha } => x.clone().where_above_zero(x, exponential(alpha as f32)),
        Activation::Selu => {
            x.clone().where_above_zero(x, exponential(SELU_ALPHA)).mul_scalar(SELU_SCALE)
        }
        Activation::Gelu { approximate: true } => {
            gelu_inner(x).tanh().add_scalar(1.0).mul(x).mul_scalar(0.5)
        }
        Activation::Gelu { approximate: false } => normal_cdf(x).mul(x),
        Activation::Silu => sigmoid(x).mul(x),
        Activation::Tanh => x.clone().tanh(),
        Activation::Sigmoid => sigmoid(x),
        Activation::HardSigmoid { slope } => {
            x.clone().mul_scalar(slope as f32).add_scalar(0.5).clamp(0.0, 1.0)
        }
        Activation::Softplus => {
            let tail = x.clone().abs().neg().exp().log1p();
            Tensor(B::relu(x.0.clone())).add(&tail)
        }
        Activation::Softmax => {
            let shifted = x.clone().sub(&x.clone().max_last()).exp();
            let sum = shifted.clone().sum_last();
            shifted.div(&sum)
        }
    }
}

/// The gradient before `activation`, given the one after it.
pub(crate) fn backward<B: Backend>(
    activation: Activation,
    x: Option<&Tensor<Burn<B>>>,
    y: &Tensor<Burn<B>>,
    gradient: Tensor<Burn<B>>,
) -> Tensor<Burn<B>> {
    let x = x.unwrap_or(y);
    let choose = |above: Tensor<Burn<B>>, below: Tensor<Burn<B>>| above.where_above_zero(y, below);
    match activation {
        Activation::Linear => gradient,
        Activation::Relu => Tensor(B::relu_backward(y.0.clone(), gradient.0)),
        Activation::LeakyRelu { negative_slope } => {
            let below = gradient.clone().mul_scalar(negative_slope as f32);
            choose(gradient, below)
        }
        Activation::Elu { alpha } => {
            let below = y.clone().add_scalar(alpha as f32).mul(&gradient);
            choose(gradient, below)
        }
        Activation::Selu => {
            let below = y.clone().add_scalar(SELU_SCALE * SELU_ALPHA).mul(&gradient);
            choose(gradient.mul_scalar(SELU_SCALE), below)
        }
        Activation::Gelu { approximate: true } => {
            let t = gelu_inner(x).tanh();
            let inner =
                x.clone().mul(x).mul_scalar(3.0 * GELU_CUBE).add_scalar(1.0).mul_scalar(GELU_SCALE);
            let bow = t.clone().mul(&t).neg().add_scalar(1.0);
            let slope = t.add_scalar(1.0).add(&bow.mul(&inner).mul(x)).mul_scalar(0.5);
            gradient.mul(&slope)
        }
        Activation::Gelu { approximate: false } => {
            let density = x.clone().mul(x).mul_scalar(-0.5).exp().mul_scalar(0.398_942_3);
            gradient.mul(&normal_cdf(x).add(&density.mul(x)))
        }
        Activation::Silu => {
            let s = sigmoid(x);
            let slope = s.clone().neg().add_scalar(1.0).mul(x).add_scalar(1.0).mul(&s);
            gradient.mul(&slope)
        }
        Activation::Tanh => gradient.mul(&y.clone().mul(y).neg().add_scalar(1.0)),
        Activation::Sigmoid => gradient.mul(&y.clone().neg().add_scalar(1.0).mul(y)),
        Activation::HardSigmoid { slope } => {
            let inside = y.above(0.0).mul(&y.clone().neg().above(-1.0));
            gradient.mul(&inside).mul_scalar(slope as f32)
        }
        Activation::Softplus => gradient.mul(&sigmoid(x)),
        Activation::Softmax => {
            let dot = gradient.clone().mul(y).sum_last();
            gradient.sub(&dot).mul(y)
        }
    }
}

fn sigmoid<B: Backend>(x: &Tensor<Burn<B>>) -> Tensor<Burn<B>> {
    Tensor(B::sigmoid(x.0.clone()))
}

fn gelu_inner<B: Backend>(x: &Tensor<Burn<B>>) -> Tensor<Burn<B>> {
    let cube = x.clone().mul(x).mul(x).mul_scalar(GELU_CUBE);
    x.clone().add(&cube).mul_scalar(GELU_SCALE)
}

fn normal_cdf<B: Backend>(x: &Tensor<Burn<B>>) -> Tensor<Burn<B>> {
    x.clone().mul_scalar(std::f32::consts::FRAC_1_SQRT_2).erf().add_scalar(1.0).mul_scalar(0.5)
}
