//! All detectors together on one run.

use crate::curve::Curve;
use crate::detector::{Context, Detector, Quantity};
use crate::detectors;
use crate::facts::Facts;
use crate::finding::{Finding, Problem};
use crate::observation::{Evaluation, LayerInfo, Observation};
use crate::thresholds::Thresholds;
use std::any::Any;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The diagnosis of a run: takes observations as they come and gives findings as they are made.
pub struct Diagnosis {
    facts: Facts,
    thresholds: Thresholds,
    curve: Curve,
    /// Those that have not found anything yet.
    detectors: Vec<Box<dyn Detector>>,
    findings: Vec<Finding>,
    panics: Vec<DetectorPanic>,
}

/// A detector that panicked. It is asked no more; the run and the other detectors go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetectorPanic {
    /// What it looked for.
    pub problem: Problem,
    /// The step at which it broke.
    pub step: u64,
    /// What it said.
    pub message: String,
}

impl Diagnosis {
    /// A diagnosis by all [`detectors`](detectors::all) that are not switched off.
    pub fn new(facts: Facts, thresholds: Thresholds) -> Diagnosis {
        Diagnosis::with(facts, thresholds, detectors::all())
    }

    /// A diagnosis by the given detectors, but those that are switched off.
    pub fn with(
        facts: Facts,
        thresholds: Thresholds,
        mut detectors: Vec<Box<dyn Detector>>,
    ) -> Diagnosis {
        detectors.retain(|detector| !thresholds.off.contains(&detector.problem()));
        Diagnosis {
            curve: Curve::new(&facts),
            facts,
            thresholds,
            detectors,
            findings: Vec::new(),
            panics: Vec::new(),
        }
    }

    /// Dismisses the detectors that need what is not `available`; says what each of them misses.
    pub fn restrict_to(&mut self, available: &BTreeSet<Quantity>) -> Vec<(Problem, Vec<Quantity>)> {
        let mut dismissed = Vec::new();
        self.detectors.retain(|detector| {
            let needs = detector.needs().iter().copied();
            let missing: Vec<Quantity> = needs.filter(|need| !available.contains(need)).collect();
            let stays = missing.is_empty();
            if !stays {
                dismissed.push((detector.problem(), missing));
            }
            stays
        });
        dismissed
    }

    /// Takes what is known of the layers, for a run that did not say so when it began.
    pub fn set_layers(&mut self, layers: Vec<LayerInfo>) {
        self.facts.layers = layers;
    }

    /// What is looked for and not found so far.
    pub fn active_problems(&self) -> Vec<Problem> {
        self.detectors.iter().map(|d| d.problem()).collect()
    }

    /// Looks at a step; gives what was found in it.
    pub fn observe(&mut self, seen: &Observation) -> &[Finding] {
        let block_ends = self.curve.push(seen, &self.facts);
        self.ask(|detector, context| {
            let found = detector.observe(seen, context);
            found.or_else(|| block_ends.then(|| detector.review(context)).flatten())
        })
    }

    /// Looks at an evaluation; gives what was found by it.
    pub fn evaluate(&mut self, evaluation: &Evaluation) -> &[Finding] {
        self.curve.evaluate(evaluation);
        self.ask(|detector, context| detector.evaluate(evaluation, context))
    }

    /// Looks back when all steps are done; gives what was found then.
    pub fn finish(&mut self) -> &[Finding] {
        self.ask(|detector, context| detector.finish(context))
    }

    fn ask(
        &mut self,
        question: impl Fn(&mut dyn Detector, &Context<'_>) -> Option<Finding>,
    ) -> &[Finding] {
        let before = self.findings.len();
        let context =
            Context { facts: &self.facts, curve: &self.curve, thresholds: &self.thresholds };
        let (findings, panics) = (&mut self.findings, &mut self.panics);
        self.detectors.retain_mut(|detector| {
            // What one that panics leaves behind is its own state, and it is dropped.
            let answer = catch_unwind(AssertUnwindSafe(|| question(detector.as_mut(), &context)));
            match answer {
                Ok(found) => {
                    let go_on = found.is_none();
                    findings.extend(found);
                    go_on
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
        &self.findings[before..]
    }

    /// What was found so far, in order.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The detectors that panicked so far, in order.
    pub fn panics(&self) -> &[DetectorPanic] {
        &self.panics
    }

    /// The course of the run so far.
    pub fn curve(&self) -> &Curve {
        &self.curve
    }

    /// The facts it reasons with.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Whether something of that name was found.
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
    fn detectors_that_cannot_see_are_dismissed() {
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
        let dismissed = diagnosis.restrict_to(&BTreeSet::from([Quantity::Loss]));
        let missing = vec![Quantity::Gradients, Quantity::Model];
        assert_eq!(dismissed, [(Problem::DYING_RELU, missing)]);
        assert_eq!(diagnosis.active_problems(), [Problem::LOSS_SPIKE]);
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
    fn a_detector_that_panics_is_reported_once_and_left_out() {
        let detectors: Vec<Box<dyn Detector>> =
            vec![Box::new(Panicking), Box::new(Needing(Problem::LOSS_SPIKE, &[]))];
        let mut diagnosis = Diagnosis::with(Facts::default(), Thresholds::default(), detectors);
        for step in 1..=3 {
            let seen = Observation {
                step,
                epoch: 1,
                loss: 1.0,
                metric: None,
                mae: None,
                learning_rate: 0.1,
                top_class_share: None,
                layers: Vec::new(),
                input: None,
            };
            assert_eq!(diagnosis.observe(&seen), []);
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
