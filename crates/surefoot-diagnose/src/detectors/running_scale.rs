//! Robust location and scale of recent values.

use std::collections::VecDeque;

/// Median and median absolute deviation of the last values. A few outliers among them, NaN included,
/// change neither.
#[derive(Clone, Debug, Default)]
pub(super) struct RunningScale {
    /// In the order of their arrival.
    recent: VecDeque<f64>,
    sorted: Vec<f64>,
}

/// Number of values that are kept.
const WINDOW: usize = 128;

/// Ratio of the standard deviation of a normal distribution to its median absolute deviation.
const NORMAL: f64 = 1.4826;

impl RunningScale {
    /// Adds a value. NaN and infinities are ignored.
    pub(super) fn push(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        if self.recent.len() == WINDOW
            && let Some(oldest) = self.recent.pop_front()
        {
            let at = self.sorted.partition_point(|it| *it < oldest);
            self.sorted.remove(at);
        }
        self.recent.push_back(value);
        self.sorted.insert(self.sorted.partition_point(|it| *it < value), value);
    }

    /// Number of values.
    pub(super) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Their median; NaN without values.
    pub(super) fn median(&self) -> f64 {
        self.sorted.get(self.sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// Their standard deviation, estimated by the median absolute deviation.
    pub(super) fn deviation(&self) -> f64 {
        let median = self.median();
        let mut deviations: Vec<f64> = self.sorted.iter().map(|it| (it - median).abs()).collect();
        deviations.sort_by(f64::total_cmp);
        NORMAL * deviations.get(deviations.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_the_last_values_and_ignores_outliers() {
        let mut scale = RunningScale::default();
        for i in 0..1000 {
            scale.push(if i < 500 { 9.0 } else { 2.0 + f64::from(i % 5) * 0.1 });
            if i % 10 == 0 {
                scale.push(f64::NAN);
                scale.push(1e6);
            }
        }
        assert_eq!(scale.len(), WINDOW);
        assert!((scale.median() - 2.2).abs() < 0.11, "{}", scale.median());
        assert!((0.1..0.4).contains(&scale.deviation()), "{}", scale.deviation());
    }
}
