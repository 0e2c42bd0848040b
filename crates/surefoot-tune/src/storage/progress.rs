//! Writes of a worker while it runs a trial.

use super::claim::{Claim, StudyLock, check_claim, claim_state, end_attempt};
use super::database::{Durability, Session, cells};
use super::study::{StoredParameter, StudyId, json};
use super::trial::{Change, ClaimState, TrialState};
use super::{Storage, StorageError};
use crate::space::{Parameter, Point};

/// Start of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// Parameter values: [`Claim::point`] if there is one, else from the sampler.
    pub point: Point,
    /// Last change the sampler had seen ([`View::change`](super::View::change)); `None` without a
    /// sampler.
    pub seen: Option<Change>,
    /// Total number of steps, if known.
    pub planned: Option<u32>,
    /// Run directory.
    pub run: Option<String>,
}

/// Cost of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepCost {
    /// Duration.
    pub seconds: f64,
    /// Multiplications, 0 if they are not counted.
    pub operations: f64,
}

impl From<f64> for StepCost {
    fn from(seconds: f64) -> StepCost {
        StepCost { seconds, operations: 0.0 }
    }
}

impl Storage {
    /// Publishes the point of a trial, which samplers see from now on.
    pub fn start(&mut self, claim: &Claim, start: &Start) -> Result<(), StorageError> {
        let point = json(self.name(), &start.point)?;
        self.write_with(Durability::Deferred, |session| {
            let lock = StudyLock::take(session, claim.study)?;
            check_claim(session, claim)?;
            let sql = "SELECT point FROM surefoot_trial WHERE study = ?1 AND number = ?2";
            let row = session.first(sql, &cells![claim.study.id, claim.number])?;
            let mut row = session.reader("a trial", row.unwrap_or_default());
            match row.json::<Point>()? {
                Some(known) if known != start.point => {
                    return Err(StorageError::Conflict {
                        number: claim.number,
                        message: "the trial already has another point".to_owned(),
                    });
                }
                Some(_) => {}
                None => {
                    session.execute(
                        "UPDATE surefoot_trial SET point = ?3, seen = ?4, point_change = ?5 \
                         WHERE study = ?1 AND number = ?2",
                        &cells![
                            claim.study.id,
                            claim.number,
                            point.as_str(),
                            start.seen,
                            lock.change
                        ],
                    )?;
                }
            }
            session.execute(
                "UPDATE surefoot_trial SET planned = ?3, run = ?4, heartbeat = {now}, \
                 changed = ?5 WHERE study = ?1 AND number = ?2",
                &cells![
                    claim.study.id,
                    claim.number,
                    start.planned,
                    start.run.as_deref(),
                    lock.change
                ],
            )?;
            lock.end(session, claim.study)
        })
    }

    /// Sets the point of a trial that chooses it while it runs, and adds a new parameter to the study.
    pub fn extend_point(
        &mut self,
        claim: &Claim,
        point: &Point,
        parameter: Option<&Parameter>,
    ) -> Result<(), StorageError> {
        let storage = self.name().to_owned();
        let point = json(&storage, point)?;
        self.write_with(Durability::Deferred, |session| {
            let lock = StudyLock::take(session, claim.study)?;
            check_claim(session, claim)?;
            if let Some(parameter) = parameter {
                add_parameter(session, claim.study, parameter, lock.change)?;
            }
            session.execute(
                "UPDATE surefoot_trial SET point = ?3, heartbeat = {now}, changed = ?4 \
                 WHERE study = ?1 AND number = ?2",
                &cells![claim.study.id, claim.number, point.as_str(), lock.change],
            )?;
            lock.end(session, claim.study)
        })
    }

    /// Sets the total number of steps.
    pub fn set_planned(&mut self, claim: &Claim, planned: u32) -> Result<(), StorageError> {
        self.write_with(Durability::Deferred, |session| {
            let lock = StudyLock::take(session, claim.study)?;
            check_claim(session, claim)?;
            session.execute(
                "UPDATE surefoot_trial SET planned = ?3, changed = ?4 \
                 WHERE study = ?1 AND number = ?2",
                &cells![claim.study.id, claim.number, planned, lock.change],
            )?;
            lock.end(session, claim.study)
        })
    }

    /// Reports the objective value after a 1-based step, and what the step cost. Counts as a
    /// heartbeat.
    ///
    /// Steps are reported in increasing order, and may be skipped. An attempt that continues from a
    /// checkpoint reports the steps after it again and replaces earlier reports. A power failure may lose
    /// the last reports.
    pub fn report(
        &mut self,
        claim: &Claim,
        step: u32,
        value: f64,
        effort: impl Into<StepCost>,
    ) -> Result<(), StorageError> {
        let effort = effort.into();
        self.write_with(Durability::Deferred, |session| {
            let lock = StudyLock::take(session, claim.study)?;
            check_claim(session, claim)?;
            if reported_before(session, claim, step, value)? {
                return Ok(());
            }
            check_order(session, claim, step)?;
            session.execute(
                "INSERT INTO surefoot_report (study, number, step, attempt, value, seconds, \
                 operations, reported, change) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, {now}, ?8)",
                &cells![
                    claim.study.id,
                    claim.number,
                    step,
                    claim.attempt,
                    value,
                    effort.seconds,
                    effort.operations,
                    lock.change
                ],
            )?;
            session.execute(
                "UPDATE surefoot_trial SET reported = ?3, reporter = ?4, heartbeat = {now} \
                 WHERE study = ?1 AND number = ?2",
                &cells![claim.study.id, claim.number, step, claim.attempt],
            )?;
            lock.end(session, claim.study)
        })
    }

    /// Stores the final state of a trial and its total duration.
    pub fn finish(
        &mut self,
        claim: &Claim,
        end: &TrialState,
        seconds: f64,
    ) -> Result<(), StorageError> {
        let reason = match end {
            TrialState::Pruned { reason, .. } => Some(json(self.name(), reason)?),
            _ => None,
        };
        let message = match end {
            TrialState::Failed { message } => Some(message.as_str()),
            _ => None,
        };
        self.write(|session| {
            let lock = StudyLock::take(session, claim.study)?;
            if claim_state(session, claim)? == Some(ClaimState::Finished) {
                return same_end(session, claim, end);
            }
            check_claim(session, claim)?;
            end_attempt(session, claim.study, claim.number, ClaimState::Finished)?;
            session.execute(
                "UPDATE surefoot_trial SET state = ?3, value = ?4, seconds = ?5, reason = ?6, \
                 message = ?7, token = NULL, heartbeat = {now}, ended = {now}, end_change = ?8, \
                 changed = ?8 WHERE study = ?1 AND number = ?2",
                &cells![
                    claim.study.id,
                    claim.number,
                    end.name(),
                    end.value(),
                    seconds,
                    reason.as_deref(),
                    message,
                    lock.change
                ],
            )?;
            lock.end(session, claim.study)
        })
    }
}

/// Adds a parameter to a study, unless it has one of this name.
fn add_parameter(
    session: &mut dyn Session,
    study: StudyId,
    parameter: &Parameter,
    since: Change,
) -> Result<(), StorageError> {
    let sql = "SELECT space FROM surefoot_study WHERE id = ?1";
    let row = session.first(sql, &cells![study.id])?;
    let known: Option<Vec<StoredParameter>> =
        session.reader("the study", row.unwrap_or_default()).json()?;
    let mut known = known.unwrap_or_default();
    if known.iter().any(|known| known.parameter.name == parameter.name) {
        return Ok(());
    }
    known.push(StoredParameter { parameter: parameter.clone(), since });
    let space = json(session.storage(), &known)?;
    let sql = "UPDATE surefoot_study SET space = ?2 WHERE id = ?1";
    session.execute(sql, &cells![study.id, space.as_str()])?;
    Ok(())
}

/// Fails unless this is a later step, or the first step of an attempt.
fn check_order(session: &mut dyn Session, claim: &Claim, step: u32) -> Result<(), StorageError> {
    let sql = "SELECT reported, reporter FROM surefoot_trial WHERE study = ?1 AND number = ?2";
    let row = session.first(sql, &cells![claim.study.id, claim.number])?;
    let mut row = session.reader("a trial", row.unwrap_or_default());
    let reported: u32 = row.get()?;
    let first_of_attempt = row.get::<u32>()? < claim.attempt;
    if step > reported || (first_of_attempt && step > 0) {
        return Ok(());
    }
    Err(StorageError::Conflict {
        number: claim.number,
        message: format!("step {step} is reported after step {reported}"),
    })
}

/// Returns true if this attempt has made the same report before.
fn reported_before(
    session: &mut dyn Session,
    claim: &Claim,
    step: u32,
    value: f64,
) -> Result<bool, StorageError> {
    let row = session.first(
        "SELECT value FROM surefoot_report \
         WHERE study = ?1 AND number = ?2 AND step = ?3 AND attempt = ?4",
        &cells![claim.study.id, claim.number, step, claim.attempt],
    )?;
    let Some(row) = row else {
        return Ok(false);
    };
    let known = session.reader("a report", row).get()?;
    if same(known, value) {
        return Ok(true);
    }
    Err(StorageError::Conflict {
        number: claim.number,
        message: format!("step {step} was reported as {known} and is now {value}"),
    })
}

/// Fails unless the trial has this final state.
fn same_end(
    session: &mut dyn Session,
    claim: &Claim,
    end: &TrialState,
) -> Result<(), StorageError> {
    let sql = "SELECT state, value FROM surefoot_trial WHERE study = ?1 AND number = ?2";
    let row = session.first(sql, &cells![claim.study.id, claim.number])?;
    let mut row = session.reader("a trial", row.unwrap_or_default());
    let state: String = row.get()?;
    let value: Option<f64> = row.get()?;
    let equal = match (value, end.value()) {
        (Some(known), Some(value)) => same(known, value),
        (known, value) => known == value,
    };
    if state == end.name() && equal {
        return Ok(());
    }
    Err(StorageError::Ended { number: claim.number })
}

/// Equality that includes NaN.
fn same(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}
