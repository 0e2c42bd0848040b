//! What trials reached, as places on an axis and as colours.

use surefoot_tune::Direction;

use super::StudyPage;
use crate::scale::Scale;

/// How many colours there are, `.r0` (worst) to `.r9` (best) in the style sheet.
pub(super) const COLOURS: usize = 10;

/// Beyond so many times the range of the middle eight tenths, a value would flatten all others.
const FAR: f64 = 3.0;

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
            return Spread {
                scale: Scale::linear(0.0, 1.0),
                off: 0,
            };
        };
        // Powers of ten show small numbers, which are the good ones only where lower is better.
        if direction == Direction::Minimize {
            let scale = Scale::fit(values.iter().copied());
            if scale.is_log() {
                return Spread { scale, off: 0 };
            }
        }
        let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
        let (tenth, ninetieth) = (at(0.1), at(0.9));
        let far = FAR * (ninetieth - tenth);
        let (low, high) = match direction {
            _ if far <= 0.0 || !far.is_finite() => (low, high),
            Direction::Minimize => (low, high.min(ninetieth + far)),
            Direction::Maximize => (low.max(tenth - far), high),
        };
        Spread {
            scale: Scale::around(low, high),
            off: values.iter().filter(|v| **v < low || **v > high).count(),
        }
    }

    /// The place of a value, from 0 to 1; what is off the axis is at its end.
    pub(super) fn place(&self, value: f64) -> f64 {
        self.scale.place(value).clamp(0.0, 1.0)
    }
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
        Values {
            spread: Spread::of(reached, page.direction),
            direction: page.direction,
            costs,
        }
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
    fn losses_over_decades_go_by_powers_of_ten_and_metrics_never_do() {
        let values = vec![0.001, 0.1, 0.9];
        assert!(
            Spread::of(values.clone(), Direction::Minimize)
                .scale
                .is_log()
        );
        assert!(!Spread::of(values, Direction::Maximize).scale.is_log());
    }

    #[test]
    fn one_value_and_none_have_an_axis() {
        assert!(Spread::of(vec![0.5], Direction::Maximize).place(0.5) > 0.0);
        assert_eq!(
            Spread::of(vec![f64::NAN], Direction::Maximize).place(0.5),
            0.5
        );
        assert_eq!(
            Spread::of(vec![-f64::MAX, 0.0, f64::MAX], Direction::Maximize).off,
            0
        );
    }
}
