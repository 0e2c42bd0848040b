//! Values of trials as positions and colors.

use surefoot_tune::Direction;

use super::StudyPage;
use crate::scale::Scale;

/// Number of colors, `.r0` (worst) to `.r9` (best) in the style sheet.
pub(super) const COLORS: usize = 10;

/// Values beyond this multiple of the 10% to 90% range are outliers.
const FAR: f64 = 1.5;

/// An axis of values without outliers on the bad side.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    pub(super) scale: Scale,
    /// Number of values beyond the bad end of the axis.
    pub(super) off: usize,
}

impl Spread {
    /// The axis of the finite values.
    pub(super) fn of(mut values: Vec<f64>, direction: Direction) -> Spread {
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        let (Some(&low), Some(&high)) = (values.first(), values.last()) else {
            return Spread { scale: Scale::linear(0.0, 1.0), off: 0 };
        };
        let worst = match direction {
            Direction::Minimize => high,
            Direction::Maximize => low,
        };
        let limit = limit(&values, direction).unwrap_or(worst);
        let near = |value: &&f64| direction.cost(**value) <= direction.cost(limit);
        let shown = values.iter().filter(near);
        let scale = match direction {
            Direction::Minimize => Scale::fit(shown.clone().copied()),
            // A logarithmic axis would stretch the small values, which are the bad ones.
            Direction::Maximize => Scale::around(limit, high),
        };
        Spread { scale, off: values.len() - shown.count() }
    }

    /// Position of a value from 0 to 1; values off the axis are at its end.
    pub(super) fn place(&self, value: f64) -> f64 {
        self.scale.place(value).clamp(0.0, 1.0)
    }
}

/// Bad end of the axis, if some of the sorted values are outliers. Losses that span decades are
/// compared by their logarithms.
fn limit(values: &[f64], direction: Direction) -> Option<f64> {
    let (low, high) = (values.first()?, values.last()?);
    let powers = direction == Direction::Minimize && *low > 0.0 && *high > 100.0 * low;
    let at = |share: f64| {
        let value = values[((values.len() - 1) as f64 * share).round() as usize];
        if powers { value.log10() } else { value }
    };
    let (tenth, ninetieth) = (at(0.1), at(0.9));
    let far = FAR * (ninetieth - tenth);
    let limit = match direction {
        Direction::Minimize => ninetieth + far,
        Direction::Maximize => tenth - far,
    };
    let limit = if powers { 10_f64.powf(limit) } else { limit };
    let inside = (*low..*high).contains(&limit);
    (far > 0.0 && inside).then_some(limit)
}

/// Values of the trials of a study.
#[derive(Clone, Debug)]
pub(super) struct Values {
    pub(super) spread: Spread,
    direction: Direction,
    /// Costs of all trials with a value, lowest first.
    costs: Vec<f64>,
}

impl Values {
    /// Collects the values of a study.
    pub(super) fn of(page: &StudyPage<'_>) -> Values {
        let reached = page.trials.iter().filter_map(|trial| trial.reached());
        let reached: Vec<f64> = reached.collect();
        let mut costs: Vec<f64> = reached.iter().map(|v| page.direction.cost(*v)).collect();
        costs.sort_by(f64::total_cmp);
        Values { spread: Spread::of(reached, page.direction), direction: page.direction, costs }
    }

    /// Color of a value by its rank; the highest is the best tenth.
    pub(super) fn color(&self, value: f64) -> usize {
        let cost = self.direction.cost(value);
        let worse = self.costs.len() - self.costs.partition_point(|other| *other <= cost);
        let share = worse as f64 / self.costs.len().max(1) as f64;
        ((share * COLORS as f64) as usize).min(COLORS - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outliers_do_not_compress_the_axis() {
        let mut values: Vec<f64> = (0..100).map(|i| -1.0 + f64::from(i) / 100.0).collect();
        values.push(1e9);
        let spread = Spread::of(values.clone(), Direction::Minimize);
        assert_eq!(spread.off, 1);
        assert!(spread.scale.place(0.0) > 0.2);
        assert_eq!(spread.place(1e9), 1.0);
        // Outliers on the good side are kept.
        let spread = Spread::of(values, Direction::Maximize);
        assert_eq!(spread.off, 0);
    }

    #[test]
    fn exploded_losses_are_outliers_of_a_logarithmic_axis() {
        let mut values: Vec<f64> =
            (0..100).map(|i| 10_f64.powf(f64::from(i) / 50.0 - 2.0)).collect();
        values.extend([1e9; 5]);
        let spread = Spread::of(values, Direction::Minimize);
        assert_eq!(spread.off, 5);
        assert!(spread.place(1.0) > 0.5, "{spread:?}");
    }

    #[test]
    fn only_losses_have_a_logarithmic_axis() {
        let values = vec![0.001, 0.1, 0.9];
        assert!(Spread::of(values.clone(), Direction::Minimize).scale.is_log());
        assert!(!Spread::of(values, Direction::Maximize).scale.is_log());
    }

    #[test]
    fn one_value_or_none_has_an_axis() {
        assert!(Spread::of(vec![0.5], Direction::Maximize).place(0.5) > 0.0);
        assert_eq!(Spread::of(vec![f64::NAN], Direction::Maximize).place(0.5), 0.5);
        assert_eq!(Spread::of(vec![-f64::MAX, 0.0, f64::MAX], Direction::Maximize).off, 0);
    }
}
