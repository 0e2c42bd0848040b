//! Initial values, drawn by the key of each array.
//!
//! The site of a key is made from the array's name, not its position: when a layer of another kind
//! is inserted, the others keep the weights they had.

use crate::parameters::{Declaration, Start};
use surefoot_plan::Initializer;
use surefoot_random::{Key, Purpose};

/// The inputs and outputs of each unit of an array, which scale its initial values.
#[derive(Clone, Copy, Debug)]
pub struct Fans {
    /// Inputs.
    pub fan_in: usize,
    /// Outputs.
    pub fan_out: usize,
}

// The standard deviation of a standard normal cut at two: Keras divides by it so that the
// truncated values have the requested variance.
const TRUNCATED_STD: f64 = 0.879_625_661_034_239_8;

/// The site of everything drawn for `name`: FNV-1a, 64 bits.
pub(crate) fn site(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Fills `values` with the initial values of the declared array.
pub(crate) fn initialize(declaration: &Declaration, seed: u64, values: &mut [f32]) {
    let name = format!("{}.{}", declaration.layer, declaration.name);
    let key = Key::new(seed, Purpose::Initialize).site(site(&name));
    let initializer = match declaration.start {
        Start::Initializer(initializer) => initializer,
        Start::ForgetBias => {
            let units = values.len() / 4;
            values[units..2 * units].fill(1.0);
            return;
        }
    };
    let fan_in = declaration.fans.fan_in.max(1) as f64;
    let fan_mean = (declaration.fans.fan_in + declaration.fans.fan_out).max(1) as f64 / 2.0;
    match initializer {
        Initializer::Zeros => values.fill(0.0),
        Initializer::Ones => values.fill(1.0),
        Initializer::Constant { value } => values.fill(value as f32),
        Initializer::RandomNormal { mean, stddev } => {
            key.fill_normal_f32(values);
            affine(values, stddev, mean);
        }
        Initializer::RandomUniform { minval, maxval } => {
            key.fill_uniform_f32(values);
            affine(values, maxval - minval, minval);
        }
        Initializer::TruncatedNormal { mean, stddev } => {
            key.fill_truncated_normal_f32(values);
            affine(values, stddev, mean);
        }
        Initializer::GlorotNormal => scaled_normal(key, 1.0 / fan_mean, values),
        Initializer::GlorotUniform => scaled_uniform(key, 1.0 / fan_mean, values),
        Initializer::HeNormal => scaled_normal(key, 2.0 / fan_in, values),
        Initializer::HeUniform => scaled_uniform(key, 2.0 / fan_in, values),
        Initializer::LecunNormal => scaled_normal(key, 1.0 / fan_in, values),
        Initializer::LecunUniform => scaled_uniform(key, 1.0 / fan_in, values),
        Initializer::Orthogonal { gain } => {
            // A convolution's filters are rows, however many dimensions each has.
            let columns = match declaration.shape[..] {
                [_, columns] => columns,
                [filters, ..] => values.len() / filters.max(1),
                [] => 1,
            };
            orthogonal(key, gain, values, columns.max(1));
        }
    }
}

fn scaled_normal(key: Key, variance: f64, values: &mut [f32]) {
    key.fill_truncated_normal_f32(values);
    affine(values, variance.sqrt() / TRUNCATED_STD, 0.0);
}

fn scaled_uniform(key: Key, variance: f64, values: &mut [f32]) {
    let limit = (3.0 * variance).sqrt();
    key.fill_uniform_f32(values);
    affine(values, 2.0 * limit, -limit);
}

fn affine(values: &mut [f32], scale: f64, offset: f64) {
    for v in values {
        *v = (f64::from(*v) * scale + offset) as f32;
    }
}

/// Orthonormal rows or columns, whichever are fewer: Gram-Schmidt, twice, on normal draws.
fn orthogonal(key: Key, gain: f64, values: &mut [f32], columns: usize) {
    let rows = values.len() / columns;
    let (count, length) = (rows.min(columns), rows.max(columns));
    let mut vectors: Vec<Vec<f64>> = Vec::with_capacity(count);
    for i in 0..count {
        let base = (i * length) as u64;
        let mut v: Vec<f64> = (0..length as u64).map(|j| key.normal(base + j)).collect();
        // The second sweep removes what rounding left of the first (Kahan: "twice is enough").
        for _ in 0..2 {
            for u in &vectors {
                let dot: f64 = u.iter().zip(&v).map(|(a, b)| a * b).sum();
                v.iter_mut().zip(u).for_each(|(a, b)| *a -= dot * b);
            }
        }
        let norm = v.iter().map(|a| a * a).sum::<f64>().sqrt();
        v.iter_mut().for_each(|a| *a /= norm);
        vectors.push(v);
    }
    for (i, vector) in vectors.iter().enumerate() {
        for (j, &value) in vector.iter().enumerate() {
            let at = if rows <= columns { i * columns + j } else { j * columns + i };
            values[at] = (gain * value) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Role;

    fn draw(initializer: Initializer, shape: &[usize], fan_in: usize, fan_out: usize) -> Vec<f32> {
        let declaration = Declaration {
            layer: "dense_1".into(),
            name: "kernel".into(),
            shape: shape.to_vec(),
            start: Start::Initializer(initializer),
            fans: Fans { fan_in, fan_out },
            regularizer: surefoot_plan::Regularizer::default(),
            role: Role::Weight,
        };
        let mut values = vec![0.0; shape.iter().product()];
        initialize(&declaration, 5, &mut values);
        values
    }

    fn variance(values: &[f32]) -> f64 {
        values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / values.len() as f64
    }

    #[test]
    fn scaled_initializers_have_the_variance_they_promise() {
        let (fan_in, fan_out) = (200, 100);
        for (initializer, want) in [
            (Initializer::GlorotNormal, 2.0 / 300.0),
            (Initializer::GlorotUniform, 2.0 / 300.0),
            (Initializer::HeNormal, 2.0 / 200.0),
            (Initializer::HeUniform, 2.0 / 200.0),
            (Initializer::LecunNormal, 1.0 / 200.0),
            (Initializer::LecunUniform, 1.0 / 200.0),
        ] {
            let got = variance(&draw(initializer, &[200, 100], fan_in, fan_out));
            assert!((got / want - 1.0).abs() < 0.03, "{initializer:?}: {got} not {want}");
        }
    }

    #[test]
    fn orthogonal_filters_are_orthonormal() {
        let kernel = draw(Initializer::Orthogonal { gain: 1.0 }, &[8, 3, 3, 3], 27, 72);
        for (i, a) in kernel.chunks_exact(27).enumerate() {
            for (j, b) in kernel.chunks_exact(27).enumerate() {
                let dot: f32 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                assert!((dot - f32::from(u8::from(i == j))).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn orthogonal_rows_or_columns_are_orthonormal() {
        for [rows, columns] in [[8, 32], [32, 8], [16, 16]] {
            let m = draw(Initializer::Orthogonal { gain: 2.0 }, &[rows, columns], 1, 1);
            let at = |i: usize, k: usize| {
                if rows <= columns { m[i * columns + k] } else { m[k * columns + i] }
            };
            for i in 0..rows.min(columns) {
                for j in 0..rows.min(columns) {
                    let dot: f32 = (0..rows.max(columns)).map(|k| at(i, k) * at(j, k)).sum();
                    let want = if i == j { 4.0 } else { 0.0 };
                    assert!((dot - want).abs() < 1e-5);
                }
            }
        }
    }
}
