//! The contest of a training as given with its repairs.
//!
//! The attempts of a round train on probation, for a small share of their steps. Then the best of them
//! trains to its end. A problem that is only likely does not end the training as given: it remains a
//! contestant and trains to the same shares of its steps as the attempts, so that a repair has to beat
//! the result that it reaches without a change.
//!
//! Contestants advance by shares of their steps and never by the clock, so the result is the same on
//! any number of cores.

use crate::catch_up::cannot_reach;
use crate::search::{AttemptResult, AttemptVerdict, Proposal, RepairSearch};
use crate::standing::Standing;
use crate::subject::Subject;

/// Bounds on the share of its steps that an attempt is on probation. Within them it is the share
/// after which the problem was found, so that a persistent problem shows again.
const PROBATION: [f64; 2] = [0.06, 0.15];
/// Share of its steps after which an attempt that has learned nothing is deferred.
const CHECK: f64 = 0.35;
/// Share of its steps after which an attempt pauses until the training as given has trained as far.
const SYNC_EVERY: f64 = 0.15;
/// Skill at which one attempt that is not better is enough to call the training as given normal.
const LEARNED_WELL: f64 = 0.8;
/// Skill at the end from which on the training as given needs no repair.
const EXCELLENT: f64 = 0.9;
/// Attempts without a problem that are not better if the data do not contain more to learn.
const FUTILE: u32 = 2;
/// Steps of all ended attempts after which no further one is started, as a multiple of those of the
/// training as given.
const BUDGET: f64 = 12.0;
/// Largest number of deferred attempts.
const DEFERRED: usize = 3;

/// Number of the training as given among the contestants. Attempts count from 1.
pub const ORIGINAL: u32 = 0;

/// Options of a [`contest`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContestConfig {
    /// Number of validation samples; 0 if the training data are evaluated.
    pub samples: usize,
    /// Steps of attempts that are always allowed, however short the training as given is.
    pub least_budget: u64,
    /// True if contestants train one after the other. Then the training as given waits until an
    /// attempt is ahead of it, and is not trained further if it cannot catch up.
    pub sequential: bool,
}

/// Trains the contestants of a [`contest`].
pub trait AttemptTrainer<S> {
    /// Error that ends the contest.
    type Error;

    /// Prepares the attempt of `proposal`. Returns false if it cannot be built or was declined.
    fn start(&mut self, proposal: &Proposal<S>) -> Result<bool, Self::Error>;

    /// Trains each contestant up to a share of its steps and returns their standings in the same
    /// order. A contestant stops before that at a certain problem, and at its first likely one.
    fn train(&mut self, tasks: &[(u32, f64)]) -> Result<Vec<Standing>, Self::Error>;

    /// Ends an attempt and records its ending. If `is_best`, it is the best attempt so far, and its
    /// model may be delivered.
    fn close(
        &mut self,
        number: u32,
        ending: Ending,
        standing: &Standing,
        is_best: bool,
    ) -> Result<(), Self::Error>;

    /// Notes that the training as given is not trained further, because it cannot reach the result of
    /// an attempt.
    fn give_up_original(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Returns true if the user has asked to stop.
    fn is_interrupted(&mut self) -> bool {
        false
    }

    /// Returns true if the user wants no further attempts.
    fn is_declined(&self) -> bool {
        false
    }
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

/// Searches for a repair of the training whose problem is in `original`.
///
/// # Errors
///
/// The first error of the trainer.
pub fn contest<S: Subject, T: AttemptTrainer<S>>(
    trainer: &mut T,
    search: RepairSearch<S>,
    original: Standing,
    config: ContestConfig,
) -> Result<ContestResult, T::Error> {
    let found_at = original.share;
    let budget = BUDGET * original.facts.total_steps().unwrap_or(0) as f64;
    let contest = Contest {
        trainer,
        search,
        found_at,
        original,
        given_up: false,
        samples: config.samples,
        sequential: config.sequential,
        budget: budget.max(config.least_budget as f64),
        deferred: Vec::new(),
        steps: 0.0,
        completed: 0,
        flawless: 0,
        repaired: false,
        best: None,
    };
    contest.run()
}

struct Contest<'a, S, T> {
    trainer: &'a mut T,
    search: RepairSearch<S>,
    /// Share of its steps after which the problem was found.
    found_at: f64,
    original: Standing,
    /// True once the training as given cannot catch up any more.
    given_up: bool,
    samples: usize,
    sequential: bool,
    /// Steps of ended attempts after which no further one is started.
    budget: f64,
    /// Attempts that may be trained further after other remedies were tried, each with its ending in
    /// case it is not.
    deferred: Vec<(Proposal<S>, Standing, Ending)>,
    /// Steps of all ended attempts.
    steps: f64,
    /// Number of attempts that were trained to their end.
    completed: u32,
    /// Those of them without a problem.
    flawless: u32,
    /// True once an attempt beats the training as given.
    repaired: bool,
    /// The best of all ended attempts.
    best: Option<(u32, Standing)>,
}

impl<S: Subject, T: AttemptTrainer<S>> Contest<'_, S, T> {
    fn run(mut self) -> Result<ContestResult, T::Error> {
        while !(self.repaired
            || self.steps >= self.budget
            || self.trainer.is_declined()
            || self.trainer.is_interrupted()
            || self.original_is_fine())
        {
            // Before its end it may still lose what it has learned.
            if self.original.is_unbeatable(self.samples) && self.original_runs() {
                self.train(&[(ORIGINAL, 1.0)])?;
                continue;
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
    fn finish(mut self) -> Result<ContestResult, T::Error> {
        // It may have been given up for an attempt that did not become a repair.
        self.given_up &= self.repaired;
        if self.original_runs() && !self.trainer.is_interrupted() {
            self.train(&[(ORIGINAL, 1.0)])?;
        }
        if self.trainer.is_interrupted() {
            return Ok(ContestResult::Interrupted);
        }
        // A repair never delivers something worse than the training as given.
        Ok(match &self.best {
            Some((number, standing)) if self.beats_original(standing) => {
                ContestResult::Repaired(*number)
            }
            _ if self.original.has_learned(self.samples) => ContestResult::Dismissed,
            // Sound trainings do not learn more from these data.
            _ if self.original.has_learned_a_little() && self.flawless >= FUTILE => {
                ContestResult::Dismissed
            }
            _ => ContestResult::Failed,
        })
    }

    fn original_runs(&self) -> bool {
        !self.given_up && !self.original.is_over()
    }

    /// Returns true if the original has ended so well that nothing can be better, or attempts that were
    /// trained to their end did not beat it.
    fn original_is_fine(&self) -> bool {
        if self.original.has_ended_well(EXCELLENT, self.samples) {
            return true;
        }
        let enough = if self.original.best_skill() >= LEARNED_WELL { 1 } else { 2 };
        self.original.has_learned(self.samples) && self.completed >= enough
    }

    /// Returns true if `attempt` is better than the result that the original has reached so far, and
    /// that is not excellent.
    fn beats_original(&self, attempt: &Standing) -> bool {
        !self.original.has_ended_well(EXCELLENT, self.samples)
            && attempt.is_improved(&self.original, self.samples)
    }

    fn train(&mut self, tasks: &[(u32, f64)]) -> Result<Vec<Standing>, T::Error> {
        let standings = self.trainer.train(tasks)?;
        let original = tasks.iter().position(|(number, _)| *number == ORIGINAL);
        if let Some(standing) = original.and_then(|at| standings.get(at)) {
            self.original = standing.clone();
        }
        Ok(standings)
    }

    fn round(&mut self, round: Vec<Proposal<S>>) -> Result<(), T::Error> {
        let mut started = Vec::new();
        for proposal in round {
            if self.trainer.start(&proposal)? {
                started.push(proposal);
            }
        }
        if started.is_empty() || self.trainer.is_interrupted() {
            return Ok(());
        }
        let share = self.found_at.clamp(PROBATION[0], PROBATION[1]);
        let mut tasks: Vec<(u32, f64)> = started.iter().map(|it| (it.number, share)).collect();
        if self.original_runs() {
            tasks.push((ORIGINAL, (self.original.share + share).min(1.0)));
        }
        let standings = self.train(&tasks)?;
        if self.trainer.is_interrupted() {
            return Ok(());
        }
        let contestants: Vec<(Proposal<S>, Standing)> =
            started.into_iter().zip(standings).collect();
        let results: Vec<AttemptResult<S>> =
            contestants.iter().map(|(proposal, standing)| result(proposal, standing)).collect();
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
                true => self.close(proposal.number, ending, standing)?,
                false => self.defer(proposal, standing, ending)?,
            }
        }
        let Some((proposal, standing)) = best else {
            return Ok(());
        };
        self.give_up_original(&standing)?;
        self.complete(proposal, standing, false)
    }

    /// Trains an attempt to its end, and the original to the same shares of its steps. Unless
    /// `to_the_end`, it is deferred when it shows a likely problem or has learned nothing at [`CHECK`].
    /// An attempt that is longer than the budget allows is closed.
    fn complete(
        &mut self,
        proposal: Proposal<S>,
        mut standing: Standing,
        to_the_end: bool,
    ) -> Result<(), T::Error> {
        let planned = standing.facts.total_steps().unwrap_or(0) as f64;
        if !standing.is_over() && self.steps + planned > self.budget {
            let ending = ending(&proposal, &standing);
            return self.close(proposal.number, ending, standing);
        }
        while !standing.is_over() {
            let until = self.next_stop(standing.share);
            let mut tasks = vec![(proposal.number, until)];
            if self.original_runs() && !self.sequential {
                tasks.push((ORIGINAL, until));
            }
            if let Some(now) = self.train(&tasks)?.into_iter().next() {
                standing = now;
            }
            if self.sequential && standing.problem.is_none() {
                self.give_up_original(&standing)?;
                if self.original_runs() {
                    self.train(&[(ORIGINAL, until)])?;
                }
            }
            if self.trainer.is_interrupted() {
                return Ok(());
            }
            let has_problem = standing.problem.is_some();
            let learns = until != CHECK || standing.is_learning();
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
            self.give_up_original(&standing)?;
        }
        self.completed += u32::from(standing.finished);
        self.flawless += u32::from(standing.finished && standing.problem.is_none());
        self.reconsider_original(&standing)?;
        let attempt = result(&proposal, &standing);
        self.repaired = standing.finished && self.beats_original(&standing);
        if self.repaired {
            // The repaired attempt ends last.
            self.close_deferred()?;
            self.close(proposal.number, Ending::Repaired, standing)
        } else {
            self.close(proposal.number, ending(&proposal, &standing), standing)?;
            self.search.report_problem(&attempt);
            Ok(())
        }
    }

    /// Share of its steps up to which an attempt is trained next: where it waits for the original,
    /// where it is checked, or its end.
    fn next_stop(&self, done: f64) -> f64 {
        let stops = (-1..).map(|i| CHECK + f64::from(i) * SYNC_EVERY);
        let mut stops = stops.take_while(|stop| *stop < 1.0);
        let next = stops.find(|stop| *stop > done && (self.original_runs() || *stop == CHECK));
        next.unwrap_or(1.0)
    }

    /// Gives the original up if `attempt` is better already and it cannot catch up.
    fn give_up_original(&mut self, attempt: &Standing) -> Result<(), T::Error> {
        if self.original_runs()
            && self.beats_original(attempt)
            && attempt.steady_skill.is_some_and(|skill| self.original_cannot_reach(skill))
        {
            self.given_up = true;
            self.trainer.give_up_original()?;
        }
        Ok(())
    }

    /// Trains the original to its end after all if it might have reached the final result of
    /// `attempt`, which can be worse than its curve suggested.
    fn reconsider_original(&mut self, attempt: &Standing) -> Result<(), T::Error> {
        if self.given_up && !self.original_cannot_reach(attempt.best_skill()) {
            self.given_up = false;
            if self.original_runs() {
                self.train(&[(ORIGINAL, 1.0)])?;
            }
        }
        Ok(())
    }

    fn original_cannot_reach(&self, skill: f64) -> bool {
        let skills = self.original.skills.as_ref();
        skills.is_some_and(|skills| cannot_reach(skill, skills, self.original.planned_blocks))
    }

    /// Ends an attempt, and keeps its standing if it is the best so far.
    fn close(&mut self, number: u32, ending: Ending, standing: Standing) -> Result<(), T::Error> {
        self.steps += standing.share * standing.facts.total_steps().unwrap_or(0) as f64;
        let best = self.best.as_ref();
        let is_best = ending == Ending::Repaired
            || best.map_or(standing.has_model(), |(_, best)| standing.is_better(best));
        self.trainer.close(number, ending, &standing, is_best)?;
        if is_best {
            self.best = Some((number, standing));
        }
        Ok(())
    }

    /// Sets an attempt aside. If there are too many, the one with the least skill is closed.
    fn defer(
        &mut self,
        proposal: Proposal<S>,
        standing: Standing,
        ending: Ending,
    ) -> Result<(), T::Error> {
        self.deferred.push((proposal, standing, ending));
        if self.deferred.len() <= DEFERRED {
            return Ok(());
        }
        let least = self.extreme(|_| true, |new, old| new <= old).unwrap_or(0);
        let (proposal, standing, ending) = self.deferred.remove(least);
        self.close(proposal.number, ending, standing)
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

    fn close_deferred(&mut self) -> Result<(), T::Error> {
        for (proposal, standing, ending) in std::mem::take(&mut self.deferred) {
            self.close(proposal.number, ending, standing)?;
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
