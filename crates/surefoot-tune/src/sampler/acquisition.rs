//! Expected improvement.

use libm::{erfc, exp, log, log1p};
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Logarithm of the expected improvement over `best` for a normally distributed cost, with its
/// derivatives.
///
/// The improvement itself is zero over most of a space, which stalls gradient search (Ament et al.,
/// *Unexpected Improvements to Expected Improvement*, 2023).
pub(crate) fn log_improvement(best: f64, mean: f64, deviation: f64) -> Improvement {
    let z = (best - mean) / deviation;
    let (unit, slope) = log_unit_improvement(z);
    Improvement {
        log: unit + log(deviation),
        by_mean: -slope / deviation,
        by_deviation: (1.0 - slope * z) / deviation,
    }
}

/// Log expected improvement and its derivatives by mean and deviation.
pub(crate) struct Improvement {
    pub(crate) log: f64,
    pub(crate) by_mean: f64,
    pub(crate) by_deviation: f64,
}

/// ln(φ(z) + z Φ(z)) and its derivative.
fn log_unit_improvement(z: f64) -> (f64, f64) {
    let log_bell = -0.5 * z * z - 0.5 * log(2.0 * PI);
    if z > -25.0 {
        let below = 0.5 * erfc(-z * FRAC_1_SQRT_2);
        let improvement = exp(log_bell) + z * below;
        return (log(improvement), below / improvement);
    }
    // Leading orders of φ(z) / z² (1 − 3/z²); the sum above cancels for smaller z.
    let inverse = 1.0 / (z * z);
    (log_bell + log(inverse) + log1p(-3.0 * inverse), -z - 2.0 / z)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_improvement_matches_numerical_integration() {
        for (best, mean, deviation) in [(0.0, 0.5, 1.0), (1.0, 0.2, 0.3), (-1.0, 1.0, 0.8)] {
            let step = 1e-3;
            let mut sum = 0.0;
            for i in -10_000..10_000 {
                let z = f64::from(i) * step;
                let gain = (best - mean - deviation * z).max(0.0);
                sum += gain * exp(-0.5 * z * z) / (2.0 * PI).sqrt() * step;
            }
            let log_ei = log_improvement(best, mean, deviation).log;
            assert!((log_ei - sum.ln()).abs() < 1e-5, "{log_ei} {}", sum.ln());
        }
    }

    #[test]
    fn derivatives_match_finite_differences() {
        for mean in [-2.0, 0.1, 5.0, 24.9, 25.1, 80.0] {
            let at = log_improvement(0.0, mean, 1.0);
            let step = 1e-5;
            let by_mean = (log_improvement(0.0, mean + step, 1.0).log
                - log_improvement(0.0, mean - step, 1.0).log)
                / (2.0 * step);
            let by_deviation = (log_improvement(0.0, mean, 1.0 + step).log
                - log_improvement(0.0, mean, 1.0 - step).log)
                / (2.0 * step);
            assert!((at.by_mean / by_mean - 1.0).abs() < 1e-3, "{mean}");
            assert!((at.by_deviation / by_deviation - 1.0).abs() < 1e-3, "{mean}");
        }
    }
}
