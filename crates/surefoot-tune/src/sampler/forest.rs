//! Random forest regression with a mean and a variance per leaf, for SMAC and for
//! [importances](crate::importance).
//!
//! The `randomforest` crate (0.2) splits in quadratic time, keeps one number per leaf, and draws from
//! `rand`'s standard generator, whose values may change between versions.

use super::draws::Draws;
use super::frame::{Axis, Row};
use surefoot_random::Key;

/// Fraction of the parameters considered for a split, as in SMAC.
const SHARE_OF_AXES: f64 = 5.0 / 6.0;

/// Size of a forest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth {
    /// Number of trees.
    pub(crate) trees: usize,
    /// Fewest rows in a leaf.
    pub(crate) leaf: usize,
}

/// A fitted forest.
pub(crate) struct Forest {
    trees: Vec<Tree>,
}

/// Prediction of a forest.
pub(super) struct Estimate {
    pub(super) mean: f64,
    pub(super) variance: f64,
}

impl Forest {
    /// Fits every tree to a bootstrap sample of the [`filled`] rows.
    pub(crate) fn fit(
        axes: &[Axis],
        rows: &[Row],
        costs: &[f64],
        growth: Growth,
        key: Key,
    ) -> Forest {
        let grow = |tree: usize| {
            let (mut picked, draws) = bootstrap(key, tree, rows.len());
            let mut grower =
                Grower { axes, rows, costs, leaf: growth.leaf, draws, nodes: Vec::new() };
            grower.grow(&mut picked);
            Tree { nodes: grower.nodes }
        };
        Forest { trees: (0..growth.trees).map(grow).collect() }
    }

    /// Mean over the trees, and the variance within and between them.
    pub(super) fn estimate(&self, row: &Row) -> Estimate {
        let n = self.trees.len() as f64;
        let leaves = || self.trees.iter().map(|tree| tree.leaf(row));
        let mean = leaves().map(|leaf| leaf.mean).sum::<f64>() / n;
        let variance = leaves().map(|leaf| leaf.variance + (leaf.mean - mean) * (leaf.mean - mean));
        Estimate { mean, variance: variance.sum::<f64>() / n }
    }
}

/// Rows that a tree is fitted to, and its further draws.
fn bootstrap(key: Key, tree: usize, rows: usize) -> (Vec<usize>, Draws) {
    let mut draws = Draws::new(key.sample(tree as u64));
    let picked = (0..rows).map(|_| draws.below(rows)).collect();
    (picked, draws)
}

/// A tree fitted to numbers, as a partition of space into boxes.
pub(crate) struct Boxes {
    pub(crate) leaves: Vec<LeafBox>,
    /// True for rows that the tree was fitted to.
    pub(crate) seen: Vec<bool>,
}

/// A box and the mean of the rows in it.
#[derive(Clone)]
pub(crate) struct LeafBox {
    pub(crate) low: Vec<f64>,
    pub(crate) high: Vec<f64>,
    pub(crate) mean: f64,
}

impl Forest {
    /// The trees of a forest that was fitted with this key to `rows` points of the unit cube.
    pub(crate) fn boxes(&self, dimensions: usize, rows: usize, key: Key) -> Vec<Boxes> {
        let boxes = self.trees.iter().enumerate().map(|(tree, nodes)| {
            let mut seen = vec![false; rows];
            bootstrap(key, tree, rows).0.into_iter().for_each(|row| seen[row] = true);
            let whole =
                LeafBox { low: vec![0.0; dimensions], high: vec![1.0; dimensions], mean: 0.0 };
            let mut leaves = Vec::new();
            nodes.split_boxes(0, whole, &mut leaves);
            Boxes { leaves, seen }
        });
        boxes.collect()
    }
}

/// Replaces missing coordinates: -1 for numbers, one past the last choice.
pub(super) fn filled(axes: &[Axis], row: &Row) -> Row {
    let coordinates = row.iter().zip(axes);
    let fill = |(&at, axis): (&f64, &Axis)| match *axis {
        _ if !at.is_nan() => at,
        Axis::Real | Axis::Whole => -1.0,
        Axis::Choice(n) => n as f64,
    };
    coordinates.map(fill).collect()
}

/// Nodes in pre-order.
struct Tree {
    nodes: Vec<Node>,
}

enum Node {
    Leaf(Leaf),
    Fork { split: Split, right: usize },
}

#[derive(Clone, Copy)]
struct Leaf {
    mean: f64,
    variance: f64,
}

/// Test at an inner node.
enum Split {
    /// Left up to a threshold.
    Number { axis: usize, up_to: f64 },
    /// Left for some of the choices.
    Choice { axis: usize, left: Vec<bool> },
}

impl Split {
    fn is_left(&self, row: &Row) -> bool {
        match self {
            Split::Number { axis, up_to } => row[*axis] <= *up_to,
            Split::Choice { axis, left } => left[row[*axis] as usize],
        }
    }
}

impl Tree {
    /// Divides a box along the splits below a node. Choices do not divide it.
    fn split_boxes(&self, at: usize, whole: LeafBox, leaves: &mut Vec<LeafBox>) {
        match &self.nodes[at] {
            Node::Leaf(leaf) => leaves.push(LeafBox { mean: leaf.mean, ..whole }),
            Node::Fork { split, right } => {
                let (mut below, mut above) = (whole.clone(), whole);
                if let Split::Number { axis, up_to } = split {
                    below.high[*axis] = *up_to;
                    above.low[*axis] = *up_to;
                }
                self.split_boxes(at + 1, below, leaves);
                self.split_boxes(*right, above, leaves);
            }
        }
    }

    fn leaf(&self, row: &Row) -> Leaf {
        let mut at = 0;
        loop {
            match &self.nodes[at] {
                Node::Leaf(leaf) => return *leaf,
                Node::Fork { split, right } => {
                    at = if split.is_left(row) { at + 1 } else { *right };
                }
            }
        }
    }
}

/// A tree under construction.
struct Grower<'a> {
    axes: &'a [Axis],
    rows: &'a [Row],
    costs: &'a [f64],
    leaf: usize,
    draws: Draws,
    nodes: Vec<Node>,
}

/// Reduction of the squared error by a split.
struct Gain {
    gain: f64,
    split: Split,
}

impl Grower<'_> {
    fn grow(&mut self, picked: &mut [usize]) {
        let leaf = self.summary(picked);
        let split = (leaf.variance > 0.0).then(|| self.best_split(picked)).flatten();
        let Some(split) = split else {
            self.nodes.push(Node::Leaf(leaf));
            return;
        };
        let middle = partition(picked, |&i| split.is_left(&self.rows[i]));
        let (left, right) = picked.split_at_mut(middle);
        let at = self.nodes.len();
        self.nodes.push(Node::Fork { split, right: 0 });
        self.grow(left);
        let next = self.nodes.len();
        if let Node::Fork { right, .. } = &mut self.nodes[at] {
            *right = next;
        }
        self.grow(right);
    }

    fn summary(&self, picked: &[usize]) -> Leaf {
        let n = picked.len() as f64;
        let mean = picked.iter().map(|&i| self.costs[i]).sum::<f64>() / n;
        let squares = picked.iter().map(|&i| (self.costs[i] - mean) * (self.costs[i] - mean));
        Leaf { mean, variance: squares.sum::<f64>() / n }
    }

    /// Best split over a random subset of the parameters.
    fn best_split(&mut self, picked: &[usize]) -> Option<Split> {
        let mut order: Vec<usize> = (0..self.axes.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, self.draws.below(i + 1));
        }
        let looked_at = libm::ceil(order.len() as f64 * SHARE_OF_AXES) as usize;
        let mut best: Option<Gain> = None;
        for (seen, &axis) in order.iter().enumerate() {
            // Consider more parameters until one can be split.
            if seen >= looked_at && best.is_some() {
                break;
            }
            let found = match self.axes[axis] {
                Axis::Choice(n) => self.split_choices(picked, axis, n),
                Axis::Real | Axis::Whole => self.split_numbers(picked, axis),
            };
            if let Some(found) = found
                && best.as_ref().is_none_or(|best| found.gain > best.gain)
            {
                best = Some(found);
            }
        }
        best.map(|best| best.split)
    }

    /// Best threshold for a number, drawn between two neighbors so that trees differ in gaps.
    fn split_numbers(&mut self, picked: &[usize], axis: usize) -> Option<Gain> {
        let mut pairs: Vec<(f64, f64)> =
            picked.iter().map(|&i| (self.rows[i][axis], self.costs[i])).collect();
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let parts = pairs.iter().map(|&(_, cost)| (cost, 1.0));
        let can_end = |i: usize| pairs[i].0 < pairs[i + 1].0;
        let (gain, last) = best_prefix(parts, self.leaf, can_end)?;
        let (low, high) = (pairs[last].0, pairs[last + 1].0);
        let up_to = low + self.draws.uniform() * (high - low);
        Some(Gain { gain, split: Split::Number { axis, up_to } })
    }

    /// Best partition of the choices: a prefix of them sorted by mean cost (Breiman et al.,
    /// *Classification and Regression Trees*, 1984).
    fn split_choices(&mut self, picked: &[usize], axis: usize, n: usize) -> Option<Gain> {
        // The last group is for missing values.
        let mut groups = vec![(0.0, 0.0); n + 1];
        for &i in picked {
            let group = &mut groups[self.rows[i][axis] as usize];
            group.0 += self.costs[i];
            group.1 += 1.0;
        }
        let mut seen: Vec<usize> = (0..=n).filter(|&c| groups[c].1 > 0.0).collect();
        let mean = |choice: usize| groups[choice].0 / groups[choice].1;
        seen.sort_by(|&a, &b| mean(a).total_cmp(&mean(b)).then(a.cmp(&b)));
        let parts = seen.iter().map(|&choice| groups[choice]);
        let (gain, last) = best_prefix(parts, self.leaf, |_| true)?;
        // Unseen choices go to a random side.
        let mut left: Vec<bool> = (0..=n).map(|_| self.draws.uniform() < 0.5).collect();
        for (i, &choice) in seen.iter().enumerate() {
            left[choice] = i <= last;
        }
        Some(Gain { gain, split: Split::Choice { axis, left } })
    }
}

/// Best cut of a sequence of groups (sum of costs, count) with at least `least` rows on both sides.
fn best_prefix(
    parts: impl Iterator<Item = (f64, f64)> + Clone,
    least: usize,
    can_end: impl Fn(usize) -> bool,
) -> Option<(f64, usize)> {
    let (total, count) =
        parts.clone().fold((0.0, 0.0), |(sum, n), part| (sum + part.0, n + part.1));
    let mut best = None;
    let (mut sum, mut n) = (0.0, 0.0);
    for (i, part) in parts.enumerate() {
        sum += part.0;
        n += part.1;
        if n < least as f64 {
            continue;
        }
        if count - n < least as f64 {
            break;
        }
        let rest = total - sum;
        let gain = sum * sum / n + rest * rest / (count - n);
        if can_end(i) && best.is_none_or(|(most, _)| gain > most) {
            best = Some((gain, i));
        }
    }
    best
}

/// Moves matching indices to the front and returns their number.
fn partition(picked: &mut [usize], fits: impl Fn(&usize) -> bool) -> usize {
    let (mut left, right): (Vec<usize>, Vec<usize>) = picked.iter().partition(|i| fits(i));
    let middle = left.len();
    left.extend(right);
    picked.copy_from_slice(&left);
    middle
}

#[cfg(test)]
mod tests {
    use super::*;
    use surefoot_random::Purpose;

    const GROWTH: Growth = Growth { trees: 20, leaf: 1 };

    fn key() -> Key {
        Key::new(5, Purpose::Sample)
    }

    #[test]
    fn steps_and_choices_are_learned() {
        let axes = [Axis::Real, Axis::Choice(3)];
        let key_of = |i: u64| key().epoch(i);
        let rows: Vec<Row> =
            (0..200).map(|i| vec![key_of(i).uniform(0), key_of(i).below(1, 3) as f64]).collect();
        let cost = |row: &Row| f64::from(row[0] > 0.5) + 2.0 * f64::from(row[1] == 1.0);
        let costs: Vec<f64> = rows.iter().map(cost).collect();
        let forest = Forest::fit(&axes, &rows, &costs, GROWTH, key());
        for row in [vec![0.2, 0.0], vec![0.8, 1.0], vec![0.1, 1.0], vec![0.9, 2.0]] {
            let estimate = forest.estimate(&row);
            assert!((estimate.mean - cost(&row)).abs() < 0.05, "{row:?}");
        }
    }

    #[test]
    fn trees_disagree_where_nothing_was_tried() {
        let rows: Vec<Row> = [0.0, 0.05, 0.1, 0.9, 0.95, 1.0].map(|x| vec![x]).to_vec();
        let costs = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0];
        let forest = Forest::fit(&[Axis::Real], &rows, &costs, GROWTH, key());
        let between = forest.estimate(&vec![0.5]).variance;
        assert!(between > 5.0 * forest.estimate(&vec![0.02]).variance);
    }

    #[test]
    fn missing_values_are_distinguished() {
        let axes = [Axis::Real];
        let row = |x: f64| filled(&axes, &vec![x]);
        let rows: Vec<Row> = (0..40)
            .map(|i| if i % 2 == 0 { row(f64::NAN) } else { row(f64::from(i) / 40.0) })
            .collect();
        let costs: Vec<f64> = (0..40).map(|i| f64::from(i % 2)).collect();
        let forest = Forest::fit(&axes, &rows, &costs, GROWTH, key());
        assert!(forest.estimate(&row(f64::NAN)).mean < 0.05);
        assert!(forest.estimate(&row(0.4)).mean > 0.9);
    }

    #[test]
    fn equal_costs_make_a_leaf() {
        let rows: Vec<Row> = (0..9).map(|i| vec![f64::from(i)]).collect();
        let forest = Forest::fit(&[Axis::Real], &rows, &[3.0; 9], GROWTH, key());
        let estimate = forest.estimate(&vec![4.0]);
        assert_eq!((estimate.mean, estimate.variance), (3.0, 0.0));
    }
}
