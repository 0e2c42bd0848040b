//! The course of a run so far, in blocks: what every detector looks at.
//!
//! A run of a hundred steps and one of a million are looked at the same way: in some two hundred
//! blocks, each the mean of its steps. That takes the noise of single batches out, keeps the state
//! small, and makes "for a twentieth of the training" a number of blocks.

use crate::facts::Facts;
use crate::observation::{Evaluation, LayerInfo, LayerObservation, Observation};
use std::cell::RefCell;
use std::collections::VecDeque;

/// Into how many blocks a training is cut, if it has that many steps.
const BLOCKS: u64 = 200;
/// Of how many recent blocks the layers are kept.
pub(crate) const KEPT: usize = 8;

/// The course of a run so far.
#[derive(Clone, Debug)]
pub struct Curve {
    block_steps: u64,
    blocks: Vec<Block>,
    layers: VecDeque<Vec<LayerBlock>>,
    open: Open,
    evaluations: Vec<Evaluation>,
    opening: Opening,
    /// The largest middle update ratio of any step, and that step.
    peak_update: (f64, u64),
    /// The highest learning rate so far, and the last.
    rate: (f64, f64),
    /// The best means of skills so far, for each number of blocks that was asked for.
    peaks: RefCell<Vec<Peak>>,
    /// The step of the last observation.
    step: u64,
}

/// The best mean skill of so many consecutive blocks, among the first `seen`.
#[derive(Clone, Copy, Debug)]
struct Peak {
    window: usize,
    seen: usize,
    best: Option<f64>,
}

/// Some consecutive steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// The first step.
    pub first: u64,
    /// The last step.
    pub last: u64,
    /// The mean loss; NaN if one of them was.
    pub loss: f64,
    /// The standard deviation of the losses of its steps.
    pub loss_spread: f64,
    /// The mean metric of its batches.
    pub metric: Option<f64>,
    /// The mean share of the most predicted class.
    pub top_class_share: Option<f64>,
    /// How much better than a prediction that does not look at the input: 0 is no better, 1 is
    /// perfect. By the metric or by the loss, whichever is better; where neither can be judged, how
    /// far the loss has come down since the first block.
    pub skill: Option<f64>,
}

/// What was seen of a layer in a block: means over the steps at which it was observed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LayerBlock {
    /// The L2 norm of the gradient.
    pub gradient: Option<f64>,
    /// The root mean square of the gradient.
    pub gradient_rms: Option<f64>,
    /// The L2 norm of the weights.
    pub weight: Option<f64>,
    /// The largest output in size.
    pub output: Option<f64>,
    /// The share of dead units.
    pub dead: Option<f64>,
    /// How far a step moved the weights.
    pub update_ratio: Option<f64>,
    /// The share of saturated outputs.
    pub saturated: Option<f64>,
}

/// What the first steps of a run looked like: how it was set up shows before it has learned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Opening {
    /// For each layer the gain of its weights after the first step: their root mean square times
    /// the root of how many of them a unit sums over. About 1 keeps the size of what goes through.
    pub gains: Vec<Option<f64>>,
    /// The root mean square of the input.
    pub input: Option<f64>,
}

/// The block that is being filled.
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
    /// The course of a run that has not begun.
    pub fn new(facts: &Facts) -> Curve {
        Curve {
            block_steps: block_steps(facts.total_steps().unwrap_or(10 * BLOCKS)),
            blocks: Vec::new(),
            layers: VecDeque::with_capacity(KEPT),
            open: Open::default(),
            evaluations: Vec::new(),
            opening: Opening::default(),
            peak_update: (0.0, 0),
            rate: (0.0, 0.0),
            peaks: RefCell::default(),
            step: 0,
        }
    }

    /// Adds a step; says whether it completed a block.
    pub(crate) fn push(&mut self, seen: &Observation, facts: &Facts) -> bool {
        self.step = seen.step;
        self.rate = (self.rate.0.max(seen.learning_rate), seen.learning_rate);
        if !seen.layers.is_empty() {
            self.look_at_layers(seen, facts);
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
            let rms = |s: &crate::Summary| s.l2 / (s.count.max(1) as f64).sqrt();
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

    fn look_at_layers(&mut self, seen: &Observation, facts: &Facts) {
        if self.opening.gains.is_empty() {
            let gain = |(layer, info): (&LayerObservation, &LayerInfo)| {
                let (weight, units) = (layer.weight.as_ref()?, info.units? as f64);
                Some(weight.l2 / units.max(1.0).sqrt())
            };
            self.opening.gains = seen.layers.iter().zip(&facts.layers).map(gain).collect();
        }
        if let Some(input) = &seen.input {
            let size = (input.mean * input.mean + input.variance).sqrt();
            let largest = self.opening.input.unwrap_or(0.0).max(size);
            self.opening.input = Some(largest);
        }
        let ratios = || seen.layers.iter().filter_map(|layer| layer.update_ratio);
        // Most steps are below the peak: counting tells, and needs no sorting.
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
            if self.layers.len() == KEPT {
                self.layers.pop_front();
            }
            let layers = open.layers.iter().map(|means| {
                let [gradient, gradient_rms, weight, output, dead, update_ratio, saturated] =
                    means.map(|mean| mean.get());
                LayerBlock { gradient, gradient_rms, weight, output, dead, update_ratio, saturated }
            });
            self.layers.push_back(layers.collect());
        }
    }

    /// How far the loss has come down from where it began: what stands in for the skill where nothing
    /// is known of the task, as in the logs of others.
    fn gain_since_start(&self, loss: f64) -> Option<f64> {
        let first = self.blocks.first().map_or(loss, |block| block.loss);
        (first > 0.0).then(|| 1.0 - loss / first)
    }

    /// The step of the last observation.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// What the first steps looked like.
    pub fn opening(&self) -> &Opening {
        &self.opening
    }

    /// The largest update ratio of any step, that of the middle layer, and the step it was at.
    pub fn peak_update(&self) -> (f64, u64) {
        self.peak_update
    }

    /// The learning rate as a share of the highest so far.
    pub fn learning_rate_fraction(&self) -> f64 {
        if self.rate.0 > 0.0 { self.rate.1 / self.rate.0 } else { 1.0 }
    }

    /// The update ratio of the middle layer in the last block.
    pub fn update_ratio(&self) -> Option<f64> {
        median(self.last_layers()?.iter().filter_map(|layer| layer.update_ratio))
    }

    /// How many steps a block has.
    pub fn block_steps(&self) -> u64 {
        self.block_steps
    }

    /// The blocks that are complete.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The layers in the most recent blocks in which they were observed, the newest last.
    pub fn layers(&self) -> impl DoubleEndedIterator<Item = &[LayerBlock]> + ExactSizeIterator {
        self.layers.iter().map(Vec::as_slice)
    }

    /// The layers in the last block in which they were observed.
    pub fn last_layers(&self) -> Option<&[LayerBlock]> {
        self.layers.back().map(Vec::as_slice)
    }

    /// What was evaluated, in order.
    pub fn evaluations(&self) -> &[Evaluation] {
        &self.evaluations
    }

    /// The last `n` blocks, or all there are.
    pub fn recent(&self, n: usize) -> &[Block] {
        &self.blocks[self.blocks.len().saturating_sub(n)..]
    }

    /// The mean skill of the last `n` blocks; `None` before there are so many, or if one has none.
    pub fn recent_skill(&self, n: usize) -> Option<f64> {
        let recent = self.recent(n);
        if recent.len() < n {
            return None;
        }
        mean(recent.iter().map(|block| block.skill))
    }

    /// The best mean skill of any `n` consecutive blocks.
    pub fn best_skill(&self, n: usize) -> Option<f64> {
        // Every detector asks at every block, so only what is new is looked at.
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

    /// The mean loss of the last `n` blocks and that of the `n` before; `None` before there are so
    /// many.
    pub fn recent_losses(&self, n: usize) -> Option<(f64, f64)> {
        let recent = self.recent(2 * n);
        let loss = |blocks: &[Block]| mean(blocks.iter().map(|block| Some(block.loss)));
        (recent.len() == 2 * n).then(|| Some((loss(&recent[n..])?, loss(&recent[..n])?)))?
    }

    /// The share of the planned steps that are done; by blocks where the plan is not known.
    pub fn progress(&self, facts: &Facts) -> f64 {
        match facts.total_steps() {
            Some(total) if total > 0 => self.step as f64 / total as f64,
            _ => self.blocks.len() as f64 / BLOCKS as f64,
        }
    }
}

/// How many steps a block of a training of `total` steps has.
pub fn block_steps(total: u64) -> u64 {
    (total / BLOCKS).max(1)
}

/// The middle one; the lower of two.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied()
}

/// The mean of values that are all there.
pub(crate) fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        sum += value?;
        count += 1.0;
    }
    (count > 0.0).then(|| sum / count)
}

/// How much better than a prediction that does not look at the input.
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

    fn step(step: u64, loss: f64) -> Observation {
        Observation {
            step,
            epoch: 1,
            loss,
            metric: Some(0.75),
            mae: None,
            learning_rate: 0.1,
            top_class_share: None,
            layers: Vec::new(),
            input: None,
        }
    }

    #[test]
    fn a_long_training_is_cut_into_two_hundred_blocks() {
        let facts = Facts {
            steps_per_epoch: Some(100),
            epochs: Some(10),
            chance: Some(0.5),
            ..Facts::default()
        };
        let mut curve = Curve::new(&facts);
        for i in 1..=1000 {
            curve.push(&step(i, i as f64), &facts);
        }
        assert_eq!(curve.blocks().len(), 200);
        let first = curve.blocks()[0];
        assert_eq!((first.first, first.last, first.loss), (1, 5, 3.0));
        assert!((first.loss_spread - 2.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(curve.recent_skill(3), Some(0.5));
        assert_eq!(curve.progress(&facts), 1.0);
    }

    #[test]
    fn the_best_skill_is_the_same_however_often_it_is_asked_for() {
        let facts = Facts {
            steps_per_epoch: Some(100),
            epochs: Some(1),
            baseline_loss: Some(1.0),
            ..Facts::default()
        };
        let (mut often, mut once) = (Curve::new(&facts), Curve::new(&facts));
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
    fn where_nothing_is_known_the_loss_is_measured_by_its_beginning() {
        let facts = Facts::default();
        let mut curve = Curve::new(&facts);
        for i in 1..=20 {
            curve.push(&step(i, if i <= 10 { 4.0 } else { 1.0 }), &facts);
        }
        let skills: Vec<_> = curve.blocks().iter().map(|block| block.skill).collect();
        assert_eq!(skills, [Some(0.0), Some(0.75)]);
    }

    #[test]
    fn skill_is_measured_from_the_best_blind_prediction() {
        let facts = Facts { chance: Some(0.9), baseline_loss: Some(2.0), ..Facts::default() };
        assert_eq!(skill(&facts, 2.0, Some(0.9)), Some(0.0));
        assert_eq!(skill(&facts, 1.0, Some(0.0)), Some(0.5));
        assert_eq!(skill(&Facts::default(), 1.0, Some(1.0)), None);
    }
}
