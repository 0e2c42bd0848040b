//! A run of another framework: diagnosed and recorded while it trains.

use std::time::{Duration, Instant};

use surefoot_diagnose::{Diagnosis, Evaluation, Finding, Observation, Problem, Severity, Split};

use crate::digest::Digest;
use crate::error::Result;
use crate::event::Event;
use crate::recorder::Recorder;
use crate::summary::{MetricSummary, RunSummary, Status};

/// Diagnoses and, optionally, records a training loop that is not ours.
///
/// ```
/// use surefoot_diagnose::{Diagnosis, Observation};
/// use surefoot_record::{Digest, WatchedRun};
///
/// # fn main() -> surefoot_record::Result<()> {
/// let mut run = WatchedRun::new(Diagnosis::builder().build(), None);
/// for step in 1..=20 {
///     for finding in run.observe(&Observation::new(step, f64::NAN))? {
///         eprintln!("{}", finding.message);
///     }
/// }
/// let summary = run.finish(true, Digest::of(b""))?;
/// assert!(summary.problems.contains(&"non_finite_loss".to_owned()));
/// # Ok(())
/// # }
/// ```
pub struct WatchedRun {
    diagnosis: Diagnosis,
    recorder: Option<Recorder>,
    begun: Instant,
    /// Findings and panics that were returned and recorded.
    reported: usize,
    reported_panics: usize,
    steps: u64,
    /// Metric of the first and the last validation, or else of the training batches.
    first_metric: Option<f64>,
    last_metric: Option<f64>,
    validated: bool,
}

impl WatchedRun {
    /// Starts a run whose observations `diagnosis` judges and `recorder` writes.
    pub fn new(diagnosis: Diagnosis, recorder: Option<Recorder>) -> WatchedRun {
        WatchedRun {
            diagnosis,
            recorder,
            begun: Instant::now(),
            reported: 0,
            reported_panics: 0,
            steps: 0,
            first_metric: None,
            last_metric: None,
            validated: false,
        }
    }

    /// The diagnosis with all findings so far.
    pub fn diagnosis(&self) -> &Diagnosis {
        &self.diagnosis
    }

    /// Processes a step and returns its findings.
    pub fn observe(&mut self, seen: &Observation) -> Result<Vec<Finding>> {
        self.steps = seen.step;
        if !self.validated && seen.metric.is_some() {
            self.note_metric(seen.metric);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.observe(seen);
        }
        self.diagnosis.observe(seen);
        self.report()
    }

    /// Processes an evaluation and returns its findings.
    pub fn evaluate(&mut self, evaluation: &Evaluation) -> Result<Vec<Finding>> {
        if evaluation.split == Split::Validation && evaluation.metric.is_some() {
            if !std::mem::replace(&mut self.validated, true) {
                self.first_metric = None;
            }
            self.note_metric(evaluation.metric);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.evaluation(evaluation)?;
        }
        self.diagnosis.evaluate(evaluation);
        self.report()
    }

    /// Adds and records a finding about the program itself, which observations do not show.
    pub fn add(&mut self, finding: Finding) -> Result<()> {
        self.diagnosis.report(finding);
        self.report().map(|_| ())
    }

    /// Removes the detectors of these problems, whose rules turned out not to hold for this run.
    pub fn switch_off(&mut self, problems: &[Problem]) {
        self.diagnosis.switch_off(problems);
    }

    /// Writes an event of another kind: an object with `event` and `step`.
    pub fn event(&mut self, event: &Event) -> Result<()> {
        match &mut self.recorder {
            Some(recorder) => recorder.event(event),
            None => Ok(()),
        }
    }

    /// Ends the run and returns its summary. `completed` is false if the program was interrupted
    /// before its last step; then the detectors do not judge the end, and the run has failed unless a
    /// problem was found. `digest` is that of the final weights.
    pub fn finish(&mut self, completed: bool, digest: Digest) -> Result<RunSummary> {
        let summary = self.end(completed, digest)?;
        if !completed {
            self.event(&Event::Interrupted { step: self.steps })?;
        }
        self.close(&summary)?;
        Ok(summary)
    }

    /// Ends the training, but not the record: a repair may add events and a model before it closes
    /// the run. The arguments are those of [`finish`](Self::finish).
    pub fn end(&mut self, completed: bool, digest: Digest) -> Result<RunSummary> {
        // A run without a step is judged by its facts.
        self.diagnosis.start();
        if completed {
            self.diagnosis.finish();
        }
        self.report()?;
        let findings = self.diagnosis.findings().iter();
        let mut problems: Vec<String> = Vec::new();
        for finding in findings.filter(|finding| finding.severity == Severity::Problem) {
            if !problems.iter().any(|id| id == finding.problem.id()) {
                problems.push(finding.problem.id().to_owned());
            }
        }
        let panics = self.diagnosis.panics().iter();
        Ok(RunSummary {
            status: match (problems.is_empty(), completed) {
                (false, _) => Status::Problem,
                (true, true) => Status::Normal,
                (true, false) => Status::Failed,
            },
            problems,
            remedies: Vec::new(),
            failed_detectors: panics.map(|panic| panic.problem.id().to_owned()).collect(),
            metric: MetricSummary {
                name: self.diagnosis.facts().metric.clone().unwrap_or_default(),
                before: self.first_metric,
                after: self.last_metric,
            },
            steps: self.steps,
            seconds: self.begun.elapsed().as_secs_f64(),
            digest,
            run: self
                .recorder
                .as_ref()
                .map(|it| it.dir().display().to_string())
                .unwrap_or_default(),
        })
    }

    /// Closes the record with `summary`.
    pub fn close(&mut self, summary: &RunSummary) -> Result<()> {
        self.recorder.take().map_or(Ok(()), |recorder| recorder.finish(summary))
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// The recorder, if the run is recorded, for the files of the delivered model.
    pub fn recorder_mut(&mut self) -> Option<&mut Recorder> {
        self.recorder.as_mut()
    }

    /// Returns and records the findings since the last call.
    fn report(&mut self) -> Result<Vec<Finding>> {
        let new = self.diagnosis.findings()[self.reported..].to_vec();
        let panics = self.diagnosis.panics()[self.reported_panics..].to_vec();
        self.reported += new.len();
        self.reported_panics += panics.len();
        for finding in &new {
            self.event(&Event::Finding(finding.clone()))?;
        }
        for panic in panics {
            let (step, problem, message) = (panic.step, panic.problem, panic.message);
            self.event(&Event::DetectorPanic { step, problem, message })?;
        }
        Ok(new)
    }

    fn note_metric(&mut self, metric: Option<f64>) {
        self.first_metric = self.first_metric.or(metric);
        self.last_metric = metric;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Header, Record};

    #[test]
    fn a_watched_run_is_recorded_with_its_findings() {
        let dir = tempfile::tempdir().unwrap();
        let program = r#"{"script":"train.py"}"#;
        let recorder =
            Recorder::create_for_program(dir.path(), "train", program, Header::default()).unwrap();
        let mut run = WatchedRun::new(Diagnosis::builder().build(), Some(recorder));
        let mut found = Vec::new();
        for step in 1..=30 {
            found.extend(run.observe(&Observation::new(step, f64::NAN)).unwrap());
        }
        let summary = run.finish(true, Digest::of(b"")).unwrap();
        assert_eq!(summary.status, Status::Problem);

        let record = Record::open(&dir.path().join("train-001")).unwrap();
        assert_eq!((record.program(), record.plan()), (Some(program), ""));
        assert_eq!(record.observations().unwrap().count(), 30);
        assert_eq!(record.summary().unwrap(), Some(summary));
        let events = record.events().unwrap();
        let recorded = events.into_iter().filter_map(|event| match event {
            Event::Finding(finding) => Some(finding.problem),
            _ => None,
        });
        let found = found.into_iter().map(|finding| finding.problem);
        assert_eq!(recorded.collect::<Vec<_>>(), found.collect::<Vec<_>>());
    }

    #[test]
    fn a_run_takes_events_between_its_end_and_its_summary() {
        let dir = tempfile::tempdir().unwrap();
        let recorder =
            Recorder::create_for_program(dir.path(), "train", "{}", Header::default()).unwrap();
        let mut run = WatchedRun::new(Diagnosis::builder().build(), Some(recorder));
        run.observe(&Observation::new(1, 0.5)).unwrap();
        let mut summary = run.end(false, Digest::of(b"")).unwrap();
        run.event(&Event::Delivered { step: 1, attempt: 0, metric: Some(0.5) }).unwrap();
        summary.status = Status::Failed;
        run.close(&summary).unwrap();
        let record = Record::open(&dir.path().join("train-001")).unwrap();
        assert_eq!(record.summary().unwrap(), Some(summary));
        let kinds: Vec<String> =
            record.events().unwrap().iter().map(|event| event.kind().to_owned()).collect();
        assert_eq!(kinds, ["started", "delivered", "finished"]);
    }

    #[test]
    fn an_interrupted_run_has_failed_and_is_not_judged_by_its_end() {
        let mut run = WatchedRun::new(Diagnosis::builder().total_steps(1000).build(), None);
        for step in 1..=3 {
            run.observe(&Observation::new(step, 1.0)).unwrap();
        }
        let summary = run.finish(false, Digest::of(b"")).unwrap();
        assert_eq!((summary.status, summary.steps), (Status::Failed, 3));
    }
}
