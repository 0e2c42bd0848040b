//! The search for a remedy that works: AutoTrainer's scheduler (section 4.3).
//!
//! The same problem again leads to the next remedy. Another problem opens a branch: the change is kept
//! and remedies for the new problem are tried on top of it. When all remedies of all branches were
//! tried, the search has failed. Unlike the paper's, it tries some remedies side by side, judges them
//! after a short probation, and continues only the best.

use crate::action::Action;
use crate::order::order;
use crate::remedy::{Remedy, RemedyContext};
use crate::subject::Subject;
use std::collections::VecDeque;
use surefoot_diagnose::{Facts, Finding, Problem};

/// Skill by which an attempt must beat one that comes before it in the order.
const CLEARLY: f64 = 0.1;
/// Largest number of remedies that are combined.
const DEPTH: usize = 3;
/// Variants of a remedy that are tried: batch sizes have the most, from 32 to 256.
const VARIANTS: usize = 4;

/// Faults of the plan itself. Those found together are repaired together, in the first attempt.
const PLAN_FAULTS: [Problem; 5] = [
    Problem::ABNORMAL_DATA,
    Problem::UNSCALED_TARGETS,
    Problem::IMPROPER_OUTPUT_UNITS,
    Problem::IMPROPER_OUTPUT_ACTIVATION,
    Problem::IMPROPER_LOSS,
];

/// Remedies that change the data and not the training.
const DATA_REMEDIES: [&str; 2] = ["normalize_data", "scale_targets"];

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
    /// True for AutoTrainer's schedule as published: its remedies and no others, in its order whatever
    /// the evidence, each in all variants before the next, and every problem on its own.
    pub published: bool,
}

impl Default for RepairConfig {
    fn default() -> Self {
        Self { forbid: Vec::new(), order: Vec::new(), parallel: 2, attempts: 16, published: false }
    }
}

impl RepairConfig {
    /// AutoTrainer's schedule, one remedy at a time.
    pub fn autotrainer() -> Self {
        Self { parallel: 1, published: true, ..Self::default() }
    }
}

/// The search for a remedy that works.
pub struct RepairSearch<S> {
    remedies: Vec<Box<dyn Remedy>>,
    config: RepairConfig,
    branches: Vec<Branch<S>>,
    /// The proposal that repairs all faults of the plan.
    first: Option<Proposal<S>>,
    /// Subjects that were proposed, so that none is tried twice.
    tried: Vec<S>,
    proposed: u32,
}

/// Remedies to try on one subject.
#[derive(Clone)]
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
    /// Searches for a remedy against `finding` in `subject`; `others` are further problems and `facts`
    /// the facts of its run.
    pub fn new(
        subject: S,
        finding: Finding,
        others: &[Finding],
        facts: Facts,
        remedies: Vec<Box<dyn Remedy>>,
        config: RepairConfig,
    ) -> Self {
        let mut search = Self {
            remedies,
            config,
            tried: vec![subject.clone()],
            branches: Vec::new(),
            first: None,
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
        let is_fault = |problem: &Problem| PLAN_FAULTS.contains(problem);
        let has_fault =
            is_fault(&branch.finding.problem) || others.iter().any(|it| is_fault(&it.problem));
        if has_fault && !search.config.published {
            search.first = search.repair_faults(&branch, others);
        }
        search.branches.push(branch);
        search
    }

    /// The proposal that repairs all faults of the plan together; `None` if the only one is what the
    /// search starts with anyway.
    fn repair_faults(&self, branch: &Branch<S>, others: &[Finding]) -> Option<Proposal<S>> {
        let mut fixed = branch.clone();
        let mut last: Option<Proposal<S>> = None;
        let mut messages = Vec::new();
        for problem in PLAN_FAULTS {
            let mut findings = std::iter::once(&branch.finding).chain(others);
            let Some(finding) = findings.find(|finding| finding.problem == problem) else {
                continue;
            };
            fixed.finding = finding.clone();
            let ids = order(finding, &self.config);
            let remedy = self
                .remedies
                .iter()
                .find(|remedy| Some(remedy.id()) == ids.first().map(|id| &**id));
            let Some(proposal) = remedy.and_then(|remedy| fixed.propose(&**remedy, 0)) else {
                continue;
            };
            if let Some(remedy) = remedy {
                fixed.note_changes(&**remedy);
            }
            fixed.subject = proposal.subject.clone();
            fixed.remedies.clone_from(&proposal.remedies);
            fixed.reinitializes = proposal.reinitializes;
            messages.push(proposal.message.clone());
            last = Some(proposal);
        }
        let is_next_anyway = PLAN_FAULTS.contains(&branch.finding.problem) && messages.len() == 1;
        let combined = last.filter(|_| !is_next_anyway)?;
        Some(Proposal {
            finding: branch.finding.clone(),
            message: messages.join(" "),
            diff: branch.subject.diff(&combined.subject),
            ..combined
        })
    }

    /// Every remedy once, in order, before any is tried in another variant. AutoTrainer's schedule has
    /// all variants of a remedy before the next.
    fn queue(&self, finding: &Finding) -> VecDeque<(String, usize)> {
        let mut ids = order(finding, &self.config);
        for remedy in &self.remedies {
            let id = remedy.id().to_owned();
            let allowed = !ids.contains(&id) && !self.config.forbid.contains(&id);
            if allowed && remedy.answers(&finding.problem) {
                ids.push(id);
            }
        }
        let mut queue: Vec<(String, usize)> = (0..VARIANTS)
            .flat_map(|variant| ids.iter().map(move |id| (id.clone(), variant)))
            .collect();
        if self.config.published {
            queue.sort_by_key(|(id, _)| ids.iter().position(|other| other == id));
        }
        queue.into()
    }

    /// Returns the next proposals, to be trained side by side; empty once everything was tried.
    pub fn next_round(&mut self) -> Vec<Proposal<S>> {
        let mut round: Vec<Proposal<S>> = Vec::new();
        if let Some(mut first) = self.first.take() {
            self.tried.push(first.subject.clone());
            self.proposed += 1;
            first.number = self.proposed;
            round.push(first);
        }
        while round.len() < self.config.parallel && (self.proposed as usize) < self.config.attempts
        {
            // The newest branch first: it has solved the most problems.
            let Some(branch) = self.branches.last_mut() else {
                break;
            };
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
        round
    }

    /// Returns true if the next remedy has not been tried in any variant.
    pub fn has_untried_remedy(&self) -> bool {
        let mut queues = self.branches.iter().rev().filter_map(|branch| branch.queue.front());
        queues.next().is_some_and(|(_, variant)| *variant == 0)
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

    /// Reports an attempt that is not a repair. A new problem opens a branch. So does an attempt that
    /// repaired a fault of the plan or scaled its data and still learned too little: it is too slow.
    pub fn report_problem(&mut self, attempt: &AttemptResult<S>) {
        let answered = &attempt.proposal.finding.problem;
        let last = attempt.proposal.remedies.last();
        let scales = last.is_some_and(|id| DATA_REMEDIES.contains(&id.as_str()));
        let repairs_fault = PLAN_FAULTS.contains(answered) || scales;
        match &attempt.finding {
            Some(found) if found.problem != *answered => self.open_branch(attempt),
            None if repairs_fault && !self.config.published => {
                let (step, message) =
                    (attempt.proposal.finding.step, "The attempt learned too little.");
                let finding = Finding::new(Problem::SLOW_CONVERGENCE, step, message);
                self.open_branch(&AttemptResult { finding: Some(finding), ..attempt.clone() });
            }
            _ => {}
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
    /// Updates the facts that later remedies depend on.
    fn note_changes(&mut self, remedy: &dyn Remedy) {
        let context = RemedyContext { finding: &self.finding, facts: &self.facts };
        for action in remedy.propose(&context, 0).unwrap_or_default() {
            match action {
                Action::SetOutputUnits(units) => {
                    if let Some(output) = self.facts.layers.last_mut() {
                        output.units = Some(units);
                        output.output_shape = vec![units];
                    }
                }
                Action::SetOutputActivation(activation) => {
                    if let Some(output) = self.facts.layers.last_mut() {
                        output.activation = Some(activation);
                    }
                }
                Action::SwapLoss { from_logits, .. } => self.facts.from_logits = from_logits,
                _ => {}
            }
        }
    }

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
    use surefoot_diagnose::{Measure, Problem};

    fn search(problem: Problem) -> RepairSearch<Advice> {
        let (subject, config) = (Advice::default(), RepairConfig::default());
        RepairSearch::new(subject, finding(problem), &[], facts(), remedies::all(), config)
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
    fn autotrainers_schedule_tries_all_variants_of_one_remedy_at_a_time() {
        let mut search = RepairSearch::new(
            Advice::default(),
            finding(Problem::DYING_RELU).with(Measure::LargestUpdateRatio, 0.5, None),
            &[finding(Problem::IMPROPER_LOSS)],
            facts(),
            remedies::autotrainer(),
            RepairConfig::autotrainer(),
        );
        let rounds = std::iter::repeat_with(|| search.next_round());
        let rounds: Vec<_> = rounds.take_while(|round| !round.is_empty()).collect();
        assert!(rounds.iter().all(|round| round.len() == 1));
        let ids: Vec<&str> = rounds.iter().map(|round| &*round[0].remedies[0]).collect();
        assert_eq!(ids, ["activation", "activation", "activation", "batch_norm", "initializer"]);
    }

    #[test]
    fn faults_of_the_plan_are_repaired_together_first() {
        let others = [finding(Problem::IMPROPER_LOSS)];
        let mut search = RepairSearch::new(
            Advice::default(),
            finding(Problem::IMPROPER_OUTPUT_ACTIVATION),
            &others,
            facts(),
            remedies::all(),
            RepairConfig::default(),
        );
        let round = search.next_round();
        assert_eq!(round[0].remedies, ["activation", "loss"]);
        assert_eq!(
            round[0].message,
            "Set the output activation to sigmoid. Replace the loss with binary cross-entropy."
        );
        assert_eq!(round[1].remedies, ["activation"]);
    }

    #[test]
    fn a_fault_of_the_plan_comes_before_what_it_causes() {
        let others = [finding(Problem::IMPROPER_LOSS)];
        let mut search = RepairSearch::new(
            Advice::default(),
            finding(Problem::NON_FINITE_LOSS),
            &others,
            facts(),
            remedies::all(),
            RepairConfig::default(),
        );
        assert_eq!(search.next_round()[0].remedies, ["loss"]);
    }

    #[test]
    fn a_repaired_fault_that_is_not_enough_is_treated_as_slow() {
        let mut search = search(Problem::IMPROPER_OUTPUT_ACTIVATION);
        let round = search.next_round();
        assert_eq!(round.len(), 1);
        search.report_problem(&attempt(&round[0], None, 0.05));
        assert!(search.has_untried_remedy());
        assert_eq!(search.next_round()[0].remedies, ["activation", "optimizer"]);
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
