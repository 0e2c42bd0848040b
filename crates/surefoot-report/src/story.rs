//! The summary of a run in up to three sentences.

use surefoot_diagnose::{Severity, Split};
use surefoot_record::{AttemptState, RunSummary, Status};

use crate::explain::because;
use crate::format::{self, capital, counted, grouped, listed, spelled};
use crate::history::{Entry, History};

/// Data of the summary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Story<'a> {
    pub(crate) history: &'a History,
    /// `None` for an unfinished run.
    pub(crate) summary: Option<&'a RunSummary>,
    /// Last recorded step of the plan as given.
    pub(crate) last_step: u64,
    /// Number of steps in the plan as given, if known.
    pub(crate) planned: Option<u64>,
    /// Last loss of the plan as given.
    pub(crate) last_loss: Option<f64>,
    /// Name of the metric; empty if there is none.
    pub(crate) metric: &'a str,
    /// True if another framework trained, which is watched and not repaired.
    pub(crate) is_program: bool,
    /// True if the run is known to be training now.
    pub(crate) is_running: bool,
}

impl Story<'_> {
    /// Returns the sentences.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let sentences = [Some(self.training()), self.repair(), self.result()];
        sentences.into_iter().flatten().collect()
    }

    /// Number of steps that the plan as given was trained.
    fn training(&self) -> String {
        if let Some((step, problem)) = &self.history.stopped {
            let steps = self.of_planned(*step);
            return format!("Training was stopped at {steps} {}.", because(problem));
        }
        let Some(summary) = self.summary else {
            return self.unfinished();
        };
        let end = match self.planned {
            Some(planned) if self.last_step < planned => {
                format!("was trained for {} steps", self.of_planned_count())
            }
            _ => format!("was trained for all {}", counted(self.last_step, "step")),
        };
        let broken = self.last_loss.is_some_and(|loss| !loss.is_finite());
        let what = if self.is_program { "The model" } else { "The plan" };
        match self.history.main_problem() {
            Some(problem) => format!("{what} {end}, but training failed {}.", because(problem)),
            None if summary.status.is_success() => {
                format!("{what} {end} and no problem was found.")
            }
            None if broken => format!("{what} {end}, but the loss became NaN or infinite."),
            None => format!("{what} {end}, but training failed."),
        }
    }

    fn unfinished(&self) -> String {
        let steps = self.of_planned(self.last_step);
        if let Some(reason) = &self.history.pruned {
            let steps = self.of_planned(reason.step);
            let (by, why) = (reason.problem.id(), sentence_end(&reason.message));
            return format!(
                "This run is a trial of a search. The pruner {by} stopped it at {steps}: {why}"
            );
        }
        if let Some((step, reason)) = &self.history.crashed {
            let steps = self.of_planned(*step);
            return format!("The script crashed at {steps}: {}", sentence_end(reason));
        }
        match (self.history.interrupted, self.last_step) {
            (Some(step), _) => {
                let steps = self.of_planned(step);
                format!("The run was interrupted at {steps} and can be resumed.")
            }
            (None, 1..) if self.is_running => {
                format!("The run is training and has reached {steps}.")
            }
            (None, 0) => "The run has started; no steps have been recorded yet.".to_owned(),
            (None, _) => format!(
                "The run is unfinished: it is recorded up to {steps} and is either still running or was \
                 killed."
            ),
        }
    }

    fn of_planned(&self, step: u64) -> String {
        match self.planned {
            Some(planned) => format!("step {} of {}", grouped(step), grouped(planned)),
            None => format!("step {}", grouped(step)),
        }
    }

    fn of_planned_count(&self) -> String {
        let planned = self.planned.unwrap_or(self.last_step);
        format!("{} of {}", grouped(self.last_step), grouped(planned))
    }

    /// Number of attempts and their result.
    fn repair(&self) -> Option<String> {
        let attempts = &self.history.attempts;
        if attempts.is_empty() {
            return self.without_attempts();
        }
        let tried = spelled(attempts.len(), "remedy was tried", "remedies were tried");
        let delivered = self.history.delivered_attempt().map(|attempt| attempt.number);
        let entry = |number| attempts.iter().find(|entry| entry.attempt.number == number);
        let status = self.summary.map(|summary| summary.status);
        Some(match (status, delivered.and_then(entry)) {
            (None, _) => format!("{tried} so far{}.", self.open()),
            (Some(status), Some(entry)) if !status.is_success() => {
                let best = name(entry);
                format!("{tried} and none repaired the problem; the best result is {best}.")
            }
            (Some(status), None) if !status.is_success() => {
                format!("{tried} and none helped; the plan as given was delivered.")
            }
            (Some(_), Some(entry)) => {
                let change = sentence_end(&entry.attempt.change);
                format!("{tried}; {} succeeded: {change}", name(entry))
            }
            (Some(_), None) => format!("{tried}; the plan as given was best."),
        })
    }

    /// The attempts of an unfinished run.
    fn open(&self) -> String {
        let outcomes = self.history.attempts.iter();
        let succeeded = outcomes.filter(|entry| {
            let outcome = entry.outcome.as_ref();
            outcome.is_some_and(|outcome| outcome.state == AttemptState::Repaired)
        });
        match succeeded.count() {
            0 => "; none has succeeded yet".to_owned(),
            1 => "; one succeeded".to_owned(),
            count => format!("; {count} succeeded"),
        }
    }

    fn without_attempts(&self) -> Option<String> {
        if self.history.main_problem().is_some()
            && let Some(summary) = self.summary.filter(|_| !self.is_program)
        {
            let reason = match summary.status {
                Status::Problem => ", because repair was off or declined",
                _ => "",
            };
            return Some(format!("No remedy was tried{reason}."));
        }
        let findings = self.history.findings.iter();
        let warnings = findings.filter(|f| f.severity == Severity::Warning).count();
        match warnings {
            0 => None,
            _ => {
                let warnings = spelled(warnings, "warning is", "warnings are");
                Some(format!("{warnings} listed below."))
            }
        }
    }

    /// The metric of the delivered model.
    fn result(&self) -> Option<String> {
        if self.metric.is_empty() {
            return None;
        }
        let name = capital(&format::metric_name(self.metric));
        let split = match self.history.selection_split() {
            Some(Split::Train) => " on the training split (no validation split)",
            Some(_) => " on the validation split",
            None => "",
        };
        let shown = |value| format::metric(self.metric, value);
        let Some(summary) = self.summary else {
            let last = self.history.selection_evaluations().last()?;
            let (value, epoch) = (shown(last.metric), grouped(last.epoch));
            return Some(format!(
                "{name}{split} was {value} after epoch {epoch}, the last recorded."
            ));
        };
        let (before, after) = (summary.metric.before, summary.metric.after);
        let sound = [before, after].iter().all(|m| m.is_some_and(f64::is_finite));
        let (before, after) = (shown(before), shown(after));
        let repaired = self.history.delivered_attempt().is_some();
        Some(match repaired {
            _ if before == after => format!("{name}{split} is {after}."),
            true if sound => format!("{name}{split} improved from {before} to {after}."),
            true => format!("{name}{split} is {after}; the plan as given had {before}."),
            false => format!(
                "{name}{split} is {after} for the delivered model, which is from the best epoch; \
                 after the last epoch it was {before}."
            ),
        })
    }
}

/// Number and remedies of an attempt: `attempt 2 (activation and batch_norm)`.
fn name(entry: &Entry) -> String {
    let number = entry.attempt.number;
    match entry.attempt.remedies.as_slice() {
        [] => format!("attempt {number}"),
        remedies => format!("attempt {number} ({})", listed(remedies)),
    }
}

/// Ends a sentence with one full stop.
fn sentence_end(text: &str) -> String {
    format!("{}.", text.trim().trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{attempt, evaluation, outcome, summary};
    use surefoot_diagnose::{Finding, Problem};
    use surefoot_record::{Event, MetricSummary};

    fn summarized(events: &[Event], summary: Option<&RunSummary>) -> String {
        summary_with(events, summary, 1600, "accuracy", 0.5)
    }

    fn summary_with(
        events: &[Event],
        summary: Option<&RunSummary>,
        last_step: u64,
        metric: &str,
        last_loss: f64,
    ) -> String {
        let history = History::of(events);
        let story = Story {
            history: &history,
            summary,
            last_step,
            planned: Some(1600),
            last_loss: Some(last_loss),
            metric,
            is_program: false,
            is_running: false,
        };
        story.sentences().join(" ")
    }

    fn ended(status: Status, before: Option<f64>, after: Option<f64>) -> RunSummary {
        RunSummary {
            metric: MetricSummary { name: "accuracy".to_owned(), before, after },
            ..summary(status)
        }
    }

    fn judged() -> Event {
        evaluation(1, 40, Split::Validation, Some(0.5))
    }

    fn stopped() -> Vec<Event> {
        vec![
            judged(),
            Event::Finding(Finding::new(Problem::DYING_RELU, 120, "Dead.")),
            Event::Stopped { step: 120, problem: Problem::DYING_RELU },
        ]
    }

    fn delivered(attempt: u32) -> Event {
        Event::Delivered { step: 120, attempt, metric: Some(0.971) }
    }

    #[test]
    fn a_normal_run() {
        let summary = ended(Status::Normal, Some(0.97), Some(0.97));
        assert_eq!(
            summarized(&[judged()], Some(&summary)),
            "The plan was trained for all 1,600 steps and no problem was found. \
             Accuracy on the validation split is 97.0%."
        );
    }

    #[test]
    fn a_normal_run_with_a_warning_whose_best_epoch_was_not_the_last() {
        let summary = ended(Status::Normal, Some(0.968), Some(0.971));
        let warning = Finding::new(Problem::LOSS_SPIKE, 9, "A jump.").warning();
        assert_eq!(
            summary_with(
                &[judged(), Event::Finding(warning)],
                Some(&summary),
                800,
                "accuracy",
                0.1
            ),
            "The plan was trained for 800 of 1,600 steps and no problem was found. \
             One warning is listed below. \
             Accuracy on the validation split is 97.1% for the delivered model, which is from the \
             best epoch; after the last epoch it was 96.8%."
        );
    }

    #[test]
    fn a_repaired_run() {
        let mut events = stopped();
        events.extend([
            attempt(1, 0, &["batch_norm"], "Scale the data."),
            outcome(1, AttemptState::Persists, Some(0.5)),
            attempt(2, 0, &["activation"], "Use leaky ReLU instead of ReLU."),
            outcome(2, AttemptState::Repaired, Some(0.971)),
            delivered(2),
        ]);
        let summary = ended(Status::Repaired, Some(0.498), Some(0.971));
        assert_eq!(
            summarized(&events, Some(&summary)),
            "Training was stopped at step 120 of 1,600 because most ReLU units were dead \
             (dying ReLU). Two remedies were tried; attempt 2 (activation) succeeded: Use leaky \
             ReLU instead of ReLU. Accuracy on the validation split improved from 49.8% to 97.1%."
        );
    }

    #[test]
    fn a_repaired_run_whose_metric_was_nan() {
        let mut events = stopped();
        events.extend([attempt(1, 0, &["activation", "batch_norm"], "Both"), delivered(1)]);
        let summary = ended(Status::Repaired, Some(f64::NAN), Some(0.971));
        let text = summarized(&events, Some(&summary));
        assert!(
            text.contains(
                "One remedy was tried; attempt 1 (activation and batch_norm) succeeded: Both."
            ),
            "{text}"
        );
        assert!(text.ends_with("is 97.1%; the plan as given had NaN."), "{text}");
    }

    #[test]
    fn a_run_that_could_not_be_repaired() {
        let mut events = stopped();
        events.extend([
            attempt(1, 0, &["activation"], "Leaky."),
            outcome(1, AttemptState::Persists, None),
        ]);
        let summary = ended(Status::Failed, Some(0.498), Some(0.498));
        let text = summarized(&events, Some(&summary));
        assert!(
            text.contains("One remedy was tried and none helped; the plan as given was delivered."),
            "{text}"
        );
        events.push(delivered(1));
        let text = summarized(&events, Some(&summary));
        assert!(text.contains("the best result is attempt 1 (activation)."), "{text}");
    }

    #[test]
    fn a_run_that_failed_without_a_finding() {
        let summary = ended(Status::Failed, Some(f64::NAN), None);
        assert_eq!(
            summary_with(&[judged()], Some(&summary), 1600, "accuracy", f64::NAN),
            "The plan was trained for all 1,600 steps, but the loss became NaN or infinite. \
             Accuracy on the validation split is undefined for the delivered model, which is from \
             the best epoch; after the last epoch it was NaN."
        );
    }

    #[test]
    fn a_problem_without_attempts() {
        let finding = Finding::new(Problem::SLOW_CONVERGENCE, 1500, "Slow.");
        let summary = ended(Status::Problem, Some(0.6), Some(0.6));
        assert_eq!(
            summarized(&[judged(), Event::Finding(finding)], Some(&summary)),
            "The plan was trained for all 1,600 steps, but training failed because the loss \
             hardly decreased (slow convergence). No remedy was tried, because repair was off or \
             declined. Accuracy on the validation split is 60.0%."
        );
    }

    #[test]
    fn an_unfinished_run() {
        assert_eq!(
            summary_with(&[judged()], None, 77, "accuracy", 0.1),
            "The run is unfinished: it is recorded up to step 77 of 1,600 and is either still \
             running or was killed. Accuracy on the validation split was 50.0% after epoch 1, the \
             last recorded."
        );
        assert_eq!(
            summary_with(&[Event::Interrupted { step: 80 }], None, 80, "accuracy", 0.1),
            "The run was interrupted at step 80 of 1,600 and can be resumed."
        );
        let crashed = Event::Crashed { step: 80, reason: "ValueError: no data".to_owned() };
        assert_eq!(
            summary_with(std::slice::from_ref(&crashed), None, 80, "accuracy", 0.1),
            "The script crashed at step 80 of 1,600: ValueError: no data."
        );
        let resumed = Event::Resumed { step: 60, environment: Default::default() };
        let text = summary_with(&[crashed, resumed], None, 90, "accuracy", 0.1);
        assert!(text.starts_with("The run is unfinished"), "{text}");
        assert_eq!(
            summary_with(&[], None, 0, "accuracy", 0.1),
            "The run has started; no steps have been recorded yet."
        );
    }

    #[test]
    fn a_pruned_trial() {
        let why = "Worse than 3 of 4 trials at epoch 3 of 40.";
        let ended = Event::Finding(Finding::new(Problem::from("prospect".to_owned()), 45, why));
        let mut events = vec![judged(), ended];
        assert_eq!(
            summary_with(&events, None, 45, "accuracy", 0.1),
            "This run is a trial of a search. The pruner prospect stopped it at step 45 of 1,600: \
             Worse than 3 of 4 trials at epoch 3 of 40. Accuracy on the validation split was 50.0% \
             after epoch 1, the last recorded."
        );
        // The trial was continued.
        events.push(judged());
        let text = summary_with(&events, None, 60, "accuracy", 0.1);
        assert!(text.starts_with("The run is unfinished"), "{text}");
    }

    #[test]
    fn an_unfinished_repair() {
        let mut events = stopped();
        events.extend([
            attempt(1, 0, &["batch_norm"], "Scale."),
            outcome(1, AttemptState::Persists, None),
            attempt(2, 0, &["activation"], "Leaky."),
        ]);
        let text = summary_with(&events, None, 120, "accuracy", 0.1);
        assert!(text.contains("Two remedies were tried so far; none has succeeded yet."), "{text}");
    }

    #[test]
    fn a_regression_without_a_validation_split() {
        let summary = ended(Status::Normal, Some(0.9123), Some(0.9123));
        let events = [evaluation(1, 40, Split::Train, Some(0.5))];
        let text = summary_with(&events, Some(&summary), 1600, "r2", 0.1);
        assert!(
            text.ends_with("R² on the training split (no validation split) is 0.9123."),
            "{text}"
        );
    }
}
