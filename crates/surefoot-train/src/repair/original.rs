//! The plan as given, while its repair is searched for.

use super::LEARNED;
use crate::callback::{
    Callback, Callbacks, DiagnosisCallback, RecordCallback, RunContext, StopReason,
};
use crate::compute::Compute;
use crate::error::TrainError;
use crate::run::{TrainingResult, TrainingRun};
use surefoot_diagnose::{Diagnosis, Evaluation, Split};

/// The plan as given, while its repair is searched for.
pub(crate) struct Original<'a, 'd, B: Compute> {
    pub(crate) run: TrainingRun<'a, B>,
    pub(crate) diagnosis: &'d mut DiagnosisCallback,
    pub(crate) result: TrainingResult,
    /// True once it was given up because it cannot reach what an attempt has learned.
    pub(crate) given_up: bool,
}

/// Skill that a run may have lost since its best epoch and still have ended well.
const LOST: f64 = 0.2;
/// Skill without a repair from which on a likely problem did no harm.
const UNHARMED: f64 = 0.8;
/// Evaluations whose median is the end of a run.
const LAST: usize = 3;

impl<B: Compute> Original<'_, '_, B> {
    /// Returns true if it can be trained further.
    pub(super) fn is_running(&self) -> bool {
        self.result.reason == StopReason::Paused && !self.given_up
    }

    /// Trains to step `until`.
    pub(super) fn train(
        &mut self,
        until: u64,
        record: Option<&mut RecordCallback>,
        context: RunContext,
    ) -> Result<(), TrainError> {
        if until <= self.result.steps {
            return Ok(());
        }
        let mut list: Vec<&mut dyn Callback> = Vec::new();
        list.extend(record.map(|record| record as &mut dyn Callback));
        list.push(&mut *self.diagnosis);
        self.result = self.run.train_with(until, &mut Callbacks::new(list, context))?;
        Ok(())
    }

    /// Cost of its steps so far.
    pub(super) fn cost(&self) -> u64 {
        self.result.steps.saturating_mul(self.run.outline().step_cost())
    }

    /// Skill of its best model.
    pub(super) fn skill(&self) -> f64 {
        skill(self.result.best.as_ref(), self.diagnosis.diagnosis())
    }

    /// Returns true if it was trained to its end, and has learned and kept it.
    pub(super) fn has_ended_well(&self) -> bool {
        has_ended_well(&self.result, self.diagnosis.diagnosis(), LEARNED)
    }

    /// Returns true if it cannot reach the recent skill of an attempt any more.
    pub(super) fn cannot_catch_up(&self, attempt: &DiagnosisCallback) -> bool {
        let curve = self.diagnosis.diagnosis().curve();
        let skills: Option<Vec<f64>> = curve.blocks().iter().map(|block| block.skill).collect();
        let attempt = attempt.diagnosis().curve().recent_skill(8);
        let planned = self.run.steps() / curve.block_steps().max(1);
        let Some((skills, attempt)) = skills.zip(attempt) else {
            return false;
        };
        self.is_running() && catch_up::cannot_reach(attempt, &skills, planned as usize)
    }
}

/// Returns true if a plan with nothing but likely problems has learned so well that they did no harm.
pub(crate) fn is_unharmed(result: &TrainingResult, diagnosis: &Diagnosis) -> bool {
    has_ended_well(result, diagnosis, UNHARMED)
}

/// Returns true if a run was trained to its end, has at least this skill there, and has lost little
/// since its best epoch.
fn has_ended_well(result: &TrainingResult, diagnosis: &Diagnosis, least: f64) -> bool {
    let best = skill(result.best.as_ref(), diagnosis);
    let end = end_skill(result, diagnosis);
    result.reason == StopReason::Finished && end >= least && best - end < LOST
}

/// Skill at the end of a run: the median of its last evaluations.
fn end_skill(result: &TrainingResult, diagnosis: &Diagnosis) -> f64 {
    let evaluations = diagnosis.curve().evaluations().iter();
    let evaluations = evaluations.filter(|evaluation| evaluation.split == Split::Validation);
    let mut last: Vec<f64> =
        evaluations.rev().take(LAST).map(|it| skill(Some(it), diagnosis)).collect();
    if last.len() < LAST {
        return skill(result.last.as_ref(), diagnosis);
    }
    last.sort_by(f64::total_cmp);
    last[last.len() / 2]
}

/// Share of the way from a constant prediction to a perfect one that an evaluation has come. By the
/// metric, or else by the recent training loss.
fn skill(evaluation: Option<&Evaluation>, diagnosis: &Diagnosis) -> f64 {
    let metric = evaluation.and_then(|evaluation| evaluation.metric);
    let skill = metric
        .filter(|metric| metric.is_finite())
        .zip(diagnosis.facts().chance)
        .map(|(metric, chance)| (metric - chance) / (1.0 - chance).max(f64::MIN_POSITIVE));
    skill.or(diagnosis.curve().recent_skill(8)).unwrap_or(0.0)
}

/// The rule by which a plan is given up beside an attempt that learns.
mod catch_up {
    /// Share of the blocks before which a plan is not given up.
    const WARMUP: f64 = 0.15;
    /// Skill from which on an attempt has learned enough to give the plan up.
    const ENOUGH: f64 = 0.5;
    /// Possible gain by chance, in recent changes from one window to the next.
    const NOISE_FACTOR: f64 = 3.0;
    /// Share of the planned blocks in a window.
    const WINDOW: f64 = 0.04;

    /// Returns true if a run with these skills by block cannot reach the skill `bar` within its
    /// `planned` blocks, even if its recent trend continues to the end.
    ///
    /// This is the rule of the pruner `prospect` for two runs: the optimistic end is the best skill so
    /// far, plus the trend of the second half for all remaining blocks, plus a few recent changes.
    pub(super) fn cannot_reach(bar: f64, skills: &[f64], planned: usize) -> bool {
        let done = skills.len();
        let window = ((WINDOW * planned as f64).round() as usize).max(2);
        if bar < ENOUGH || (done as f64) < WARMUP * planned as f64 || done < 3 * window {
            return false;
        }
        let means: Vec<f64> = skills.rchunks(window).map(mean).collect();
        let best = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let recent = &means[..means.len().min(6)];
        let changes = recent.windows(2).map(|pair| (pair[1] - pair[0]).abs());
        let change = changes.sum::<f64>() / (recent.len() - 1) as f64;
        let left = planned.saturating_sub(done) as f64;
        let optimistic = best + NOISE_FACTOR * change + slope(&skills[done / 2..]) * left;
        optimistic < bar
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    /// Increase from one value to the next, from a line through them; 0 if they fall.
    fn slope(values: &[f64]) -> f64 {
        let middle = (values.len() as f64 - 1.0) / 2.0;
        let mean = mean(values);
        let (mut across, mut along) = (0.0, 0.0);
        for (x, y) in values.iter().enumerate() {
            across += (x as f64 - middle).powi(2);
            along += (x as f64 - middle) * (y - mean);
        }
        if across > 0.0 { (along / across).max(0.0) } else { 0.0 }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn skills(done: usize, skill: impl Fn(f64) -> f64) -> Vec<f64> {
            (1..=done).map(|block| skill(block as f64 / 200.0)).collect()
        }

        #[test]
        fn a_level_curve_cannot_catch_up() {
            assert!(cannot_reach(0.9, &skills(40, |_| 0.02), 200));
            assert!(!cannot_reach(0.9, &skills(20, |_| 0.02), 200), "too early");
            assert!(!cannot_reach(0.3, &skills(40, |_| 0.02), 200), "the attempt is weak");
        }

        #[test]
        fn a_rising_curve_can_catch_up() {
            assert!(!cannot_reach(0.9, &skills(60, |p| 1.0 * p), 200));
            assert!(cannot_reach(0.9, &skills(60, |p| 0.2 * p), 200));
        }

        #[test]
        fn a_swinging_curve_can_catch_up() {
            let swinging = |p: f64| if (200.0 * p) as u64 % 40 < 20 { 0.1 } else { 0.5 };
            assert!(!cannot_reach(0.9, &skills(80, swinging), 200));
        }

        #[test]
        fn a_curve_of_nan_is_not_judged() {
            assert!(!cannot_reach(0.9, &skills(80, |_| f64::NAN), 200));
        }
    }
}
