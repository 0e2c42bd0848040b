//! The rule by which a training is given up beside an attempt that learns.

/// Share of the blocks before which a plan is not given up.
const WARMUP: f64 = 0.15;
/// Skill from which on an attempt has learned enough to give the plan up.
const ENOUGH: f64 = 0.5;
/// Possible gain by chance, in recent changes from one window to the next.
const NOISE_FACTOR: f64 = 3.0;
/// Share of the planned blocks in a window.
const WINDOW: f64 = 0.04;

/// Returns true if a run with these skills by block cannot reach the skill `bar` within its
/// `planned` blocks, even if its recent trend continues to the end.
///
/// This is the rule of the pruner `prospect` for two runs: the optimistic end is the best skill so
/// far, plus the trend of the second half for all remaining blocks, plus a few recent changes.
pub(crate) fn cannot_reach(bar: f64, skills: &[f64], planned: usize) -> bool {
    let done = skills.len();
    let window = ((WINDOW * planned as f64).round() as usize).max(2);
    if bar < ENOUGH || (done as f64) < WARMUP * planned as f64 || done < 3 * window {
        return false;
    }
    // Below zero, nothing is learned: how far below shows no chance to catch up.
    let skills: Vec<f64> = skills.iter().map(|&it| if it < 0.0 { 0.0 } else { it }).collect();
    let means: Vec<f64> = skills.rchunks(window).map(mean).collect();
    let best = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let recent = &means[..means.len().min(6)];
    let changes = recent.windows(2).map(|pair| (pair[1] - pair[0]).abs());
    let change = changes.sum::<f64>() / (recent.len() - 1) as f64;
    let left = planned.saturating_sub(done) as f64;
    let optimistic = best + NOISE_FACTOR * change + slope(&skills[done / 2..]) * left;
    optimistic < bar
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Increase from one value to the next, from a line through them; 0 if they fall.
fn slope(values: &[f64]) -> f64 {
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let mean = mean(values);
    let (mut across, mut along) = (0.0, 0.0);
    for (x, y) in values.iter().enumerate() {
        across += (x as f64 - middle).powi(2);
        along += (x as f64 - middle) * (y - mean);
    }
    if across > 0.0 { (along / across).max(0.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skills(done: usize, skill: impl Fn(f64) -> f64) -> Vec<f64> {
        (1..=done).map(|block| skill(block as f64 / 200.0)).collect()
    }

    #[test]
    fn a_level_curve_cannot_catch_up() {
        assert!(cannot_reach(0.9, &skills(40, |_| 0.02), 200));
        assert!(!cannot_reach(0.9, &skills(20, |_| 0.02), 200), "too early");
        assert!(!cannot_reach(0.3, &skills(40, |_| 0.02), 200), "the attempt is weak");
    }

    #[test]
    fn a_rising_curve_can_catch_up() {
        assert!(!cannot_reach(0.9, &skills(60, |p| 1.0 * p), 200));
        assert!(cannot_reach(0.9, &skills(60, |p| 0.2 * p), 200));
    }

    #[test]
    fn a_swinging_curve_can_catch_up() {
        let swinging = |p: f64| if (200.0 * p) as u64 % 40 < 20 { 0.1 } else { 0.5 };
        assert!(!cannot_reach(0.9, &skills(80, swinging), 200));
    }

    #[test]
    fn a_curve_that_swings_below_zero_cannot_catch_up() {
        let wild = |p: f64| if (200.0 * p) as u64 % 40 < 20 { -40.0 } else { 0.02 };
        assert!(cannot_reach(0.9, &skills(80, wild), 200));
    }

    #[test]
    fn a_curve_of_nan_is_not_judged() {
        assert!(!cannot_reach(0.9, &skills(80, |_| f64::NAN), 200));
    }
}
