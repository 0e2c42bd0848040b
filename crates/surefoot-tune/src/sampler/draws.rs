//! Sequential draws from a key.

use surefoot_random::Key;

/// Counts the draws of a key.
pub(crate) struct Draws {
    key: Key,
    next: u64,
}

impl Draws {
    pub(crate) fn new(key: Key) -> Draws {
        Draws { key, next: 0 }
    }

    fn index(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Uniform in `[0, 1)`.
    pub(crate) fn uniform(&mut self) -> f64 {
        let index = self.index();
        self.key.uniform(index)
    }

    /// Standard normal.
    pub(crate) fn normal(&mut self) -> f64 {
        let index = self.index();
        self.key.normal(index)
    }

    /// Uniform below `n`, which must not be 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        let index = self.index();
        self.key.below(index, n as u64) as usize
    }

    /// Normal around a place from 0 to 1, truncated to [0, 1] by rejection. At least a third of the draws are
    /// accepted for deviations up to 1.
    pub(crate) fn truncated(&mut self, place: f64, deviation: f64) -> f64 {
        const ATTEMPTS: usize = 64;
        let drawn = (0..ATTEMPTS)
            .map(|_| place + deviation * self.normal())
            .find(|drawn| (0.0..=1.0).contains(drawn));
        drawn.unwrap_or_else(|| self.uniform())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use surefoot_random::Purpose;

    #[test]
    fn truncated_draws_stay_between_0_and_1() {
        let mut draws = Draws::new(Key::new(1, Purpose::Sample));
        for (place, deviation) in [(0.0, 1e-3), (1.0, 1.0), (0.3, 0.2), (0.5, 1e9)] {
            let drawn: Vec<f64> = (0..100).map(|_| draws.truncated(place, deviation)).collect();
            assert!(drawn.iter().all(|x| (0.0..=1.0).contains(x)), "{drawn:?}");
        }
    }
}
