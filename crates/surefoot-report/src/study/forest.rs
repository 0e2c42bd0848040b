//! A small random forest, and what each of its dimensions explains on its own.
//!
//! The share of a dimension is that of functional ANOVA (Hutter, Hoos and Leyton-Brown, ICML 2014):
//! a tree is constant on boxes, so that its average over all other dimensions, and the variance of
//! that average, are sums over its leaves. The same rows always give the same forest.

use surefoot_random::{Key, Purpose};

const TREES: u64 = 24;
const DEPTH: usize = 7;
/// A leaf has at least so many rows.
const LEAF: usize = 3;

/// Trees grown on samples of rows whose places go from 0 to 1 in each dimension.
#[derive(Debug)]
pub(super) struct Forest {
    dimensions: usize,
    trees: Vec<Vec<Leaf>>,
    explained: f64,
}

/// A box and the mean of the rows in it.
#[derive(Clone, Debug)]
struct Leaf {
    low: Vec<f64>,
    high: Vec<f64>,
    value: f64,
}

impl Forest {
    /// Grows a forest. All rows have the same number of places.
    pub(super) fn grow(rows: &[Vec<f64>], values: &[f64]) -> Forest {
        let dimensions = rows.first().map_or(0, Vec::len);
        let count = rows.len();
        let mut trees = Vec::new();
        // What the trees that have not seen a row say of it: sum and number.
        let mut unseen = vec![(0.0, 0.0); count];
        for tree in 0..TREES {
            let key = Key::new(tree, Purpose::Subset);
            let drawn = (0..count as u64).map(|i| key.below(i, count as u64) as usize);
            let mut drawn: Vec<usize> = drawn.collect();
            let mut seen = vec![false; count];
            drawn.iter().for_each(|row| seen[*row] = true);
            let mut growth = Growth {
                rows,
                values,
                key: Key::new(tree, Purpose::Sample),
                draws: 0,
                leaves: Vec::new(),
            };
            let whole = (vec![0.0; dimensions], vec![1.0; dimensions]);
            growth.split(&mut drawn, whole, 0);
            for row in (0..count).filter(|row| !seen[*row]) {
                let leaf = growth.leaves.iter().find(|leaf| leaf.has(&rows[row]));
                if let Some(leaf) = leaf {
                    unseen[row] = (unseen[row].0 + leaf.value, unseen[row].1 + 1.0);
                }
            }
            trees.push(growth.leaves);
        }
        Forest { dimensions, trees, explained: explained(values, &unseen) }
    }

    /// The share of the variance of rows that it explains by trees that have not seen them; below
    /// zero if it does worse than their mean.
    pub(super) fn explained(&self) -> f64 {
        self.explained
    }

    /// The share of its variance over the whole space that each dimension explains on its own.
    pub(super) fn shares(&self) -> Vec<f64> {
        let mut own = vec![0.0; self.dimensions];
        let mut all = 0.0;
        for leaves in &self.trees {
            let mean: f64 = leaves.iter().map(|leaf| leaf.volume() * leaf.value).sum();
            let parts = leaves.iter();
            all += parts.map(|leaf| leaf.volume() * (leaf.value - mean).powi(2)).sum::<f64>();
            for (dimension, own) in own.iter_mut().enumerate() {
                *own += variance_along(leaves, dimension, mean);
            }
        }
        let share = |own: f64| if all > 0.0 { own / all } else { 0.0 };
        own.into_iter().map(share).collect()
    }
}

impl Leaf {
    fn has(&self, row: &[f64]) -> bool {
        let sides = self.low.iter().zip(&self.high).zip(row);
        sides.into_iter().all(|((low, high), place)| {
            // The last box of a dimension has its upper end.
            low <= place && (place < high || *high >= 1.0)
        })
    }

    fn volume(&self) -> f64 {
        self.low.iter().zip(&self.high).map(|(l, h)| h - l).product()
    }
}

/// The variance of a tree's average over all dimensions but one.
fn variance_along(leaves: &[Leaf], dimension: usize, mean: f64) -> f64 {
    let mut ends: Vec<f64> = leaves.iter().map(|leaf| leaf.high[dimension]).collect();
    ends.push(0.0);
    ends.sort_by(f64::total_cmp);
    ends.dedup();
    let stretches = ends.windows(2).map(|ends| {
        let (from, to) = (ends[0], ends[1]);
        let there =
            leaves.iter().filter(|leaf| leaf.low[dimension] <= from && to <= leaf.high[dimension]);
        let average: f64 = there
            .map(|leaf| {
                let width = leaf.high[dimension] - leaf.low[dimension];
                leaf.volume() / width * leaf.value
            })
            .sum();
        (to - from) * (average - mean).powi(2)
    });
    stretches.sum()
}

/// A tree that grows.
struct Growth<'a> {
    rows: &'a [Vec<f64>],
    values: &'a [f64],
    key: Key,
    draws: u64,
    leaves: Vec<Leaf>,
}

impl Growth<'_> {
    fn split(&mut self, drawn: &mut [usize], (low, high): (Vec<f64>, Vec<f64>), depth: usize) {
        let cut = match depth < DEPTH && drawn.len() >= 2 * LEAF {
            true => self.best_cut(drawn),
            false => None,
        };
        let Some((dimension, at)) = cut else {
            let sum: f64 = drawn.iter().map(|row| self.values[*row]).sum();
            let value = sum / drawn.len().max(1) as f64;
            self.leaves.push(Leaf { low, high, value });
            return;
        };
        drawn.sort_by(|a, b| self.rows[*a][dimension].total_cmp(&self.rows[*b][dimension]));
        let middle = drawn.partition_point(|row| self.rows[*row][dimension] < at);
        let (mut below_high, mut above_low) = (high.clone(), low.clone());
        below_high[dimension] = at;
        above_low[dimension] = at;
        let (below, above) = drawn.split_at_mut(middle);
        self.split(below, (low, below_high), depth + 1);
        self.split(above, (above_low, high), depth + 1);
    }

    /// Where to cut so that both sides differ most, among the dimensions that this cut may use.
    fn best_cut(&mut self, drawn: &[usize]) -> Option<(usize, f64)> {
        let total: f64 = drawn.iter().map(|row| self.values[*row]).sum();
        let count = drawn.len() as f64;
        let mut best: Option<(f64, usize, f64)> = None;
        for dimension in 0..self.rows[drawn[0]].len() {
            self.draws += 1;
            // Trees that may use all dimensions at every cut would be much the same.
            if self.key.uniform(self.draws) > 5.0 / 6.0 {
                continue;
            }
            let mut pairs: Vec<(f64, f64)> =
                drawn.iter().map(|row| (self.rows[*row][dimension], self.values[*row])).collect();
            pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut sum = 0.0;
            for (i, pair) in pairs.windows(2).enumerate() {
                sum += pair[0].1;
                let below = (i + 1) as f64;
                let enough = i + 1 >= LEAF && pairs.len() - i > LEAF;
                if !enough || pair[0].0 == pair[1].0 {
                    continue;
                }
                // What the squares of the means of both sides gain over that of all.
                let rest = total - sum;
                let gain =
                    sum * sum / below + rest * rest / (count - below) - total * total / count;
                if gain > 1e-12 && best.is_none_or(|(most, _, _)| gain > most) {
                    best = Some((gain, dimension, (pair[0].0 + pair[1].0) / 2.0));
                }
            }
        }
        best.map(|(_, dimension, at)| (dimension, at))
    }
}

fn explained(values: &[f64], unseen: &[(f64, f64)]) -> f64 {
    let known: Vec<(f64, f64)> = values
        .iter()
        .zip(unseen)
        .filter(|(_, (_, trees))| *trees > 0.0)
        .map(|(value, (sum, trees))| (*value, sum / trees))
        .collect();
    let mean = known.iter().map(|(value, _)| value).sum::<f64>() / known.len().max(1) as f64;
    let all: f64 = known.iter().map(|(value, _)| (value - mean).powi(2)).sum();
    let missed: f64 = known.iter().map(|(v, said)| (v - said).powi(2)).sum();
    if all > 0.0 { 1.0 - missed / all } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(count: u64, dimensions: u64) -> Vec<Vec<f64>> {
        let key = Key::new(7, Purpose::Generate);
        let row = |i: u64| (0..dimensions).map(|j| key.sample(i).uniform(j)).collect();
        (0..count).map(row).collect()
    }

    #[test]
    fn a_dimension_that_decides_all_has_all_of_the_variance() {
        let rows = rows(300, 3);
        let values: Vec<f64> = rows.iter().map(|row| row[1]).collect();
        let forest = Forest::grow(&rows, &values);
        let shares = forest.shares();
        assert!(shares[1] > 0.9, "{shares:?}");
        assert!(forest.explained() > 0.9);
    }

    #[test]
    fn additive_parts_have_the_shares_of_their_variances() {
        let rows = rows(800, 3);
        // Variances 4/12 and 1/12.
        let values: Vec<f64> = rows.iter().map(|row| 2.0 * row[0] + row[2]).collect();
        let shares = Forest::grow(&rows, &values).shares();
        assert!((shares[0] - 0.8).abs() < 0.08, "{shares:?}");
        assert!((shares[2] - 0.2).abs() < 0.08, "{shares:?}");
        assert!(shares[1] < 0.03, "{shares:?}");
    }

    #[test]
    fn what_acts_only_together_is_in_no_share() {
        let rows = rows(800, 2);
        let apart = |row: &Vec<f64>| f64::from((row[0] < 0.5) != (row[1] < 0.5));
        let values: Vec<f64> = rows.iter().map(apart).collect();
        let forest = Forest::grow(&rows, &values);
        assert!(forest.shares().iter().sum::<f64>() < 0.3);
    }

    #[test]
    fn noise_is_not_explained() {
        let rows = rows(300, 4);
        let noise = Key::new(8, Purpose::Noise);
        let values: Vec<f64> = (0..300).map(|i| noise.uniform(i)).collect();
        assert!(Forest::grow(&rows, &values).explained() < 0.1);
    }

    #[test]
    fn the_same_rows_give_the_same_forest() {
        let rows = rows(100, 3);
        let values: Vec<f64> = rows.iter().map(|row| row[0] * row[1]).collect();
        let shares = || Forest::grow(&rows, &values).shares();
        assert_eq!(shares(), shares());
    }

    #[test]
    fn values_that_are_all_the_same_explain_nothing() {
        let rows = rows(20, 2);
        let forest = Forest::grow(&rows, &[0.5; 20]);
        assert_eq!(forest.shares(), [0.0, 0.0]);
        assert_eq!(forest.explained(), 0.0);
    }
}
