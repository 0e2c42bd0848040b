//! What trials reached, as places on an axis and as colours.

use surefoot_tune::Direction;

use super::StudyPage;
use crate::scale::Scale;

/// How many colours there are, `.r0` (worst) to `.r9` (best) in the style sheet.
pub(super) const COLOURS: usize = 10;

/// Beyond so many times the range of the middle eight tenths, a value would flatten all others.
const FAR: f64 = 1.5;

/// An axis of values on which a few that are far off do not flatten the others.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    pub(super) scale: Scale,
    /// How many values are worse than the axis goes.
    pub(super) off: usize,
}

impl Spread {
    /// The axis of finite values.
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
            // Powers of ten would show the bad ones, which are the small ones here.
            Direction::Maximize => Scale::around(limit, high),
        };
        Spread { scale, off: values.len() - shown.count() }
    }

    /// The place of a value, from 0 to 1; what is off the axis is at its end.
    pub(super) fn place(&self, value: f64) -> f64 {
        self.scale.place(value).clamp(0.0, 1.0)
    }
}

/// Up to where the axis goes, if some of the sorted values are too far off. Losses that explode do so
/// by powers of ten, so powers are compared where there are many.
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

/// What the trials of a study reached.
#[derive(Clone, Debug)]
pub(super) struct Values {
    pub(super) spread: Spread,
    direction: Direction,
    /// The costs of all trials that reached something, the lowest first.
    costs: Vec<f64>,
}

impl Values {
    /// Of all trials of a study.
    pub(super) fn of(page: &StudyPage<'_>) -> Values {
        let reached = page.trials.iter().filter_map(|trial| trial.reached());
        let reached: Vec<f64> = reached.collect();
        let mut costs: Vec<f64> = reached.iter().map(|v| page.direction.cost(*v)).collect();
        costs.sort_by(f64::total_cmp);
        Values { spread: Spread::of(reached, page.direction), direction: page.direction, costs }
    }

    /// The colour of a value, by its rank: the highest is the best tenth.
    pub(super) fn colour(&self, value: f64) -> usize {
        let cost = self.direction.cost(value);
        let worse = self.costs.len() - self.costs.partition_point(|other| *other <= cost);
        let share = worse as f64 / self.costs.len().max(1) as f64;
        ((share * COLOURS as f64) as usize).min(COLOURS - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_far_off_does_not_flatten_the_others() {
        let mut values: Vec<f64> = (0..100).map(|i| -1.0 + f64::from(i) / 100.0).collect();
        values.push(1e9);
        let spread = Spread::of(values.clone(), Direction::Minimize);
        assert_eq!(spread.off, 1);
        assert!(spread.scale.place(0.0) > 0.2);
        assert_eq!(spread.place(1e9), 1.0);
        // What is far off on the good side is what one looks for.
        let spread = Spread::of(values, Direction::Maximize);
        assert_eq!(spread.off, 0);
    }

    #[test]
    fn losses_that_exploded_do_not_flatten_those_that_range_over_decades() {
        let mut values: Vec<f64> =
            (0..100).map(|i| 10_f64.powf(f64::from(i) / 50.0 - 2.0)).collect();
        values.extend([1e9; 5]);
        let spread = Spread::of(values, Direction::Minimize);
        assert_eq!(spread.off, 5);
        assert!(spread.place(1.0) > 0.5, "{spread:?}");
    }

    #[test]
    fn losses_over_decades_go_by_powers_of_ten_and_metrics_never_do() {
        let values = vec![0.001, 0.1, 0.9];
        assert!(Spread::of(values.clone(), Direction::Minimize).scale.is_log());
        assert!(!Spread::of(values, Direction::Maximize).scale.is_log());
    }

    #[test]
    fn one_value_and_none_have_an_axis() {
        assert!(Spread::of(vec![0.5], Direction::Maximize).place(0.5) > 0.0);
        assert_eq!(Spread::of(vec![f64::NAN], Direction::Maximize).place(0.5), 0.5);
        assert_eq!(Spread::of(vec![-f64::MAX, 0.0, f64::MAX], Direction::Maximize).off, 0);
    }
}
