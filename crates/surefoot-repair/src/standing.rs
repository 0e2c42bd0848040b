//! Progress and quality of a training, as a contest compares them.

use surefoot_diagnose::{Confidence, Diagnosis, Facts, Finding, Severity, Split, TaskKind};

/// Skill of a contestant that has learned something.
const SOME_SKILL: f64 = 0.2;
/// Skill of a training that has learned in spite of a likely problem.
const LEARNED: f64 = 0.15;
/// Skill that a run may have lost since its best epoch and still have ended well.
const LOST: f64 = 0.2;
/// Standard errors by which the best of many epochs exceeds the others by luck.
const LUCK: f64 = 2.0;
/// Smallest gain of skill that is worth a change.
const WORTH: f64 = 0.02;
/// Number of evaluations whose median is the end of a run.
const LAST: usize = 3;

/// Progress and quality of a contestant that has paused or ended.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// Share of its steps that it has completed.
    pub share: f64,
    /// True if it was trained to its end.
    pub finished: bool,
    /// The first certain problem, or else the first likely one.
    pub problem: Option<Finding>,
    /// True if the problem is certain, so that it cannot train further.
    pub ended_by_problem: bool,
    /// Facts of the run.
    pub facts: Facts,
    /// Metric of its best model on the validation split.
    pub metric: Option<f64>,
    /// Loss of its best model on the validation split.
    pub loss: Option<f64>,
    /// Metric of its last evaluation.
    pub last_metric: Option<f64>,
    /// Median metric of its last validations; `None` if there were too few.
    pub end_metric: Option<f64>,
    /// Recent skill; see [`Block::skill`](surefoot_diagnose::Block::skill).
    pub skill: Option<f64>,
    /// Skill over a longer recent period.
    pub steady_skill: Option<f64>,
    /// Skill by block; `None` if it is not known for all blocks.
    pub skills: Option<Vec<f64>>,
    /// Number of blocks of the whole training.
    pub planned_blocks: usize,
    /// True if the recent loss is clearly below the initial one.
    pub is_falling: bool,
}

impl Standing {
    /// The part of a standing that a diagnosis knows: without the share of completed steps, and the
    /// metric and loss of the best model.
    pub fn of(diagnosis: &Diagnosis) -> Self {
        let problems = || diagnosis.findings().iter().filter(|it| it.severity == Severity::Problem);
        let certain = problems().find(|finding| finding.confidence == Confidence::Certain);
        let (curve, facts) = (diagnosis.curve(), diagnosis.facts());
        let evaluations = curve.evaluations();
        let validations = evaluations.iter().filter(|it| it.split == Split::Validation);
        let mut last: Vec<f64> = validations.rev().take(LAST).filter_map(|it| it.metric).collect();
        last.sort_by(f64::total_cmp);
        Self {
            ended_by_problem: certain.is_some(),
            problem: certain.or_else(|| problems().next()).cloned(),
            last_metric: evaluations.last().and_then(|evaluation| evaluation.metric),
            end_metric: (last.len() == LAST).then(|| last[LAST / 2]),
            skill: curve.recent_skill(4),
            steady_skill: curve.recent_skill(8),
            skills: curve.blocks().iter().map(|block| block.skill).collect(),
            planned_blocks: (facts.total_steps().unwrap_or(0) / curve.block_steps().max(1))
                as usize,
            is_falling: curve.is_falling(),
            facts: facts.clone(),
            ..Self::default()
        }
    }

    /// Returns true if it cannot be trained further.
    pub(crate) fn is_over(&self) -> bool {
        self.finished || self.ended_by_problem
    }

    /// Returns true if it has a model with a known quality.
    pub(crate) fn has_model(&self) -> bool {
        self.metric.is_some() || self.loss.is_some()
    }

    /// Returns true if it has learned something, by its loss or by the metric of its best model, or if
    /// its loss is falling.
    pub(crate) fn is_learning(&self) -> bool {
        self.is_falling
            || self.steady_skill.is_none_or(|skill| skill >= SOME_SKILL)
            || self.best_skill() >= SOME_SKILL
    }

    /// Skill of its best model.
    pub(crate) fn best_skill(&self) -> f64 {
        self.skill_of(self.metric)
    }

    /// Returns true if it was trained to its end and its best model has learned in spite of a likely
    /// problem, and kept it.
    pub(crate) fn has_learned(&self, samples: usize) -> bool {
        self.finished && self.best_skill() >= LEARNED && !self.has_lost_skill(samples)
    }

    /// Returns true if it was trained to its end, has learned its training data to some extent, and is
    /// better than a constant prediction on others: the data may not contain more.
    pub(crate) fn has_learned_a_little(&self) -> bool {
        let fits = self.steady_skill.is_some_and(|skill| skill >= LEARNED);
        self.finished && fits && self.best_skill() > 0.0 && self.end_skill() > 0.0
    }

    /// Returns true if it was trained to its end, has at least this skill there, and has lost little
    /// since its best epoch, as measured on `samples` validation samples.
    pub fn has_ended_well(&self, least: f64, samples: usize) -> bool {
        self.finished && self.end_skill() >= least && !self.has_lost_skill(samples)
    }

    fn has_lost_skill(&self, samples: usize) -> bool {
        let ends = finite(self.metric).zip(finite(self.end_metric.or(self.last_metric)));
        let by_luck = |(best, end): (f64, f64)| best - end <= LUCK * self.noise(best, end, samples);
        self.best_skill() - self.end_skill() >= LOST && !ends.is_some_and(by_luck)
    }

    fn end_skill(&self) -> f64 {
        self.skill_of(self.end_metric.or(self.last_metric))
    }

    /// Share of the way from a constant prediction to a perfect one, by a metric or else the recent
    /// training loss.
    fn skill_of(&self, metric: Option<f64>) -> f64 {
        let skill = finite(metric)
            .zip(self.facts.chance)
            .map(|(metric, chance)| (metric - chance) / (1.0 - chance).max(f64::MIN_POSITIVE));
        skill.or(self.steady_skill).unwrap_or(0.0)
    }

    /// Returns true if its best model is better than that of `other`: by the metric, or else the loss.
    pub(crate) fn is_better(&self, other: &Standing) -> bool {
        match (finite(self.metric), finite(other.metric)) {
            (Some(new), Some(old)) if new != old => new > old,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            _ => {
                finite(self.loss).is_some_and(|new| finite(other.loss).is_none_or(|old| new < old))
            }
        }
    }

    /// Returns true if its best model is better than that of `old` by more than the noise of `samples`
    /// validation samples and a little, and better than a constant prediction. If `old` has lost what it learned,
    /// the ends are compared as well: an attempt that is no worse and keeps what it learned is better.
    pub fn is_improved(&self, old: &Standing, samples: usize) -> bool {
        let Some(metric) = finite(self.metric) else {
            return finite(old.metric).is_none() && self.is_better(old);
        };
        let worth = WORTH * (1.0 - self.facts.chance.unwrap_or(0.0));
        let exceeds = |new: f64, old: f64| new > old + self.noise(new, old, samples).max(worth);
        let has_relapsed = old.finished && !old.has_ended_well(LEARNED, samples);
        let ends = finite(self.last_metric).zip(finite(old.last_metric));
        let keeps = |old: f64| {
            has_relapsed && metric >= old && ends.is_some_and(|(new, old)| exceeds(new, old))
        };
        let above_chance = self.facts.chance.is_none_or(|chance| metric > chance);
        above_chance && finite(old.metric).is_none_or(|old| exceeds(metric, old) || keeps(old))
    }

    /// Returns true if not even a perfect metric would count as an improvement.
    pub(crate) fn is_unbeatable(&self, samples: usize) -> bool {
        self.metric.is_some_and(|metric| 1.0 <= metric + self.noise(1.0, metric, samples))
    }

    /// Standard error of the difference between two metrics on `samples` samples; 0 if the training
    /// split is evaluated.
    fn noise(&self, new: f64, old: f64, samples: usize) -> f64 {
        if samples == 0 {
            return 0.0;
        }
        let variance = |metric: f64| match self.facts.task {
            // Of a mean of squared errors, relative to the variance of the targets.
            Some(TaskKind::Regression) => 2.0 * (1.0 - metric).powi(2),
            _ => (metric * (1.0 - metric)).max(0.0),
        };
        ((variance(new) + variance(old)) / samples as f64).sqrt()
    }
}

fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_within_the_validation_noise_is_no_improvement() {
        let standing = |metric| Standing { metric: Some(metric), ..Standing::default() };
        assert!(!standing(0.91).is_improved(&standing(0.9), 100));
        assert!(standing(0.93).is_improved(&standing(0.9), 10_000));
        assert!(!standing(0.997).is_improved(&standing(0.996), 0), "too little");
        assert!(!standing(f64::NAN).is_improved(&standing(0.9), 100));
    }

    #[test]
    fn an_attempt_learns_if_its_loss_or_its_metric_does() {
        let facts = Facts { chance: Some(0.5), ..Facts::default() };
        let standing = |metric, skill| Standing {
            metric: Some(metric),
            steady_skill: Some(skill),
            facts: facts.clone(),
            ..Standing::default()
        };
        assert!(standing(0.5, 0.3).is_learning());
        assert!(standing(0.8, 0.1).is_learning());
        assert!(!standing(0.55, 0.1).is_learning());
    }

    #[test]
    fn a_training_has_learned_by_its_best_model_unless_it_lost_it() {
        let facts = Facts { chance: Some(0.5), ..Facts::default() };
        let ended = |metric, last| Standing {
            finished: true,
            metric: Some(metric),
            last_metric: Some(last),
            facts: facts.clone(),
            ..Standing::default()
        };
        assert!(ended(0.6, 0.53).has_learned(1000));
        assert!(!ended(0.6, 0.53).has_ended_well(0.15, 1000));
        assert!(!ended(0.9, 0.6).has_learned(1000), "lost");
        assert!(ended(0.8, 0.69).has_learned(30), "the best of many epochs is lucky");
        assert!(!ended(0.53, 0.53).has_learned(1000), "hardly better than a constant prediction");
    }

    #[test]
    fn an_attempt_that_keeps_its_best_model_beats_a_training_that_lost_it() {
        let facts = Facts { chance: Some(0.5), ..Facts::default() };
        let ended = |metric, last| Standing {
            finished: true,
            metric: Some(metric),
            last_metric: Some(last),
            facts: facts.clone(),
            ..Standing::default()
        };
        assert!(ended(0.9, 0.9).is_improved(&ended(0.9, 0.6), 1000));
        assert!(!ended(0.9, 0.9).is_improved(&ended(0.9, 0.88), 1000));
    }
}
