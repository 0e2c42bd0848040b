//! Activations and their gradients in one pass.

use super::{
    math::{exp, sigmoid, tanh},
    parallel, vectorized,
};
use surefoot_plan::Activation;

// Klambauer et al., "Self-Normalizing Neural Networks", the fixed point's constants.
pub(crate) const SELU_ALPHA: f32 = 1.673_263_2;
pub(crate) const SELU_SCALE: f32 = 1.050_701;

/// Returns true if the gradient of `activation` can be computed from its output, so that the input
/// need not be kept for the backward pass.
pub(crate) fn gradient_from_output(activation: Activation) -> bool {
    !matches!(activation, Activation::Gelu { .. } | Activation::Silu | Activation::Softplus)
}

/// Applies `activation` to `values`, seen as rows of `width` values (softmax acts on rows).
pub(crate) fn forward(activation: Activation, values: &mut [f32], width: usize) {
    let size = parallel::part(values.len(), width);
    parallel::chunks_mut(values, size, |_, part| forward_part(activation, part, width));
}

fn forward_part(activation: Activation, values: &mut [f32], width: usize) {
    let mut map = |f: &dyn Fn(&mut [f32])| f(values);
    macro_rules! each {
        ($f:expr) => {
            map(&|y| {
                vectorized(
                    #[inline(always)]
                    || y.iter_mut().for_each(|v| *v = $f(*v)),
                )
            })
        };
    }
    match activation {
        Activation::Linear => {}
        // `v < 0` is false for NaN, which therefore stays.
        Activation::Relu => each!(|v: f32| if v < 0.0 { 0.0 } else { v }),
        Activation::LeakyRelu { negative_slope } => {
            let slope = negative_slope as f32;
            each!(|v: f32| if v < 0.0 { v * slope } else { v })
        }
        Activation::Elu { alpha } => {
            let alpha = alpha as f32;
            each!(|v: f32| if v < 0.0 { alpha * (exp(v) - 1.0) } else { v })
        }
        Activation::Selu => {
            each!(|v: f32| SELU_SCALE * if v < 0.0 { SELU_ALPHA * (exp(v) - 1.0) } else { v })
        }
        Activation::Gelu { approximate: true } => {
            each!(|v: f32| 0.5 * v * (1.0 + tanh(gelu_inner(v))))
        }
        Activation::Gelu { approximate: false } => each!(|v: f32| v * normal_cdf(v)),
        Activation::Silu => each!(|v: f32| v * sigmoid(v)),
        Activation::Tanh => each!(tanh),
        Activation::Sigmoid => each!(sigmoid),
        Activation::HardSigmoid { slope } => {
            let slope = slope as f32;
            each!(|v: f32| (v * slope + 0.5).clamp(0.0, 1.0))
        }
        Activation::Softplus => {
            each!(|v: f32| libm::log1pf(exp(-v.abs())) + if v < 0.0 { 0.0 } else { v })
        }
        Activation::Softmax => map(&|y| {
            vectorized(
                #[inline(always)]
                || y.chunks_exact_mut(width).for_each(softmax_row),
            )
        }),
    }
}

/// Turns the gradient after `activation` into the one before it. `input` is empty where
/// [`gradient_from_output`] is true.
pub(crate) fn backward(
    activation: Activation,
    input: &[f32],
    output: &[f32],
    gradient: &mut [f32],
    width: usize,
) {
    let size = parallel::part(gradient.len(), width);
    parallel::chunks_mut(gradient, size, |index, part| {
        let at = index * size;
        let input = input.get(at..at + part.len()).unwrap_or_default();
        backward_part(activation, input, &output[at..at + part.len()], part, width);
    });
}

fn backward_part(
    activation: Activation,
    input: &[f32],
    output: &[f32],
    out: &mut [f32],
    width: usize,
) {
    macro_rules! each {
        ($values:expr, $f:expr) => {
            vectorized(
                #[inline(always)]
                || out.iter_mut().zip($values).for_each(|(g, &v)| *g *= $f(v)),
            )
        };
    }
    match activation {
        Activation::Linear => {}
        Activation::Relu => vectorized(
            #[inline(always)]
            || {
                // A select, not a product: the gradient of a dead unit is exactly zero even where
                // what comes from above is infinite.
                out.iter_mut().zip(output).for_each(|(g, &y)| *g = if y <= 0.0 { 0.0 } else { *g });
            },
        ),
        Activation::LeakyRelu { negative_slope } => {
            let slope = negative_slope as f32;
            each!(output, |y: f32| if y <= 0.0 { slope } else { 1.0 });
        }
        Activation::Elu { alpha } => {
            let alpha = alpha as f32;
            each!(output, |y: f32| if y <= 0.0 { y + alpha } else { 1.0 });
        }
        Activation::Selu => {
            each!(output, |y: f32| if y <= 0.0 { y + SELU_SCALE * SELU_ALPHA } else { SELU_SCALE })
        }
        Activation::Gelu { approximate: true } => each!(input, |v: f32| {
            let t = tanh(gelu_inner(v));
            let inner = GELU_SCALE * (1.0 + 3.0 * GELU_CUBE * v * v);
            0.5 * (1.0 + t) + 0.5 * v * (1.0 - t * t) * inner
        }),
        Activation::Gelu { approximate: false } => each!(input, |v: f32| {
            let density = 0.398_942_3 * exp(-0.5 * v * v);
            normal_cdf(v) + v * density
        }),
        Activation::Silu => each!(input, |v: f32| {
            let s = sigmoid(v);
            s + v * s * (1.0 - s)
        }),
        Activation::Tanh => each!(output, |y: f32| 1.0 - y * y),
        Activation::Sigmoid => each!(output, |y: f32| y * (1.0 - y)),
        Activation::HardSigmoid { slope } => {
            let slope = slope as f32;
            each!(output, |y: f32| if y > 0.0 && y < 1.0 { slope } else { 0.0 });
        }
        Activation::Softplus => each!(input, sigmoid),
        Activation::Softmax => vectorized(
            #[inline(always)]
            || {
                for (g, y) in out.chunks_exact_mut(width).zip(output.chunks_exact(width)) {
                    let dot: f32 = g.iter().zip(y).map(|(g, y)| g * y).sum();
                    g.iter_mut().zip(y).for_each(|(g, y)| *g = (*g - dot) * y);
                }
            },
        ),
    }
}

pub(crate) const GELU_SCALE: f32 = 0.797_884_6; // sqrt(2 / pi)
pub(crate) const GELU_CUBE: f32 = 0.044_715;

#[inline(always)]
fn gelu_inner(v: f32) -> f32 {
    GELU_SCALE * (v + GELU_CUBE * v * v * v)
}

#[inline(always)]
fn normal_cdf(v: f32) -> f32 {
    0.5 * (1.0 + libm::erff(v * std::f32::consts::FRAC_1_SQRT_2))
}

#[inline(always)]
fn softmax_row(row: &mut [f32]) {
    let peak = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for v in row.iter_mut() {
        *v = exp(*v - peak);
        sum += *v;
    }
    row.iter_mut().for_each(|v| *v /= sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Activation; 13] = [
        Activation::Linear,
        Activation::Relu,
        Activation::LeakyRelu { negative_slope: 0.2 },
        Activation::Elu { alpha: 1.3 },
        Activation::Selu,
        Activation::Gelu { approximate: true },
        Activation::Gelu { approximate: false },
        Activation::Silu,
        Activation::Tanh,
        Activation::Sigmoid,
        Activation::HardSigmoid { slope: 1.0 / 6.0 },
        Activation::Softplus,
        Activation::Softmax,
    ];

    fn applied(activation: Activation, x: &[f32], width: usize) -> Vec<f32> {
        let mut y = x.to_vec();
        forward(activation, &mut y, width);
        y
    }

    #[test]
    fn gradients_are_the_slopes_of_the_functions() {
        let x: Vec<f32> = (0..40).map(|i| (i as f32 - 19.3) * 0.23).collect();
        let weight: Vec<f32> = (0..40).map(|i| ((i * 7) % 11) as f32 - 4.0).collect();
        let objective = |activation, x: &[f32]| -> f64 {
            applied(activation, x, 4).iter().zip(&weight).map(|(y, w)| f64::from(y * w)).sum()
        };
        for activation in ALL {
            let y = applied(activation, &x, 4);
            let mut gradient = weight.clone();
            backward(activation, &x, &y, &mut gradient, 4);
            for i in 0..x.len() {
                let step = 2e-2;
                let mut up = x.clone();
                up[i] += step;
                let mut down = x.clone();
                down[i] -= step;
                let slope = (objective(activation, &up) - objective(activation, &down))
                    / f64::from(2.0 * step);
                assert!(
                    (slope - f64::from(gradient[i])).abs() < 6e-3 * (1.0 + slope.abs()),
                    "{activation:?} at {}: {} instead of {slope}",
                    x[i],
                    gradient[i]
                );
            }
        }
    }

    #[test]
    fn nan_passes_through_every_activation() {
        for activation in ALL {
            let y = applied(activation, &[1.0, f32::NAN, 2.0, 0.5], 4);
            assert!(y[1].is_nan(), "{activation:?}");
        }
    }

    #[test]
    fn softmax_survives_large_inputs() {
        let y = applied(Activation::Softmax, &[1000.0, 1000.0, -1000.0], 3);
        assert_eq!(y, [0.5, 0.5, 0.0]);
    }
}
