//! The contest of a training as given with its repairs.
//!
//! The attempts of a round train on probation, for a small share of their steps. Then the best of them
//! trains to its end. A problem that is only likely does not end the training as given: it remains a
//! contestant and trains to the same shares of its steps as the attempts, so that a repair has to beat
//! the result that it reaches without a change.

use crate::search::{AttemptResult, AttemptVerdict, Proposal, RepairSearch};
use crate::subject::Subject;
use surefoot_diagnose::{Facts, Finding, TaskKind};

/// Bounds on the share of its steps that an attempt is on probation. Within them it is the share
/// after which the problem was found, so that a persistent problem shows again.
const PROBATION: [f64; 2] = [0.06, 0.15];
/// Share of its steps after which an attempt that has learned nothing is deferred.
const CHECK: f64 = 0.35;
/// Share of its steps after which an attempt pauses until the training as given has trained as far.
const SYNC_EVERY: f64 = 0.1;
/// First and last share of its steps at which the training as given may be given up.
const GIVE_UP: [f64; 2] = [0.4, 0.7];
/// Skill of a contestant that has learned something.
const SOME_SKILL: f64 = 0.2;
/// Skill of a training that has learned in spite of a likely problem.
const LEARNED: f64 = 0.15;
/// Skill at which one attempt that is not better is enough to call the training as given normal.
const LEARNED_WELL: f64 = 0.8;
/// Steps of all attempts after which no further one is started, as a multiple of those of the
/// training as given.
const BUDGET: f64 = 12.0;
/// Largest number of deferred attempts.
const DEFERRED: usize = 3;

/// Number of the training as given among the contestants. Attempts count from 1.
pub const ORIGINAL: u32 = 0;

/// Trains contestants for a [`contest`].
pub trait Arena<S> {
    /// Error that ends the contest.
    type Error;

    /// Prepares the attempt of `proposal`. Returns false if it cannot be built or was declined.
    fn start(&mut self, proposal: &Proposal<S>) -> Result<bool, Self::Error>;

    /// Trains each contestant up to a share of its steps and returns their standings in the same
    /// order. A contestant stops before that at a certain problem, and at its first likely one.
    fn train(&mut self, tasks: &[(u32, f64)]) -> Result<Vec<Standing>, Self::Error>;

    /// Ends an attempt and records its ending.
    fn close(
        &mut self,
        number: u32,
        ending: Ending,
        standing: &Standing,
    ) -> Result<(), Self::Error>;

    /// Returns true if the user has asked to stop.
    fn is_interrupted(&mut self) -> bool {
        false
    }
}

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
    /// Recent skill; see [`Block::skill`](surefoot_diagnose::Block::skill).
    pub skill: Option<f64>,
    /// True if the recent loss is clearly below the initial one.
    pub is_falling: bool,
    /// Metric of its best model on the validation split.
    pub metric: Option<f64>,
    /// Loss of its best model on the validation split.
    pub loss: Option<f64>,
}

/// Outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Beats the training as given.
    Repaired,
    /// Had the same problem again.
    Persists,
    /// Had another problem.
    NewProblem,
    /// Had no problem, but was not better than the training as given.
    NoBetter,
    /// Stopped early because another attempt did better.
    Outperformed,
}

impl Ending {
    /// The name used in records and output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Repaired => "repaired",
            Self::Persists => "persists",
            Self::NewProblem => "new_problem",
            Self::NoBetter => "no_better",
            Self::Outperformed => "outperformed",
        }
    }
}

/// Result of a contest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContestResult {
    /// This attempt beats the training as given.
    Repaired(u32),
    /// The training as given learned in spite of its problem, and no attempt was better.
    Dismissed,
    /// No attempt helped.
    Failed,
    /// The user asked to stop.
    Interrupted,
}

impl Standing {
    /// Returns true if it cannot be trained further.
    fn is_over(&self) -> bool {
        self.finished || self.ended_by_problem
    }

    /// Share of the way from a constant prediction to a perfect one, by the metric or else the loss.
    fn overall_skill(&self) -> f64 {
        let by_metric = self.metric.zip(self.facts.chance);
        let skill = by_metric
            .map(|(metric, chance)| (metric - chance) / (1.0 - chance).max(f64::MIN_POSITIVE));
        skill.or(self.skill).unwrap_or(0.0)
    }

    /// Returns true if it is better than `old` by more than the noise of `samples` validation samples,
    /// and better than a constant prediction.
    pub fn is_improved(&self, old: &Standing, samples: usize) -> bool {
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        let Some(metric) = finite(self.metric) else {
            let (new, old_loss) = (finite(self.loss), finite(old.loss));
            return finite(old.metric).is_none()
                && new.is_some_and(|new| old_loss.is_none_or(|old| new < old));
        };
        let above_chance = self.facts.chance.is_none_or(|chance| metric > chance);
        let beats = |old: f64| metric > old + noise(metric, old, self.facts.task, samples);
        above_chance && finite(old.metric).is_none_or(beats)
    }

    /// Returns true if not even a perfect metric would count as an improvement.
    fn is_unbeatable(&self, samples: usize) -> bool {
        self.metric.is_some_and(|it| 1.0 <= it + noise(1.0, it, self.facts.task, samples))
    }
}

/// Standard error of the difference between two metrics on `samples` samples.
fn noise(new: f64, old: f64, task: Option<TaskKind>, samples: usize) -> f64 {
    if samples == 0 {
        return 0.0;
    }
    let variance = |metric: f64| match task {
        // Of a mean of squared errors, relative to the variance of the targets.
        Some(TaskKind::Regression) => 2.0 * (1.0 - metric).powi(2),
        _ => (metric * (1.0 - metric)).max(0.0),
    };
    ((variance(new) + variance(old)) / samples as f64).sqrt()
}

/// Searches for a repair of the training whose problem is in `original`. `samples` is the number of
/// validation samples.
///
/// # Errors
///
/// The first error of the arena.
pub fn contest<S: Subject, A: Arena<S>>(
    arena: &mut A,
    search: RepairSearch<S>,
    original: Standing,
    samples: usize,
) -> Result<ContestResult, A::Error> {
    let found_at = original.share;
    let contest = Contest {
        arena,
        search,
        found_at,
        original,
        given_up: false,
        samples,
        deferred: Vec::new(),
        trained: 0.0,
        completed: 0,
        best: None,
    };
    contest.run()
}

struct Contest<'a, S, A> {
    arena: &'a mut A,
    search: RepairSearch<S>,
    /// Share of its steps after which the problem was found.
    found_at: f64,
    original: Standing,
    /// True once the training as given cannot catch up any more.
    given_up: bool,
    samples: usize,
    /// Attempts that may be trained further after other remedies were tried, each with its ending in
    /// case it is not.
    deferred: Vec<(Proposal<S>, Standing, Ending)>,
    /// Steps of all attempts, as a multiple of those of the training as given.
    trained: f64,
    /// Number of attempts that were trained to their end.
    completed: u32,
    /// The attempt that beats the training as given.
    best: Option<(u32, Standing)>,
}

impl<S: Subject, A: Arena<S>> Contest<'_, S, A> {
    fn run(mut self) -> Result<ContestResult, A::Error> {
        while self.best.is_none()
            && self.trained < BUDGET
            && !self.original.is_unbeatable(self.samples)
            && !self.original_is_fine()
        {
            if self.arena.is_interrupted() {
                return Ok(ContestResult::Interrupted);
            }
            // Attempts without a problem are trained further before remedies are tried in variants.
            let untried = self.search.has_untried_remedy();
            let mut deferred = if untried { None } else { self.take_deferred(false) };
            let mut round = Vec::new();
            if deferred.is_none() {
                round = self.search.next_round();
                if round.is_empty() {
                    deferred = self.take_deferred(true);
                }
            }
            match deferred {
                Some((proposal, standing)) => self.complete(proposal, standing, true)?,
                None if round.is_empty() => break,
                None => self.round(round)?,
            }
        }
        self.close_deferred()?;
        self.finish()
    }

    /// Trains the original to its end unless it was given up, and returns the result.
    fn finish(mut self) -> Result<ContestResult, A::Error> {
        if self.original_runs() && !self.arena.is_interrupted() {
            self.train(&[(ORIGINAL, 1.0)])?;
        }
        if self.arena.is_interrupted() {
            return Ok(ContestResult::Interrupted);
        }
        let is_learned = self.original.finished && self.original.overall_skill() >= LEARNED;
        // A repair never delivers something worse than the training as given.
        Ok(match &self.best {
            Some((number, standing)) if standing.is_improved(&self.original, self.samples) => {
                ContestResult::Repaired(*number)
            }
            _ if is_learned => ContestResult::Dismissed,
            _ => ContestResult::Failed,
        })
    }

    fn original_runs(&self) -> bool {
        !self.given_up && !self.original.is_over()
    }

    fn original_is_fine(&self) -> bool {
        let skill = self.original.overall_skill();
        let enough = if skill >= LEARNED_WELL { 1 } else { 2 };
        self.original.finished && skill >= LEARNED && self.completed >= enough
    }

    fn train(&mut self, tasks: &[(u32, f64)]) -> Result<Vec<Standing>, A::Error> {
        let standings = self.arena.train(tasks)?;
        let original = tasks.iter().position(|(number, _)| *number == ORIGINAL);
        if let Some(standing) = original.and_then(|at| standings.get(at)) {
            self.original = standing.clone();
        }
        Ok(standings)
    }

    fn round(&mut self, round: Vec<Proposal<S>>) -> Result<(), A::Error> {
        let mut started = Vec::new();
        for proposal in round {
            if self.arena.start(&proposal)? {
                started.push(proposal);
            }
        }
        let share = self.found_at.clamp(PROBATION[0], PROBATION[1]);
        let mut tasks: Vec<(u32, f64)> = started.iter().map(|it| (it.number, share)).collect();
        if self.original_runs() {
            tasks.push((ORIGINAL, (self.original.share + share).min(1.0)));
        }
        if started.is_empty() {
            return Ok(());
        }
        let standings = self.train(&tasks)?;
        if self.arena.is_interrupted() {
            return Ok(());
        }
        let contestants: Vec<(Proposal<S>, Standing)> =
            started.into_iter().zip(standings).collect();
        let results: Vec<AttemptResult<S>> =
            contestants.iter().map(|(proposal, standing)| result(proposal, standing)).collect();
        self.trained += contestants.iter().map(|(_, standing)| standing.share).sum::<f64>();
        let verdicts = self.search.judge(&results);
        let mut best = None;
        for ((proposal, standing), verdict) in contestants.into_iter().zip(verdicts) {
            let ending = match verdict {
                AttemptVerdict::Continue => {
                    best = Some((proposal, standing));
                    continue;
                }
                AttemptVerdict::Superseded => Ending::Outperformed,
                AttemptVerdict::Persists => Ending::Persists,
                AttemptVerdict::NewProblem => Ending::NewProblem,
            };
            match standing.is_over() {
                true => self.arena.close(proposal.number, ending, &standing)?,
                false => self.defer(proposal, standing, ending)?,
            }
        }
        best.map_or(Ok(()), |(proposal, standing)| self.complete(proposal, standing, false))
    }

    /// Trains an attempt to its end, and the original to the same shares of its steps. Unless
    /// `to_the_end`, it is deferred when it shows a likely problem or has learned nothing at [`CHECK`].
    fn complete(
        &mut self,
        proposal: Proposal<S>,
        mut standing: Standing,
        to_the_end: bool,
    ) -> Result<(), A::Error> {
        let mut share = CHECK;
        while !standing.is_over() {
            if share > standing.share {
                let until = share.min(1.0);
                let mut tasks = vec![(proposal.number, until)];
                if self.original_runs() && until > self.original.share {
                    tasks.push((ORIGINAL, until));
                }
                let before = standing.share;
                if let Some(now) = self.train(&tasks)?.into_iter().next() {
                    standing = now;
                }
                self.trained += standing.share - before;
            }
            if self.arena.is_interrupted() {
                return Ok(());
            }
            let has_problem = standing.problem.is_some();
            let learns = share > CHECK
                || standing.skill.is_none_or(|skill| skill >= SOME_SKILL)
                || standing.is_falling;
            if !standing.is_over() && !to_the_end && (has_problem || !learns) {
                let attempt = result(&proposal, &standing);
                let ending = ending(&proposal, &standing);
                self.defer(proposal, standing, ending)?;
                // An attempt without a problem is trained to its end before it counts as too slow.
                if has_problem {
                    self.search.report_problem(&attempt);
                }
                return Ok(());
            }
            self.given_up |= self.original_cannot_catch_up(&standing);
            share += SYNC_EVERY;
        }
        self.completed += u32::from(standing.finished);
        let attempt = result(&proposal, &standing);
        if standing.finished && standing.is_improved(&self.original, self.samples) {
            // The repaired attempt ends last.
            self.close_deferred()?;
            self.arena.close(proposal.number, Ending::Repaired, &standing)?;
            self.best = Some((proposal.number, standing));
        } else {
            self.arena.close(proposal.number, ending(&proposal, &standing), &standing)?;
            self.search.report_problem(&attempt);
        }
        Ok(())
    }

    /// Returns true if the original has learned nothing, its loss does not fall, and `attempt` has
    /// learned well.
    fn original_cannot_catch_up(&self, attempt: &Standing) -> bool {
        self.original_runs()
            && (GIVE_UP[0]..=GIVE_UP[1]).contains(&self.original.share)
            && self.original.skill.is_some_and(|skill| skill < SOME_SKILL / 2.0)
            && attempt.skill.is_some_and(|skill| skill >= LEARNED_WELL)
            && !self.original.is_falling
    }

    /// Sets an attempt aside. If there are too many, the one with the least skill is closed.
    fn defer(
        &mut self,
        proposal: Proposal<S>,
        standing: Standing,
        ending: Ending,
    ) -> Result<(), A::Error> {
        self.deferred.push((proposal, standing, ending));
        if self.deferred.len() <= DEFERRED {
            return Ok(());
        }
        let least = self.extreme(|_| true, |new, old| new <= old).unwrap_or(0);
        let (proposal, standing, ending) = self.deferred.remove(least);
        self.arena.close(proposal.number, ending, &standing)
    }

    /// Takes the deferred attempt with the most skill; those with a problem only if `with_problem`.
    fn take_deferred(&mut self, with_problem: bool) -> Option<(Proposal<S>, Standing)> {
        let is_candidate = |it: &Standing| with_problem || it.problem.is_none();
        let most = self.extreme(is_candidate, |new, old| new > old)?;
        let (proposal, standing, _) = self.deferred.remove(most);
        Some((proposal, standing))
    }

    /// Index of the deferred attempt whose skill is preferred to that of all others.
    fn extreme(
        &self,
        is_candidate: impl Fn(&Standing) -> bool,
        is_preferred: impl Fn(f64, f64) -> bool,
    ) -> Option<usize> {
        let skill = |standing: &Standing| {
            standing.skill.filter(|skill| !skill.is_nan()).unwrap_or(f64::NEG_INFINITY)
        };
        let all = self.deferred.iter().enumerate();
        let candidates = all.filter(|(_, (_, standing, _))| is_candidate(standing));
        let best = candidates.reduce(|old, new| {
            if is_preferred(skill(&new.1.1), skill(&old.1.1)) { new } else { old }
        });
        best.map(|(place, _)| place)
    }

    fn close_deferred(&mut self) -> Result<(), A::Error> {
        for (proposal, standing, ending) in std::mem::take(&mut self.deferred) {
            self.arena.close(proposal.number, ending, &standing)?;
        }
        Ok(())
    }
}

/// The ending of an attempt that is not a repair.
fn ending<S>(proposal: &Proposal<S>, standing: &Standing) -> Ending {
    match &standing.problem {
        None => Ending::NoBetter,
        Some(found) if found.problem == proposal.finding.problem => Ending::Persists,
        Some(_) => Ending::NewProblem,
    }
}

fn result<S: Clone>(proposal: &Proposal<S>, standing: &Standing) -> AttemptResult<S> {
    AttemptResult {
        proposal: proposal.clone(),
        finding: standing.problem.clone(),
        facts: standing.facts.clone(),
        skill: standing.skill,
    }
}

#[cfg(test)]
#[path = "contest_tests.rs"]
mod tests;
