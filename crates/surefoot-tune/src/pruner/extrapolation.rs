//! Learning-curve extrapolation.

use super::rank::{finite_or_worst, is_done, progress};
use super::{PruneReason, Pruner};
use crate::learning_curve::LearningCurve;
use crate::registry::{fraction, non_negative};
use libm::{exp, log, pow};
use serde::{Deserialize, Serialize};

/// Prunes a trial whose forecast final cost is worse than the best final cost of the others.
///
/// After Domhan et al. (2015): several families of curves are fitted to the costs so far and their
/// forecasts are averaged, weighted by goodness of fit. The paper samples the parameters with a Markov
/// chain; here the shape comes from a grid and the two linear scales are solved for, which is exact,
/// fast and deterministic.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Extrapolation {
    /// Fraction of the planned epochs before the first decision.
    #[serde(deserialize_with = "fraction")]
    pub warmup: f64,
    /// Distance between forecast and best cost, in standard deviations.
    #[serde(deserialize_with = "non_negative")]
    pub z: f64,
    /// Number of completed trials required.
    pub n_startup_trials: usize,
}

impl Default for Extrapolation {
    fn default() -> Self {
        Self { warmup: 0.2, z: 1.65, n_startup_trials: 3 }
    }
}

/// Points needed to fit a curve with three degrees of freedom.
const MIN_POINTS: usize = 5;

impl Pruner for Extrapolation {
    fn name(&self) -> &'static str {
        "extrapolation"
    }

    fn prune(&self, trial: &LearningCurve, others: &[LearningCurve]) -> Option<PruneReason> {
        let early = progress(trial) < self.warmup || trial.costs.len() < MIN_POINTS;
        if is_done(trial) || early {
            return None;
        }
        let whole = others.iter().filter(|o| o.over && o.costs.len() >= o.planned);
        let ends: Vec<f64> = whole.filter_map(|other| other.last()).map(finite_or_worst).collect();
        let best = ends.iter().copied().reduce(f64::min)?;
        if ends.len() < self.n_startup_trials || !best.is_finite() {
            return None;
        }
        let forecast = Forecast::of(&trial.costs, trial.planned)?;
        let hopeful = forecast.cost - self.z * forecast.spread;
        (hopeful > best).then(|| {
            // No numbers in the message: these are costs, which may be negated values.
            let why = "the forecast final value is worse than the best completed trial";
            PruneReason::at(self.name(), trial, why)
                .with("forecast cost", forecast.cost, None)
                .with("optimistic forecast cost", hopeful, best)
        })
    }
}

/// Forecast of a final cost.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Forecast {
    cost: f64,
    spread: f64,
}

impl Forecast {
    /// Fits all families to `costs` and averages their values at `end`. Non-finite costs are skipped.
    fn of(costs: &[f64], end: usize) -> Option<Forecast> {
        let points: Vec<(f64, f64)> = costs
            .iter()
            .enumerate()
            .filter(|(_, cost)| cost.is_finite())
            .map(|(i, cost)| ((i + 1) as f64, *cost))
            .collect();
        if points.len() < MIN_POINTS {
            return None;
        }
        let fits: Vec<Fit> =
            shapes().filter_map(|shape| Fit::of(&points, &shape, end as f64)).collect();
        let least = fits.iter().map(|fit| fit.error).reduce(f64::min)?;
        // Avoids a division by zero after a perfect fit.
        let squares: f64 = points.iter().map(|(_, cost)| cost * cost).sum();
        let floor = (1e-12 * squares).max(f64::MIN_POSITIVE);
        let n = points.len() as f64;
        let weight = |fit: &Fit| pow((least + floor) / (fit.error + floor), n / 2.0);
        let total: f64 = fits.iter().map(weight).sum();
        let mean = |value: &dyn Fn(&Fit) -> f64| {
            fits.iter().map(|fit| weight(fit) * value(fit)).sum::<f64>() / total
        };
        let cost = mean(&|fit| fit.end);
        let between = mean(&|fit| (fit.end - cost).powi(2));
        let within = least / (n - 2.0);
        let spread = (between + within).sqrt();
        cost.is_finite().then_some(Forecast { cost, spread })
    }
}

/// A curve `floor + scale * shape(t)` fitted to points, with a non-negative `scale`.
struct Fit {
    /// Sum of squared residuals.
    error: f64,
    /// Value at the last epoch.
    end: f64,
}

impl Fit {
    fn of(points: &[(f64, f64)], shape: &dyn Fn(f64) -> f64, end: f64) -> Option<Fit> {
        let n = points.len() as f64;
        let x_mean = points.iter().map(|(t, _)| shape(*t)).sum::<f64>() / n;
        let y_mean = points.iter().map(|(_, y)| y).sum::<f64>() / n;
        let (mut across, mut along) = (0.0, 0.0);
        for (t, y) in points {
            let x = shape(*t) - x_mean;
            across += x * x;
            along += x * (y - y_mean);
        }
        let scale = if across > 0.0 { (along / across).max(0.0) } else { 0.0 };
        let at = |t: f64| y_mean + scale * (shape(t) - x_mean);
        let error: f64 = points.iter().map(|(t, y)| (y - at(*t)).powi(2)).sum();
        let end = at(end);
        (error.is_finite() && end.is_finite()).then_some(Fit { error, end })
    }
}

/// Decreasing shapes: powers, exponentials, sigmoids in the logarithm, and the inverse logarithm.
fn shapes() -> impl Iterator<Item = Box<dyn Fn(f64) -> f64>> {
    const POWERS: [f64; 6] = [0.1, 0.25, 0.5, 1.0, 1.5, 2.0];
    const RATES: [f64; 6] = [0.01, 0.03, 0.06, 0.1, 0.2, 0.5];
    const MIDDLES: [f64; 3] = [5.0, 15.0, 30.0];
    let boxed = |shape: Box<dyn Fn(f64) -> f64>| shape;
    let powers = POWERS.map(|power| boxed(Box::new(move |t: f64| pow(t, -power))));
    let rates = RATES.map(|rate| boxed(Box::new(move |t: f64| exp(-rate * t))));
    let sigmoids =
        MIDDLES.map(|middle| boxed(Box::new(move |t: f64| 1.0 / (1.0 + (t / middle).powi(2)))));
    let inverse = boxed(Box::new(|t: f64| 1.0 / log(t + 1.0)));
    powers.into_iter().chain(rates).chain(sigmoids).chain([inverse])
}

#[cfg(test)]
mod tests {
    use super::super::rank::tests::{curve, ended};
    use super::*;

    #[test]
    fn a_curve_of_a_known_family_is_forecast() {
        let costs: Vec<f64> = (1..=10).map(|t| 0.3 + 0.7 * (-0.1 * f64::from(t)).exp()).collect();
        let forecast = Forecast::of(&costs, 50).unwrap();
        let truth = 0.3 + 0.7 * (-5.0_f64).exp();
        assert!((forecast.cost - truth).abs() < 0.02, "{forecast:?}");
    }

    #[test]
    fn a_flat_curve_is_pruned_and_a_falling_one_is_not() {
        let others: Vec<LearningCurve> = (0..3).map(|_| ended(&[0.5; 10])).collect();
        let rule = Extrapolation::default();
        let flat = [0.7, 0.7001, 0.6999, 0.7, 0.7];
        let reason = rule.prune(&curve(&flat), &others).unwrap();
        let forecast = reason.evidence[0].value;
        assert!((forecast - 0.7).abs() < 1e-3, "{forecast}");
        let falling = [1.0, 0.9, 0.8, 0.7, 0.6];
        assert_eq!(rule.prune(&curve(&falling), &others), None);
    }

    #[test]
    fn a_curve_of_zeros_is_forecast() {
        let best: Vec<LearningCurve> = (0..3).map(|_| ended(&[-0.9; 10])).collect();
        let reason = Extrapolation::default().prune(&curve(&[0.0; 6]), &best);
        assert_eq!(reason.map(|reason| reason.by).as_deref(), Some("extrapolation"));
    }

    #[test]
    fn nan_curves_and_failed_trials_give_no_decision() {
        let rule = Extrapolation::default();
        let fine: Vec<LearningCurve> = (0..3).map(|_| ended(&[0.5; 10])).collect();
        assert_eq!(rule.prune(&curve(&[f64::NAN; 6]), &fine), None);
        let broken: Vec<LearningCurve> = (0..3).map(|_| ended(&[f64::NAN; 10])).collect();
        assert_eq!(rule.prune(&curve(&[0.7; 6]), &broken), None);
    }
}
