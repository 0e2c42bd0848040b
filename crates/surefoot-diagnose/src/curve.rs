//! Learning curve of a run, averaged over blocks of steps.
//!
//! A run of a hundred steps and one of a million are both divided into about two hundred blocks. That
//! averages out the noise of single batches, bounds the state, and turns "a twentieth of the training"
//! into a number of blocks. With AutoTrainer's rules a block is an epoch. If the number of steps is
//! unknown, blocks start with ten steps and are merged in pairs whenever there are four hundred.

use crate::facts::Facts;
use crate::observation::{Evaluation, LayerInfo, LayerObservation, Observation};
use crate::thresholds::{Rules, Thresholds};
use std::cell::RefCell;
use std::collections::VecDeque;
use surefoot_stats::Summary;

/// Number of blocks of a training with at least that many steps.
pub(crate) const BLOCKS: u64 = 200;
/// Steps of a training whose length is unknown, for limits that are shares of the training.
const NOMINAL_STEPS: u64 = 10 * BLOCKS;
/// Update ratio of a step that destroys what the weights have learned.
pub(crate) const REPLACED: f64 = 0.3;
/// Number of recent blocks whose layers are kept at least.
pub(crate) const KEPT: usize = 8;

/// Learning curve of a run so far.
#[derive(Clone, Debug)]
pub struct Curve {
    block_steps: u64,
    blocks: Vec<Block>,
    layers: VecDeque<Vec<LayerBlock>>,
    /// Number of recent blocks whose layers are kept.
    kept: usize,
    open: Open,
    evaluations: Vec<Evaluation>,
    initial: InitialState,
    /// Largest median update ratio of any step, and that step.
    peak_update: (f64, u64),
    /// Highest learning rate so far, and the last.
    rate: Option<(f64, f64)>,
    /// The first finite loss.
    start: Option<f64>,
    has_negative_loss: bool,
    /// True if the number of steps is unknown.
    open_ended: bool,
    /// Observations so far.
    observed: u64,
    /// Best mean skills so far, by number of blocks.
    peaks: RefCell<Vec<Peak>>,
    /// Step of the last observation.
    step: u64,
    /// True if the last loss, or a weight after the last step, was NaN or infinite.
    is_broken: bool,
    /// True once an input was NaN or infinite.
    has_broken_input: bool,
}

/// Best mean skill of `window` consecutive blocks among the first `seen`.
#[derive(Clone, Copy, Debug)]
struct Peak {
    window: usize,
    seen: usize,
    best: Option<f64>,
}

/// Means over consecutive steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// First step.
    pub first: u64,
    /// Last step.
    pub last: u64,
    /// Mean loss; NaN if any loss is NaN.
    pub loss: f64,
    /// Standard deviation of the losses.
    pub loss_spread: f64,
    /// Mean metric.
    pub metric: Option<f64>,
    /// Mean share of the most predicted class.
    pub top_class_share: Option<f64>,
    /// Improvement over the best constant prediction: 0 is none, 1 is perfect. By the metric or by the
    /// loss, whichever is higher; if the facts allow neither, the relative decrease of the loss since
    /// the first block.
    pub skill: Option<f64>,
}

/// Means of a layer over the observed steps of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LayerBlock {
    /// L2 norm of the gradient.
    pub gradient: Option<f64>,
    /// Root mean square of the gradient.
    pub gradient_rms: Option<f64>,
    /// L2 norm of the weights.
    pub weight: Option<f64>,
    /// Largest absolute output.
    pub output: Option<f64>,
    /// Share of dead units.
    pub dead: Option<f64>,
    /// Relative change of the weights in a step.
    pub update_ratio: Option<f64>,
    /// Share of saturated outputs.
    pub saturated: Option<f64>,
}

/// Measurements of the first observed steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InitialState {
    /// Gain of each layer's weights after the first step: their root mean square times the square root
    /// of the inputs per unit. A gain of 1 preserves the scale of activations.
    pub gains: Vec<Option<f64>>,
    /// Largest root mean square of the input.
    pub input: Option<f64>,
}

/// The incomplete block.
#[derive(Clone, Debug, Default)]
struct Open {
    first: u64,
    steps: u64,
    loss: Mean,
    squares: f64,
    metric: Mean,
    top: Mean,
    layers: Vec<[Mean; 7]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    count: f64,
}

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.count += 1.0;
        }
    }

    fn get(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }
}

impl Curve {
    /// Creates the curve of a run that has not started.
    pub fn new(facts: &Facts, thresholds: &Thresholds) -> Curve {
        let epoch = facts.steps_per_epoch.filter(|_| thresholds.rules == Rules::AutoTrainer);
        let block = || block_steps(facts.total_steps().unwrap_or(NOMINAL_STEPS));
        Curve {
            block_steps: epoch.filter(|steps| *steps > 0).unwrap_or_else(block),
            blocks: Vec::new(),
            layers: VecDeque::with_capacity(KEPT),
            // The detectors look back at most twice as long as a symptom has to last.
            kept: thresholds.alpha.saturating_add(1).saturating_mul(2).max(KEPT),
            open: Open::default(),
            evaluations: Vec::new(),
            initial: InitialState::default(),
            peak_update: (0.0, 0),
            rate: None,
            start: None,
            has_negative_loss: false,
            open_ended: facts.total_steps().is_none_or(|total| total == 0),
            observed: 0,
            peaks: RefCell::default(),
            step: 0,
            is_broken: false,
            has_broken_input: facts.missing_inputs > 0,
        }
    }

    /// Adds a step; returns true if it completed a block.
    pub(crate) fn push(&mut self, seen: &Observation, facts: &Facts) -> bool {
        self.step = seen.step;
        self.observed += 1;
        let is_broken = |summary: &Summary| summary.nan + summary.inf > 0;
        self.has_broken_input |= seen.input.as_ref().is_some_and(is_broken);
        let mut weights = seen.layers.iter().filter_map(|layer| layer.weight.as_ref());
        self.is_broken = !seen.loss.is_finite() || weights.any(is_broken);
        if let Some(rate) = seen.learning_rate.filter(|rate| !rate.is_nan()) {
            let highest = self.rate.map_or(rate, |(highest, _)| highest.max(rate));
            self.rate = Some((highest, rate));
        }
        self.has_negative_loss |= seen.loss < 0.0;
        self.start = self.start.or(Some(seen.loss).filter(|loss| loss.is_finite()));
        if !seen.layers.is_empty() {
            self.push_layers(seen, facts);
        }
        let open = &mut self.open;
        if open.steps == 0 {
            open.first = seen.step;
        }
        open.steps += 1;
        open.loss.add(Some(seen.loss));
        open.squares += seen.loss * seen.loss;
        open.metric.add(seen.metric);
        open.top.add(seen.top_class_share);
        open.layers.resize(seen.layers.len().max(open.layers.len()), Default::default());
        for (means, layer) in open.layers.iter_mut().zip(&seen.layers) {
            let rms = |s: &Summary| s.l2 / (s.count.max(1) as f64).sqrt();
            let values = [
                layer.gradient.as_ref().map(|s| s.l2),
                layer.gradient.as_ref().map(rms),
                layer.weight.as_ref().map(|s| s.l2),
                layer.output.as_ref().map(|s| s.linf),
                layer.dead_units,
                layer.update_ratio,
                layer.saturated,
            ];
            for (mean, value) in means.iter_mut().zip(values) {
                mean.add(value);
            }
        }
        let full = open.steps >= self.block_steps;
        if full {
            self.close(facts);
        }
        full
    }

    fn push_layers(&mut self, seen: &Observation, facts: &Facts) {
        if self.initial.gains.is_empty() {
            let gain = |(layer, info): (&LayerObservation, &LayerInfo)| {
                let (weight, units) = (layer.weight.as_ref()?, info.units? as f64);
                Some(weight.l2 / units.max(1.0).sqrt())
            };
            self.initial.gains = seen.layers.iter().zip(&facts.layers).map(gain).collect();
        }
        if let Some(input) = &seen.input {
            let size = (input.mean * input.mean + input.variance).sqrt();
            let largest = self.initial.input.unwrap_or(0.0).max(size);
            self.initial.input = Some(largest);
        }
        let ratios = || seen.layers.iter().filter_map(|layer| layer.update_ratio);
        // Most steps are below the peak, and counting is cheaper than sorting.
        let peak = self.peak_update.0;
        let not_above = ratios().filter(|ratio| ratio.total_cmp(&peak).is_le());
        if 2 * not_above.count() < ratios().count()
            && let Some(middle) = median(ratios())
            && middle > peak
        {
            self.peak_update = (middle, seen.step);
        }
    }

    pub(crate) fn evaluate(&mut self, evaluation: &Evaluation) {
        self.evaluations.push(evaluation.clone());
    }

    fn close(&mut self, facts: &Facts) {
        let open = std::mem::take(&mut self.open);
        let loss = open.loss.get().unwrap_or(f64::NAN);
        let variance = open.squares / open.steps as f64 - loss * loss;
        let metric = open.metric.get();
        self.blocks.push(Block {
            first: open.first,
            last: self.step,
            loss,
            loss_spread: variance.max(0.0).sqrt(),
            metric,
            top_class_share: open.top.get(),
            skill: skill(facts, loss, metric).or_else(|| self.gain_since_start(loss)),
        });
        if open.layers.iter().any(|means| means.iter().any(|m| m.count > 0.0)) {
            if self.layers.len() >= self.kept {
                self.layers.pop_front();
            }
            let layers = open.layers.iter().map(|means| {
                let [gradient, gradient_rms, weight, output, dead, update_ratio, saturated] =
                    means.map(|mean| mean.get());
                LayerBlock { gradient, gradient_rms, weight, output, dead, update_ratio, saturated }
            });
            self.layers.push_back(layers.collect());
        }
        if self.open_ended && self.blocks.len() as u64 == 2 * BLOCKS {
            self.merge_blocks();
        }
    }

    /// Merges pairs of blocks, so that the curve of a run of unknown length stays bounded.
    fn merge_blocks(&mut self) {
        let both = |a: Option<f64>, b: Option<f64>| Some(0.5 * (a? + b?));
        let merge = |pair: &[Block]| {
            let (a, b) = (pair[0], pair[1]);
            let loss = 0.5 * (a.loss + b.loss);
            let square = |block: Block| block.loss_spread.powi(2) + block.loss.powi(2);
            Block {
                first: a.first,
                last: b.last,
                loss,
                loss_spread: (0.5 * (square(a) + square(b)) - loss * loss).max(0.0).sqrt(),
                metric: both(a.metric, b.metric),
                top_class_share: both(a.top_class_share, b.top_class_share),
                skill: both(a.skill, b.skill),
            }
        };
        self.blocks = self.blocks.chunks_exact(2).map(merge).collect();
        self.block_steps *= 2;
        self.peaks.get_mut().clear();
    }

    /// Relative decrease of the loss since the start: replaces the skill for runs of an unknown
    /// task, such as imported logs.
    fn gain_since_start(&self, loss: f64) -> Option<f64> {
        let first = self.first_loss().unwrap_or(loss);
        (first > 0.0 && !self.has_negative_loss).then(|| 1.0 - loss / first)
    }

    /// The step of the last observation.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Returns true if the last loss, or a weight after the last step, was NaN or infinite. All
    /// other measurements are then consequences.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Returns true if any input so far was NaN or infinite.
    pub fn has_broken_input(&self) -> bool {
        self.has_broken_input
    }

    /// Measurements of the first observed steps.
    pub fn initial(&self) -> &InitialState {
        &self.initial
    }

    /// Largest update ratio of any step (median over the layers), and that step.
    pub fn peak_update(&self) -> (f64, u64) {
        self.peak_update
    }

    /// Loss of the first step.
    pub fn start_loss(&self) -> Option<f64> {
        self.start
    }

    /// Returns true if any loss was negative, as those of policies are: such losses are not compared.
    pub fn has_negative_loss(&self) -> bool {
        self.has_negative_loss
    }

    /// Loss of the first block. Where a step of that block replaced the weights, the loss of the first
    /// step if that is lower.
    pub fn first_loss(&self) -> Option<f64> {
        let first = self.blocks.first()?;
        let (peak, at) = self.peak_update;
        let start = self.start.filter(|_| peak >= REPLACED && at <= first.last);
        Some(start.map_or(first.loss, |start| first.loss.min(start)))
    }

    /// Last learning rate, if known.
    pub fn learning_rate(&self) -> Option<f64> {
        self.rate.map(|(_, last)| last)
    }

    /// Last learning rate as a fraction of the highest so far; 1 if unknown.
    pub fn learning_rate_fraction(&self) -> f64 {
        match self.rate {
            Some((highest, last)) if highest > 0.0 => last / highest,
            _ => 1.0,
        }
    }

    /// Update ratio in the last block (median over the layers).
    pub fn update_ratio(&self) -> Option<f64> {
        median(self.last_layers()?.iter().filter_map(|layer| layer.update_ratio))
    }

    /// Steps per block.
    pub fn block_steps(&self) -> u64 {
        self.block_steps
    }

    /// Complete blocks.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Layers in the most recent blocks in which they were observed, newest last.
    pub fn layers(&self) -> impl DoubleEndedIterator<Item = &[LayerBlock]> + ExactSizeIterator {
        self.layers.iter().map(Vec::as_slice)
    }

    /// Layers in the last block in which they were observed.
    pub fn last_layers(&self) -> Option<&[LayerBlock]> {
        self.layers.back().map(Vec::as_slice)
    }

    /// Evaluations, in order.
    pub fn evaluations(&self) -> &[Evaluation] {
        &self.evaluations
    }

    /// The last `n` blocks, or all if there are fewer.
    pub fn recent(&self, n: usize) -> &[Block] {
        &self.blocks[self.blocks.len().saturating_sub(n)..]
    }

    /// Mean skill of the last `n` blocks; `None` if there are fewer, or if one has no skill.
    pub fn recent_skill(&self, n: usize) -> Option<f64> {
        let recent = self.recent(n);
        if recent.len() < n {
            return None;
        }
        mean(recent.iter().map(|block| block.skill))
    }

    /// Best mean skill of any `n` consecutive blocks.
    pub fn best_skill(&self, n: usize) -> Option<f64> {
        // Called by every detector for every block, so only new blocks are visited.
        let mut peaks = self.peaks.borrow_mut();
        let known = match peaks.iter().position(|peak| peak.window == n) {
            Some(known) => known,
            None => {
                peaks.push(Peak { window: n, seen: 0, best: None });
                peaks.len() - 1
            }
        };
        let peak = &mut peaks[known];
        let from = (peak.seen + 1).saturating_sub(n);
        let new = self.blocks[from.min(self.blocks.len())..].windows(n);
        for skill in new.filter_map(|window| mean(window.iter().map(|block| block.skill))) {
            peak.best = Some(peak.best.map_or(skill, |best| best.max(skill)));
        }
        peak.seen = self.blocks.len();
        peak.best
    }

    /// Mean losses of the last `n` blocks and of the `n` before; `None` if there are fewer.
    pub fn recent_losses(&self, n: usize) -> Option<(f64, f64)> {
        let recent = self.recent(2 * n);
        let loss = |blocks: &[Block]| mean(blocks.iter().map(|block| Some(block.loss)));
        (recent.len() == 2 * n).then(|| Some((loss(&recent[n..])?, loss(&recent[..n])?)))?
    }

    /// Returns true if the loss of the last quarter is clearly below that of the first.
    pub fn is_falling(&self) -> bool {
        /// Ratio of recent to initial loss below which the loss is falling.
        const FALLING: f64 = 0.85;
        let quarter = (self.blocks.len() / 4).max(1).min(self.blocks.len());
        let mean = |part: &[Block]| part.iter().map(|b| b.loss).sum::<f64>() / part.len() as f64;
        let first = mean(&self.blocks[..quarter]);
        let last = mean(&self.blocks[self.blocks.len() - quarter..]);
        last < FALLING * first
    }

    /// Completed share of the planned steps; `None` if their number is unknown.
    pub fn progress(&self, facts: &Facts) -> Option<f64> {
        let total = facts.total_steps().filter(|total| *total > 0)?;
        Some(self.step as f64 / total as f64)
    }

    /// Completed share of the planned steps, or of 2,000 observations if their number is unknown.
    ///
    /// For limits such as "not in the first 5% of the training", which make sense for any run. May
    /// exceed 1 without a known number of steps.
    pub fn elapsed(&self, facts: &Facts) -> f64 {
        self.progress(facts).unwrap_or(self.observed as f64 / NOMINAL_STEPS as f64)
    }
}

/// Steps per block in a training of `total` steps.
pub fn block_steps(total: u64) -> u64 {
    (total / BLOCKS).max(1)
}

/// The median; the lower of two.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied()
}

/// Mean of the values; `None` if any is missing.
pub(crate) fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        sum += value?;
        count += 1.0;
    }
    (count > 0.0).then(|| sum / count)
}

/// Improvement over the best constant prediction.
pub(crate) fn skill(facts: &Facts, loss: f64, metric: Option<f64>) -> Option<f64> {
    let by_metric = match (metric, facts.chance) {
        (Some(metric), Some(chance)) if chance < 1.0 => Some((metric - chance) / (1.0 - chance)),
        _ => None,
    };
    let by_loss = match facts.baseline_loss {
        Some(baseline) if baseline > 0.0 => Some(1.0 - loss / baseline),
        _ => None,
    };
    match (by_metric, by_loss) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(facts: &Facts) -> Curve {
        Curve::new(facts, &Thresholds::default())
    }

    fn step(step: u64, loss: f64) -> Observation {
        Observation::new(step, loss).with_metric(0.75).with_learning_rate(0.1)
    }

    #[test]
    fn a_long_training_has_two_hundred_blocks() {
        let facts = Facts {
            steps_per_epoch: Some(100),
            epochs: Some(10),
            chance: Some(0.5),
            ..Facts::default()
        };
        let mut curve = curve(&facts);
        for i in 1..=1000 {
            curve.push(&step(i, i as f64), &facts);
        }
        assert_eq!(curve.blocks().len(), 200);
        let first = curve.blocks()[0];
        assert_eq!((first.first, first.last, first.loss), (1, 5, 3.0));
        assert!((first.loss_spread - 2.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(curve.recent_skill(3), Some(0.5));
        assert_eq!(curve.progress(&facts), Some(1.0));
    }

    #[test]
    fn a_block_of_autotrainers_rules_is_an_epoch() {
        let facts = Facts { steps_per_epoch: Some(30), epochs: Some(4), ..Facts::default() };
        let mut curve = Curve::new(&facts, &Thresholds::autotrainer());
        for i in 1..=120 {
            curve.push(&step(i, 1.0), &facts);
        }
        let ends: Vec<u64> = curve.blocks().iter().map(|block| block.last).collect();
        assert_eq!(ends, [30, 60, 90, 120]);
    }

    #[test]
    fn the_best_skill_does_not_depend_on_earlier_calls() {
        let facts = Facts {
            steps_per_epoch: Some(100),
            epochs: Some(1),
            baseline_loss: Some(1.0),
            ..Facts::default()
        };
        let (mut often, mut once) = (curve(&facts), curve(&facts));
        for i in 1..=100 {
            let seen = Observation { metric: None, ..step(i, 0.5 + 0.5 * (0.3 * i as f64).sin()) };
            often.push(&seen, &facts);
            once.push(&seen, &facts);
            if i % 3 == 0 {
                often.best_skill(4);
            }
        }
        let windows = once.blocks().windows(4);
        let naive = windows
            .filter_map(|window| mean(window.iter().map(|block| block.skill)))
            .reduce(f64::max);
        assert_eq!(often.best_skill(4), naive);
        assert_eq!(once.best_skill(4), naive);
        assert_eq!(once.best_skill(101), None);
    }

    #[test]
    fn without_facts_the_skill_is_the_decrease_of_the_loss() {
        let facts = Facts::default();
        let mut curve = curve(&facts);
        for i in 1..=20 {
            curve.push(&step(i, if i <= 10 { 4.0 } else { 1.0 }), &facts);
        }
        let skills: Vec<_> = curve.blocks().iter().map(|block| block.skill).collect();
        assert_eq!(skills, [Some(0.0), Some(0.75)]);
    }

    #[test]
    fn skill_is_measured_from_the_best_constant_prediction() {
        let facts = Facts { chance: Some(0.9), baseline_loss: Some(2.0), ..Facts::default() };
        assert_eq!(skill(&facts, 2.0, Some(0.9)), Some(0.0));
        assert_eq!(skill(&facts, 1.0, Some(0.0)), Some(0.5));
        assert_eq!(skill(&Facts::default(), 1.0, Some(1.0)), None);
    }

    #[test]
    fn a_run_of_unknown_length_has_a_bounded_number_of_blocks() {
        let facts = Facts::default();
        let mut curve = curve(&facts);
        for i in 1..=100_000 {
            curve.push(&step(i, 1.0), &facts);
        }
        assert!((200..400).contains(&curve.blocks().len()), "{}", curve.blocks().len());
        assert!(curve.blocks().windows(2).all(|pair| pair[0].last + 1 == pair[1].first));
        assert_eq!(curve.progress(&facts), None);
        assert_eq!(curve.elapsed(&facts), 50.0);
    }

    #[test]
    fn an_unknown_learning_rate_has_not_decayed() {
        let facts = Facts::default();
        let mut curve = curve(&facts);
        curve.push(&Observation::new(1, 1.0), &facts);
        assert_eq!(curve.learning_rate_fraction(), 1.0);
        curve.push(&step(2, 1.0).with_learning_rate(0.5), &facts);
        curve.push(&step(3, 1.0).with_learning_rate(0.125), &facts);
        assert_eq!(curve.learning_rate_fraction(), 0.25);
    }
}
