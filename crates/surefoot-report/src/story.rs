//! What happened, in three sentences.

use surefoot_diagnose::{Severity, Split};
use surefoot_record::{AttemptState, RunSummary, Status};

use crate::explain::because;
use crate::history::{Entry, History};
use crate::words::{self, capital, counted, grouped, listed, spelled};

/// What the sentences are made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Story<'a> {
    pub(crate) history: &'a History,
    /// `None` if the run did not end.
    pub(crate) summary: Option<&'a RunSummary>,
    /// The last step of the plan as given that was recorded.
    pub(crate) last_step: u64,
    /// How many steps the plan as given has, if that is known.
    pub(crate) planned: Option<u64>,
    /// The last loss of the plan as given.
    pub(crate) last_loss: Option<f64>,
    /// The metric's name.
    pub(crate) metric: &'a str,
}

impl Story<'_> {
    /// The sentences.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let sentences = [Some(self.training()), self.repair(), self.result()];
        sentences.into_iter().flatten().collect()
    }

    /// How far the plan as given came.
    fn training(&self) -> String {
        if let Some((step, problem)) = &self.history.stopped {
            let steps = self.of_planned(*step);
            return format!("The plan was stopped after {steps} {}.", because(problem));
        }
        let Some(summary) = self.summary else {
            return self.unfinished();
        };
        let end = match self.planned {
            Some(planned) if self.last_step < planned => {
                format!("was trained for {} steps", self.of_planned_count())
            }
            _ => format!("was trained to its end, {}", counted(self.last_step, "step")),
        };
        let broken = self.last_loss.is_some_and(|loss| !loss.is_finite());
        match (self.history.main_problem(), summary.status) {
            (Some(problem), _) => {
                let reason = because(problem);
                format!("The plan {end}, and that did not go well {reason}.")
            }
            (None, Status::Normal | Status::Repaired) => {
                format!("The plan {end}, and no problem was found.")
            }
            (None, Status::Failed) if broken => {
                format!("The plan {end}, and failed: its loss is no number any more.")
            }
            (None, Status::Failed) => format!("The plan {end}, and failed."),
        }
    }

    fn unfinished(&self) -> String {
        let steps = self.of_planned(self.last_step);
        if let Some(reason) = &self.history.ended {
            let steps = self.of_planned(reason.step);
            let (by, why) = (reason.problem.id(), sentence_end(&reason.message));
            return format!(
                "The run is a trial of a search, which {by} stopped after {steps}: {why}"
            );
        }
        match (self.history.interrupted, self.last_step) {
            (Some(step), _) => {
                let steps = self.of_planned(step);
                format!("The run was interrupted after {steps} and can be resumed.")
            }
            (None, 0) => "The run has begun, and no step of it is recorded yet.".to_owned(),
            (None, _) => format!(
                "The run has not ended: it is recorded up to {steps} and either still goes on or \
                 was killed."
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

    /// What was tried, and whether it worked.
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
            (Some(Status::Failed), Some(entry)) => {
                let best = name(entry);
                format!("{tried} and none repaired it; the best that was reached is {best}.")
            }
            (Some(Status::Failed), None) => {
                format!("{tried} and none helped; the plan as given is delivered.")
            }
            (Some(_), Some(entry)) => {
                let change = sentence_end(&entry.attempt.change);
                format!("{tried}; {} worked: {change}", name(entry))
            }
            (Some(_), None) => format!("{tried}, and the plan as given was the best of all."),
        })
    }

    /// The attempts of a run that did not end.
    fn open(&self) -> String {
        let outcomes = self.history.attempts.iter();
        let worked = outcomes.filter(|entry| {
            let outcome = entry.outcome.as_ref();
            outcome.is_some_and(|outcome| outcome.state == AttemptState::Repaired)
        });
        match worked.count() {
            0 => ", and none of them has worked yet".to_owned(),
            1 => ", and one of them worked".to_owned(),
            count => format!(", and {count} of them worked"),
        }
    }

    fn without_attempts(&self) -> Option<String> {
        let problems = self.history.main_problem().is_some();
        if problems && self.summary.is_some() {
            return Some("No remedy was tried.".to_owned());
        }
        let findings = self.history.findings.iter();
        let warnings = findings.filter(|f| f.severity == Severity::Warning).count();
        match warnings {
            0 => None,
            _ => {
                let warnings = spelled(warnings, "warning is", "warnings are");
                Some(format!("{warnings} worth knowing, further down."))
            }
        }
    }

    /// How good it is.
    fn result(&self) -> Option<String> {
        let name = capital(&words::metric_name(self.metric));
        let split = match self.history.judged_split() {
            Some(Split::Train) => " on the training split (there is no validation split)",
            Some(_) => " on the validation split",
            None => "",
        };
        let shown = |value| words::metric(self.metric, value);
        let Some(summary) = self.summary else {
            let last = self.history.judged().last()?;
            let (value, epoch) = (shown(last.metric), grouped(last.epoch));
            return Some(format!(
                "{name}{split} was {value} after epoch {epoch}, the last that is recorded."
            ));
        };
        let (before, after) = (summary.metric.before, summary.metric.after);
        let sound = [before, after].iter().all(|m| m.is_some_and(f64::is_finite));
        let (before, after) = (shown(before), shown(after));
        let repaired = self.history.delivered_attempt().is_some();
        Some(match repaired {
            _ if before == after => format!("{name}{split} is {after}."),
            true if sound => format!("{name}{split} went from {before} to {after}."),
            true => format!("{name}{split} is {after}; for the plan as given it was {before}."),
            false => format!(
                "{name}{split} is {after} for the delivered model, the best of all epochs; at the \
                 end it was {before}."
            ),
        })
    }
}

/// The number and the remedies of an attempt: `attempt 2 (S2 and S1)`.
fn name(entry: &Entry) -> String {
    let number = entry.attempt.number;
    match entry.attempt.remedies.as_slice() {
        [] => format!("attempt {number}"),
        remedies => format!("attempt {number} ({})", listed(remedies)),
    }
}

/// Somebody's sentence, ended by one full stop.
fn sentence_end(text: &str) -> String {
    format!("{}.", text.trim().trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{attempt, evaluation, outcome, summary};
    use surefoot_diagnose::{Finding, Problem};
    use surefoot_record::{Event, MetricSummary};

    fn told(events: &[Event], summary: Option<&RunSummary>) -> String {
        told_with(events, summary, 1600, "accuracy", 0.5)
    }

    fn told_with(
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
            told(&[judged()], Some(&summary)),
            "The plan was trained to its end, 1,600 steps, and no problem was found. \
             Accuracy on the validation split is 97.0%."
        );
    }

    #[test]
    fn a_normal_run_that_was_better_before_its_end_and_has_a_remark() {
        let summary = ended(Status::Normal, Some(0.968), Some(0.971));
        let warning = Finding::new(Problem::LOSS_SPIKE, 9, "A jump.").warning();
        assert_eq!(
            told_with(&[judged(), Event::Finding(warning)], Some(&summary), 800, "accuracy", 0.1),
            "The plan was trained for 800 of 1,600 steps, and no problem was found. \
             One warning is worth knowing, further down. \
             Accuracy on the validation split is 97.1% for the delivered model, the best of all \
             epochs; at the end it was 96.8%."
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
            told(&events, Some(&summary)),
            "The plan was stopped after step 120 of 1,600 because most ReLU units were dead \
             (dying ReLU). Two remedies were tried; attempt 2 (S2) worked: Use leaky ReLU instead \
             of ReLU. Accuracy on the validation split went from 49.8% to 97.1%."
        );
    }

    #[test]
    fn a_repaired_run_whose_metric_was_no_number_before() {
        let mut events = stopped();
        events.extend([attempt(1, 0, &["activation", "batch_norm"], "Both"), delivered(1)]);
        let summary = ended(Status::Repaired, Some(f64::NAN), Some(0.971));
        let text = told(&events, Some(&summary));
        assert!(
            text.contains("One remedy was tried; attempt 1 (S2 and S1) worked: Both."),
            "{text}"
        );
        assert!(text.ends_with("is 97.1%; for the plan as given it was not a number."), "{text}");
    }

    #[test]
    fn a_run_that_could_not_be_repaired() {
        let mut events = stopped();
        events.extend([
            attempt(1, 0, &["activation"], "Leaky."),
            outcome(1, AttemptState::Persists, None),
        ]);
        let summary = ended(Status::Failed, Some(0.498), Some(0.498));
        let text = told(&events, Some(&summary));
        assert!(
            text.contains("One remedy was tried and none helped; the plan as given is delivered."),
            "{text}"
        );
        events.push(delivered(1));
        let text = told(&events, Some(&summary));
        assert!(text.contains("the best that was reached is attempt 1 (S2)."), "{text}");
    }

    #[test]
    fn a_run_that_failed_without_a_finding() {
        let summary = ended(Status::Failed, Some(f64::NAN), None);
        assert_eq!(
            told_with(&[judged()], Some(&summary), 1600, "accuracy", f64::NAN),
            "The plan was trained to its end, 1,600 steps, and failed: its loss is no number any \
             more. Accuracy on the validation split is not defined for the delivered model, the \
             best of all epochs; at the end it was not a number."
        );
    }

    #[test]
    fn a_problem_that_nothing_was_done_about() {
        let finding = Finding::new(Problem::SLOW_CONVERGENCE, 1500, "Slow.");
        let summary = ended(Status::Failed, Some(0.6), Some(0.6));
        assert_eq!(
            told(&[judged(), Event::Finding(finding)], Some(&summary)),
            "The plan was trained to its end, 1,600 steps, and that did not go well because the \
             loss hardly moved (slow convergence). No remedy was tried. Accuracy on the \
             validation split is 60.0%."
        );
    }

    #[test]
    fn a_run_that_did_not_end() {
        assert_eq!(
            told_with(&[judged()], None, 77, "accuracy", 0.1),
            "The run has not ended: it is recorded up to step 77 of 1,600 and either still goes on \
             or was killed. Accuracy on the validation split was 50.0% after epoch 1, the last \
             that is recorded."
        );
        assert_eq!(
            told_with(&[Event::Interrupted { step: 80 }], None, 80, "accuracy", 0.1),
            "The run was interrupted after step 80 of 1,600 and can be resumed."
        );
        assert_eq!(
            told_with(&[], None, 0, "accuracy", 0.1),
            "The run has begun, and no step of it is recorded yet."
        );
    }

    #[test]
    fn a_trial_that_was_stopped() {
        let why = "After 3 of 40 stretches, 3 of 4 trials were better.";
        let ended = Event::Finding(Finding::new(Problem::from("prospect".to_owned()), 45, why));
        let mut events = vec![judged(), ended];
        assert_eq!(
            told_with(&events, None, 45, "accuracy", 0.1),
            "The run is a trial of a search, which prospect stopped after step 45 of 1,600: After 3 \
             of 40 stretches, 3 of 4 trials were better. Accuracy on the validation split was 50.0% \
             after epoch 1, the last that is recorded."
        );
        // Somebody went on with it.
        events.push(judged());
        let text = told_with(&events, None, 60, "accuracy", 0.1);
        assert!(text.starts_with("The run has not ended"), "{text}");
    }

    #[test]
    fn a_repair_that_did_not_end() {
        let mut events = stopped();
        events.extend([
            attempt(1, 0, &["batch_norm"], "Scale."),
            outcome(1, AttemptState::Persists, None),
            attempt(2, 0, &["activation"], "Leaky."),
        ]);
        let text = told_with(&events, None, 120, "accuracy", 0.1);
        assert!(
            text.contains("Two remedies were tried so far, and none of them has worked yet."),
            "{text}"
        );
    }

    #[test]
    fn a_regression_without_a_validation_split() {
        let summary = ended(Status::Normal, Some(0.9123), Some(0.9123));
        let events = [evaluation(1, 40, Split::Train, Some(0.5))];
        let text = told_with(&events, Some(&summary), 1600, "r2", 0.1);
        assert!(
            text.ends_with("R² on the training split (there is no validation split) is 0.9123."),
            "{text}"
        );
    }
}
