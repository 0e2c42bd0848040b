//! Interpretations of the symbols of a program.
//!
//! Values are numbers, and every operation is a hash of its symbol and its operands: different
//! computations give different values, except for collisions.

use crate::calculus::syntax::{Reduction, Symbol};

/// Meaning of all symbols, determined by a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interpretation(pub(super) u64);

/// Exclusive upper limit of iterations and elements.
const MOST: u64 = 8;

/// Mixes a number into a hash (the finalizer of SplitMix64).
pub(super) fn mix(hash: u64, number: u64) -> u64 {
    let mut z = (hash ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Hashes a sequence of numbers.
pub(super) fn hash(numbers: impl IntoIterator<Item = u64>) -> u64 {
    numbers.into_iter().fold(0, mix)
}

/// Operation, hashed with its operands.
#[derive(Clone, Copy)]
enum Operation {
    Constant,
    Apply,
    Amount,
    Seed,
    Draw,
    Next,
    Fold,
    Keyed,
    Condition,
    Collect,
}

impl Interpretation {
    fn make(self, operation: Operation, which: u32, operands: &[u64]) -> u64 {
        let head = [self.0, operation as u64, u64::from(which)];
        hash(head.into_iter().chain(operands.iter().copied()))
    }

    pub(super) fn constant(self, symbol: Symbol) -> u64 {
        self.make(Operation::Constant, symbol.0, &[])
    }

    pub(super) fn apply(self, function: Symbol, operands: &[u64]) -> u64 {
        self.make(Operation::Apply, function.0, operands)
    }

    /// Adds an amount, determined by the other operands, to the first.
    pub(super) fn count(self, operands: &[u64]) -> u64 {
        match operands {
            [] => 0,
            [number] => number.wrapping_add(1),
            [number, amount @ ..] => {
                number.wrapping_add(1 + self.make(Operation::Amount, 0, amount) % 7)
            }
        }
    }

    pub(super) fn seed(self, operands: &[u64]) -> u64 {
        self.make(Operation::Seed, 0, operands)
    }

    /// Value of the numbered draw. The first operand is the generator.
    pub(super) fn draw(self, statement: u32, operands: &[u64]) -> u64 {
        self.make(Operation::Draw, statement, operands)
    }

    /// Generator after the numbered draw.
    pub(super) fn next(self, statement: u32, generator: u64) -> u64 {
        self.make(Operation::Next, statement, &[generator])
    }

    pub(super) fn fold(self, operands: &[u64]) -> u64 {
        self.make(Operation::Fold, 0, operands)
    }

    pub(super) fn keyed(self, operands: &[u64]) -> u64 {
        self.make(Operation::Keyed, 0, operands)
    }

    pub(super) fn condition(self, condition: Symbol, operands: &[u64]) -> bool {
        self.make(Operation::Condition, condition.0, operands) & 1 == 1
    }

    /// Number of iterations for a value.
    pub(super) fn bound(self, value: u64) -> u64 {
        value % MOST
    }

    /// Combines the results of the numbered map: in the given order, or first within each worker.
    pub(super) fn collect(
        self,
        map: u32,
        reduction: Reduction,
        results: &[u64],
        worker: impl Fn(u64) -> u64,
        workers: u64,
    ) -> u64 {
        let combined = |results: &[u64]| self.make(Operation::Collect, map, results);
        match reduction {
            Reduction::Tree | Reduction::Unordered => combined(results),
            Reduction::Ring => {
                let partial = |rank: u64| {
                    let of_rank = (0..).zip(results).filter(|(j, _)| worker(*j) == rank);
                    combined(&of_rank.map(|(_, result)| *result).collect::<Vec<_>>())
                };
                combined(&(0..workers).map(partial).collect::<Vec<_>>())
            }
        }
    }
}
