//! Axis scales with round ticks.

use crate::format;

/// Maximum number of decades of a logarithmic scale below its largest value.
const DECADES: f64 = 12.0;

/// A linear or logarithmic axis.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    log: bool,
}

impl Scale {
    /// A linear scale from `low` to `high`.
    pub(crate) fn linear(low: f64, high: f64) -> Scale {
        let high = if high > low { high } else { low + 1.0 };
        Scale { low, high, log: false }
    }

    /// A scale for these values: logarithmic if they span more than two decades, otherwise
    /// linear.
    pub(crate) fn fit(values: impl Iterator<Item = f64> + Clone) -> Scale {
        let finite = values.filter(|value| value.is_finite());
        let high = finite.clone().fold(f64::NEG_INFINITY, f64::max);
        let low = finite.clone().fold(f64::INFINITY, f64::min);
        if !high.is_finite() {
            return Scale::linear(0.0, 1.0);
        }
        let least = finite.filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
        if low >= 0.0 && high > 100.0 * least {
            let high = high.log10();
            let least = least.log10().max(high - DECADES);
            let margin = 0.04 * (high - least);
            return Scale { low: least - margin, high: high + margin, log: true };
        }
        Scale::around(low, high)
    }

    /// A linear scale from `low` to `high` with a margin.
    pub(crate) fn around(low: f64, high: f64) -> Scale {
        // Larger ranges overflow with their margin.
        const HUGE: f64 = f64::MAX / 8.0;
        let (low, high) = (low.clamp(-HUGE, HUGE), high.clamp(-HUGE, HUGE));
        let margin = match high - low {
            0.0 => high.abs().max(1e-9) * 0.5,
            range => range * 0.06,
        };
        // Starts at zero if it is close.
        let bottom = if low >= 0.0 && low < (high - low) * 0.5 { 0.0 } else { low - margin };
        Scale::linear(bottom, high + margin)
    }

    /// Returns true for a logarithmic scale.
    pub(crate) fn is_log(&self) -> bool {
        self.log
    }

    /// The ends of the axis; log10 of them on a logarithmic scale.
    pub(crate) fn bounds(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Position of a value: 0 is the low end and 1 the high end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let value = match self.log {
            true if value > 0.0 => value.log10(),
            true => self.low,
            false => value,
        };
        (value - self.low) / (self.high - self.low)
    }

    /// About `count` round ticks.
    pub(crate) fn ticks(&self, count: usize) -> Vec<Tick> {
        if self.log {
            return self.powers(count);
        }
        let step = round_step((self.high - self.low) / count as f64);
        // Rounding must not drop a tick at an end.
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        let tick = |i: i64| {
            let value = i as f64 * step;
            Tick { place: self.place(value), value }
        };
        (first..=last).map(tick).collect()
    }

    fn powers(&self, count: usize) -> Vec<Tick> {
        let (first, last) = (self.low.ceil() as i32, self.high.floor() as i32);
        let step = ((last - first) as usize / count + 1) as i32;
        let powers = (first..=last).filter(|power| power.rem_euclid(step) == 0);
        powers
            .map(|power| Tick {
                place: (f64::from(power) - self.low) / (self.high - self.low),
                value: 10_f64.powi(power),
            })
            .collect()
    }

    /// Label of a tick.
    pub(crate) fn label(&self, tick: &Tick) -> String {
        match self.log {
            true => {
                let (least, most) = (self.low.ceil() as i32, self.high.floor() as i32);
                let power = tick.value.log10().round() as i32;
                format::power_of_ten(power, format::are_short(least, most))
            }
            // Rounding errors around zero are zero.
            false if tick.value.abs() < (self.high - self.low) * 1e-9 => "0".to_owned(),
            false if tick.value >= 1000.0 && tick.value < 1e9 => {
                format::grouped(tick.value.round() as u64)
            }
            // Same notation as the other ticks.
            false if tick.value.abs() < 1e-3 && self.high.max(-self.low) >= 1e-3 => {
                let sign = if tick.value < 0.0 { "−" } else { "" };
                let digits = format!("{:.6}", tick.value.abs());
                format!("{sign}{}", format::trimmed(&digits))
            }
            false => format::number(tick.value),
        }
    }
}

/// A tick at a round value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tick {
    /// From 0 to 1.
    pub(crate) place: f64,
    pub(crate) value: f64,
}

/// Rounds up to 1, 2 or 5 times a power of ten.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    let enough = steps.into_iter().find(|step| *step >= least * (1.0 - 1e-9));
    enough.unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale, count: usize) -> Vec<String> {
        let ticks = scale.ticks(count);
        ticks.iter().map(|tick| scale.label(tick)).collect()
    }

    #[test]
    fn more_than_two_decades_are_logarithmic() {
        assert!(!Scale::fit([0.02, 1.5].into_iter()).is_log());
        let wide = Scale::fit([0.002, 0.5, 1.5].into_iter());
        assert!(wide.is_log());
        assert_eq!(labels(&wide, 6), ["0.01", "0.1", "1"]);
    }

    #[test]
    fn ticks_are_round_and_reach_the_ends() {
        assert_eq!(labels(&Scale::linear(0.0, 1600.0), 4), ["0", "500", "1,000", "1,500"]);
        assert_eq!(labels(&Scale::linear(0.4, 1.0), 3), ["0.4", "0.6", "0.8", "1"]);
        assert_eq!(
            labels(&Scale::linear(-0.2, 0.3), 5),
            ["−0.2", "−0.1", "0", "0.1", "0.2", "0.3"]
        );
    }

    #[test]
    fn an_axis_has_one_notation() {
        let wide = Scale::fit([1e-6, 1e-3, 1.0].into_iter());
        assert_eq!(labels(&wide, 3), ["10⁻⁶", "10⁻³", "10⁰"]);
        let small = Scale::linear(-0.0005, 0.001);
        assert_eq!(labels(&small, 3), ["−0.0005", "0", "0.0005", "0.001"]);
    }

    #[test]
    fn non_finite_values_are_ignored() {
        let scale = Scale::fit([f64::NAN, f64::INFINITY, 1.0, 2.0].into_iter());
        assert!(scale.place(2.0) < 1.0 && scale.place(1.0) > 0.0);
        assert_eq!(labels(&Scale::fit([f64::NAN].into_iter()), 2), ["0", "0.5", "1"]);
    }

    #[test]
    fn zeros_are_at_the_bottom_of_a_log_scale() {
        let scale = Scale::fit([0.0, 1e-300, 1e-6, 1.0].into_iter());
        assert!(scale.is_log());
        assert_eq!(scale.place(0.0), 0.0);
        assert!(labels(&scale, 5).len() <= 6);
    }

    #[test]
    fn equal_values_have_a_scale() {
        assert!((Scale::fit([0.5].into_iter()).place(0.5) - 0.5).abs() < 0.5);
        assert!(Scale::fit([0.0].into_iter()).place(0.0).is_finite());
    }
}
