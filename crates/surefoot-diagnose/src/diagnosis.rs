//! Runs detectors on the observations of one run.

use crate::curve::Curve;
use crate::detector::{Context, Detector, Quantity};
use crate::facts::Facts;
use crate::finding::{Finding, Problem, Severity};
use crate::observation::{Evaluation, LayerInfo, Observation};
use crate::thresholds::{Rules, Thresholds};
use std::any::Any;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Diagnosis of one run: feeds observations to detectors and collects their findings.
pub struct Diagnosis {
    facts: Facts,
    thresholds: Thresholds,
    curve: Curve,
    /// Detectors without a finding so far.
    detectors: Vec<Box<dyn Detector>>,
    findings: Vec<Finding>,
    /// Findings that wait for the next check.
    held: Vec<Finding>,
    /// Completed iterations.
    iterations: usize,
    panics: Vec<DetectorPanic>,
    /// True once the detectors have seen the facts.
    started: bool,
}

/// A detector that panicked. It is removed; the run and the other detectors continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetectorPanic {
    /// The problem it looked for.
    pub problem: Problem,
    /// Step of the panic.
    pub step: u64,
    /// Message of the panic.
    pub message: String,
}

/// Configures a [`Diagnosis`]. Everything has a default.
#[derive(Default)]
pub struct Builder {
    facts: Facts,
    thresholds: Thresholds,
    detectors: Option<Vec<Box<dyn Detector>>>,
    added: Vec<Box<dyn Detector>>,
}

impl Builder {
    /// Sets all facts of the run.
    #[must_use]
    pub fn facts(mut self, facts: Facts) -> Builder {
        self.facts = facts;
        self
    }

    /// Sets the layers of the model, in the order of [`Observation::layers`].
    #[must_use]
    pub fn layers(mut self, layers: Vec<LayerInfo>) -> Builder {
        self.facts.layers = layers;
        self
    }

    /// Sets the number of planned optimizer steps. Without it, detectors that depend on the end of
    /// the training are more cautious or silent.
    #[must_use]
    pub fn total_steps(mut self, steps: u64) -> Builder {
        (self.facts.steps_per_epoch, self.facts.epochs) = (Some(steps), Some(1));
        self
    }

    /// Sets the limits of the detectors.
    #[must_use]
    pub fn thresholds(mut self, thresholds: Thresholds) -> Builder {
        self.thresholds = thresholds;
        self
    }

    /// Replaces the detectors of the [rules](crate::Rules) by these.
    #[must_use]
    pub fn detectors(mut self, detectors: Vec<Box<dyn Detector>>) -> Builder {
        self.detectors = Some(detectors);
        self
    }

    /// Adds a detector.
    #[must_use]
    pub fn detector(mut self, detector: impl Detector + 'static) -> Builder {
        self.added.push(Box::new(detector));
        self
    }

    /// Creates the diagnosis.
    pub fn build(self) -> Diagnosis {
        let mut detectors = self.detectors.unwrap_or_else(|| self.thresholds.rules.detectors());
        detectors.extend(self.added);
        Diagnosis::with(self.facts, self.thresholds, detectors)
    }
}

impl Diagnosis {
    /// Configures a diagnosis with defaults for everything.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Creates a diagnosis with the detectors of the [rules](crate::Rules) that are not switched off.
    pub fn new(facts: Facts, thresholds: Thresholds) -> Diagnosis {
        let detectors = thresholds.rules.detectors();
        Diagnosis::with(facts, thresholds, detectors)
    }

    /// Creates a diagnosis with those of `detectors` that are not switched off.
    pub fn with(
        facts: Facts,
        thresholds: Thresholds,
        mut detectors: Vec<Box<dyn Detector>>,
    ) -> Diagnosis {
        detectors.retain(|detector| !thresholds.off.contains(&detector.problem()));
        Diagnosis {
            curve: Curve::new(&facts, &thresholds),
            facts,
            thresholds,
            detectors,
            findings: Vec::new(),
            held: Vec::new(),
            iterations: 0,
            panics: Vec::new(),
            started: false,
        }
    }

    /// Removes the detectors that need more than the `available` quantities. Returns their problems
    /// with the missing quantities.
    pub fn restrict_to(&mut self, available: &BTreeSet<Quantity>) -> Vec<(Problem, Vec<Quantity>)> {
        let mut removed = Vec::new();
        self.detectors.retain(|detector| {
            let needs = detector.needs().iter().copied();
            let missing: Vec<Quantity> = needs.filter(|need| !available.contains(need)).collect();
            let stays = missing.is_empty();
            if !stays {
                removed.push((detector.problem(), missing));
            }
            stays
        });
        removed
    }

    /// Removes the detectors of these problems, whose rules turned out not to hold for this run.
    pub fn switch_off(&mut self, problems: &[Problem]) {
        self.detectors.retain(|detector| !problems.contains(&detector.problem()));
    }

    /// Sets the layers of a run that did not describe them at its start.
    pub fn set_layers(&mut self, layers: Vec<LayerInfo>) {
        self.facts.layers = layers;
    }

    /// Problems that detectors still look for.
    pub fn active_problems(&self) -> Vec<Problem> {
        self.detectors.iter().map(|d| d.problem()).collect()
    }

    /// Looks for problems that the facts alone show and returns the findings. The first step or
    /// evaluation does this too, if it was not done before.
    pub fn start(&mut self) -> &[Finding] {
        let before = self.findings.len();
        if !std::mem::replace(&mut self.started, true) {
            self.call(|detector, context| detector.start(context));
        }
        &self.findings[before..]
    }

    /// Processes a step and returns its findings.
    pub fn observe(&mut self, seen: &Observation) -> &[Finding] {
        let before = self.findings.len();
        self.start();
        let iteration_ends = self.curve.push(seen, &self.facts);
        self.iterations += usize::from(iteration_ends);
        let checks =
            iteration_ends && self.iterations.is_multiple_of(self.thresholds.check_every.max(1));
        let reviews = checks && !self.is_broken();
        self.call(|detector, context| {
            let found = detector.observe(seen, context);
            found.or_else(|| reviews.then(|| detector.review(context)).flatten())
        });
        if checks {
            self.release();
        }
        &self.findings[before..]
    }

    /// Processes an evaluation and returns its findings.
    pub fn evaluate(&mut self, evaluation: &Evaluation) -> &[Finding] {
        let before = self.findings.len();
        self.start();
        self.curve.evaluate(evaluation);
        self.call(|detector, context| detector.evaluate(evaluation, context));
        &self.findings[before..]
    }

    /// Ends a run whose steps are all done and returns the last findings.
    pub fn finish(&mut self) -> &[Finding] {
        let before = self.findings.len();
        if !self.is_broken() {
            self.call(|detector, context| detector.finish(context));
        }
        self.release();
        &self.findings[before..]
    }

    /// Returns true while values are NaN or infinite: what the curve shows then is a consequence, not
    /// another problem. AutoTrainer's rules, as published, look at it all the same.
    fn is_broken(&self) -> bool {
        self.curve.is_broken() && self.thresholds.rules != Rules::AutoTrainer
    }

    /// Reports the findings that were held back, at the current step.
    fn release(&mut self) {
        let step = self.curve.step();
        for finding in self.held.drain(..) {
            self.findings.push(Finding { step, ..finding });
        }
    }

    /// Calls every detector. Findings between two checks are held back, and symptoms of an earlier
    /// problem are dropped, except with AutoTrainer's rules.
    fn call(&mut self, call: impl Fn(&mut dyn Detector, &Context<'_>) -> Option<Finding>) {
        let context =
            Context { facts: &self.facts, curve: &self.curve, thresholds: &self.thresholds };
        let holds = self.thresholds.check_every > 1;
        let drops = self.thresholds.rules != Rules::AutoTrainer;
        let findings = if holds { &mut self.held } else { &mut self.findings };
        let panics = &mut self.panics;
        self.detectors.retain_mut(|detector| {
            // A detector that panics is dropped with its state.
            let result = catch_unwind(AssertUnwindSafe(|| call(detector.as_mut(), &context)));
            match result {
                Ok(found) => {
                    let stays = found.is_none();
                    let is_symptom = |found: &Finding| {
                        let mut known =
                            findings.iter().filter(|it| it.severity == Severity::Problem);
                        drops && known.any(|it| it.problem.explains(&found.problem))
                    };
                    let new = found.filter(|found| !is_symptom(found));
                    findings.extend(new);
                    stays
                }
                Err(panic) => {
                    panics.push(DetectorPanic {
                        problem: detector.problem(),
                        step: context.step(),
                        message: panic_message(panic.as_ref()),
                    });
                    false
                }
            }
        });
    }

    /// Findings so far, in order.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Adds a finding about the program itself, which observations do not show.
    pub fn report(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Turns the problems for which `is_harmless` returns true into warnings that say why.
    pub fn downgrade(&mut self, reason: &str, is_harmless: impl Fn(&Finding) -> bool) {
        let problems = self.findings.iter_mut().filter(|it| it.severity == Severity::Problem);
        for finding in problems.filter(|finding| is_harmless(finding)) {
            finding.severity = Severity::Warning;
            finding.message = format!("{} {reason}", finding.message);
        }
    }

    /// Detectors that panicked so far, in order.
    pub fn panics(&self) -> &[DetectorPanic] {
        &self.panics
    }

    /// Learning curve so far.
    pub fn curve(&self) -> &Curve {
        &self.curve
    }

    /// Facts of the run.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Returns true if `problem` was found.
    pub fn found(&self, problem: &Problem) -> bool {
        self.findings.iter().any(|finding| finding.problem == *problem)
    }
}

/// Message of a panic that [`catch_unwind`] caught.
pub fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panicked without a message".to_owned())
}

impl std::fmt::Debug for Diagnosis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Diagnosis").field("findings", &self.findings).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Needing(Problem, &'static [Quantity]);

    impl Detector for Needing {
        fn problem(&self) -> Problem {
            self.0.clone()
        }

        fn needs(&self) -> &'static [Quantity] {
            self.1
        }
    }

    #[test]
    fn detectors_without_their_quantities_are_removed() {
        let mut diagnosis = Diagnosis::with(
            Facts::default(),
            Thresholds::default(),
            vec![
                Box::new(Needing(Problem::LOSS_SPIKE, &[Quantity::Loss])),
                Box::new(Needing(
                    Problem::DYING_RELU,
                    &[Quantity::Loss, Quantity::Gradients, Quantity::Model],
                )),
            ],
        );
        let removed = diagnosis.restrict_to(&BTreeSet::from([Quantity::Loss]));
        let missing = vec![Quantity::Gradients, Quantity::Model];
        assert_eq!(removed, [(Problem::DYING_RELU, missing)]);
        assert_eq!(diagnosis.active_problems(), [Problem::LOSS_SPIKE]);
    }

    /// Finds its problem at a step.
    struct FindsAt(Problem, u64);

    impl Detector for FindsAt {
        fn problem(&self) -> Problem {
            self.0.clone()
        }

        fn needs(&self) -> &'static [Quantity] {
            &[]
        }

        fn observe(&mut self, seen: &Observation, _: &Context<'_>) -> Option<Finding> {
            (seen.step == self.1).then(|| Finding::new(self.problem(), seen.step, ""))
        }
    }

    #[test]
    fn symptoms_of_an_earlier_problem_are_dropped() {
        let found = |vanishes_at, slow_at| {
            let detectors: Vec<Box<dyn Detector>> = vec![
                Box::new(FindsAt(Problem::VANISHING_GRADIENT, vanishes_at)),
                Box::new(FindsAt(Problem::SLOW_CONVERGENCE, slow_at)),
                Box::new(FindsAt(Problem::UNSCALED_TARGETS, 3)),
            ];
            let mut diagnosis = Diagnosis::with(Facts::default(), Thresholds::default(), detectors);
            for step in 1..=3 {
                diagnosis.observe(&Observation::new(step, 1.0));
            }
            diagnosis.findings().iter().map(|it| it.problem.clone()).collect::<Vec<_>>()
        };
        assert_eq!(found(1, 2), [Problem::VANISHING_GRADIENT, Problem::UNSCALED_TARGETS]);
        let all =
            [Problem::SLOW_CONVERGENCE, Problem::VANISHING_GRADIENT, Problem::UNSCALED_TARGETS];
        assert_eq!(found(2, 1), all);
    }

    struct Panicking;

    impl Detector for Panicking {
        fn problem(&self) -> Problem {
            Problem::new("panicking")
        }

        fn needs(&self) -> &'static [Quantity] {
            &[]
        }

        fn observe(&mut self, seen: &Observation, _: &Context<'_>) -> Option<Finding> {
            panic!("step {} is too much", seen.step);
        }
    }

    #[test]
    fn a_panicking_detector_is_reported_once_and_removed() {
        let detectors: Vec<Box<dyn Detector>> =
            vec![Box::new(Panicking), Box::new(Needing(Problem::LOSS_SPIKE, &[]))];
        let mut diagnosis = Diagnosis::with(Facts::default(), Thresholds::default(), detectors);
        for step in 1..=3 {
            assert_eq!(diagnosis.observe(&Observation::new(step, 1.0)), []);
        }
        let panic = DetectorPanic {
            problem: Problem::new("panicking"),
            step: 1,
            message: "step 1 is too much".to_owned(),
        };
        assert_eq!(diagnosis.panics(), [panic]);
        assert_eq!(diagnosis.active_problems(), [Problem::LOSS_SPIKE]);
    }
}
