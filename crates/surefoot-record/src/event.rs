//! Events of a run, in order: `events.jsonl`.

use serde::{Deserialize, Serialize};
use surefoot_diagnose::{Evaluation, Finding, Problem, Split};

use crate::digest::Digest;
use crate::header::Environment;
use crate::ledger::{Attempt, AttemptOutcome};

/// Something that happened, one JSON object a line.
///
/// Every event has its kind under `event` and under `step` the number of optimizer steps done by
/// then. NaN and infinities are the strings `"NaN"`, `"Infinity"` and `"-Infinity"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The run began.
    Started {
        /// Always 0.
        step: u64,
        /// Environment of the run.
        environment: Environment,
    },
    /// A split of the data was evaluated.
    Evaluation {
        /// Steps done.
        step: u64,
        /// Epochs done.
        epoch: u64,
        /// Evaluated split.
        split: Split,
        /// The mean loss.
        #[serde(with = "surefoot_diagnose::number")]
        loss: f64,
        /// The metric.
        #[serde(with = "surefoot_diagnose::number::optional")]
        metric: Option<f64>,
    },
    /// The model is the best so far.
    Best {
        /// Steps done.
        step: u64,
        /// Epochs done.
        epoch: u64,
        /// Criterion: the name of a metric, or `loss`.
        by: String,
        /// Its value.
        #[serde(with = "surefoot_diagnose::number")]
        value: f64,
    },
    /// A checkpoint was written and is durable.
    Checkpoint {
        /// Steps done.
        step: u64,
        /// Epochs done.
        epoch: u64,
        /// The digest of what it holds.
        digest: Digest,
    },
    /// The user stopped the run.
    Interrupted {
        /// Steps done.
        step: u64,
    },
    /// The program ended with an error.
    Crashed {
        /// Steps done.
        step: u64,
        /// The error, or the exit code.
        reason: String,
    },
    /// The run continued from a checkpoint, or from the start.
    Resumed {
        /// The step of the checkpoint; 0 without one.
        step: u64,
        /// Environment of the resumed run.
        environment: Environment,
    },
    /// A detector found something.
    Finding(Finding),
    /// A detector panicked and was switched off; training continues.
    DetectorPanic {
        /// Steps done.
        step: u64,
        /// The problem that it looks for.
        problem: Problem,
        /// Message of the panic.
        message: String,
    },
    /// Training was stopped because of a problem.
    Stopped {
        /// Steps done.
        step: u64,
        /// The problem.
        problem: Problem,
    },
    /// The plan as given learned in spite of its problem, and no remedy did better.
    Dismissed {
        /// Steps done.
        step: u64,
        /// The problem.
        problem: Problem,
    },
    /// A remedy is tried: another run, in its own directory.
    Attempt(Attempt),
    /// Result of an attempt.
    Outcome(AttemptOutcome),
    /// Which model is delivered.
    Delivered {
        /// Steps completed by the original plan.
        step: u64,
        /// Number of the attempt; 0 is the original plan.
        attempt: u32,
        /// Its metric on the validation split.
        #[serde(with = "surefoot_diagnose::number::optional")]
        metric: Option<f64>,
    },
    /// The run is over.
    Finished {
        /// Steps done.
        step: u64,
    },
    /// Events of other programs: an object with `event` and `step`.
    #[serde(untagged)]
    Other(serde_json::Value),
}

impl Event {
    /// The kind of event, as it stands in the file.
    pub fn kind(&self) -> &str {
        match self {
            Event::Started { .. } => "started",
            Event::Evaluation { .. } => "evaluation",
            Event::Best { .. } => "best",
            Event::Checkpoint { .. } => "checkpoint",
            Event::Interrupted { .. } => "interrupted",
            Event::Crashed { .. } => "crashed",
            Event::Resumed { .. } => "resumed",
            Event::Finding(_) => "finding",
            Event::DetectorPanic { .. } => "detector_panic",
            Event::Stopped { .. } => "stopped",
            Event::Dismissed { .. } => "dismissed",
            Event::Attempt(_) => "attempt",
            Event::Outcome(_) => "outcome",
            Event::Delivered { .. } => "delivered",
            Event::Finished { .. } => "finished",
            Event::Other(value) => value["event"].as_str().unwrap_or("other"),
        }
    }

    /// The number of optimizer steps done when it happened.
    pub fn step(&self) -> u64 {
        match self {
            Event::Started { step, .. }
            | Event::Evaluation { step, .. }
            | Event::Best { step, .. }
            | Event::Checkpoint { step, .. }
            | Event::Interrupted { step }
            | Event::Crashed { step, .. }
            | Event::Resumed { step, .. }
            | Event::DetectorPanic { step, .. }
            | Event::Stopped { step, .. }
            | Event::Dismissed { step, .. }
            | Event::Delivered { step, .. }
            | Event::Finished { step } => *step,
            Event::Finding(finding) => finding.step,
            Event::Attempt(attempt) => attempt.step,
            Event::Outcome(outcome) => outcome.step,
            Event::Other(value) => value["step"].as_u64().unwrap_or(0),
        }
    }

    /// The evaluation, if this is one.
    pub fn evaluation(&self) -> Option<Evaluation> {
        match *self {
            Event::Evaluation { step, epoch, split, loss, metric } => {
                Some(Evaluation { epoch, step, split, loss, metric })
            }
            _ => None,
        }
    }
}

impl From<&Evaluation> for Event {
    fn from(evaluation: &Evaluation) -> Event {
        Event::Evaluation {
            step: evaluation.step,
            epoch: evaluation.epoch,
            split: evaluation.split,
            loss: evaluation.loss,
            metric: evaluation.metric,
        }
    }
}

/// The events of the whole lines of `events.jsonl`, and how many bytes those are.
///
/// The first line that is not a whole JSON value ends it: after a crash that is the last one.
pub(crate) fn parse_lines(content: &[u8]) -> (Vec<Event>, usize) {
    let mut events = Vec::new();
    let mut whole = 0;
    for line in content.split_inclusive(|&byte| byte == b'\n') {
        match line.strip_suffix(b"\n").map(serde_json::from_slice) {
            Some(Ok(event)) => events.push(event),
            _ => break,
        }
        whole += line.len();
    }
    (events, whole)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ledger::AttemptState;

    fn finding() -> Finding {
        Finding::new(Problem::DYING_RELU, 12, "Most units are dead.").with("dead", 0.9, 0.7)
    }

    fn every_kind() -> Vec<Event> {
        vec![
            Event::Started { step: 0, environment: Environment::detect() },
            Event::Evaluation {
                step: 10,
                epoch: 1,
                split: Split::Validation,
                loss: 0.1 + 0.2,
                metric: None,
            },
            Event::Best { step: 10, epoch: 1, by: "accuracy".to_owned(), value: f64::INFINITY },
            Event::Checkpoint { step: 10, epoch: 1, digest: Digest(3) },
            Event::Interrupted { step: 11 },
            Event::Resumed { step: 10, environment: Environment::default() },
            Event::Finding(finding()),
            Event::DetectorPanic {
                step: 12,
                problem: Problem::DYING_RELU,
                message: "index out of bounds".to_owned(),
            },
            Event::Stopped { step: 12, problem: Problem::DYING_RELU },
            Event::Attempt(Attempt {
                step: 12,
                number: 1,
                parent: 0,
                problem: Problem::DYING_RELU,
                remedies: vec!["activation".to_owned()],
                change: "Every hidden ReLU becomes a SELU.".to_owned(),
                diff: "-activation = \"relu\"\n+activation = \"selu\"\n".to_owned(),
                run: "attempts/01".to_owned(),
            }),
            Event::Outcome(AttemptOutcome {
                step: 12,
                number: 1,
                state: AttemptState::NewProblem,
                finding: Some(finding()),
                metric: Some(f64::NEG_INFINITY),
                steps: 40,
            }),
            Event::Delivered { step: 12, attempt: 1, metric: Some(0.9) },
            Event::Crashed { step: 20, reason: "ValueError: no data".to_owned() },
            Event::Finished { step: 20 },
            Event::Other(json!({"event": "seen", "step": 12, "what": "a cat"})),
        ]
    }

    #[test]
    fn every_event_is_one_line_that_says_its_kind_and_step() {
        for event in every_kind() {
            let line = serde_json::to_string(&event).unwrap();
            assert!(!line.contains('\n'));
            let value: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert_eq!(value["event"], event.kind());
            assert_eq!(value["step"], event.step());
            assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
        }
    }

    #[test]
    fn nan_survives() {
        let event = Event::from(&Evaluation {
            epoch: 2,
            step: 7,
            split: Split::Train,
            loss: f64::NAN,
            metric: Some(f64::NAN),
        });
        let line = serde_json::to_string(&event).unwrap();
        let read: Event = serde_json::from_str(&line).unwrap();
        let evaluation = read.evaluation().unwrap();
        assert!(evaluation.loss.is_nan() && evaluation.metric.is_some_and(f64::is_nan));
    }

    #[test]
    fn a_known_kind_with_other_fields_is_kept_as_it_is() {
        let line = r#"{"event":"finished","when":"now"}"#;
        let event: Event = serde_json::from_str(line).unwrap();
        assert_eq!(event.kind(), "finished");
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
    }

    #[test]
    fn a_file_cut_anywhere_gives_its_whole_lines() {
        let events = every_kind();
        let mut content = Vec::new();
        let mut ends = vec![0];
        for event in &events {
            serde_json::to_writer(&mut content, event).unwrap();
            content.push(b'\n');
            ends.push(content.len());
        }
        for cut in 0..=content.len() {
            let (read, whole) = parse_lines(&content[..cut]);
            let lines = ends.iter().filter(|&&end| end <= cut).count() - 1;
            assert_eq!(read, events[..lines]);
            assert_eq!(whole, ends[lines]);
        }
    }
}
