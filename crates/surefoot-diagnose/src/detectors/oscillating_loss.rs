//! Oscillating loss.

use super::conditions;
use super::shape::{self, Shape};
use crate::curve::{Block, REPLACED};
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;
use crate::observation::{Evaluation, Split};

/// The loss goes up and down in large swings for a long time instead of down.
///
/// AutoTrainer: of all iterations, a share of at least η = 20% ends a swing between a local maximum
/// and the next minimum of the accuracy that is at least ζ = 0.03 high.
///
/// Changed:
/// - The swings are of the skill, so that a loss serves where there is no accuracy.
/// - A batch is a sample, and its accuracy swings by chance alone: a swing counts only if it is also
///   three times what that chance explains.
/// - Swings count only while the run does not get better, and only if its steps are large enough to
///   cause them: otherwise a noisy loss is that of a small batch and not a problem.
/// - Steps that change the weights by a large part of their size destroy what they contain. A run that
///   had such steps and has learned nothing counts as oscillating, even if its loss is level since.
/// - With batches of a few samples, smaller steps are enough, if the loss is level since.
/// - Also counted are a run that had learned and became worse again, if only in the end, one whose loss
///   settles above that of the best constant prediction, and one that normalizes over batches of a few
///   samples, which is noise.
/// - Without a known best constant prediction, there may be little to learn. Then large steps count only
///   if the loss has also jumped at the start of the run or stopped falling.
/// - In a log, the best constant prediction is unknown. There the loss has to swing by a large part
///   of its first value, time and again, and to end hardly below that, or to alternate between two
///   levels to the end.
#[derive(Clone, Copy, Debug, Default)]
pub struct OscillatingLoss;

/// Smallest relative update that makes a run oscillate by itself.
const LIVELY: f64 = 0.02;
/// Smallest relative update that can have destroyed the weights.
const MOVING: f64 = 1e-4;
/// Multiple of the loss of random guessing above which a run must not stay.
const WORSE_THAN_GUESS: f64 = 1.05;
/// Number of blocks that a state has to last, with the default α.
const LASTING: usize = 10;
/// Swing relative to the first loss that is large where there is no baseline.
const LARGE_SWING: f64 = 0.3;
/// Distance of the two levels of a loss that alternates, relative to their mean.
const ALTERNATION: f64 = 0.2;
/// Number of blocks without a new lowest loss after which a loss has stopped falling, and the number
/// that losses are averaged over.
const STAGNATION: (usize, usize) = (20, 5);
/// Loss of a few blocks relative to the lowest of the first ones that is a jump, and their number.
const JUMP: f64 = 1.3;
const JUMP_BLOCKS: usize = 3;
/// Batch size below which losses differ by that much.
const SMALL_BATCH: usize = 8;
/// Smallest number of large swings.
const SWINGS: usize = 3;
/// Share of the missing metric that a sound run gains.
const GAINED: f64 = 0.2;
/// Last loss relative to the first above which swings prevent learning.
const NOT_LEARNED: f64 = 0.7;

impl Detector for OscillatingLoss {
    fn problem(&self) -> Problem {
        Problem::OSCILLATING_LOSS
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Loss]
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        let curve = context.curve;
        let begun = context.has_run_for(conditions::share_of(context, LASTING));
        if context.warming_up() || !begun || curve.blocks().len() < LASTING {
            return None;
        }
        if !context.facts.has_baseline() && conditions::largest_update(context).is_none()
            || conditions::has_plain_cause(context)
        {
            return None;
        }
        let (message, since) = self.symptom(context)?;
        Some(
            Finding::new(self.problem(), context.step(), message)
                .since(since)
                .with(Measure::SwingShare, swinging_share(context), context.thresholds.eta)
                .with_known(
                    Measure::LargestUpdateRatio,
                    conditions::largest_update(context),
                    conditions::DESTRUCTIVE,
                )
                .with_known(Measure::BatchSize, batch_size(context), None)
                .with_skill(context),
        )
    }

    /// A relapse in the last epochs is too short for the course to show it.
    fn finish(&mut self, context: &Context<'_>) -> Option<Finding> {
        if !context.facts.has_baseline() {
            return self.swings(context);
        }
        let of_validation = |evaluation: &&Evaluation| evaluation.split == Split::Validation;
        let evaluations = || context.curve.evaluations().iter().filter(of_validation);
        let last = evaluations().next_back()?;
        let skill = skill_of(last, context)?;
        let best = evaluations()
            .filter_map(|evaluation| Some((skill_of(evaluation, context)?, evaluation)))
            .reduce(|a, b| if b.0 > a.0 { b } else { a })?;
        let lost = best.0 - skill;
        if lost < conditions::RELAPSE || conditions::has_plain_cause(context) {
            return None;
        }
        Some(
            Finding::new(
                self.problem(),
                context.step(),
                format!(
                    "The run had learned by epoch {} and lost {:.0}% of that by the end.",
                    best.1.epoch,
                    100.0 * lost / best.0.max(lost)
                ),
            )
            .since(best.1.step)
            .with(Measure::SkillLost, lost, conditions::RELAPSE)
            .with_known(
                Measure::LargestUpdateRatio,
                conditions::largest_update(context),
                conditions::DESTRUCTIVE,
            )
            .with_known(Measure::BatchSize, batch_size(context), None)
            .with(Measure::Skill, skill, None),
        )
    }
}

fn batch_size(context: &Context<'_>) -> Option<f64> {
    context.facts.batch_size.map(|size| size as f64)
}

/// The skill of an evaluation.
fn skill_of(evaluation: &Evaluation, context: &Context<'_>) -> Option<f64> {
    crate::curve::skill(context.facts, evaluation.loss, evaluation.metric)
}

impl OscillatingLoss {
    /// Finds a loss that swings from start to end without falling.
    fn swings(self, context: &Context<'_>) -> Option<Finding> {
        let losses = shape::losses(context);
        // Swings are shares of the first loss, so it has to be one.
        let is_positive = |loss: &Shape| loss.lowest > 0.0 && loss.first > 0.0;
        let has_scale = !context.curve.has_negative_loss();
        let loss = Shape::of(&losses).filter(|loss| has_scale && is_positive(loss))?;
        let large = LARGE_SWING * loss.first;
        let turns = turns(&losses);
        let swings = turns.windows(2).filter(|pair| (pair[1] - pair[0]).abs() >= large).count();
        let share = swings as f64 / losses.len() as f64;
        let quarter = losses.len().div_ceil(4);
        let recent = losses[losses.len() - quarter..].iter().sum::<f64>() / quarter as f64;
        let swings_on = swings >= SWINGS
            && share >= context.thresholds.eta
            && recent >= NOT_LEARNED * loss.first;
        let alternates = alternates(&losses, loss.first)
            || alternates_within(context.curve.blocks(), loss.first);
        if !(swings_on || alternates) || shape::metric_has_gained(context, GAINED) {
            return None;
        }
        let (recent, first) = (crate::number::rough(recent), crate::number::rough(loss.first));
        let message = match !alternates {
            true => format!(
                "The loss swung {swings} times by more than {}, and is {recent} in the end after it \
                 started at {first}.",
                crate::number::rough(large),
            ),
            false => format!(
                "The loss alternates between two levels and is {recent} in the mean of the last \
                 quarter after it started at {first}."
            ),
        };
        Some(Finding::new(self.problem(), context.step(), message).since(1).with(
            Measure::SwingShare,
            share,
            context.thresholds.eta,
        ))
    }

    /// Message and first step of the problem, if there is one.
    fn symptom(self, context: &Context<'_>) -> Option<(String, u64)> {
        let curve = context.curve;
        let (peak, at) = curve.peak_update();
        let behind = conditions::is_behind(context);
        let start = curve.blocks().first()?.first;
        if conditions::normalizes_tiny_batches(context) && behind {
            let count = context.facts.batch_size?;
            let message = format!("Batch normalization over {count} samples mostly adds noise.");
            return Some((message, start));
        }
        let has_baseline = context.facts.has_baseline();
        if conditions::was_destroyed_by_a_step(context)
            && conditions::has_learned_nothing(context)
            && (has_baseline || has_jumped(context) || (peak >= REPLACED && stagnates(context)))
        {
            let message = format!(
                "A step changed the weights by {:.0}% of their size: the loss jumps \
                 instead of falling.",
                100.0 * peak
            );
            return Some((message, at));
        }
        // Weights that change too much explain a relapse; without them it has to last to be one.
        let short = context.thresholds.lasting(LASTING);
        let lasting = if conditions::was_destroyed_by_a_step(context) {
            short
        } else {
            context.thresholds.lasting(conditions::LASTING)
        };
        if conditions::has_relapsed(context, lasting) {
            let (recent, best) = (curve.recent_skill(lasting)?, curve.best_skill(lasting)?);
            let message = format!(
                "The run had learned and has lost {:.0}% of that again.",
                100.0 * (best - recent) / best.max(best - recent)
            );
            return Some((message, curve.recent(lasting).first()?.first));
        }
        let (loss, before) = curve.recent_losses(2 * short)?;
        let is_torn = has_baseline || has_jumped(context);
        let is_stuck = is_torn && behind && loss > 0.9 * before;
        if conditions::was_destroyed_by_a_step(context) && is_stuck {
            let message = format!(
                "A step changed the weights by {:.0}% of their size, and the run is stuck with \
                 little learned.",
                100.0 * peak
            );
            return Some((message, at));
        }
        let guess = WORSE_THAN_GUESS * context.facts.baseline_loss.unwrap_or(f64::INFINITY);
        let moves = curve.update_ratio().is_none_or(|ratio| ratio >= MOVING);
        // A sure classifier that errs at times has a high loss and a skill all the same.
        let unskilled = curve.recent_skill(2 * short)? < context.thresholds.low_skill();
        if loss > guess && before > guess && loss > 0.9 * before && moves && unskilled {
            let message = format!(
                "The loss stays at {}, above the {} of random guessing.",
                crate::number::rough(loss),
                crate::number::rough(guess / WORSE_THAN_GUESS)
            );
            return Some((message, start));
        }
        let share = swinging_share(context);
        let lively = curve.update_ratio().is_none_or(|ratio| ratio >= LIVELY);
        let swings = share >= context.thresholds.eta && lively && behind && loss > 0.95 * before;
        swings.then(|| {
            let message = format!(
                "For {:.0}% of the time the loss swung by more than chance explains, without falling.",
                100.0 * share
            );
            (message, start)
        })
    }
}

/// Returns true if the loss of a few blocks in a row was far above the first ones. Losses of tiny
/// batches do that by chance.
fn has_jumped(context: &Context<'_>) -> bool {
    let losses = shape::losses(context);
    let Some((first, rest)) = losses.split_at_checked(JUMP_BLOCKS) else { return false };
    let start = first.iter().copied().fold(f64::INFINITY, f64::min);
    let mut means = rest.windows(JUMP_BLOCKS).map(|part| part.iter().sum::<f64>());
    context.facts.batch_size.is_none_or(|size| size >= SMALL_BATCH)
        && start > 0.0
        && means.any(|sum| sum > JUMP * start * JUMP_BLOCKS as f64)
}

/// Returns true if the mean loss of a few blocks has not reached a new low for a while.
fn stagnates(context: &Context<'_>) -> bool {
    let (patience, window) = STAGNATION;
    let losses = shape::losses(context);
    let means = losses.windows(window).map(|part| part.iter().sum::<f64>() / window as f64);
    let lowest = means.enumerate().reduce(|low, new| if new.1 < low.1 { new } else { low });
    lowest.is_some_and(|(at, _)| at + window + patience <= losses.len())
}

/// The share of blocks that end a large swing of the skill.
fn swinging_share(context: &Context<'_>) -> f64 {
    let blocks = context.curve.blocks();
    // By the loss where that can be: an accuracy jumps when a boundary moves by a hair.
    let by_loss = |loss: f64| Some(1.0 - loss / context.facts.baseline_loss?);
    let skills: Vec<f64> =
        blocks.iter().filter_map(|block| by_loss(block.loss).or(block.skill)).collect();
    if skills.len() < 3 {
        return 0.0;
    }
    // What a batch's accuracy varies by chance is at most that of a coin.
    let steps = (blocks[0].last - blocks[0].first + 1) as f64;
    let samples = context.facts.batch_size.unwrap_or(1) as f64 * steps;
    let chance = context.facts.chance.unwrap_or(0.5);
    let noise = 0.5 / samples.sqrt() / (1.0 - chance).max(0.1);
    let large = (3.0 * noise).max(context.thresholds.zeta);
    let turns = turns(&skills);
    let swings = turns.windows(2).filter(|pair| (pair[1] - pair[0]).abs() >= large);
    swings.count() as f64 / skills.len() as f64
}

/// Returns true if the loss alternates between two levels to the end and has not fallen far: in the
/// second half, every other value is above all of the rest, by a large part of their mean.
///
/// Noise does not do that: that the even ones of ten values exceed all odd ones, or the reverse,
/// happens once in 126 times. Six values are enough if the levels are twice as far apart as the values
/// of a level.
fn alternates(losses: &[f64], first: f64) -> bool {
    const LEAST: usize = 10;
    const LEAST_CLEAR: usize = 6;
    let from = |least: usize| (losses.len() / 2).min(losses.len().saturating_sub(least));
    let two_levels = |recent: &[f64], clear: bool| alternate(recent, first, clear);
    losses.len() >= LEAST
        && (two_levels(&losses[from(LEAST)..], false)
            || two_levels(&losses[from(LEAST_CLEAR)..], true))
}

/// Returns true if the loss alternates inside blocks of a few values: in the second half, the spread
/// of every block is the same large part of its mean, which that of noise is not.
fn alternates_within(blocks: &[Block], first: f64) -> bool {
    const MOST: u64 = 4;
    const EVEN: f64 = 0.6;
    let recent = &blocks[blocks.len() / 2..];
    let few = |block: &Block| (2..=MOST).contains(&(block.last + 1 - block.first));
    let spreads = || recent.iter().map(|block| block.loss_spread / block.loss);
    let least = spreads().fold(f64::INFINITY, f64::min);
    let most = spreads().fold(0.0, f64::max);
    let level = recent.iter().map(|block| block.loss).sum::<f64>() / recent.len().max(1) as f64;
    recent.iter().all(few)
        && least >= 0.4 * ALTERNATION
        && least >= EVEN * most
        && level >= LARGE_SWING * first
}

/// Returns true if every other value is above all of the rest, by a large part of their mean, and, if
/// the levels have to be `clear`, by twice their ranges.
fn alternate(recent: &[f64], first: f64, clear: bool) -> bool {
    let [one, other] =
        [0, 1].map(|start| recent.iter().copied().skip(start).step_by(2).collect::<Vec<f64>>());
    let lowest = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let gap = (lowest(&one) - highest(&other)).max(lowest(&other) - highest(&one));
    let range = |values: &[f64]| highest(values) - lowest(values);
    let needed = if clear { 2.0 * range(&one).max(range(&other)) } else { 0.0 };
    let level = mean(recent);
    gap > needed
        && (mean(&one) - mean(&other)).abs() >= ALTERNATION * level
        && level >= LARGE_SWING * first
}

/// The first value, and those at which the direction changes.
fn turns(values: &[f64]) -> Vec<f64> {
    let mut turns: Vec<f64> = values.first().copied().into_iter().collect();
    for window in values.windows(3) {
        if (window[1] - window[0]) * (window[2] - window[1]) < 0.0 {
            turns.push(window[1]);
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, curve, facts};
    use super::*;
    use crate::{Diagnosis, Facts, Thresholds};

    fn course(swing: f64, update: f64) -> Course {
        let mut course = Course::new(facts()).skill(move |p| {
            let up = (200.0 * p).round() as i64 % 2 == 0;
            0.2 + if up { swing } else { -swing }
        });
        course.change(move |_, seen| {
            for layer in &mut seen.layers {
                layer.update_ratio = Some(update);
            }
        });
        course
    }

    #[test]
    fn large_swings_by_lively_steps_are_found() {
        let found = course(0.4, 0.03).run(OscillatingLoss).unwrap();
        assert!(found.message.contains("swung"), "{}", found.message);
    }

    /// The finding in a log of twenty epochs.
    fn logged(loss: impl Fn(u64) -> f64) -> Option<Finding> {
        curve(20, move |step, seen| seen.loss = loss(step)).run(OscillatingLoss)
    }

    #[test]
    fn an_alternating_loss_without_a_baseline_is_found() {
        let levels = [(2.0, 0.7), (0.7, 7.6), (1.0, 0.8), (0.69, 0.5), (12.0, 4.0), (2.3, 1.8)];
        for (even, odd) in levels {
            let found = logged(|step| if step % 2 == 0 { even } else { odd });
            assert!(found.is_some_and(|it| it.message.contains("alternates")), "{even} and {odd}");
        }
        let noise = |step: u64| 0.05 * ((7 * step % 11) as f64 / 11.0);
        let noisy = logged(|step| if step % 2 == 0 { 2.0 } else { 1.4 } + noise(step));
        assert!(noisy.is_some());
        let after_a_start = logged(|step| match step {
            1..5 => 3.0 - 0.4 * step as f64,
            step if step % 2 == 0 => 1.6,
            _ => 1.0,
        });
        assert!(after_a_start.is_some());
        let short = curve(10, |step, seen| {
            seen.loss = if step < 4 || step % 2 == 0 { 36.0 } else { 4.6 } + noise(step);
        });
        assert!(short.run(OscillatingLoss).is_some());
        for rows in [400, 600, 900] {
            let long = curve(rows, |step, seen| seen.loss = if step % 2 == 0 { 2.0 } else { 1.4 });
            assert!(long.run(OscillatingLoss).is_some(), "{rows} rows");
            let noisy = curve(rows, |step, seen| seen.loss = 1.0 + noise(step * step));
            assert_eq!(noisy.run(OscillatingLoss), None, "{rows} rows");
        }
    }

    #[test]
    fn a_loss_that_falls_or_is_only_noisy_does_not_alternate() {
        assert_eq!(logged(|step| if step % 2 == 0 { 2.0 } else { 1.9 }), None);
        let falls = |step: u64| 2.0 / step as f64 + if step.is_multiple_of(2) { 0.1 } else { 0.0 };
        assert_eq!(logged(falls), None);
        assert_eq!(logged(|step| 1.0 + 0.3 * ((7 * step % 11) as f64 / 11.0)), None);
    }

    #[test]
    fn swings_that_chance_explains_are_not() {
        assert_eq!(course(0.02, 0.03).run(OscillatingLoss), None);
        assert_eq!(course(0.4, 0.001).run(OscillatingLoss), None);
    }

    #[test]
    fn a_run_that_jumps_is_found_by_its_steps() {
        let mut course = Course::new(facts()).skill(|_| 0.05);
        course.change(|step, seen| {
            for layer in &mut seen.layers {
                layer.update_ratio = Some(if step == 5 { 0.4 } else { 0.001 });
            }
        });
        let found = course.run(OscillatingLoss).unwrap();
        assert!(found.message.contains("40%"), "{}", found.message);
        assert_eq!(found.since, 5);
    }

    #[test]
    fn a_level_loss_counts_after_a_step_that_replaced_the_weights() {
        let found = |first: f64, loss: fn(f64) -> f64| {
            let mut course = Course::new(Facts { chance: None, baseline_loss: None, ..facts() });
            course.change(move |step, seen| {
                (seen.loss, seen.metric) = (loss(step as f64), None);
                let update = if step == 1 { first } else { 0.01 };
                seen.layers.iter_mut().for_each(|layer| layer.update_ratio = Some(update));
            });
            course.run(OscillatingLoss)
        };
        let level = |step| 4.0 + 0.01 * (step % 3.0);
        let finding = found(0.44, level).unwrap();
        assert!(finding.message.contains("44%"), "{}", finding.message);
        // The first step of RMSprop is ten times as large as the others.
        assert_eq!(found(0.14, level), None);
        assert_eq!(found(0.44, |step| 4.0 - 0.002 * step + 0.01 * (step % 3.0)), None);
    }

    #[test]
    fn a_loss_around_zero_does_not_swing() {
        let losses = |step: u64| if step.is_multiple_of(2) { 0.3 } else { -0.4 };
        assert_eq!(logged(losses), None);
        assert_eq!(logged(|step| if step == 1 { -0.5 } else { losses(2 * step) }), None);
    }

    #[test]
    fn a_run_thrown_by_single_samples_is_found_where_it_lies_still() {
        let course = |batch: usize, after: f64| {
            let facts = Facts { batch_size: Some(batch), ..facts() };
            let mut course = Course::new(facts).skill(|_| 0.05);
            course.change(move |step, seen| {
                for layer in &mut seen.layers {
                    layer.update_ratio = Some(if step == 5 { 0.03 } else { after });
                }
            });
            course
        };
        assert!(course(2, 1e-5).run(OscillatingLoss).is_some());
        assert_eq!(course(2, 2e-3).run(OscillatingLoss), None);
        assert_eq!(course(32, 1e-5).run(OscillatingLoss), None);
    }

    #[test]
    fn a_sure_classifier_that_errs_at_times_is_left_alone() {
        let mut course = Course::new(facts()).skill(|_| 0.5);
        course.change(|_, seen| seen.loss = 0.9);
        assert_eq!(course.run(OscillatingLoss), None);
    }

    #[test]
    fn a_relapse_in_the_last_epoch_is_found_in_the_end() {
        let found = |last: f64| {
            let mut diagnosis =
                Diagnosis::with(facts(), Thresholds::default(), vec![Box::new(OscillatingLoss)]);
            for (epoch, metric) in [(1, 0.7), (2, 0.98), (3, last)] {
                diagnosis.evaluate(&Evaluation {
                    epoch,
                    step: 20 * epoch,
                    split: Split::Validation,
                    loss: 1.0,
                    metric: Some(metric),
                });
            }
            diagnosis.finish().first().cloned()
        };
        let relapse = found(0.6).unwrap();
        assert_eq!(relapse.since, 40);
        assert!(relapse.message.contains("epoch 2"), "{}", relapse.message);
        assert_eq!(found(0.9), None);
    }

    #[test]
    fn a_run_that_loses_what_it_had_learned_is_found() {
        let course = Course::new(facts()).skill(|p| if p < 0.5 { 0.95 } else { 0.3 });
        let found = course.run(OscillatingLoss).unwrap();
        assert!(found.message.contains("lost"), "{}", found.message);
    }
}
