//! Costs on the scale of the model.

/// Range of a scaled cost.
const RANGE: (f64, f64) = (-10.0, 0.5);

/// Scales costs: 0 is the median of the last costs of all trials, and -1 the best. Costs below the median
/// are scaled by a square root, which enlarges small differences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    median: f64,
    width: f64,
}

impl Scale {
    /// The value of a trial that reported NaN or infinity.
    pub(super) const DEAD: f64 = RANGE.1;

    /// Scale for these last costs. Costs that are not finite count as the worst.
    pub(super) fn new(mut last: Vec<f64>) -> Scale {
        last.iter_mut().filter(|cost| !cost.is_finite()).for_each(|cost| *cost = f64::INFINITY);
        last.sort_by(f64::total_cmp);
        let finite = last.iter().take_while(|cost| cost.is_finite()).count();
        let Some(&best) = last.first().filter(|_| finite > 0) else {
            return Scale { median: 0.0, width: 1.0 };
        };
        let median = last[(last.len() / 2).min(finite - 1)];
        let width = median - best;
        Scale { median, width: if width > 0.0 { width } else { 1.0 } }
    }

    /// Scaled cost.
    pub(super) fn of(&self, cost: f64) -> f64 {
        if !cost.is_finite() {
            return Scale::DEAD;
        }
        let scaled = ((cost - self.median) / self.width).clamp(RANGE.0, RANGE.1);
        if scaled < 0.0 { -libm::sqrt(-scaled) } else { scaled }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_0_and_the_best_is_minus_1() {
        let scale = Scale::new(vec![5.0, 1.0, f64::NAN, 3.0, f64::INFINITY]);
        assert_eq!(scale.of(5.0), 0.0);
        assert_eq!(scale.of(1.0), -1.0);
        assert_eq!(scale.of(1e30), 0.5);
        assert_eq!(scale.of(f64::NAN), Scale::DEAD);
    }

    #[test]
    fn equal_costs_have_a_scale() {
        for last in [vec![2.0; 4], vec![f64::NAN; 3], Vec::new()] {
            assert!(Scale::new(last).of(1.0).is_finite());
        }
    }
}
