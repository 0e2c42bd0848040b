//! Views: an in-memory copy of a study, updated incrementally.

use super::claim::deleted;
use super::database::{Cell, Reader, Session, cells};
use super::study::{StoredStudy, StudyId};
use super::trial::{
    Change, ClaimState, FrozenTrial, StoredDecision, TrialAttempt, TrialReport, TrialState,
};
use super::{Storage, StorageError};
use crate::direction::Direction;
use crate::history::{History, TrialOutcome, TrialResult};
use crate::imputation::{self, Finished, Imputation};
use crate::learning_curve::LearningCurve;
use crate::scheduler::{ScheduleHistory, ScheduledReport, ScheduledTrial};

/// Longest gap between two reports that is filled. Steps further apart are not epochs, and a curve with all of
/// them would not fit into memory.
const MAX_GAP: usize = 100_000;

/// In-memory copy of a study.
///
/// [`Storage::refresh`] and [`Storage::refresh_reports`] read only what has changed since the last
/// call.
#[derive(Clone, Debug)]
pub struct View {
    study: StudyId,
    direction: Direction,
    trials: Vec<FrozenTrial>,
    change: Change,
    reports: Vec<Vec<TrialReport>>,
    /// Trial and report, in the order in which they were made.
    log: Vec<(u64, TrialReport)>,
    decisions: Vec<StoredDecision>,
    reports_change: Change,
}

impl View {
    /// An empty view.
    pub fn new(study: &StoredStudy) -> View {
        View {
            study: study.id,
            direction: study.direction,
            trials: Vec::new(),
            change: 0,
            reports: Vec::new(),
            log: Vec::new(),
            decisions: Vec::new(),
            reports_change: 0,
        }
    }

    /// Last change of the trials: [`Start::seen`](super::Start::seen) for a sampler that gets
    /// [`history`](Self::history).
    pub fn change(&self) -> Change {
        self.change
    }

    /// All trials; trial `n` has index `n`.
    pub fn trials(&self) -> &[FrozenTrial] {
        &self.trials
    }

    /// History for a sampler: trials with a point. Waiting and lost trials count as running. The costs of
    /// pruned trials are imputed, which needs reports ([`Storage::refresh_reports`]).
    pub fn history(&self) -> History {
        self.history_at(self.change)
    }

    /// History at an earlier change. With [`FrozenTrial::seen`], the trial number and the seed of the study,
    /// a sampler suggests the same point again.
    pub fn history_at(&self, change: Change) -> History {
        let result = self.trials.iter().filter_map(|trial| {
            Some(TrialResult {
                number: trial.number,
                outcome: trial.outcome_at(change, self.direction)?,
                point: trial.point.clone()?,
            })
        });
        let mut result: Vec<TrialResult> = result.collect();
        self.impute(&mut result, change);
        History::new(result)
    }

    /// Decisions of the scheduler in order.
    pub fn decisions(&self) -> &[StoredDecision] {
        &self.decisions
    }

    /// Brings the history for a scheduler up to date. Needs reports ([`Storage::refresh_reports`]).
    pub fn update_schedule(&self, history: &mut ScheduleHistory) {
        self.update_schedule_at(self.change, history);
    }

    /// Brings the history for a scheduler up to an earlier change. With an empty history and
    /// [`StoredDecision::seen`], a scheduler makes the same decision again.
    pub fn update_schedule_at(&self, change: Change, history: &mut ScheduleHistory) {
        for trial in &self.trials[history.trials().len()..] {
            let decided = self.decisions.iter().find(|decision| decision.number == trial.number);
            let began = trial.point_change.into_iter().chain(decided.map(|d| d.change)).min();
            if began.is_none_or(|began| began > change) {
                break;
            }
            history.add(ScheduledTrial {
                point: None,
                planned: None,
                until: u64::MAX,
                steps: 0,
                is_over: false,
            });
        }
        for decision in &self.decisions[history.decisions() as usize..] {
            if decision.change <= change {
                history.extend(decision.number, decision.until.map_or(u64::MAX, u64::from));
            }
        }
        let known = history.log_read();
        let new = self.log[known..].iter().take_while(|(_, report)| report.change <= change);
        for (number, report) in new {
            history.report(ScheduledReport {
                trial: *number,
                step: report.step.into(),
                cost: self.direction.cost(report.value),
                // Multiplications are the same on every machine.
                effort: if report.operations > 0.0 { report.operations } else { report.seconds },
            });
        }
        for (number, trial) in self.trials[..history.trials().len()].iter().enumerate() {
            let is_over = trial.end_change.is_some_and(|end| end <= change);
            let has_point = trial.point_change.is_some_and(|point| point <= change);
            history.update(number as u64, |known| {
                known.is_over = is_over;
                if known.point.is_none() && has_point {
                    known.point.clone_from(&trial.point);
                }
                // Trials announce their length with the first report.
                if known.planned.is_none() && known.steps > 0 {
                    known.planned = trial.planned.map(u64::from);
                }
            });
        }
    }

    /// The value of a trial: that of its final state, or the best so far if it is paused.
    pub fn value(&self, number: u64) -> Option<f64> {
        let trial = self.trials.get(usize::try_from(number).ok()?)?;
        match trial.state {
            TrialState::Paused => {
                let costs = self.reports(number).iter();
                let costs = costs.map(|report| self.direction.cost(report.value));
                let best = costs.filter(|cost| cost.is_finite()).reduce(f64::min);
                best.map(|cost| self.direction.value(cost))
            }
            _ => trial.value(),
        }
    }

    /// The trial with the best finite value among those that are complete, paused or pruned because they had converged.
    pub fn best(&self) -> Option<&FrozenTrial> {
        let counts = |trial: &&FrozenTrial| match &trial.state {
            TrialState::Complete { .. } | TrialState::Paused => true,
            TrialState::Pruned { reason, .. } => reason.counts,
            _ => false,
        };
        let cost = |number: u64| self.value(number).map(|value| self.direction.cost(value));
        let counting = self.trials.iter().filter(counts);
        let reached = counting.filter_map(|trial| Some((cost(trial.number)?, trial)));
        let finite = reached.filter(|(cost, _)| cost.is_finite());
        finite.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, trial)| trial)
    }

    /// Reports of a trial by step. A step reported by several attempts has the last report.
    pub fn reports(&self, number: u64) -> &[TrialReport] {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        self.reports.get(index).map_or(&[], Vec::as_slice)
    }

    /// Multiplications of all trials, repeated steps counted once.
    pub fn operations(&self) -> f64 {
        let trials = 0..self.reports.len() as u64;
        trials.map(|number| self.operations_of(number)).sum()
    }

    /// Multiplications of a trial.
    pub fn operations_of(&self, number: u64) -> f64 {
        let reports = self.reports(number).iter();
        // Not `sum`, which returns -0 for no reports.
        reports.fold(0.0, |sum, report| sum + report.operations)
    }

    /// Learning curve of a trial.
    pub fn curve(&self, number: u64) -> Option<LearningCurve> {
        let trial = self.trials.get(usize::try_from(number).ok()?)?;
        Some(LearningCurve {
            number,
            costs: self.costs(number),
            planned: self.planned(trial),
            over: trial.final_state().is_some(),
        })
    }

    /// Total number of steps of a trial. If it was not announced, that of the longest complete trial; without
    /// one, the reported steps, plus one if the trial was cut short.
    fn planned(&self, trial: &FrozenTrial) -> usize {
        let reported = |trial: &FrozenTrial| self.steps(trial.number);
        match trial.planned {
            Some(planned) => planned as usize,
            None if matches!(trial.final_state(), Some(TrialState::Complete { .. })) => {
                reported(trial)
            }
            None => {
                let least = reported(trial) + usize::from(trial.final_state().is_some());
                let complete = self.trials.iter().filter(|other| {
                    matches!(other.final_state(), Some(TrialState::Complete { .. }))
                        && other.planned.is_none()
                });
                complete.map(reported).fold(least, usize::max)
            }
        }
    }

    /// Curves of all other trials with reports, by number.
    pub fn others(&self, number: u64) -> Vec<LearningCurve> {
        let others = self.trials.iter().filter(|trial| trial.number != number);
        let curves = others.filter_map(|trial| self.curve(trial.number));
        curves.filter(|curve| !curve.costs.is_empty()).collect()
    }

    /// Imputes the final costs of pruned trials, and of scheduled trials that have not ended.
    fn impute(&self, result: &mut [TrialResult], change: Change) {
        let end = |result: &TrialResult| self.trials[result.number as usize].final_state();
        let mut is_scheduled = vec![false; self.trials.len()];
        for decision in &self.decisions {
            is_scheduled[decision.number as usize] = true;
        }
        let is_cut_short = |result: &TrialResult| match (end(result), result.outcome) {
            (Some(TrialState::Pruned { reason, .. }), TrialOutcome::Cost(_)) => {
                imputation::is_cut_short(reason)
            }
            (_, TrialOutcome::Running) => is_scheduled[result.number as usize],
            _ => false,
        };
        if !result.iter().any(is_cut_short) {
            return;
        }
        let finished = result.iter().filter_map(|result| match (end(result), result.outcome) {
            (Some(TrialState::Complete { .. }), TrialOutcome::Cost(cost)) => {
                Some(Finished { lowest: self.lowest(result.number).collect(), cost })
            }
            _ => None,
        });
        let mut imputation = Imputation::new(finished.collect());
        let so_far = self.so_far(change);
        for result in result {
            if is_cut_short(result) {
                let (lowest, steps) = match result.outcome {
                    TrialOutcome::Running => so_far[result.number as usize],
                    _ => {
                        let lowest = self.lowest(result.number).last();
                        (lowest.unwrap_or(f64::INFINITY), self.steps(result.number))
                    }
                };
                if lowest.is_finite() {
                    result.outcome = TrialOutcome::imputed(imputation.cost(lowest, steps));
                }
            }
        }
    }

    /// Lowest cost and last step of each trial at a change.
    fn so_far(&self, change: Change) -> Vec<(f64, usize)> {
        let mut so_far = vec![(f64::INFINITY, 0); self.trials.len()];
        for (number, report) in self.log.iter().take_while(|(_, report)| report.change <= change) {
            let (lowest, steps) = &mut so_far[*number as usize];
            let cost = self.direction.cost(report.value);
            *lowest = if cost.is_finite() { lowest.min(cost) } else { *lowest };
            *steps = (*steps).max(report.step as usize);
        }
        so_far
    }

    /// Lowest cost up to each step.
    fn lowest(&self, number: u64) -> impl Iterator<Item = f64> {
        imputation::lowest(self.costs(number).into_iter())
    }

    /// Last reported step of a trial.
    pub fn steps(&self, number: u64) -> usize {
        self.reports(number).last().map_or(0, |report| report.step as usize)
    }

    /// Costs by step. A step without a report has the cost of the report before it, or of the first report.
    fn costs(&self, number: u64) -> Vec<f64> {
        let mut costs: Vec<f64> = Vec::new();
        for report in self.reports(number) {
            let cost = self.direction.cost(report.value);
            let before = (report.step as usize).saturating_sub(1);
            if before.saturating_sub(costs.len()) <= MAX_GAP {
                costs.resize(before, costs.last().copied().unwrap_or(cost));
            }
            costs.push(cost);
        }
        costs
    }

    fn take_trials(
        &mut self,
        storage: &str,
        change: Change,
        trials: Vec<FrozenTrial>,
    ) -> Result<(), StorageError> {
        for trial in trials {
            let index = trial.number as usize;
            // Numbers have no gaps, and a change is visible with all earlier ones.
            if index > self.trials.len() {
                return Err(StorageError::Damaged {
                    storage: storage.to_owned(),
                    what: format!("trial {}", self.trials.len()),
                    message: "missing, although there are later ones".to_owned(),
                });
            }
            match self.trials.get_mut(index) {
                Some(known) => *known = trial,
                None => self.trials.push(trial),
            }
        }
        self.change = change;
        Ok(())
    }

    /// Adds new reports in the order in which they were made. A report of a known step is that of a later
    /// attempt, and replaces this step and all later ones.
    fn take_reports(&mut self, change: Change, reports: Vec<(u64, TrialReport)>) {
        self.reports_change = change;
        self.reports.resize(self.trials.len(), Vec::new());
        for (number, report) in &reports {
            let Some(curve) = self.reports.get_mut(*number as usize) else {
                continue;
            };
            curve.truncate(curve.partition_point(|known| known.step < report.step));
            curve.push(*report);
        }
        self.log.extend(reports);
    }
}

impl Storage {
    /// Updates the trials of a view.
    pub fn refresh(&mut self, view: &mut View) -> Result<(), StorageError> {
        let (study, since) = (view.study, view.change);
        let (change, trials) = self.read(|session| trials_since(session, study, since))?;
        view.take_trials(self.name(), change, trials)
    }

    /// Updates the trials and reports of a view.
    pub fn refresh_reports(&mut self, view: &mut View) -> Result<(), StorageError> {
        let (study, since, reports_since) = (view.study, view.change, view.reports_change);
        let (change, trials, reports, decisions) = self.read(|session| {
            let (change, trials) = trials_since(session, study, since)?;
            let reports = reports_since_change(session, study, reports_since)?;
            let decisions = decisions_since_change(session, study, reports_since)?;
            Ok((change, trials, reports, decisions))
        })?;
        view.take_trials(self.name(), change, trials)?;
        view.take_reports(change, reports);
        view.decisions.extend(decisions);
        Ok(())
    }
}

fn trials_since(
    session: &mut dyn Session,
    study: StudyId,
    since: Change,
) -> Result<(Change, Vec<FrozenTrial>), StorageError> {
    let sql = "SELECT change FROM surefoot_study WHERE id = ?1 AND created = ?2";
    let row = session.first(sql, &cells![study.id, study.created])?;
    let row = row.ok_or_else(|| deleted(session))?;
    let change: Change = session.reader("the study", row).get()?;
    if change == since {
        return Ok((change, Vec::new()));
    }
    let rows = session.query(
        "SELECT number, state, point, seen, planned, run, value, seconds, reason, message, \
         created, ended, point_change, end_change FROM surefoot_trial \
         WHERE study = ?1 AND changed > ?2 ORDER BY number",
        &cells![study.id, since],
    )?;
    let trials = rows.into_iter().map(|row| trial(session, row));
    let mut trials = trials.collect::<Result<Vec<FrozenTrial>, StorageError>>()?;
    let rows = session.query(
        "SELECT number, attempt, worker, began, ended, state FROM surefoot_attempt \
         WHERE study = ?1 AND number IN \
         (SELECT number FROM surefoot_trial WHERE study = ?1 AND changed > ?2) \
         ORDER BY number, attempt",
        &cells![study.id, since],
    )?;
    for row in rows {
        let (number, attempt) = attempt(session, row)?;
        if let Ok(index) = trials.binary_search_by_key(&number, |trial| trial.number) {
            trials[index].attempts.push(attempt);
        }
    }
    Ok((change, trials))
}

/// Reports after a change, in order. There can be millions, so rows are converted one by one.
fn reports_since_change(
    session: &mut dyn Session,
    study: StudyId,
    since: Change,
) -> Result<Vec<(u64, TrialReport)>, StorageError> {
    let storage = session.storage().to_owned();
    let mut reports = Vec::new();
    session.each(
        "SELECT number, step, attempt, value, seconds, operations, reported, change \
         FROM surefoot_report \
         WHERE study = ?1 AND change > ?2 ORDER BY change",
        &cells![study.id, since],
        &mut |row| {
            let mut row = Reader::new(&storage, "a report", row);
            let number = row.get()?;
            let report = TrialReport {
                step: row.get()?,
                attempt: row.get()?,
                value: row.get()?,
                seconds: row.get()?,
                operations: row.get()?,
                at: row.get()?,
                change: row.get()?,
            };
            reports.push((number, report));
            Ok(())
        },
    )?;
    Ok(reports)
}

/// Decisions of the scheduler after a change, in order.
fn decisions_since_change(
    session: &mut dyn Session,
    study: StudyId,
    since: Change,
) -> Result<Vec<StoredDecision>, StorageError> {
    let rows = session.query(
        "SELECT number, until, budget, seen, change FROM surefoot_decision \
         WHERE study = ?1 AND change > ?2 ORDER BY decision",
        &cells![study.id, since],
    )?;
    let decision = |row| {
        let mut row = session.reader("a decision", row);
        Ok(StoredDecision {
            number: row.get()?,
            until: row.get()?,
            budget: row.get()?,
            seen: row.get()?,
            change: row.get()?,
        })
    };
    rows.into_iter().map(decision).collect()
}

fn trial(session: &dyn Session, row: Vec<Cell>) -> Result<FrozenTrial, StorageError> {
    let mut row = session.reader("a trial", row);
    let number = row.get()?;
    let name: String = row.get()?;
    let point = row.json()?;
    let seen = row.get()?;
    let planned = row.get()?;
    let run = row.get()?;
    let value: Option<f64> = row.get()?;
    let seconds = row.get()?;
    let reason = row.json()?;
    let message: Option<String> = row.get()?;
    let missing = |what: &str| row.damaged(format!("trial {number} is {name} without a {what}"));
    let state = match name.as_str() {
        "waiting" => TrialState::Waiting,
        "running" => TrialState::Running,
        "paused" => TrialState::Paused,
        "lost" => TrialState::Lost,
        "complete" => TrialState::Complete { value: value.ok_or_else(|| missing("value"))? },
        "pruned" => TrialState::Pruned { value, reason: reason.ok_or_else(|| missing("reason"))? },
        "failed" => TrialState::Failed { message: message.ok_or_else(|| missing("message"))? },
        other => return Err(row.damaged(format!("unknown state `{other}`"))),
    };
    Ok(FrozenTrial {
        number,
        state,
        point,
        seen,
        planned,
        run,
        seconds,
        attempts: Vec::new(),
        created: row.get()?,
        ended: row.get()?,
        point_change: row.get()?,
        end_change: row.get()?,
    })
}

fn attempt(session: &dyn Session, row: Vec<Cell>) -> Result<(u64, TrialAttempt), StorageError> {
    let mut row = session.reader("an attempt", row);
    let trial = row.get()?;
    let number = row.get()?;
    let worker = row.get()?;
    let began = row.get()?;
    let ended = row.get()?;
    let name: String = row.get()?;
    let state = ClaimState::from_name(&name);
    let state = state.ok_or_else(|| row.damaged(format!("unknown claim state `{name}`")))?;
    Ok((trial, TrialAttempt { number, worker, began, ended, state }))
}
