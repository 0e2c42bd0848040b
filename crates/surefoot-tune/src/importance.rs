//! Importance of parameters.

use crate::direction::Direction;
use crate::imputation::{Finished, Imputation, is_cut_short, lowest};
use crate::sampler::forest::{Boxes, Forest, Growth, LeafBox};
use crate::sampler::frame::Axis;
use crate::storage::{FrozenTrial, TrialReport, TrialState};
use surefoot_random::{Key, Purpose};

const GROWTH: Growth = Growth { trees: 24, leaf: 3 };

/// Importance of each dimension for the values at some points.
#[derive(Clone, Debug, PartialEq)]
pub struct Importance {
    /// Fraction of the variance of unseen values that the forest explains; below 0 if it is worse than
    /// their mean.
    pub explained: f64,
    /// Fraction of the variance over the whole space that each dimension explains on its own.
    pub shares: Vec<f64>,
}

impl Importance {
    /// Functional ANOVA (Hutter, Hoos and Leyton-Brown, ICML 2014): a tree is constant on boxes, so its average
    /// over all other dimensions, and the variance of that average, are sums over its leaves. Coordinates are from
    /// 0 to 1. The same rows always give the same result.
    pub fn new(rows: &[Vec<f64>], values: &[f64]) -> Importance {
        let dimensions = rows.first().map_or(0, Vec::len);
        let key = Key::new(0, Purpose::Subset);
        let axes = vec![Axis::Real; dimensions];
        let forest = Forest::fit(&axes, rows, values, GROWTH, key);
        let trees = forest.boxes(dimensions, rows.len(), key);
        Importance {
            explained: explained(&trees, rows, values),
            shares: shares(&trees, dimensions),
        }
    }
}

/// Final costs of trials: measured, or imputed for pruned and paused ones; `None` for failed and running trials.
pub fn final_costs<'a>(
    direction: Direction,
    trials: impl Iterator<Item = (&'a FrozenTrial, &'a [TrialReport])> + Clone,
) -> Vec<Option<f64>> {
    let cost = |trial: &FrozenTrial| {
        let cost = direction.cost(trial.final_state()?.value()?);
        Some(cost).filter(|cost| cost.is_finite())
    };
    let costs_of = |reports: &[TrialReport]| {
        lowest(reports.iter().map(|report| direction.cost(report.value))).collect::<Vec<f64>>()
    };
    let finished = trials.clone().filter_map(|(trial, reports)| match trial.state {
        TrialState::Complete { .. } => {
            Some(Finished { lowest: costs_of(reports), cost: cost(trial)? })
        }
        _ => None,
    });
    let mut imputation = Imputation::new(finished.collect());
    let costs = trials.map(|(trial, reports)| {
        let is_cut_short = match &trial.state {
            TrialState::Pruned { reason, .. } => is_cut_short(reason),
            state => *state == TrialState::Paused,
        };
        if !is_cut_short {
            return cost(trial);
        }
        let lowest = costs_of(reports).pop().filter(|lowest| lowest.is_finite())?;
        Some(imputation.cost(lowest, reports.len()))
    });
    costs.collect()
}

fn shares(trees: &[Boxes], dimensions: usize) -> Vec<f64> {
    let mut own = vec![0.0; dimensions];
    let mut all = 0.0;
    for Boxes { leaves, .. } in trees {
        let mean: f64 = leaves.iter().map(|leaf| leaf.volume() * leaf.mean).sum();
        all += leaves.iter().map(|leaf| leaf.volume() * (leaf.mean - mean).powi(2)).sum::<f64>();
        for (dimension, own) in own.iter_mut().enumerate() {
            *own += variance_along(leaves, dimension, mean);
        }
    }
    own.into_iter().map(|own| if all > 0.0 { own / all } else { 0.0 }).collect()
}

impl LeafBox {
    fn has(&self, row: &[f64]) -> bool {
        let mut sides = self.low.iter().zip(&self.high).zip(row);
        // Splits are to the left up to and including the threshold.
        sides.all(|((low, high), place)| (low < place || *low <= 0.0) && place <= high)
    }

    fn volume(&self) -> f64 {
        self.low.iter().zip(&self.high).map(|(low, high)| high - low).product()
    }
}

/// Variance of a tree's average over all dimensions but one.
fn variance_along(leaves: &[LeafBox], dimension: usize, mean: f64) -> f64 {
    let mut ends: Vec<f64> = leaves.iter().map(|leaf| leaf.high[dimension]).collect();
    ends.push(0.0);
    ends.sort_by(f64::total_cmp);
    ends.dedup();
    let intervals = ends.windows(2).map(|ends| {
        let (from, to) = (ends[0], ends[1]);
        let there =
            leaves.iter().filter(|leaf| leaf.low[dimension] <= from && to <= leaf.high[dimension]);
        let average: f64 = there
            .map(|leaf| {
                let width = leaf.high[dimension] - leaf.low[dimension];
                leaf.volume() / width * leaf.mean
            })
            .sum();
        (to - from) * (average - mean).powi(2)
    });
    intervals.sum()
}

/// Explained fraction of the variance, with the mean prediction of the trees that have not seen a row.
fn explained(trees: &[Boxes], rows: &[Vec<f64>], values: &[f64]) -> f64 {
    let known = rows.iter().zip(values).enumerate().filter_map(|(index, (row, value))| {
        let unseen = trees.iter().filter(|tree| !tree.seen[index]);
        let means: Vec<f64> = unseen
            .filter_map(|tree| Some(tree.leaves.iter().find(|leaf| leaf.has(row))?.mean))
            .collect();
        (!means.is_empty()).then(|| (*value, means.iter().sum::<f64>() / means.len() as f64))
    });
    let known: Vec<(f64, f64)> = known.collect();
    let mean = known.iter().map(|(value, _)| value).sum::<f64>() / known.len().max(1) as f64;
    let all: f64 = known.iter().map(|(value, _)| (value - mean).powi(2)).sum();
    let missed: f64 = known.iter().map(|(value, predicted)| (value - predicted).powi(2)).sum();
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
    fn the_only_relevant_dimension_has_all_of_the_variance() {
        let rows = rows(300, 3);
        let values: Vec<f64> = rows.iter().map(|row| row[1]).collect();
        let Importance { explained, shares } = Importance::new(&rows, &values);
        assert!(shares[1] > 0.9, "{shares:?}");
        assert!(explained > 0.9, "{explained}");
    }

    #[test]
    fn additive_terms_have_the_shares_of_their_variances() {
        let rows = rows(800, 3);
        // Variances 4/12 and 1/12.
        let values: Vec<f64> = rows.iter().map(|row| 2.0 * row[0] + row[2]).collect();
        let shares = Importance::new(&rows, &values).shares;
        assert!((shares[0] - 0.8).abs() < 0.08, "{shares:?}");
        assert!((shares[2] - 0.2).abs() < 0.08, "{shares:?}");
        assert!(shares[1] < 0.03, "{shares:?}");
    }

    #[test]
    fn interactions_are_not_included() {
        let rows = rows(800, 2);
        let apart = |row: &Vec<f64>| f64::from((row[0] < 0.5) != (row[1] < 0.5));
        let values: Vec<f64> = rows.iter().map(apart).collect();
        assert!(Importance::new(&rows, &values).shares.iter().sum::<f64>() < 0.3);
    }

    #[test]
    fn noise_is_not_explained() {
        let rows = rows(300, 4);
        let noise = Key::new(8, Purpose::Noise);
        let values: Vec<f64> = (0..300).map(|i| noise.uniform(i)).collect();
        assert!(Importance::new(&rows, &values).explained < 0.1);
    }

    #[test]
    fn equal_values_have_no_importance() {
        let importance = Importance::new(&rows(20, 2), &[0.5; 20]);
        assert_eq!(importance, Importance { explained: 0.0, shares: vec![0.0, 0.0] });
    }
}
