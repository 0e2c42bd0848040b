//! Numbers to predict: a linear function and Friedman's.

use std::f64::consts::PI;

use super::{Settings, key, site};
use crate::error::DataError;
use crate::preprocessing::Column;
use crate::samples::{Form, Labels, Measure, Samples, room};

/// `y = w · x + b + noise` with standard normal features, weights and offset.
pub(crate) fn linear(
    seed: u64,
    samples: usize,
    features: usize,
    noise: f64,
) -> Result<Samples, DataError> {
    let settings = Settings("linear");
    settings.need(features >= 1, "features", features, "at least 1 is needed")?;
    let shared = key(seed, site::SHARED);
    let mut weights = room(&settings.origin(), features, 1)?;
    weights.extend((0..features as u64).map(|feature| shared.normal(feature)));
    let offset = shared.normal(features as u64);
    let function = |x: &[f64]| weights.iter().zip(x).fold(offset, |y, (weight, x)| y + weight * x);
    let draw = key(seed, site::FEATURES);
    predicted(settings, seed, [samples, features], noise, function, |i, feature| {
        draw.sample(i).normal(feature)
    })
}

/// Friedman's first function of features uniform in 0..1, of which it looks at five (Friedman,
/// *Multivariate Adaptive Regression Splines*, 1991):
/// `10 sin(π x₁ x₂) + 20 (x₃ − ½)² + 10 x₄ + 5 x₅ + noise`.
pub(crate) fn friedman(
    seed: u64,
    samples: usize,
    features: usize,
    noise: f64,
) -> Result<Samples, DataError> {
    let settings = Settings("friedman");
    settings.need(features >= 5, "features", features, "at least 5 are needed")?;
    let draw = key(seed, site::FEATURES);
    predicted(
        settings,
        seed,
        [samples, features],
        noise,
        |x| {
            let bend = x[2] - 0.5;
            10.0 * libm::sin(PI * x[0] * x[1]) + 20.0 * bend * bend + 10.0 * x[3] + 5.0 * x[4]
        },
        |i, feature| draw.sample(i).uniform(feature),
    )
}

/// Samples with features from `draw` and the value of `function` with normal noise.
fn predicted(
    settings: Settings,
    seed: u64,
    [samples, features]: [usize; 2],
    noise: f64,
    function: impl Fn(&[f64]) -> f64,
    draw: impl Fn(u64, u64) -> f64,
) -> Result<Samples, DataError> {
    settings.samples(samples, 2)?;
    settings.deviation("noise", noise)?;
    let origin = settings.origin();
    let mut inputs = room(&origin, samples, features)?;
    let mut values = room(&origin, samples, 1)?;
    let mut x = vec![0.0; features];
    let error = key(seed, site::NOISE);
    for i in 0..samples as u64 {
        for (feature, x) in (0..).zip(&mut x) {
            *x = draw(i, feature);
        }
        inputs.extend(x.iter().map(|&x| x as f32));
        values.push(function(&x) + noise * error.sample(i).normal(0));
    }
    Ok(Samples {
        label_origin: origin.clone(),
        origin,
        shape: vec![features],
        features: inputs,
        columns: (1..=features).map(|i| Column::number(format!("x{i}"))).collect(),
        label_columns: Vec::new(),
        measure: Measure::Amounts,
        labels: Labels::Numbers { values, width: 1, form: Form::Amounts },
        positions: 1,
        notes: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(samples: &Samples) -> &[f64] {
        match &samples.labels {
            Labels::Numbers { values, .. } => values,
            Labels::Classes { .. } => panic!("numbers expected"),
        }
    }

    #[test]
    fn friedman_is_the_function_of_the_paper() {
        let samples = friedman(1, 50, 6, 0.0).unwrap();
        for (x, &y) in samples.features.chunks(6).zip(values(&samples)) {
            let x: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
            let expected = 10.0 * (PI * x[0] * x[1]).sin()
                + 20.0 * (x[2] - 0.5).powi(2)
                + 10.0 * x[3]
                + 5.0 * x[4];
            assert!((y - expected).abs() < 1e-4);
        }
    }

    #[test]
    fn linear_without_noise_is_a_straight_line() {
        let samples = linear(1, 20, 1, 0.0).unwrap();
        let (x, y) = (&samples.features, values(&samples));
        let slope = (y[1] - y[0]) / f64::from(x[1] - x[0]);
        for i in 2..20 {
            let expected = y[0] + slope * f64::from(x[i] - x[0]);
            assert!((y[i] - expected).abs() < 1e-4);
        }
    }

    #[test]
    fn friedman_needs_five_features() {
        let error = friedman(1, 50, 4, 0.0).unwrap_err();
        assert!(error.to_string().contains("features = 4"), "{error}");
    }
}
