//! Permutations: a keyed shuffle of `0..n` that can be read at any position.

use rand_philox::splitmix64;

use crate::draw::below;
use crate::key::Key;
use crate::philox::Stream;

/// A shuffle of `0..n`, a pure function of a key and `n`.
///
/// Any position can be read on its own and read backwards, so a worker finds its share of an epoch
/// without the shares of the others, and a resumed run needs to save nothing but the position.
///
/// A position that is not in `0..n` is left where it is. This makes every permutation, those of
/// no element and of one included, a bijection of all of `u64`.
///
/// # Method
///
/// Up to [`TABLE`](Permutation::TABLE) elements are shuffled into a table by Fisher and Yates's
/// method, so that all orders are equally likely. More are not tabled but computed: the numbers
/// are laid out in a rectangle of ⌈√n⌉ rows and as few columns as will do, and eight Feistel rounds
/// shift row and column in turn by a keyed hash of the other (the generalized Feistel cipher of
/// Black and Rogaway, *Ciphers with Arbitrary Finite Domains*, CT-RSA 2002). A number that falls
/// into the unused corner of the rectangle, smaller than a row or a column, goes round again until
/// it is out.
#[derive(Clone, Debug)]
pub struct Permutation {
    n: u64,
    method: Method,
}

#[derive(Clone, Debug)]
enum Method {
    /// Image of each position.
    Table(Box<[u8]>),
    Feistel(Feistel),
}

impl Permutation {
    /// The largest `n` for which the permutation is held in a table, of one byte an element.
    pub const TABLE: u64 = 256;

    /// The permutation of `0..n` that belongs to a key.
    #[must_use]
    pub fn new(key: Key, n: u64) -> Permutation {
        let stream = key.stream();
        let method = if n <= Permutation::TABLE {
            Method::Table(shuffled_table(stream, n))
        } else {
            Method::Feistel(Feistel::new(stream, n))
        };
        Permutation { n, method }
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.n
    }

    /// Returns true if there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The element at a position.
    #[must_use]
    pub fn get(&self, position: u64) -> u64 {
        if position >= self.n {
            return position;
        }
        match &self.method {
            Method::Table(table) => u64::from(table[position as usize]),
            Method::Feistel(feistel) => walk(position, self.n, |x| feistel.forward(x)),
        }
    }

    /// The position of an element.
    #[must_use]
    pub fn inverse(&self, element: u64) -> u64 {
        if element >= self.n {
            return element;
        }
        match &self.method {
            Method::Table(table) => (0..)
                .zip(table)
                .find(|&(_, &it)| u64::from(it) == element)
                .map_or(element, |(position, _)| position),
            Method::Feistel(feistel) => walk(element, self.n, |x| feistel.backward(x)),
        }
    }

    /// The elements in their order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u64> + Clone + '_ {
        (0..self.n).map(|position| self.get(position))
    }
}

/// `k` of the numbers in `0..n` without replacement, in random order: the first `k` of the key's
/// [`Permutation`]. All `n` when `k` is larger.
///
/// ```
/// use surefoot_random::{Key, Purpose, choose};
///
/// let key = Key::new(42, Purpose::Subset);
/// let few: Vec<u64> = choose(key, 1_000_000, 3).collect();
/// let more: Vec<u64> = choose(key, 1_000_000, 5).collect();
/// assert_eq!(few, more[..3]);
/// ```
pub fn choose(key: Key, n: u64, k: u64) -> impl Iterator<Item = u64> {
    let permutation = Permutation::new(key, n);
    (0..k.min(n)).map(move |position| permutation.get(position))
}

/// A table of `0..n` in random order, for `n` up to 256.
fn shuffled_table(stream: Stream, n: u64) -> Box<[u8]> {
    let mut table: Box<[u8]> = (0..n).map(|element| element as u8).collect();
    for last in (1..n).rev() {
        table.swap(last as usize, below(stream, last, last + 1) as usize);
    }
    table
}

/// Applies a bijection of a larger set until the result is below `n`.
///
/// This terminates: repeating a bijection returns to the start, and `x` is below `n`.
#[inline]
fn walk(mut x: u64, n: u64, step: impl Fn(u64) -> u64) -> u64 {
    loop {
        x = step(x);
        if x < n {
            return x;
        }
    }
}

/// A bijection of the numbers below rows × columns.
#[derive(Clone, Debug)]
struct Feistel {
    rows: u64,
    columns: u64,
    /// A key for each shift of a row, with one for the shift of a column that follows.
    rounds: [[u64; 2]; 4],
}

impl Feistel {
    /// For at least `n` numbers, where `n` is not 0. Neither side is above 2³².
    fn new(stream: Stream, n: u64) -> Feistel {
        let rows = (n - 1).isqrt() + 1;
        let columns = n.div_ceil(rows);
        let rounds = [0, 1, 2, 3].map(|round| {
            let [a, b, c, d] = stream.block(round).map(u64::from);
            [a | b << 32, c | d << 32]
        });
        Feistel { rows, columns, rounds }
    }

    #[inline]
    fn forward(&self, x: u64) -> u64 {
        let (mut row, mut column) = (x / self.columns, x % self.columns);
        for [a, b] in self.rounds {
            row = add(row, shift(a, column, self.rows), self.rows);
            column = add(column, shift(b, row, self.columns), self.columns);
        }
        row * self.columns + column
    }

    #[inline]
    fn backward(&self, x: u64) -> u64 {
        let (mut row, mut column) = (x / self.columns, x % self.columns);
        for [a, b] in self.rounds.into_iter().rev() {
            column = subtract(column, shift(b, row, self.columns), self.columns);
            row = subtract(row, shift(a, column, self.rows), self.rows);
        }
        row * self.columns + column
    }
}

/// A keyed hash of a number, below a limit that is at most 2³²; the bias is below 2⁻³².
#[inline]
fn shift(key: u64, number: u64, limit: u64) -> u64 {
    let hash = splitmix64(key ^ number);
    ((u128::from(hash) * u128::from(limit)) >> 64) as u64
}

/// The sum modulo a limit of two numbers below it.
#[inline]
fn add(a: u64, b: u64, limit: u64) -> u64 {
    let sum = a + b;
    if sum < limit { sum } else { sum - limit }
}

/// The difference modulo a limit of two numbers below it.
#[inline]
fn subtract(a: u64, b: u64, limit: u64) -> u64 {
    if a >= b { a - b } else { a + limit - b }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::key::Purpose;

    fn key(seed: u64) -> Key {
        Key::new(seed, Purpose::Shuffle)
    }

    fn is_bijection(n: u64, images: impl Iterator<Item = u64>) -> bool {
        let mut seen = vec![false; n as usize];
        let fresh = images
            .map(|x| seen.get_mut(x as usize).is_some_and(|it| !std::mem::replace(it, true)))
            .filter(|&fresh| fresh)
            .count();
        fresh as u64 == n
    }

    #[test]
    fn every_small_permutation_is_a_bijection() {
        for n in 0..=300 {
            let permutation = Permutation::new(key(n), n);
            assert!(is_bijection(n, permutation.iter()), "n = {n}");
            assert_eq!(permutation.len(), n);
            assert_eq!(permutation.is_empty(), n == 0);
        }
    }

    #[test]
    fn large_permutations_are_bijections() {
        for n in [65_535, 65_536, 65_537, 99_991, 1_000_000] {
            assert!(is_bijection(n, Permutation::new(key(7), n).iter()), "n = {n}");
        }
    }

    /// Small rectangles, which `Permutation` would not use, have the strangest proportions.
    #[test]
    fn feistel_networks_are_bijections_of_their_rectangle() {
        for n in 1..=300 {
            let feistel = Feistel::new(key(n).stream(), n);
            let size = feistel.rows * feistel.columns;
            assert!(size >= n && size - n < feistel.rows, "n = {n}");
            assert!(is_bijection(size, (0..size).map(|x| feistel.forward(x))));
            assert!((0..size).all(|x| feistel.backward(feistel.forward(x)) == x));
        }
    }

    #[test]
    fn positions_outside_stay_where_they_are() {
        for n in [0, 1, 5, 1000] {
            let permutation = Permutation::new(key(1), n);
            for x in [n, n + 1, u64::MAX] {
                assert_eq!((permutation.get(x), permutation.inverse(x)), (x, x));
            }
        }
    }

    #[test]
    fn one_element_has_one_order() {
        let permutation = Permutation::new(key(1), 1);
        assert_eq!((permutation.get(0), permutation.inverse(0)), (0, 0));
    }

    #[test]
    fn the_largest_permutation_round_trips() {
        let permutation = Permutation::new(key(1), u64::MAX);
        for x in [0, 1, 1 << 32, u64::MAX / 2, u64::MAX - 1] {
            let image = permutation.get(x);
            assert!(image < u64::MAX);
            assert_eq!(permutation.inverse(image), x);
        }
    }

    proptest! {
        #[test]
        fn the_inverse_undoes(seed: u64, n in prop_oneof![1u64..=600, 1u64..=1 << 48], at: u64) {
            let permutation = Permutation::new(key(seed), n);
            let position = at % n;
            let element = permutation.get(position);
            prop_assert!(element < n);
            prop_assert_eq!(permutation.inverse(element), position);
        }

        #[test]
        fn chosen_numbers_are_distinct_and_in_range(
            seed: u64,
            n in prop_oneof![0u64..=40, 1u64..=1 << 48],
            k in 0u64..60,
        ) {
            let mut chosen: Vec<u64> = choose(key(seed), n, k).collect();
            prop_assert_eq!(chosen.len() as u64, k.min(n));
            prop_assert!(chosen.iter().all(|&x| x < n));
            chosen.sort_unstable();
            chosen.dedup();
            prop_assert_eq!(chosen.len() as u64, k.min(n));
        }
    }
}
