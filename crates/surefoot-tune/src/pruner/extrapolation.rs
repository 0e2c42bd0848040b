//! Learning-curve extrapolation.

use super::standing::{is_done, progress, sound};
use super::{PruneReason, Pruner};
use crate::learning_curve::LearningCurve;
use libm::{exp, log, pow};
use serde::{Deserialize, Serialize};

/// Ends a trial whose forecast for the last epoch is worse than the best that others have ended with.
///
/// After Domhan et al. (2015): curves of several families are fitted to the costs so far, and their
/// forecasts are averaged by how well they fit. Theirs are sampled by a Markov chain; here the shape of
/// a curve is taken from a grid and its two scales are solved for, which is exact, quick and the same
/// every time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Extrapolation {
    /// The share of its epochs that a trial has done before it is judged. A forecast from fewer
    /// points is none.
    pub from: f64,
    /// How many standard deviations the forecast has to be away.
    pub sure: f64,
    /// How many others there have to be that ran to their end.
    pub trials: usize,
}

impl Default for Extrapolation {
    fn default() -> Self {
        Self { from: 0.2, sure: 1.65, trials: 3 }
    }
}

/// The fewest points that say anything of a curve with three degrees of freedom.
const FEWEST: usize = 5;

impl Pruner for Extrapolation {
    fn name(&self) -> &'static str {
        "extrapolation"
    }

    fn judge(&self, trial: &LearningCurve, others: &[LearningCurve]) -> Option<PruneReason> {
        let early = progress(trial) < self.from || trial.costs.len() < FEWEST;
        if is_done(trial) || early {
            return None;
        }
        let whole = others.iter().filter(|o| o.over && o.costs.len() >= o.planned);
        let ends: Vec<f64> = whole.filter_map(|other| other.last()).map(sound).collect();
        let best = ends.iter().copied().reduce(f64::min)?;
        if ends.len() < self.trials || !best.is_finite() {
            return None;
        }
        let forecast = Forecast::of(&trial.costs, trial.planned)?;
        let hopeful = forecast.cost - self.sure * forecast.spread;
        (hopeful > best).then(|| {
            // Without numbers: those here are costs, and what people want to see may be the negative.
            let sentence = "At this pace it ends worse than another trial has ended.";
            PruneReason::new(self.name(), sentence)
                .with("cost that is forecast", forecast.cost, None)
                .with("cost that is forecast at its luckiest", hopeful, best)
        })
    }
}

/// Where a curve goes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Forecast {
    cost: f64,
    spread: f64,
}

impl Forecast {
    /// Fits all families to `costs` and averages where they are at `end`. Costs that are no numbers are
    /// left out.
    fn of(costs: &[f64], end: usize) -> Option<Forecast> {
        let points: Vec<(f64, f64)> = costs
            .iter()
            .enumerate()
            .filter(|(_, cost)| cost.is_finite())
            .map(|(i, cost)| ((i + 1) as f64, *cost))
            .collect();
        if points.len() < FEWEST {
            return None;
        }
        let fits: Vec<Fit> =
            shapes().filter_map(|shape| Fit::of(&points, &shape, end as f64)).collect();
        let least = fits.iter().map(|fit| fit.error).reduce(f64::min)?;
        // A perfect fit must not divide by nothing.
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

/// A curve `floor + scale * shape(t)` fitted to points, with `scale` not negative: costs fall.
struct Fit {
    /// The sum of squared distances.
    error: f64,
    /// Where it is at the end.
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

/// The shapes of the families, all falling: powers, exponentials, sigmoids in the logarithm, and the
/// inverse logarithm.
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
    use super::super::standing::tests::{curve, ended};
    use super::*;

    #[test]
    fn a_curve_of_a_known_family_is_continued() {
        let costs: Vec<f64> = (1..=10).map(|t| 0.3 + 0.7 * (-0.1 * f64::from(t)).exp()).collect();
        let forecast = Forecast::of(&costs, 50).unwrap();
        let truth = 0.3 + 0.7 * (-5.0_f64).exp();
        assert!((forecast.cost - truth).abs() < 0.02, "{forecast:?}");
    }

    #[test]
    fn a_flat_curve_above_the_best_is_stopped_and_a_falling_one_is_not() {
        let others: Vec<LearningCurve> = (0..3).map(|_| ended(&[0.5; 10])).collect();
        let rule = Extrapolation::default();
        let flat = [0.7, 0.7001, 0.6999, 0.7, 0.7];
        let reason = rule.judge(&curve(&flat), &others).unwrap();
        let forecast = reason.evidence[0].value;
        assert!((forecast - 0.7).abs() < 1e-3, "{forecast}");
        let falling = [1.0, 0.9, 0.8, 0.7, 0.6];
        assert_eq!(rule.judge(&curve(&falling), &others), None);
    }

    #[test]
    fn a_curve_that_never_leaves_zero_is_continued() {
        let best: Vec<LearningCurve> = (0..3).map(|_| ended(&[-0.9; 10])).collect();
        let reason = Extrapolation::default().judge(&curve(&[0.0; 6]), &best);
        assert_eq!(reason.map(|reason| reason.by).as_deref(), Some("extrapolation"));
    }

    #[test]
    fn nothing_is_said_of_curves_without_numbers_or_among_failures() {
        let rule = Extrapolation::default();
        let fine: Vec<LearningCurve> = (0..3).map(|_| ended(&[0.5; 10])).collect();
        assert_eq!(rule.judge(&curve(&[f64::NAN; 6]), &fine), None);
        let broken: Vec<LearningCurve> = (0..3).map(|_| ended(&[f64::NAN; 10])).collect();
        assert_eq!(rule.judge(&curve(&[0.7; 6]), &broken), None);
    }
}
