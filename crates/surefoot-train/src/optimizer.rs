//! Optimizers: one pass over all parameters.
//!
//! Rules and constants are Keras 3's (`keras/src/optimizers`), which a plan names. A single pass
//! over flat memory spares a small network an operation for every tensor.

use crate::kernel::parallel::{self, Shared};
use crate::kernel::vectorized;
use surefoot_plan::{Algorithm, Optimizer};

/// An optimizer with its memory.
#[derive(Clone, Debug)]
pub(crate) struct Updater {
    rule: Optimizer,
    /// Arrays as long as the parameters, as many as the rule needs.
    pub(crate) slots: Vec<Vec<f32>>,
    /// Nadam's running product of momentum coefficients.
    pub(crate) momentum_product: f64,
}

/// Number of values that an optimizer keeps for each parameter.
pub(crate) fn slots(algorithm: Algorithm) -> usize {
    match algorithm {
        Algorithm::Sgd { momentum, .. } => usize::from(momentum > 0.0),
        Algorithm::Rmsprop { momentum, centered, .. } => {
            1 + usize::from(momentum > 0.0) + usize::from(centered)
        }
        Algorithm::Adagrad { .. } => 1,
        Algorithm::Adadelta { .. } | Algorithm::Nadam { .. } => 2,
        Algorithm::Adam { amsgrad, .. } | Algorithm::Adamw { amsgrad, .. } => {
            2 + usize::from(amsgrad)
        }
    }
}

impl Updater {
    /// An optimizer for `len` parameters, before its first step.
    pub(crate) fn new(rule: Optimizer, len: usize) -> Self {
        let start = match rule.algorithm {
            Algorithm::Adagrad { initial_accumulator_value, .. } => {
                initial_accumulator_value as f32
            }
            _ => 0.0,
        };
        let slots = vec![vec![start; len]; slots(rule.algorithm)];
        Self { rule, slots, momentum_product: 1.0 }
    }

    /// Returns true if the optimizer keeps a product of momentum coefficients.
    pub(crate) fn multiplies_momentum(&self) -> bool {
        matches!(self.rule.algorithm, Algorithm::Nadam { .. })
    }

    /// Moves `weights` along `gradients` with learning rate `rate`; `step` counts from 1.
    pub(crate) fn update(&mut self, weights: &mut [f32], gradients: &[f32], rate: f64, step: u64) {
        if let Algorithm::Nadam { beta_1, .. } = self.rule.algorithm {
            self.momentum_product *= nadam_momentum(beta_1, step as f64);
        }
        let (rule, product) = (self.rule, self.momentum_product);
        let (len, size) = (weights.len(), parallel::part(weights.len(), 1));
        let weights = Shared::new(weights);
        let slots: Vec<Shared<'_, f32>> =
            self.slots.iter_mut().map(|slot| Shared::new(slot)).collect();
        parallel::each(len.div_ceil(size), |index| {
            let start = index * size;
            let count = size.min(len - start);
            // SAFETY: parts do not overlap, and each index is used once.
            let weights = unsafe { weights.slice(start, count) };
            let gradients = &gradients[start..][..count];
            let slots = slots.iter().map(|slot| {
                // SAFETY: as above.
                unsafe { slot.slice(start, count) }
            });
            let mut slots: Vec<&mut [f32]> = slots.collect();
            apply(rule, product, weights, gradients, &mut slots, rate, step);
        });
    }

    /// Clips `gradients` as the rule says; `arrays` are the stretches of each array.
    pub(crate) fn clip(
        &self,
        gradients: &mut [f32],
        arrays: impl Iterator<Item = std::ops::Range<usize>>,
    ) {
        if let Some(limit) = self.rule.clipvalue {
            let limit = limit as f32;
            gradients.iter_mut().for_each(|g| *g = g.clamp(-limit, limit));
        }
        if let Some(limit) = self.rule.clipnorm {
            for range in arrays {
                scale_to_norm(&mut gradients[range], limit);
            }
        }
        if let Some(limit) = self.rule.global_clipnorm {
            scale_to_norm(gradients, limit);
        }
    }
}

/// Updates a part of the weights; `product` is Nadam's product of momentum coefficients.
fn apply(
    rule: Optimizer,
    product: f64,
    weights: &mut [f32],
    gradients: &[f32],
    slots: &mut [&mut [f32]],
    rate: f64,
    step: u64,
) {
    if rule.weight_decay > 0.0 {
        let keep = 1.0 - (rate * rule.weight_decay) as f32;
        weights.iter_mut().for_each(|w| *w *= keep);
    }
    let lr = rate as f32;
    let t = step as f64;
    match rule.algorithm {
        Algorithm::Sgd { momentum, nesterov } => {
            let m = momentum as f32;
            match slots {
                [velocity] => each3(weights, gradients, velocity, |w, g, v| {
                    *v = m * *v - lr * g;
                    *w += if nesterov { m * *v - lr * g } else { *v };
                }),
                _ => vectorized(
                    #[inline(always)]
                    || weights.iter_mut().zip(gradients).for_each(|(w, g)| *w -= lr * g),
                ),
            }
        }
        Algorithm::Rmsprop { rho, momentum, epsilon, centered } => {
            rmsprop(weights, gradients, slots, lr, [rho, momentum, epsilon], centered)
        }
        Algorithm::Adagrad { epsilon, .. } => {
            let e = epsilon as f32;
            if let [sum] = slots {
                each3(weights, gradients, sum, |w, g, s| {
                    *s += g * g;
                    *w -= lr * g / (*s + e).sqrt();
                });
            }
        }
        Algorithm::Adadelta { rho, epsilon } => {
            let (rho, e) = (rho as f32, epsilon as f32);
            if let [square, delta] = slots {
                each4(weights, gradients, square, delta, |w, g, s, d| {
                    *s = rho * *s + (1.0 - rho) * g * g;
                    let move_by = -((*d + e).sqrt() / (*s + e).sqrt()) * g;
                    *d = rho * *d + (1.0 - rho) * move_by * move_by;
                    *w += lr * move_by;
                });
            }
        }
        Algorithm::Adam { beta_1, beta_2, epsilon, .. }
        | Algorithm::Adamw { beta_1, beta_2, epsilon, .. } => {
            let alpha = rate * (1.0 - libm::pow(beta_2, t)).sqrt() / (1.0 - libm::pow(beta_1, t));
            adam(weights, gradients, slots, alpha as f32, [beta_1, beta_2, epsilon]);
        }
        Algorithm::Nadam { beta_1, beta_2, epsilon } => {
            let (now, next) = (nadam_momentum(beta_1, t), nadam_momentum(beta_1, t + 1.0));
            let from_moment = (next / (1.0 - product * next)) as f32;
            let from_gradient = ((1.0 - now) / (1.0 - product)) as f32;
            let correct = (1.0 / (1.0 - libm::pow(beta_2, t))) as f32;
            let [b1, b2, e] = [beta_1, beta_2, epsilon].map(|v| v as f32);
            if let [first, second] = slots {
                each4(weights, gradients, first, second, |w, g, m, v| {
                    *m += (g - *m) * (1.0 - b1);
                    *v += (g * g - *v) * (1.0 - b2);
                    let moment = from_moment * *m + from_gradient * g;
                    *w -= lr * moment / ((*v * correct).sqrt() + e);
                });
            }
        }
    }
}

/// Dozat's momentum schedule, with Keras's decay of 0.96.
fn nadam_momentum(beta_1: f64, t: f64) -> f64 {
    beta_1 * (1.0 - 0.5 * libm::pow(0.96, t))
}

fn scale_to_norm(gradients: &mut [f32], limit: f64) {
    let seen = surefoot_stats::moments(gradients).finish();
    // The statistics leave out what is not finite; a norm does not.
    let norm = match (seen.nan, seen.inf) {
        (0, 0) => seen.l2,
        (0, _) => f64::INFINITY,
        _ => f64::NAN,
    };
    if norm > limit || norm.is_nan() {
        let factor = (limit / norm) as f32;
        gradients.iter_mut().for_each(|g| *g *= factor);
    }
}

fn rmsprop(
    weights: &mut [f32],
    gradients: &[f32],
    slots: &mut [&mut [f32]],
    lr: f32,
    constants: [f64; 3],
    centered: bool,
) {
    let [rho, m, e] = constants.map(|v| v as f32);
    let rest = 1.0 - rho;
    match (slots, centered) {
        ([square], _) => each3(weights, gradients, square, |w, g, s| {
            *s = rho * *s + rest * g * g;
            *w -= lr * g / (*s + e).sqrt();
        }),
        ([square, velocity], false) => {
            each4(weights, gradients, square, velocity, |w, g, s, v| {
                *s = rho * *s + rest * g * g;
                *v = m * *v + lr * g / (*s + e).sqrt();
                *w -= *v;
            });
        }
        ([square, mean], true) => each4(weights, gradients, square, mean, |w, g, s, a| {
            *s = rho * *s + rest * g * g;
            *a = rho * *a + rest * g;
            *w -= lr * g / (*s - *a * *a + e).sqrt();
        }),
        ([square, velocity, mean], _) => vectorized(
            #[inline(always)]
            || {
                for ((((w, &g), s), v), a) in weights
                    .iter_mut()
                    .zip(gradients)
                    .zip(&mut **square)
                    .zip(&mut **velocity)
                    .zip(&mut **mean)
                {
                    *s = rho * *s + rest * g * g;
                    *a = rho * *a + rest * g;
                    *v = m * *v + lr * g / (*s - *a * *a + e).sqrt();
                    *w -= *v;
                }
            },
        ),
        _ => unreachable!("`Updater::new` makes one to three slots"),
    }
}

fn adam(
    weights: &mut [f32],
    gradients: &[f32],
    slots: &mut [&mut [f32]],
    alpha: f32,
    constants: [f64; 3],
) {
    let [b1, b2, e] = constants.map(|v| v as f32);
    match slots {
        [first, second] => each4(weights, gradients, first, second, |w, g, m, v| {
            *m += (g - *m) * (1.0 - b1);
            *v += (g * g - *v) * (1.0 - b2);
            *w -= alpha * *m / (v.sqrt() + e);
        }),
        [first, second, peak] => vectorized(
            #[inline(always)]
            || {
                for ((((w, &g), m), v), p) in weights
                    .iter_mut()
                    .zip(gradients)
                    .zip(&mut **first)
                    .zip(&mut **second)
                    .zip(&mut **peak)
                {
                    *m += (g - *m) * (1.0 - b1);
                    *v += (g * g - *v) * (1.0 - b2);
                    *p = if *v > *p { *v } else { *p };
                    *w -= alpha * *m / (p.sqrt() + e);
                }
            },
        ),
        _ => unreachable!("`Updater::new` makes two or three slots"),
    }
}

#[inline(always)]
fn each3(
    weights: &mut [f32],
    gradients: &[f32],
    a: &mut [f32],
    rule: impl Fn(&mut f32, f32, &mut f32),
) {
    vectorized(
        #[inline(always)]
        || {
            for ((w, &g), a) in weights.iter_mut().zip(gradients).zip(a) {
                rule(w, g, a);
            }
        },
    );
}

#[inline(always)]
fn each4(
    weights: &mut [f32],
    gradients: &[f32],
    a: &mut [f32],
    b: &mut [f32],
    rule: impl Fn(&mut f32, f32, &mut f32, &mut f32),
) {
    vectorized(
        #[inline(always)]
        || {
            for (((w, &g), a), b) in weights.iter_mut().zip(gradients).zip(a).zip(b) {
                rule(w, g, a, b);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clipping_does_not_hide_what_is_not_finite() {
        let mut gradients = [3.0, f32::INFINITY, -4.0];
        scale_to_norm(&mut gradients, 1.0);
        assert!(gradients[0] == 0.0 && gradients[1].is_nan());
        let mut gradients = [3.0, f32::NAN];
        scale_to_norm(&mut gradients, 1.0);
        assert!(gradients[0].is_nan());
        let mut gradients = [3.0, -4.0];
        scale_to_norm(&mut gradients, 1.0);
        assert_eq!(gradients, [0.6, -0.8]);
    }
}
