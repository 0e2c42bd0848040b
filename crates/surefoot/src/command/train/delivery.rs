//! What a run comes to: the model that is delivered, and the summary.

use super::job::Job;
use surefoot_diagnose::Finding;
use surefoot_record::{Array, MetricSummary, Recorder, Result, RunSummary, Status};
use surefoot_train::{Outline, Repaired, Report};

/// A run that is over.
pub(super) struct Delivery<'a> {
    pub(super) job: &'a Job,
    pub(super) outline: &'a Outline,
    /// What the plan as given came to.
    pub(super) given: &'a Report,
    /// The loss of its last step.
    pub(super) last_loss: f64,
    /// The problems that were found in it.
    pub(super) problems: &'a [Finding],
    /// What was done about them.
    pub(super) repaired: Option<&'a Repaired>,
    pub(super) seconds: f64,
    pub(super) run: String,
}

impl Delivery<'_> {
    /// What the delivered plan came to.
    pub(super) fn report(&self) -> &Report {
        let delivered = self.repaired.and_then(|repaired| repaired.delivered.as_ref());
        delivered.map_or(self.given, |delivered| &delivered.report)
    }

    /// The delivered plan.
    fn plan(&self) -> String {
        let delivered = self.repaired.and_then(|repaired| repaired.delivered.as_ref());
        delivered.map_or_else(|| self.job.text.clone(), |delivered| delivered.plan.to_toml())
    }

    /// How it ended.
    pub(super) fn summary(&self) -> RunSummary {
        let tried = self.repaired;
        let found = tried.iter().flat_map(|repaired| &repaired.found);
        let mut problems: Vec<String> = Vec::new();
        for finding in self.problems.iter().chain(found) {
            let id = finding.problem.id();
            if !problems.iter().any(|known| known == id) {
                problems.push(id.to_owned());
            }
        }
        let delivered = tried.and_then(|repaired| repaired.delivered.as_ref());
        let remedies = delivered.map(|delivered| delivered.remedies.clone());
        let best = self.report().best.as_ref();
        RunSummary {
            status: match tried {
                Some(repaired) if repaired.solved => Status::Repaired,
                None if self.is_sound() => Status::Normal,
                _ => Status::Failed,
            },
            problems,
            remedies: remedies.unwrap_or_default(),
            metric: MetricSummary {
                name: self.outline.metric.to_owned(),
                before: self.given.last.as_ref().and_then(|last| last.metric),
                after: best.and_then(|best| best.metric),
            },
            steps: self.given.steps + tried.map_or(0, |repaired| repaired.steps),
            seconds: self.seconds,
            digest: self.report().digest,
            run: self.run.clone(),
        }
    }

    /// Whether the plan as given did not end in numbers that are none, even if a model from before
    /// is delivered.
    fn is_sound(&self) -> bool {
        self.last_loss.is_finite()
            && self.given.best.as_ref().is_some_and(|best| {
                best.metric.is_some_and(f64::is_finite) && best.loss.is_finite()
            })
    }

    /// Writes it, and closes the record.
    pub(super) fn hand_over(&self, recorder: Recorder, summary: &RunSummary) -> Result<()> {
        write(recorder, self.report(), &self.plan(), summary)
    }
}

/// Writes the model and the plan of a run, and closes its record.
pub(crate) fn write(
    mut recorder: Recorder,
    report: &Report,
    plan: &str,
    summary: &RunSummary,
) -> Result<()> {
    let model: Vec<Array> = report
        .model
        .iter()
        .map(|weight| {
            let name = format!("{}.{}", weight.layer, weight.name);
            Array::new(name, &weight.shape, weight.values.clone())
        })
        .collect();
    recorder.write_model(&model)?;
    recorder.write_final_plan(plan)?;
    if let Some(test) = &report.test {
        recorder.evaluation(test)?;
    }
    recorder.finish(summary)
}
