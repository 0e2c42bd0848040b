//! Shows a run on the terminal while it trains.

use crate::output::Console;
use crate::output::outline::{Facts, Overview};
use crate::output::progress::Bar;
use crate::output::repair::{self, Phase};
use crate::output::screen::Screen;
use serde::Serialize;
use std::sync::Arc;
use surefoot_diagnose::{Evaluation, Finding};
use surefoot_record::{Attempt, Event};
use surefoot_train::{
    AttemptEvent, Callback, Device, PreparedPlan, RunContext, Step, TrainError, TrainingResult,
};

/// The first JSON line of a run.
#[derive(Serialize)]
pub(super) struct Opening<'a> {
    pub(super) event: &'static str,
    /// Steps done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) step: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<String>,
    #[serde(flatten)]
    pub(super) facts: Facts<'a>,
}

/// Prints events and findings, and draws progress bars. Costs a comparison per step where nothing
/// is drawn.
pub(super) struct ProgressCallback {
    pub(super) console: Console,
    pub(super) screen: Screen,
    pub(super) prepared: Arc<PreparedPlan>,
    pub(super) device: Device,
    pub(super) workers: usize,
    pub(super) bar: Option<Bar>,
    /// Attempts in progress.
    pub(super) attempts: Vec<Attempt>,
    pub(super) metric: &'static str,
    /// True once the run has started, for the help of errors.
    pub(super) run: Option<String>,
}

impl ProgressCallback {
    pub(super) fn new(
        console: &Console,
        prepared: Arc<PreparedPlan>,
        device: Device,
        workers: usize,
    ) -> Self {
        Self {
            console: *console,
            screen: Screen::new(console),
            prepared,
            device,
            workers,
            bar: None,
            attempts: Vec::new(),
            metric: "",
            run: None,
        }
    }

    /// Prints the overview and the first event. A training that continues after a declined repair has
    /// been introduced already.
    fn introduce(&mut self, run: &RunContext) {
        let outline = run.outline();
        if !self.metric.is_empty() {
            self.bar = self.screen.bar(outline.metric, None);
            return;
        }
        let overview = Overview {
            plan: self.prepared.plan(),
            data: self.prepared.data(),
            shapes: self.prepared.shapes(),
            outline,
            memory: self.prepared.memory(),
            device: self.device,
            workers: self.workers,
        };
        self.console.mention(&overview.text());
        let dir = run.dir().map(|dir| dir.display().to_string());
        let epochs = self.prepared.plan().training.epochs;
        let steps = outline.steps_per_epoch.saturating_mul(epochs);
        if let (Some(from), Some(dir)) = (run.resume_step(), &dir) {
            self.console.note(&format!("{dir} continues from step {from} of {steps}"));
        }
        self.console.event(&Opening {
            event: if run.resume_step().is_some() { "resumed" } else { "started" },
            step: Some(run.resume_step().unwrap_or(0)),
            run: dir.clone(),
            facts: overview.facts(),
        });
        self.run = dir;
        self.metric = outline.metric;
        self.bar = self.screen.bar(outline.metric, None);
    }

    fn clear_bar(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.clear();
        }
    }

    /// Draws the attempts on probation.
    fn draw_attempts(&self) {
        let width = self.screen.width();
        let lines = self
            .attempts
            .iter()
            .map(|attempt| repair::attempt(attempt, Phase::Trying, self.metric).plain(width));
        self.screen.draw(&lines.collect::<Vec<_>>());
    }
}

impl Callback for ProgressCallback {
    fn on_start(&mut self, run: &mut RunContext) -> Result<(), TrainError> {
        match run.attempt() {
            0 => self.introduce(run),
            number if self.bar.is_none() => {
                let attempt = self.attempts.iter().find(|attempt| attempt.number == number);
                let heading = attempt.map(|attempt| {
                    let line = repair::attempt(attempt, Phase::Continuing, self.metric);
                    line.plain(self.screen.width())
                });
                self.bar = self.screen.bar(self.metric, heading);
            }
            _ => {}
        }
        Ok(())
    }

    fn on_step(&mut self, step: &Step<'_>, _: &mut RunContext) -> Result<(), TrainError> {
        if let Some(bar) = &mut self.bar {
            bar.step(&step.progress);
        }
        Ok(())
    }

    fn on_evaluation(
        &mut self,
        evaluation: &Evaluation,
        _: &mut RunContext,
    ) -> Result<(), TrainError> {
        if let Some(bar) = &mut self.bar {
            bar.evaluated(evaluation);
        }
        Ok(())
    }

    fn on_finding(&mut self, finding: &Finding, run: &mut RunContext) -> Result<(), TrainError> {
        if run.attempt() == 0 {
            let steps = run.outline().facts.total_steps().unwrap_or(0);
            self.screen.say(&repair::finding(finding, steps, self.screen.width()));
        }
        Ok(())
    }

    fn on_event(&mut self, event: &Event, run: &mut RunContext) -> Result<(), TrainError> {
        let printed = !matches!(event, Event::Best { .. } | Event::Interrupted { .. });
        if run.attempt() == 0 && printed {
            self.screen.event(event);
        }
        if let Event::DetectorPanic { step, problem, .. } = event {
            self.screen.above(|| {
                self.console.warn(&format!(
                    "the detector of {problem} crashed at step {step} and was switched off"
                ));
            });
        }
        Ok(())
    }

    fn on_attempt(
        &mut self,
        event: &AttemptEvent<'_>,
        _: &mut RunContext,
    ) -> Result<(), TrainError> {
        match *event {
            AttemptEvent::Start(attempt) => {
                if attempt.number == 1 {
                    self.screen.mention("\n  Searching for a remedy:");
                }
                self.attempts.push(attempt.clone());
                self.draw_attempts();
            }
            AttemptEvent::End { attempt, outcome, .. } => {
                self.attempts.retain(|other| other != attempt);
                self.bar = None;
                self.screen.clear();
                let line = repair::attempt(attempt, Phase::Ended(outcome), self.metric);
                self.screen.say(&line.painted(self.screen.width()));
            }
        }
        Ok(())
    }

    fn on_end(&mut self, _: &TrainingResult, run: &mut RunContext) -> Result<(), TrainError> {
        if run.attempt() == 0 {
            self.clear_bar();
        }
        Ok(())
    }
}
