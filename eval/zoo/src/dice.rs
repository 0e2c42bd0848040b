//! Choices from a seed.

use std::cell::Cell;
use surefoot_random::{Key, Purpose};

/// Draws one choice after the other from a key.
#[derive(Debug)]
pub(crate) struct Dice {
    key: Key,
    drawn: Cell<u64>,
}

impl Dice {
    /// The dice of case `number` of the zoo of `seed`.
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        Self { key: Key::new(seed, Purpose::Sample).sample(number), drawn: Cell::new(0) }
    }

    fn next(&self) -> u64 {
        let index = self.drawn.get();
        self.drawn.set(index + 1);
        index
    }

    /// One of them.
    pub(crate) fn pick<T: Clone>(&self, of: &[T]) -> T {
        let index = self.key.below(self.next(), of.len() as u64);
        of[index as usize].clone()
    }

    /// A whole number from `low` to `high`, both included.
    pub(crate) fn between(&self, low: usize, high: usize) -> usize {
        low + self.key.below(self.next(), (high - low + 1) as u64) as usize
    }

    /// A number between, evenly spread on a logarithmic scale, with two digits.
    pub(crate) fn log(&self, low: f64, high: f64) -> f64 {
        let u = self.key.uniform(self.next());
        let value = (low.ln() + u * (high / low).ln()).exp();
        let unit = 10_f64.powf(value.log10().floor() - 1.0);
        // By way of text, so that a plan prints the number as it is.
        let rounded = (value / unit).round() * unit;
        format!("{rounded:.1e}").parse().unwrap_or(rounded)
    }

    /// Whether it happens.
    pub(crate) fn chance(&self, p: f64) -> bool {
        self.key.bernoulli(self.next(), p)
    }
}
