//! The report of a study: what was tried, what came of it, and why trials were ended.
//!
//! The page has a bounded size whatever the number of trials: dots that fall on the same spot are
//! drawn once ([`dots`]), of curves some are chosen ([`selection`]), and tables have an end.

mod axis;
mod best;
mod courses;
mod dots;
#[cfg(test)]
mod fixture;
mod forest;
mod headline;
mod history;
mod importance;
mod outcome;
mod parallel;
mod plot;
mod selection;
mod slices;
mod stopped;
mod table;
#[cfg(test)]
mod tests;
mod timeline;
mod values;

use maud::{Markup, html};
use surefoot_tune::store::{End, Report, Study, Trial, View};
use surefoot_tune::study::ObjectiveKind;
use surefoot_tune::{Direction, Space};

use crate::document::document;
use outcome::Outcome;

/// What the report of a study is made from.
#[derive(Clone, Debug)]
pub struct StudyPage<'a> {
    /// The name of the study.
    pub name: &'a str,
    /// Where it is kept, without a password.
    pub store: &'a str,
    /// What trials are judged by.
    pub objective: ObjectiveKind,
    /// Which way is better.
    pub direction: Direction,
    /// Where it looks.
    pub space: &'a Space,
    /// What the draws of its sampler come from.
    pub seed: u64,
    /// The text of the study file.
    pub document: &'a str,
    /// The version of the Surefoot that made it.
    pub program: &'a str,
    /// The trials, by number.
    pub trials: Vec<StudyTrial<'a>>,
}

/// A trial with its course.
#[derive(Clone, Copy, Debug)]
pub struct StudyTrial<'a> {
    /// The trial.
    pub trial: &'a Trial,
    /// What it has reported, in order.
    pub reports: &'a [Report],
}

impl<'a> StudyPage<'a> {
    /// Of a study as its store has it. The view has to have the reports.
    pub fn new(study: &'a Study, view: &'a View, store: &'a str) -> StudyPage<'a> {
        let read = surefoot_tune::Study::parse(&study.document, study.name.as_str());
        let trials = view
            .trials()
            .iter()
            .map(|trial| StudyTrial { trial, reports: view.reports(trial.number) });
        StudyPage {
            name: &study.name,
            store,
            // A file of a later version may say what this one does not understand.
            objective: read.map_or(ObjectiveKind::Value, |read| read.settings.objective),
            direction: study.direction,
            space: &study.space,
            seed: study.seed,
            document: &study.document,
            program: &study.program,
            trials: trials.collect(),
        }
    }

    /// Whether any trial came to such an end.
    fn has(&self, outcome: Outcome) -> bool {
        self.trials.iter().any(|trial| trial.outcome() == outcome)
    }

    /// What trials are judged by, in words.
    fn objective_name(&self) -> &'static str {
        match self.objective {
            ObjectiveKind::Metric => "validation metric",
            ObjectiveKind::Loss => "validation loss",
            ObjectiveKind::Value => "value",
        }
    }

    /// Which way is better, in words.
    fn better(&self) -> &'static str {
        match self.direction {
            Direction::Minimize => "lower is better",
            Direction::Maximize => "higher is better",
        }
    }

    /// The trials that count with what they reached, the best first and the first of equals before
    /// the others.
    fn ranking(&self) -> Vec<(StudyTrial<'a>, f64)> {
        let counting = self.trials.iter().filter(|trial| trial.counts());
        let reached = counting.filter_map(|trial| Some((*trial, trial.reached()?)));
        let mut ranking: Vec<_> = reached.collect();
        let cost = |value: f64| self.direction.cost(value);
        ranking.sort_by(|a, b| cost(a.1).total_cmp(&cost(b.1)));
        ranking
    }
}

impl StudyTrial<'_> {
    fn number(&self) -> u64 {
        self.trial.number
    }

    fn outcome(&self) -> Outcome {
        Outcome::of(self.trial)
    }

    /// Whether it can be the best: it came to its end, or was ended because it was done.
    fn counts(&self) -> bool {
        match self.trial.end() {
            Some(End::Complete { .. }) => true,
            Some(End::Stopped { reason, .. }) => reason.counts,
            _ => false,
        }
    }

    /// What it reached, if that is a finite number; for one that is not over, what it has so far.
    fn reached(&self) -> Option<f64> {
        let last = || self.reports.last().map(|report| report.value);
        let value = match self.trial.end() {
            Some(end) => end.value(),
            None => last(),
        };
        value.filter(|value| value.is_finite())
    }
}

/// The report of a study, as one HTML page.
///
/// The study may go on, and may have any number of trials, also none.
pub fn study_report(page: &StudyPage<'_>) -> String {
    let main = sections(page);
    document(page.name, &html! {}, &main).into_string()
}

fn sections(page: &StudyPage<'_>) -> Markup {
    let ranking = page.ranking();
    if page.trials.is_empty() {
        return html! {
            (headline::header(page, &ranking))
            (headline::small_print(page))
        };
    }
    let values = values::Values::of(page);
    let chosen = selection::Selection::of(page, &ranking);
    let importance = importance::Importance::of(page);
    html! {
        (headline::header(page, &ranking))
        (history::section(page, &values))
        (courses::section(page, &ranking, &chosen))
        (importance.section(page))
        (parallel::section(page, &values, &chosen, &importance))
        (slices::section(page, &values, &importance))
        (timeline::section(page))
        (best::section(page, &ranking))
        (stopped::section(page))
        (headline::small_print(page))
    }
}
