//! Keyed random choices.

use std::cell::Cell;
use surefoot_random::{Key, Purpose};

/// A sequence of draws from a key.
#[derive(Debug)]
pub(crate) struct Rng {
    key: Key,
    drawn: Cell<u64>,
}

impl Rng {
    /// The draws of case `number` in the zoo of `seed`.
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        Self { key: Key::new(seed, Purpose::Sample).sample(number), drawn: Cell::new(0) }
    }

    fn next(&self) -> u64 {
        let index = self.drawn.get();
        self.drawn.set(index + 1);
        index
    }

    /// Returns one of the elements.
    pub(crate) fn pick<T: Clone>(&self, of: &[T]) -> T {
        let index = self.key.below(self.next(), of.len() as u64);
        of[index as usize].clone()
    }

    /// Returns an integer from `low` to `high`, inclusive.
    pub(crate) fn between(&self, low: usize, high: usize) -> usize {
        low + self.key.below(self.next(), (high - low + 1) as u64) as usize
    }

    /// Returns a log-uniform number with two significant digits.
    pub(crate) fn log(&self, low: f64, high: f64) -> f64 {
        let u = self.key.uniform(self.next());
        let value = (low.ln() + u * (high / low).ln()).exp();
        let unit = 10_f64.powf(value.log10().floor() - 1.0);
        // Through text, so that a plan prints the same number.
        let rounded = (value / unit).round() * unit;
        format!("{rounded:.1e}").parse().unwrap_or(rounded)
    }

    /// Returns true with probability `p`.
    pub(crate) fn chance(&self, p: f64) -> bool {
        self.key.bernoulli(self.next(), p)
    }
}
