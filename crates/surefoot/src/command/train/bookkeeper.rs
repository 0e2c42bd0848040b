//! Keeps the books of a repair: every attempt in a run directory of its own, and in the ledger of
//! the run it is to repair.

use super::Arguments;
use super::approval::{self, Answer};
use super::care::Care;
use super::delivery;
use super::environment;
use super::job::Job;
use super::record::{self, ATTEMPTS};
use super::recorded::{ADOPTED, KERAS_COPY};
use crate::interrupt::Interrupt;
use crate::output::progress::Bar;
use crate::output::repair::{Standing, attempt as line};
use crate::output::screen::Screen;
use std::time::Instant;
use surefoot_diagnose::Evaluation;
use surefoot_plan::Plan;
use surefoot_record::{
    Attempt, AttemptOutcome, Event, MetricSummary, Recorder, Result, RunSummary, Status,
};
use surefoot_repair::{Proposal, remedies};
use surefoot_train::{Clerk, Journal, Outline, Progress, Report};

/// The clerk of a repair.
pub(super) struct Bookkeeper<'a> {
    pub(super) job: &'a Job,
    pub(super) arguments: &'a Arguments,
    pub(super) screen: &'a Screen,
    pub(super) interrupt: Interrupt,
    pub(super) care: Care,
    /// The record of the run that is to be repaired.
    pub(super) recorder: &'a mut Recorder,
    pub(super) metric: &'static str,
    /// Attempts under way, and since when.
    pub(super) open: Vec<(Attempt, Instant)>,
    /// That of the attempt that goes on.
    pub(super) bar: Option<Bar>,
    /// How many attempts there were.
    pub(super) tried: u64,
    /// Whether somebody said that nothing more is to be tried.
    pub(super) quits: bool,
}

impl Bookkeeper<'_> {
    /// The attempt with the place of its record.
    fn placed(attempt: &Attempt) -> Attempt {
        Attempt { run: format!("{ATTEMPTS}/attempt-{:03}", attempt.number), ..attempt.clone() }
    }

    /// Records in the ledger, and tells programs.
    fn enter(&mut self, event: &Event) -> Result<()> {
        self.recorder.event(event)?;
        self.screen.event(event);
        Ok(())
    }

    /// Draws the attempts that are on probation.
    fn draw(&self) {
        let width = self.screen.width();
        let lines: Vec<String> = self
            .open
            .iter()
            .map(|(attempt, _)| line(attempt, Standing::Tried, self.metric).plain(width))
            .collect();
        self.screen.draw(&lines);
    }

    /// Where the weights are that an attempt starts from where they fit, as its header has it.
    fn adopted(&self, attempt: &Attempt) -> Option<(String, serde_json::Value)> {
        let file = self.recorder.header().more.get(KERAS_COPY)?.as_str()?;
        let draws_anew = remedies::all().iter().any(|remedy| {
            remedy.reinitializes() && attempt.remedies.iter().any(|id| id == remedy.id())
        });
        (!draws_anew).then(|| (ADOPTED.to_owned(), format!("../../{file}").into()))
    }
}

impl Clerk for Bookkeeper<'_> {
    fn propose(&mut self, proposal: &Proposal) -> bool {
        if self.quits || self.interrupt.asked() {
            return false;
        }
        match self.care {
            Care::Automatic => true,
            Care::Off => false,
            Care::Approved => {
                let answer = approval::ask(proposal, &self.interrupt);
                self.quits = answer == Answer::Quit;
                answer == Answer::Yes
            }
        }
    }

    fn open(
        &mut self,
        attempt: &Attempt,
        plan: &Plan,
        outline: &Outline,
    ) -> Result<Box<dyn Journal + Send>> {
        let attempt = Self::placed(attempt);
        let dir = self.recorder.dir().join(&attempt.run);
        let (workers, device) = (self.arguments.workers(), self.arguments.device);
        let environment = environment::of(outline.data, workers, device);
        // Whoever goes on with it alone wants to know how it ends.
        let mut header = record::header(self.job, outline, environment, Care::Off);
        header.more.extend(self.adopted(&attempt));
        let recorder = Recorder::create_at(&dir, &plan.to_toml(), header)?;
        self.enter(&Event::Attempt(attempt.clone()))?;
        self.tried += 1;
        self.open.push((attempt, Instant::now()));
        self.draw();
        Ok(Box::new(recorder))
    }

    fn close(
        &mut self,
        attempt: &Attempt,
        outcome: &AttemptOutcome,
        plan: &Plan,
        report: &Report,
        journal: Box<dyn Journal + Send>,
    ) -> Result<()> {
        let attempt = Self::placed(attempt);
        let begun = self.open.iter().find(|(open, _)| *open == attempt);
        let seconds = begun.map_or(0.0, |(_, begun)| begun.elapsed().as_secs_f64());
        self.open.retain(|(open, _)| *open != attempt);
        if let Some(mut recorder) = journal.into_recorder() {
            if let Some(finding) = &outcome.finding {
                recorder.event(&Event::Finding(finding.clone()))?;
            }
            let run = recorder.dir().display().to_string();
            let summary = summary_of(outcome, report, self.metric, seconds, run);
            delivery::write(recorder, report, &plan.to_toml(), &summary)?;
        }
        self.enter(&Event::Outcome(outcome.clone()))?;
        self.bar = None;
        self.screen.clear();
        let line = line(&attempt, Standing::Over(outcome), self.metric);
        self.screen.say(&line.painted(self.screen.width()));
        Ok(())
    }

    fn step(&mut self, number: u32, progress: &Progress) {
        if self.bar.is_none() {
            let mut open = self.open.iter();
            let heading = open.find(|(attempt, _)| attempt.number == number);
            let heading = heading.map(|(attempt, _)| {
                line(attempt, Standing::GoesOn, self.metric).plain(self.screen.width())
            });
            self.bar = self.screen.bar(self.metric, heading);
        }
        if let Some(bar) = &mut self.bar {
            bar.step(progress);
        }
    }

    fn evaluated(&mut self, _: u32, evaluation: &Evaluation) {
        if let Some(bar) = &mut self.bar {
            bar.evaluated(evaluation);
        }
    }

    fn interrupted(&self) -> bool {
        self.interrupt.asked()
    }
}

/// How an attempt ended, as a run of its own.
fn summary_of(
    outcome: &AttemptOutcome,
    report: &Report,
    metric: &str,
    seconds: f64,
    run: String,
) -> RunSummary {
    let found = outcome.finding.as_ref();
    RunSummary {
        status: match found {
            None => Status::Normal,
            Some(_) => Status::Failed,
        },
        problems: found.iter().map(|f| f.problem.id().to_owned()).collect(),
        remedies: Vec::new(),
        metric: MetricSummary {
            name: metric.to_owned(),
            before: report.last.as_ref().and_then(|last| last.metric),
            after: outcome.metric,
        },
        steps: report.steps,
        seconds,
        digest: report.digest,
        run,
    }
}
