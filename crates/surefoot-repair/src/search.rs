//! The search for a remedy that works: AutoTrainer's scheduler (section 4.3).
//!
//! The same problem again leads to the next remedy. Another problem opens a branch: the change is kept
//! and remedies for the new problem are tried on top of it. When all remedies of all branches were
//! tried, the search has failed. Unlike the paper's, it tries some remedies side by side, judges them
//! after a short probation, and continues only the best.

use crate::order::order;
use crate::remedy::{Remedy, RemedyContext};
use crate::subject::Subject;
use std::collections::VecDeque;
use surefoot_diagnose::{Facts, Finding};

/// Skill by which an attempt must beat one that comes before it in the order.
const CLEARLY: f64 = 0.1;
/// Largest number of remedies that are combined.
const DEPTH: usize = 3;
/// Variants of a remedy that are tried.
const VARIANTS: usize = 3;

/// Options of a [`RepairSearch`].
#[derive(Clone, Debug, PartialEq)]
pub struct RepairConfig {
    /// Ids of remedies that must not be tried.
    pub forbid: Vec<String>,
    /// Ids of remedies to try first, in this order, if they answer the problem.
    pub order: Vec<String>,
    /// Number of remedies tried side by side.
    pub parallel: usize,
    /// Maximum number of attempts.
    pub attempts: usize,
}

impl Default for RepairConfig {
    fn default() -> Self {
        Self { forbid: Vec::new(), order: Vec::new(), parallel: 2, attempts: 16 }
    }
}

/// The search for a remedy that works.
pub struct RepairSearch<S> {
    remedies: Vec<Box<dyn Remedy>>,
    config: RepairConfig,
    branches: Vec<Branch<S>>,
    /// Subjects that were proposed, so that none is tried twice.
    tried: Vec<S>,
    /// Attempts without a problem and without skill: some networks learn late.
    deferred: Vec<AttemptResult<S>>,
    proposed: u32,
}

/// Remedies to try on one subject.
struct Branch<S> {
    /// The attempt it starts from; 0 is the subject as given.
    attempt: u32,
    subject: S,
    remedies: Vec<String>,
    reinitializes: bool,
    finding: Finding,
    facts: Facts,
    /// Remedies and variants to try.
    queue: VecDeque<(String, usize)>,
}

/// A change to be tried.
#[derive(Clone, Debug)]
pub struct Proposal<S> {
    /// Attempt number, from 1.
    pub number: u32,
    /// The attempt that it changes; 0 is the subject as given.
    pub parent: u32,
    /// The finding that it answers.
    pub finding: Finding,
    /// Ids of all remedies in it, in the order of their application.
    pub remedies: Vec<String>,
    /// True if one of its actions [re-initializes weights](crate::Action::reinitializes).
    pub reinitializes: bool,
    /// Description of the change.
    pub message: String,
    /// Difference to the parent, see [`Subject::diff`].
    pub diff: String,
    /// The changed subject.
    pub subject: S,
    /// True if it is trained to its end even if it shows no skill on the way.
    pub run_to_end: bool,
}

/// Result of a proposal after its probation.
#[derive(Clone, Debug)]
pub struct AttemptResult<S> {
    /// The proposal.
    pub proposal: Proposal<S>,
    /// The problem that ended it.
    pub finding: Option<Finding>,
    /// Facts of the run.
    pub facts: Facts,
    /// Skill; see [`Block::skill`](surefoot_diagnose::Block::skill).
    pub skill: Option<f64>,
}

/// Decision on an attempt after its probation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptVerdict {
    /// The best of its round, without a problem: it continues.
    Continue,
    /// Without a problem, but another did better.
    Superseded,
    /// The same problem again.
    Persists,
    /// Another problem.
    NewProblem,
}

impl<S: Subject> RepairSearch<S> {
    /// Searches for a remedy against `finding` in `subject`; `facts` are those of its run.
    pub fn new(
        subject: S,
        finding: Finding,
        facts: Facts,
        remedies: Vec<Box<dyn Remedy>>,
        config: RepairConfig,
    ) -> Self {
        let mut search = Self {
            remedies,
            config,
            tried: vec![subject.clone()],
            branches: Vec::new(),
            deferred: Vec::new(),
            proposed: 0,
        };
        let branch = Branch {
            attempt: 0,
            subject,
            remedies: Vec::new(),
            reinitializes: false,
            queue: search.queue(&finding),
            finding,
            facts,
        };
        search.branches.push(branch);
        search
    }

    /// Every remedy once, in order, before any is tried in another variant.
    fn queue(&self, finding: &Finding) -> VecDeque<(String, usize)> {
        let mut ids = order(finding, &self.config);
        for remedy in &self.remedies {
            let id = remedy.id().to_owned();
            let allowed = !ids.contains(&id) && !self.config.forbid.contains(&id);
            if allowed && remedy.answers(&finding.problem) {
                ids.push(id);
            }
        }
        let variants = |variant| ids.iter().map(move |id| (id.clone(), variant));
        (0..VARIANTS).flat_map(variants).collect()
    }

    /// Returns the next proposals, to be trained side by side; empty once everything was tried.
    pub fn next_round(&mut self) -> Vec<Proposal<S>> {
        let mut round: Vec<Proposal<S>> = Vec::new();
        while round.len() < self.config.parallel && (self.proposed as usize) < self.config.attempts
        {
            // The newest branch first: it has solved the most problems.
            let Some(branch) = self.branches.last_mut() else {
                break;
            };
            let other_variants = branch.queue.front().is_some_and(|(_, variant)| *variant > 0);
            if other_variants && round.is_empty() && !self.deferred.is_empty() {
                break;
            }
            let Some((id, variant)) = branch.queue.pop_front() else {
                // The round of a branch is judged before the branch below it continues.
                if !round.is_empty() {
                    break;
                }
                self.branches.pop();
                continue;
            };
            let Some(remedy) = self.remedies.iter().find(|remedy| remedy.id() == id) else {
                continue;
            };
            let Some(mut proposal) = branch.propose(&**remedy, variant) else {
                continue;
            };
            if self.tried.contains(&proposal.subject) {
                continue;
            }
            self.tried.push(proposal.subject.clone());
            self.proposed += 1;
            proposal.number = self.proposed;
            round.push(proposal);
        }
        if round.is_empty() {
            round.extend(self.run_to_end());
        }
        round
    }

    /// The best of the deferred attempts, to be trained to its end after all.
    fn run_to_end(&mut self) -> Option<Proposal<S>> {
        let skill = |i: usize| skill(&self.deferred[i]);
        let best =
            (0..self.deferred.len()).reduce(|a, b| if skill(b) > skill(a) { b } else { a })?;
        let deferred = self.deferred.swap_remove(best).proposal;
        self.proposed += 1;
        Some(Proposal { number: self.proposed, run_to_end: true, ..deferred })
    }

    /// Judges a round after its probation. The attempt without a problem and with the most skill
    /// continues; among equals the one that is first in the order. If none continues, the new problem
    /// of the attempt with the most skill opens a branch.
    pub fn judge(&mut self, round: &[AttemptResult<S>]) -> Vec<AttemptVerdict> {
        let mut best: Option<usize> = None;
        for (i, attempt) in round.iter().enumerate() {
            let better = best.is_none_or(|best| skill(attempt) > skill(&round[best]) + CLEARLY);
            if attempt.finding.is_none() && better {
                best = Some(i);
            }
        }
        let judge = |(i, attempt): (usize, &AttemptResult<S>)| match &attempt.finding {
            None if best == Some(i) => AttemptVerdict::Continue,
            None => AttemptVerdict::Superseded,
            Some(found) if found.problem == attempt.proposal.finding.problem => {
                AttemptVerdict::Persists
            }
            Some(_) => AttemptVerdict::NewProblem,
        };
        let verdicts: Vec<AttemptVerdict> = round.iter().enumerate().map(judge).collect();
        if best.is_none() {
            let new = round.iter().zip(&verdicts);
            let new = new.filter(|(_, verdict)| **verdict == AttemptVerdict::NewProblem);
            let most = new.reduce(|a, b| if skill(b.0) > skill(a.0) { b } else { a });
            if let Some((attempt, _)) = most {
                self.open_branch(attempt);
            }
        }
        verdicts
    }

    /// Defers an attempt that has no problem but has learned nothing by the time that others would
    /// have. Other remedies are tried before it is trained to its end.
    pub fn defer(&mut self, attempt: AttemptResult<S>) {
        self.deferred.push(attempt);
    }

    /// Reports a problem of an attempt that had continued.
    pub fn report_problem(&mut self, attempt: &AttemptResult<S>) {
        if let Some(found) = &attempt.finding
            && found.problem != attempt.proposal.finding.problem
        {
            self.open_branch(attempt);
        }
    }

    /// Opens a branch for the new problem of an attempt.
    fn open_branch(&mut self, attempt: &AttemptResult<S>) {
        let proposal = &attempt.proposal;
        let Some(finding) = attempt.finding.clone().filter(|_| proposal.remedies.len() < DEPTH)
        else {
            return;
        };
        self.branches.push(Branch {
            attempt: proposal.number,
            subject: proposal.subject.clone(),
            remedies: proposal.remedies.clone(),
            reinitializes: proposal.reinitializes,
            queue: self.queue(&finding),
            finding,
            facts: attempt.facts.clone(),
        });
    }
}

impl<S: Subject> Branch<S> {
    /// The proposal of a remedy, not numbered yet; `None` if the remedy does not apply.
    fn propose(&self, remedy: &dyn Remedy, variant: usize) -> Option<Proposal<S>> {
        let context = RemedyContext { finding: &self.finding, facts: &self.facts };
        let actions = remedy.propose(&context, variant).ok()?;
        let mut subject = self.subject.clone();
        let mut messages = Vec::new();
        let mut reinitializes = self.reinitializes;
        for (i, action) in actions.iter().enumerate() {
            let before = subject.clone();
            let applied = subject.supports(action).then(|| subject.apply(action));
            match applied {
                Some(Ok(message)) if subject != before => {
                    messages.push(message);
                    reinitializes |= action.reinitializes();
                }
                Some(Ok(_)) => {}
                _ if i == 0 => return None,
                _ => subject = before,
            }
        }
        if subject == self.subject {
            return None;
        }
        let mut remedies = self.remedies.clone();
        remedies.push(remedy.id().to_owned());
        Some(Proposal {
            number: 0,
            parent: self.attempt,
            finding: self.finding.clone(),
            remedies,
            reinitializes,
            message: messages.join(" "),
            diff: self.subject.diff(&subject),
            subject,
            run_to_end: false,
        })
    }
}

/// Skill of an attempt; negative infinity if unknown.
fn skill<S>(attempt: &AttemptResult<S>) -> f64 {
    let known = attempt.skill.filter(|skill| !skill.is_nan());
    known.unwrap_or(f64::NEG_INFINITY)
}

impl<S> std::fmt::Debug for RepairSearch<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RepairSearch")
            .field("proposed", &self.proposed)
            .field("branches", &self.branches.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::Advice;
    use crate::remedies;
    use crate::remedies::fixture::{facts, finding};
    use surefoot_diagnose::Problem;

    fn search(problem: Problem) -> RepairSearch<Advice> {
        let (subject, config) = (Advice::default(), RepairConfig::default());
        RepairSearch::new(subject, finding(problem), facts(), remedies::all(), config)
    }

    fn attempt(
        proposal: &Proposal<Advice>,
        found: Option<Problem>,
        skill: f64,
    ) -> AttemptResult<Advice> {
        AttemptResult {
            proposal: proposal.clone(),
            finding: found.map(finding),
            facts: facts(),
            skill: Some(skill),
        }
    }

    #[test]
    fn the_same_problem_leads_to_the_next_remedy() {
        let mut search = search(Problem::VANISHING_GRADIENT);
        let round = search.next_round();
        let ids: Vec<&str> = round.iter().map(|p| p.remedies[0].as_str()).collect();
        assert_eq!(ids, ["activation", "batch_norm"]);
        let attempts: Vec<AttemptResult<_>> = round
            .iter()
            .map(|proposal| attempt(proposal, Some(Problem::VANISHING_GRADIENT), 0.0))
            .collect();
        assert_eq!(search.judge(&attempts), [AttemptVerdict::Persists; 2]);
        let next = search.next_round();
        assert_eq!((next[0].number, next[0].parent), (3, 0));
    }

    #[test]
    fn another_problem_opens_a_branch() {
        let mut search = search(Problem::VANISHING_GRADIENT);
        let round = search.next_round();
        let attempts = [
            attempt(&round[0], Some(Problem::VANISHING_GRADIENT), 0.5),
            attempt(&round[1], Some(Problem::SLOW_CONVERGENCE), 0.1),
        ];
        let judged = search.judge(&attempts);
        assert_eq!(judged, [AttemptVerdict::Persists, AttemptVerdict::NewProblem]);
        let next = search.next_round();
        assert_eq!(next[0].parent, round[1].number);
        assert_eq!(next[0].remedies, ["batch_norm", "optimizer"]);
    }

    #[test]
    fn the_best_attempt_without_a_problem_continues() {
        let mut search = search(Problem::VANISHING_GRADIENT);
        let round = search.next_round();
        let attempts = [attempt(&round[0], None, 0.2), attempt(&round[1], None, 0.6)];
        let judged = search.judge(&attempts);
        assert_eq!(judged, [AttemptVerdict::Superseded, AttemptVerdict::Continue]);
    }

    #[test]
    fn a_deferred_attempt_is_trained_to_its_end_after_all_others() {
        let mut search = search(Problem::IMPROPER_OUTPUT_ACTIVATION);
        let round = search.next_round();
        assert_eq!(round.len(), 1);
        search.defer(attempt(&round[0], None, 0.05));
        let last = search.next_round();
        assert!(last[0].run_to_end && last[0].subject == round[0].subject);
        assert!(search.next_round().is_empty());
    }

    #[test]
    fn no_subject_is_proposed_twice() {
        let mut search = search(Problem::DYING_RELU);
        let mut subjects = vec![Advice::default()];
        loop {
            let round = search.next_round();
            if round.is_empty() {
                break;
            }
            let persists = |proposal| attempt(proposal, Some(Problem::DYING_RELU), 0.0);
            let attempts: Vec<AttemptResult<_>> = round.iter().map(persists).collect();
            for proposal in &round {
                assert!(!subjects.contains(&proposal.subject), "{}", proposal.message);
                subjects.push(proposal.subject.clone());
            }
            search.judge(&attempts);
        }
        assert!(subjects.len() > 5 && subjects.len() <= 17, "{}", subjects.len());
    }
}
