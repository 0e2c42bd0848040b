//! Makes several diagnoses of a training at once.

use std::time::{Duration, Instant};
use surefoot_diagnose::indicators::{self, Limits};
use surefoot_diagnose::{Diagnosis, Evaluation, Facts, Finding, Severity, Thresholds};
use surefoot_train::{Callback, RunContext, Step, StopReason, TrainError, TrainingResult};

/// A diagnosis to make.
#[derive(Clone, Debug)]
pub(crate) enum Watch {
    /// By the detectors of the rules that the thresholds belong to.
    Detectors(Thresholds),
    /// By BTTackler's indicators.
    Indicators(Limits),
}

impl Watch {
    fn start(&self, facts: Facts) -> Diagnosis {
        match self {
            Watch::Detectors(thresholds) => Diagnosis::new(facts, thresholds.clone()),
            Watch::Indicators(limits) => {
                Diagnosis::with(facts, Thresholds::default(), indicators::all(limits))
            }
        }
    }
}

/// Makes several diagnoses of a run.
pub(crate) struct Watchers {
    watches: Vec<Watch>,
    diagnoses: Vec<(Diagnosis, Duration)>,
}

/// Result of one diagnosis.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    /// All findings, in order.
    pub(crate) findings: Vec<Finding>,
    /// Time spent on it.
    pub(crate) time: Duration,
}

impl Watched {
    /// Problems found, in order; warnings do not count.
    pub(crate) fn problems(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.severity == Severity::Problem)
    }
}

impl Watchers {
    pub(crate) fn new(watches: Vec<Watch>) -> Self {
        Self { watches, diagnoses: Vec::new() }
    }

    /// The results, in the given order.
    pub(crate) fn into_results(self) -> Vec<Watched> {
        let result = |(diagnosis, time): (Diagnosis, Duration)| Watched {
            findings: diagnosis.findings().to_vec(),
            time,
        };
        self.diagnoses.into_iter().map(result).collect()
    }

    fn each(&mut self, call: impl Fn(&mut Diagnosis)) {
        for (diagnosis, time) in &mut self.diagnoses {
            let begun = Instant::now();
            call(diagnosis);
            *time += begun.elapsed();
        }
    }
}

impl Callback for Watchers {
    fn on_start(&mut self, run: &mut RunContext) -> Result<(), TrainError> {
        if self.diagnoses.is_empty() {
            let facts = &run.outline().facts;
            let new = |watch: &Watch| (watch.start(facts.clone()), Duration::ZERO);
            self.diagnoses = self.watches.iter().map(new).collect();
        }
        Ok(())
    }

    fn on_step(&mut self, step: &Step<'_>, _: &mut RunContext) -> Result<(), TrainError> {
        self.each(|diagnosis| {
            diagnosis.observe(step.observation);
        });
        Ok(())
    }

    fn on_evaluation(
        &mut self,
        evaluation: &Evaluation,
        _: &mut RunContext,
    ) -> Result<(), TrainError> {
        self.each(|diagnosis| {
            diagnosis.evaluate(evaluation);
        });
        Ok(())
    }

    fn on_end(&mut self, result: &TrainingResult, _: &mut RunContext) -> Result<(), TrainError> {
        if result.reason == StopReason::Finished {
            self.each(|diagnosis| {
                diagnosis.finish();
            });
        }
        Ok(())
    }
}
