//! The report of a study.
//!
//! The size of the page does not grow with the number of trials: overlapping dots are drawn once
//! ([`dots`]), a selection of curves is drawn ([`selection`]), and tables are truncated.

mod axis;
mod best;
mod curves;
mod dots;
mod ended;
#[cfg(test)]
mod fixture;
mod headline;
mod history;
mod importance;
pub(crate) mod live;
mod parallel;
mod plot;
mod selection;
mod slices;
mod status;
mod table;
#[cfg(test)]
mod tests;
mod timeline;
mod values;

use maud::{Markup, html};
use surefoot_tune::storage::{FrozenTrial, StoredStudy, TrialReport, TrialState, View};
use surefoot_tune::study::ObjectiveKind;
use surefoot_tune::{Direction, Space};

pub(crate) use live::Fragments;

use crate::document::document;
use status::Status;

/// Contents of the report of a study.
#[derive(Clone, Debug)]
pub struct StudyPage<'a> {
    /// Name of the study.
    pub name: &'a str,
    /// Store of the study, without a password.
    pub store: &'a str,
    /// Objective of the trials.
    pub objective: ObjectiveKind,
    /// Direction of optimization.
    pub direction: Direction,
    /// Search space.
    pub space: &'a Space,
    /// Seed of the sampler.
    pub seed: u64,
    /// Text of the study file.
    pub document: &'a str,
    /// Version of Surefoot that created the study.
    pub program: &'a str,
    /// Trials by number.
    pub trials: Vec<StudyTrial<'a>>,
}

/// A trial with its intermediate values.
#[derive(Clone, Copy, Debug)]
pub struct StudyTrial<'a> {
    /// The trial.
    pub trial: &'a FrozenTrial,
    /// Reports in order.
    pub reports: &'a [TrialReport],
    /// Value: final, or the best so far if it is paused.
    pub value: Option<f64>,
}

impl<'a> StudyPage<'a> {
    /// Reads a stored study. The view must include the reports.
    pub fn new(study: &'a StoredStudy, view: &'a View, store: &'a str) -> StudyPage<'a> {
        let read = surefoot_tune::Study::parse(&study.document, study.name.as_str());
        let trials = view.trials().iter().map(|trial| StudyTrial {
            trial,
            reports: view.reports(trial.number),
            value: view.value(trial.number),
        });
        StudyPage {
            name: &study.name,
            store,
            // A file of a newer version may not be readable.
            objective: read.map_or(ObjectiveKind::Value, |read| read.settings.objective),
            direction: study.direction,
            space: &study.space,
            seed: study.seed,
            document: &study.document,
            program: &study.program,
            trials: trials.collect(),
        }
    }

    /// Returns true if a trial has this status.
    fn has(&self, status: Status) -> bool {
        self.trials.iter().any(|trial| trial.status() == status)
    }

    /// Display name of the objective.
    fn objective_name(&self) -> &'static str {
        match self.objective {
            ObjectiveKind::Metric => "validation metric",
            ObjectiveKind::Loss => "validation loss",
            ObjectiveKind::Value => "value",
        }
    }

    /// Display form of the direction.
    fn better(&self) -> &'static str {
        match self.direction {
            Direction::Minimize => "lower is better",
            Direction::Maximize => "higher is better",
        }
    }

    /// The trials with a result and their values, best first; ties in the order of their numbers.
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

    fn status(&self) -> Status {
        Status::of(self.trial)
    }

    /// Returns true if the trial can be the best: it is complete or paused, or was pruned because it had converged.
    fn counts(&self) -> bool {
        match &self.trial.state {
            TrialState::Complete { .. } | TrialState::Paused => true,
            TrialState::Pruned { reason, .. } => reason.counts,
            _ => false,
        }
    }

    /// Duration of the trial; that of its reported epochs if it has not ended.
    fn seconds(&self) -> Option<f64> {
        let so_far = || self.reports.iter().map(|report| report.seconds).sum();
        self.trial.seconds.or_else(|| (!self.reports.is_empty()).then(so_far))
    }

    /// Finite value of the trial; for an unfinished trial, its last report.
    fn reached(&self) -> Option<f64> {
        let value = match self.status() {
            Status::Unfinished => self.reports.last().map(|report| report.value),
            _ => self.value,
        };
        value.filter(|value| value.is_finite())
    }
}

/// Returns the report of a study as an HTML page.
///
/// The study may be running and may have any number of trials.
pub fn study_report(page: &StudyPage<'_>) -> String {
    let main = sections(page);
    document(page.name, &html! {}, &main).into_string()
}

fn sections(page: &StudyPage<'_>) -> Markup {
    let ranking = page.ranking();
    if page.trials.is_empty() {
        return html! {
            (headline::header(page, &ranking))
            (headline::study_section(page))
        };
    }
    let values = values::Values::of(page);
    let chosen = selection::Selection::of(page, &ranking);
    let importance = importance::Importance::of(page);
    html! {
        (headline::header(page, &ranking))
        (history::section(page, &values))
        (curves::section(page, &ranking, &chosen))
        (importance.section(page))
        (parallel::section(page, &values, &chosen, &importance))
        (slices::section(page, &values, &importance))
        (timeline::section(page))
        (best::section(page, &ranking))
        (ended::section(page))
        (headline::study_section(page))
    }
}
