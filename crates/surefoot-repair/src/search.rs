//! The search for a remedy that works: AutoTrainer's scheduler (section 4.3).
//!
//! The same problem again means the next remedy; another problem means that the plan is kept and a
//! new line of attack starts from it; when all remedies of all lines were tried, the search has
//! failed. Unlike the paper's it tries some remedies side by side, judges them after a short
//! probation, and lets only the best go on.

use crate::diff::diff;
use crate::order::order;
use crate::remedy::{Remedy, RemedyContext};
use std::collections::VecDeque;
use surefoot_diagnose::{Facts, Finding};
use surefoot_plan::Plan;

/// By how much more skill a attempt beats one that was to be tried before it.
const CLEARLY: f64 = 0.1;
/// Largest number of remedies that are combined.
const DEPTH: usize = 3;

/// The search for a remedy.
pub struct RepairSearch {
    remedies: Vec<Box<dyn Remedy>>,
    given: Plan,
    lines: Vec<Line>,
    /// Plans that were proposed, so that none is tried twice.
    tried: Vec<Plan>,
    /// Those that had no problem and showed no skill either: some networks learn late.
    reserve: Vec<AttemptResult>,
    proposed: u32,
}

/// Remedies to try on one plan.
struct Line {
    /// The number of the attempt it starts from; 0 is the plan as given.
    attempt: u32,
    plan: Plan,
    remedies: Vec<String>,
    reinitializes: bool,
    finding: Finding,
    facts: Facts,
    /// Remedies and variants to be tried.
    queue: VecDeque<(String, usize)>,
    depth: usize,
}

/// A remedy to be tried.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// Its number, from 1.
    pub number: u32,
    /// The attempt whose plan it changes; 0 is the plan as given.
    pub parent: u32,
    /// The finding it answers.
    pub finding: Finding,
    /// The ids of all remedies in its plan, in the order of their application.
    pub remedies: Vec<String>,
    /// True if one of them [re-initializes weights](Remedy::reinitializes).
    pub reinitializes: bool,
    /// Description of the change.
    pub message: String,
    /// Line diff of the plan.
    pub diff: String,
    /// The plan to train.
    pub plan: Plan,
    /// True if it is trained to its end even without skill on the way.
    pub run_to_end: bool,
}

/// How a proposal went in its probation.
#[derive(Clone, Debug)]
pub struct AttemptResult {
    /// The proposal.
    pub proposal: Proposal,
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
    /// The best of its round, without a problem: it goes on.
    Continue,
    /// Without a problem, but another did better.
    Superseded,
    /// The same problem again.
    Persists,
    /// Another problem.
    NewProblem,
}

impl RepairSearch {
    /// A search for what answers `finding` in `plan`, of which `facts` are known.
    pub fn new(
        plan: Plan,
        finding: Finding,
        facts: Facts,
        remedies: Vec<Box<dyn Remedy>>,
    ) -> RepairSearch {
        let mut search = RepairSearch {
            remedies,
            tried: vec![plan.clone()],
            given: plan.clone(),
            lines: Vec::new(),
            reserve: Vec::new(),
            proposed: 0,
        };
        search.open(0, plan, Vec::new(), finding, facts, 1);
        search
    }

    fn open(
        &mut self,
        attempt: u32,
        plan: Plan,
        remedies: Vec<String>,
        finding: Finding,
        facts: Facts,
        depth: usize,
    ) {
        let mut ids = order(&finding, &self.given.repair);
        for remedy in &self.remedies {
            let id = remedy.id().to_owned();
            let wanted = !ids.contains(&id) && !self.given.repair.forbid.contains(&id);
            if wanted && remedy.answers(&finding.problem) {
                ids.push(id);
            }
        }
        let mut drawing = self.remedies.iter().filter(|remedy| remedy.reinitializes());
        let reinitializes = drawing.any(|remedy| remedies.iter().any(|id| id == remedy.id()));
        // Every remedy once, in order, before any is tried in another form.
        let queue = (0..3).flat_map(|variant| ids.iter().map(move |id| (id.clone(), variant)));
        self.lines.push(Line {
            attempt,
            plan,
            remedies,
            reinitializes,
            finding,
            facts,
            queue: queue.collect(),
            depth,
        });
    }

    /// Next proposals, to be trained side by side; empty once everything was tried.
    pub fn next_round(&mut self) -> Vec<Proposal> {
        let parallel = self.given.repair.parallel;
        let mut round = Vec::new();
        while round.len() < parallel && (self.proposed as usize) < self.given.repair.attempts {
            // The newest line first: it is the one that came furthest.
            let Some(line) = self.lines.last_mut() else {
                break;
            };
            let other_forms = line.queue.front().is_some_and(|(_, variant)| *variant > 0);
            if other_forms && round.is_empty() && !self.reserve.is_empty() {
                // Before remedies are tried in other forms.
                break;
            }
            let Some((id, variant)) = line.queue.pop_front() else {
                // What was found on the way is dealt with before the line behind it goes on.
                if !round.is_empty() {
                    break;
                }
                self.lines.pop();
                continue;
            };
            let Some(remedy) = self.remedies.iter().find(|remedy| remedy.id() == id) else {
                continue;
            };
            let context = RemedyContext { finding: &line.finding, facts: &line.facts };
            let Ok(change) = remedy.apply(&line.plan, &context, variant) else {
                continue;
            };
            if self.tried.contains(&change.plan) {
                continue;
            }
            self.tried.push(change.plan.clone());
            self.proposed += 1;
            let mut remedies = line.remedies.clone();
            remedies.push(id);
            round.push(Proposal {
                number: self.proposed,
                parent: line.attempt,
                finding: line.finding.clone(),
                remedies,
                reinitializes: line.reinitializes || remedy.reinitializes(),
                message: change.message,
                diff: diff(&line.plan, &change.plan),
                plan: change.plan,
                run_to_end: false,
            });
        }
        if round.is_empty() {
            round.extend(self.run_to_end());
        }
        round
    }

    /// The best of those that showed no skill, to be trained to its end after all.
    fn run_to_end(&mut self) -> Option<Proposal> {
        let best = (0..self.reserve.len())
            .reduce(|a, b| if skill(&self.reserve[b]) > skill(&self.reserve[a]) { b } else { a })?;
        let reserved = self.reserve.swap_remove(best).proposal;
        self.proposed += 1;
        Some(Proposal { number: self.proposed, run_to_end: true, ..reserved })
    }

    /// Judges a round after its probation: which attempt goes on, and why not the others. The best is
    /// that without a problem and with the most skill; among equals the one that was to be tried
    /// first. Problems that are new open a line of attack.
    pub fn judge(&mut self, round: &[AttemptResult]) -> Vec<AttemptVerdict> {
        let mut best: Option<usize> = None;
        for (i, attempt) in round.iter().enumerate() {
            let better = best.is_none_or(|best| skill(attempt) > skill(&round[best]) + CLEARLY);
            if attempt.finding.is_none() && better {
                best = Some(i);
            }
        }
        let judge = |(i, attempt): (usize, &AttemptResult)| match &attempt.finding {
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
                self.follow(attempt);
            }
        }
        verdicts
    }

    /// A attempt that had gone on has no problem, but has not learned anything either by the time that
    /// others would have. They are tried before it is trained to its end.
    pub fn defer(&mut self, attempt: AttemptResult) {
        self.reserve.push(attempt);
    }

    /// A attempt that had gone on ran into a problem after all.
    pub fn report_problem(&mut self, attempt: &AttemptResult) {
        if let Some(found) = &attempt.finding
            && found.problem != attempt.proposal.finding.problem
        {
            self.follow(attempt);
        }
    }

    /// Opens a new line of attack where a attempt met another problem.
    fn follow(&mut self, attempt: &AttemptResult) {
        let Some(finding) = attempt.finding.clone() else {
            return;
        };
        let depth = attempt.proposal.remedies.len() + 1;
        if depth > DEPTH {
            return;
        }
        let proposal = &attempt.proposal;
        self.open(
            proposal.number,
            proposal.plan.clone(),
            proposal.remedies.clone(),
            finding,
            attempt.facts.clone(),
            depth,
        );
    }

    /// How deep the line is that is being tried.
    pub fn depth(&self) -> usize {
        self.lines.last().map_or(0, |line| line.depth)
    }
}

/// A attempt's skill; the least there is if it is not known.
fn skill(attempt: &AttemptResult) -> f64 {
    let known = attempt.skill.filter(|skill| !skill.is_nan());
    known.unwrap_or(f64::NEG_INFINITY)
}

impl std::fmt::Debug for RepairSearch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RepairSearch")
            .field("proposed", &self.proposed)
            .field("lines", &self.lines.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remedies;
    use crate::remedies::fixture::{facts, finding, plan};
    use surefoot_diagnose::Problem;

    fn search(problem: Problem) -> RepairSearch {
        RepairSearch::new(plan(), finding(problem), facts(), remedies::all())
    }

    fn attempt(proposal: &Proposal, found: Option<Problem>, skill: f64) -> AttemptResult {
        AttemptResult {
            proposal: proposal.clone(),
            finding: found.map(finding),
            facts: facts(),
            skill: Some(skill),
        }
    }

    #[test]
    fn the_same_problem_again_means_the_next_remedy() {
        let mut search = search(Problem::VANISHING_GRADIENT);
        let round = search.next_round();
        let ids: Vec<&str> = round.iter().map(|p| p.remedies[0].as_str()).collect();
        assert_eq!(ids, ["activation", "batch_norm"]);
        let attempts: Vec<AttemptResult> = round
            .iter()
            .map(|proposal| attempt(proposal, Some(Problem::VANISHING_GRADIENT), 0.0))
            .collect();
        assert_eq!(search.judge(&attempts), [AttemptVerdict::Persists; 2]);
        let next = search.next_round();
        assert_eq!((next[0].number, next[0].parent), (3, 0));
    }

    #[test]
    fn another_problem_means_a_new_line_from_that_plan() {
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
    fn the_best_of_those_without_a_problem_goes_on() {
        let mut search = search(Problem::VANISHING_GRADIENT);
        let round = search.next_round();
        let attempts = [attempt(&round[0], None, 0.2), attempt(&round[1], None, 0.6)];
        let judged = search.judge(&attempts);
        assert_eq!(judged, [AttemptVerdict::Superseded, AttemptVerdict::Continue]);
    }

    #[test]
    fn what_was_postponed_is_the_last_hope() {
        let mut wrong = plan();
        if let Some(place) = wrong.model[2].activation_mut() {
            *place = surefoot_plan::Activation::Relu;
        }
        let finding = finding(Problem::IMPROPER_OUTPUT_ACTIVATION);
        let mut search = RepairSearch::new(wrong, finding, facts(), remedies::all());
        let round = search.next_round();
        assert_eq!(round.len(), 1);
        search.defer(attempt(&round[0], None, 0.05));
        let last = search.next_round();
        assert!(last[0].run_to_end && last[0].plan == round[0].plan);
        assert!(search.next_round().is_empty());
    }

    #[test]
    fn everything_is_tried_once_and_then_there_is_nothing_left() {
        let mut search = search(Problem::DYING_RELU);
        let mut plans: Vec<Plan> = vec![plan()];
        loop {
            let round = search.next_round();
            if round.is_empty() {
                break;
            }
            let attempts: Vec<AttemptResult> = round
                .iter()
                .map(|proposal| attempt(proposal, Some(Problem::DYING_RELU), 0.0))
                .collect();
            for proposal in &round {
                assert!(!plans.contains(&proposal.plan), "{}", proposal.message);
                proposal.plan.validate().unwrap();
                plans.push(proposal.plan.clone());
            }
            search.judge(&attempts);
        }
        assert!(plans.len() > 5 && plans.len() <= 17, "{}", plans.len());
    }
}
