//! Claims: which worker runs which trial.

use super::database::{Durability, Session, cells};
use super::study::{StudyId, json};
use super::token::Token;
use super::trial::{Change, ClaimState, TrialState};
use super::{Storage, StorageError};
use crate::scheduler::Decision;
use crate::space::Point;
use std::time::Duration;

/// Limits on claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimLimits {
    /// Maximum number of trials of the study. Existing trials run to their end even if there are
    /// more.
    pub max_trials: Option<u64>,
    /// Number of lost attempts after which a trial is failed.
    pub max_attempts: u32,
    /// Age of a heartbeat, by the database clock, after which its claim is lost.
    pub heartbeat_timeout: Duration,
}

impl Default for ClaimLimits {
    fn default() -> ClaimLimits {
        ClaimLimits {
            max_trials: None,
            // One or two lost attempts can be chance. After three the trial itself is the likely
            // cause: it needs too much memory, for example.
            max_attempts: 3,
            // Four heartbeat intervals, so that a slow disk or a database restart loses no claim.
            heartbeat_timeout: Duration::from_secs(60),
        }
    }
}

/// Result of a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum Claimed {
    /// A trial to run.
    Trial(Claim),
    /// No trial at the moment: running trials of other workers may still be lost.
    Wait,
    /// No more trials: all have ended, or stay paused.
    Done,
    /// Another decision was made in between: refresh the view and decide again.
    Stale,
}

/// Decision of a scheduler, and the state of the study that it is based on.
#[derive(Clone, Debug, PartialEq)]
pub struct Scheduled {
    /// The decision.
    pub decision: Decision,
    /// Number of earlier decisions.
    pub decisions: u64,
    /// The limit on trials.
    pub budget: Option<u64>,
    /// Last change the scheduler had seen ([`View::change`](super::View::change)).
    pub seen: Change,
}

/// A worker's exclusive claim on a trial.
///
/// It ends when the worker finishes or releases the trial, or when its heartbeat is overdue. Later
/// writes fail with [`StorageError::ClaimLost`].
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The study.
    pub study: StudyId,
    /// Number of the trial.
    pub number: u64,
    /// 1-based attempt number. Later attempts may find a checkpoint.
    pub attempt: u32,
    /// Point of an enqueued trial or of an earlier attempt; `None` if the worker has to sample one.
    pub point: Option<Point>,
    /// Run directory of an earlier attempt.
    pub run: Option<String>,
    /// Number of steps reported by earlier attempts.
    pub reported: u32,
    /// Total number of steps before the trial pauses, if a scheduler decided to run it; `None` for its end.
    pub until: Option<u32>,
    pub(super) token: String,
}

/// A lock on the study until the end of the transaction, which puts changes in order.
pub(super) struct StudyLock {
    /// Sequence number of this change.
    pub(super) change: Change,
    /// Number of trials.
    pub(super) trials: u64,
}

impl StudyLock {
    /// Waits for the lock.
    pub(super) fn take(
        session: &mut dyn Session,
        study: StudyId,
    ) -> Result<StudyLock, StorageError> {
        let row = session.first(
            "SELECT change, trials FROM surefoot_study WHERE id = ?1 AND created = ?2 {lock}",
            &cells![study.id, study.created],
        )?;
        let row = row.ok_or_else(|| deleted(session))?;
        let mut row = session.reader("the study", row);
        Ok(StudyLock { change: row.get::<u64>()? + 1, trials: row.get()? })
    }

    /// Publishes the change.
    pub(super) fn end(self, session: &mut dyn Session, study: StudyId) -> Result<(), StorageError> {
        session.execute(
            "UPDATE surefoot_study SET change = ?2, trials = ?3 WHERE id = ?1",
            &cells![study.id, self.change, self.trials],
        )?;
        Ok(())
    }
}

impl Storage {
    /// Claims a trial for a worker: a lost one, a waiting one, or a new one.
    ///
    /// Overdue heartbeats are detected here. No trial is claimed twice.
    pub fn claim(
        &mut self,
        study: StudyId,
        worker: &str,
        limits: &ClaimLimits,
    ) -> Result<Claimed, StorageError> {
        self.claim_next(study, worker, limits, |session, token, lock| {
            if limits.max_trials.is_some_and(|limit| lock.trials >= limit) {
                return Ok(Err(Claimed::Wait));
            }
            let number = lock.trials;
            insert(session, study, number, token, None, lock.change)?;
            lock.trials += 1;
            Ok(Ok(number))
        })
    }

    /// Claims a trial for a worker of a study with a scheduler: a lost one, a waiting one, or the one that
    /// the scheduler chose.
    pub fn claim_scheduled(
        &mut self,
        study: StudyId,
        worker: &str,
        limits: &ClaimLimits,
        scheduled: &Scheduled,
    ) -> Result<Claimed, StorageError> {
        let point = match &scheduled.decision {
            Decision::Start { point: Some(point), .. } => Some(json(self.name(), point)?),
            _ => None,
        };
        self.claim_next(study, worker, limits, |session, token, lock| {
            if decisions(session, study)? != scheduled.decisions {
                return Ok(Err(Claimed::Stale));
            }
            let (number, until) = match scheduled.decision {
                Decision::Wait => return Ok(Err(Claimed::Wait)),
                Decision::Start { until, .. } => {
                    let number = lock.trials;
                    insert(session, study, number, token, point.as_deref(), lock.change)?;
                    if point.is_some() {
                        session.execute(
                            "UPDATE surefoot_trial SET seen = ?3 WHERE study = ?1 AND number = ?2",
                            &cells![study.id, number, scheduled.seen],
                        )?;
                    }
                    lock.trials += 1;
                    (number, until)
                }
                Decision::Continue { trial, until } => {
                    let rows = session.query(
                        "SELECT number FROM surefoot_trial \
                         WHERE study = ?1 AND number = ?2 AND state = 'paused'",
                        &cells![study.id, trial],
                    )?;
                    if rows.is_empty() {
                        return Ok(Err(Claimed::Stale));
                    }
                    (trial, until)
                }
            };
            insert_decision(session, study, number, until, scheduled, lock.change)?;
            Ok(Ok(number))
        })
    }

    /// Lets a running trial continue without a pause, as the scheduler chose. Returns false if another decision was
    /// made in between.
    pub fn extend(
        &mut self,
        claim: &Claim,
        until: u64,
        scheduled: &Scheduled,
    ) -> Result<bool, StorageError> {
        self.write(|session| {
            let lock = StudyLock::take(session, claim.study)?;
            check_claim(session, claim)?;
            // Only the owner of the claim decides for this trial, so this is its own earlier call.
            let rows = session.query(
                "SELECT number FROM surefoot_decision \
                 WHERE study = ?1 AND decision = ?2 AND number = ?3",
                &cells![claim.study.id, scheduled.decisions, claim.number],
            )?;
            if !rows.is_empty() {
                return Ok(true);
            }
            if decisions(session, claim.study)? != scheduled.decisions {
                return Ok(false);
            }
            insert_decision(session, claim.study, claim.number, until, scheduled, lock.change)?;
            lock.end(session, claim.study)?;
            Ok(true)
        })
    }

    /// Claims a lost or waiting trial, or the one that `choose` returns.
    fn claim_next(
        &mut self,
        study: StudyId,
        worker: &str,
        limits: &ClaimLimits,
        choose: impl Fn(
            &mut dyn Session,
            &Token,
            &mut StudyLock,
        ) -> Result<Result<u64, Claimed>, StorageError>,
    ) -> Result<Claimed, StorageError> {
        let token = Token::new();
        // Nothing is lost with a claim: the trial is claimed again, at the same point.
        self.write_with(Durability::Deferred, |session| {
            let mut lock = StudyLock::take(session, study)?;
            if let Some(number) = claimed_before(session, &token)? {
                return Ok(Claimed::Trial(claim(session, study, number, &token)?));
            }
            let any_lost = mark_overdue(session, study, lock.change, limits)?;
            let chosen = match next_open(session, study)? {
                Some(number) => Ok(number),
                None => choose(session, &token, &mut lock)?,
            };
            let number = match chosen {
                Ok(number) => number,
                Err(instead) => {
                    if any_lost {
                        lock.end(session, study)?;
                    }
                    return Ok(match instead {
                        Claimed::Wait if !any_running(session, study)? => Claimed::Done,
                        instead => instead,
                    });
                }
            };
            session.execute(
                "UPDATE surefoot_trial SET state = 'running', attempt = attempt + 1, token = ?3, \
                 heartbeat = {now}, changed = ?4 WHERE study = ?1 AND number = ?2",
                &cells![study.id, number, token.as_str(), lock.change],
            )?;
            session.execute(
                "INSERT INTO surefoot_attempt (study, number, attempt, token, worker, began, state) \
                 SELECT study, number, attempt, token, ?3, heartbeat, 'running' \
                 FROM surefoot_trial WHERE study = ?1 AND number = ?2",
                &cells![study.id, number, worker],
            )?;
            lock.end(session, study)?;
            Ok(Claimed::Trial(claim(session, study, number, &token)?))
        })
    }

    /// Marks the trials of a dead worker as lost at once, and returns their numbers. Worker names
    /// must be unique.
    pub fn mark_dead(
        &mut self,
        study: StudyId,
        worker: &str,
        limits: &ClaimLimits,
    ) -> Result<Vec<u64>, StorageError> {
        self.write(|session| {
            let lock = StudyLock::take(session, study)?;
            let rows = session.query(
                "SELECT t.number, t.deaths FROM surefoot_trial t JOIN surefoot_attempt a \
                 ON a.study = t.study AND a.number = t.number AND a.attempt = t.attempt \
                 WHERE t.study = ?1 AND t.state = 'running' AND a.worker = ?2 ORDER BY t.number",
                &cells![study.id, worker],
            )?;
            let mut numbers = Vec::new();
            for row in rows {
                let mut row = session.reader("a trial", row);
                let (number, deaths) = (row.get()?, row.get()?);
                mark_lost(session, study, number, deaths, lock.change, limits)?;
                numbers.push(number);
            }
            if !numbers.is_empty() {
                lock.end(session, study)?;
            }
            Ok(numbers)
        })
    }

    /// Adds a trial at a given point and returns its number.
    pub fn enqueue(&mut self, study: StudyId, point: &Point) -> Result<u64, StorageError> {
        let token = Token::new();
        let point = json(self.name(), point)?;
        self.write(|session| {
            let mut lock = StudyLock::take(session, study)?;
            let sql = "SELECT number FROM surefoot_trial WHERE creator = ?1";
            if let Some(row) = session.first(sql, &cells![token.as_str()])? {
                return session.reader("a trial", row).get();
            }
            let number = lock.trials;
            insert(session, study, number, &token, Some(&point), lock.change)?;
            lock.trials += 1;
            lock.end(session, study)?;
            Ok(number)
        })
    }

    /// Releases a trial, so that another worker can continue it at once.
    pub fn release(&mut self, claim: &Claim) -> Result<(), StorageError> {
        self.give_back(claim, ClaimState::Released, &TrialState::Waiting)
    }

    /// Pauses a trial until the scheduler continues it.
    pub fn pause(&mut self, claim: &Claim) -> Result<(), StorageError> {
        self.give_back(claim, ClaimState::Paused, &TrialState::Paused)
    }

    fn give_back(
        &mut self,
        claim: &Claim,
        ended: ClaimState,
        state: &TrialState,
    ) -> Result<(), StorageError> {
        self.write(|session| {
            let lock = StudyLock::take(session, claim.study)?;
            if claim_state(session, claim)? == Some(ended) {
                return Ok(());
            }
            check_claim(session, claim)?;
            end_attempt(session, claim.study, claim.number, ended)?;
            session.execute(
                "UPDATE surefoot_trial SET state = ?3, token = NULL, changed = ?4 \
                 WHERE study = ?1 AND number = ?2",
                &cells![claim.study.id, claim.number, state.name(), lock.change],
            )?;
            lock.end(session, claim.study)
        })
    }

    /// Sends a heartbeat.
    pub fn heartbeat(&mut self, claim: &Claim) -> Result<(), StorageError> {
        self.write_with(Durability::Deferred, |session| {
            let updated = session.execute(
                "UPDATE surefoot_trial SET heartbeat = {now} \
                 WHERE study = ?1 AND number = ?2 AND token = ?3 AND state = 'running'",
                &cells![claim.study.id, claim.number, claim.token.as_str()],
            )?;
            if updated == 0 {
                return Err(lost(claim));
            }
            Ok(())
        })
    }
}

pub(super) fn deleted(session: &dyn Session) -> StorageError {
    StorageError::Deleted { storage: session.storage().to_owned() }
}

pub(super) fn lost(claim: &Claim) -> StorageError {
    StorageError::ClaimLost { number: claim.number }
}

/// Fails if the claim is lost.
pub(super) fn check_claim(session: &mut dyn Session, claim: &Claim) -> Result<(), StorageError> {
    let rows = session.query(
        "SELECT number FROM surefoot_trial \
         WHERE study = ?1 AND number = ?2 AND token = ?3 AND state = 'running'",
        &cells![claim.study.id, claim.number, claim.token.as_str()],
    )?;
    if rows.is_empty() {
        return Err(lost(claim));
    }
    Ok(())
}

/// State of a claim.
pub(super) fn claim_state(
    session: &mut dyn Session,
    claim: &Claim,
) -> Result<Option<ClaimState>, StorageError> {
    let sql = "SELECT state FROM surefoot_attempt WHERE token = ?1";
    let Some(row) = session.first(sql, &cells![claim.token.as_str()])? else {
        return Ok(None);
    };
    Ok(ClaimState::from_name(&session.reader("an attempt", row).get::<String>()?))
}

/// Ends the running attempt of a trial. A lost attempt ended with its last heartbeat.
pub(super) fn end_attempt(
    session: &mut dyn Session,
    study: StudyId,
    number: u64,
    state: ClaimState,
) -> Result<(), StorageError> {
    let ended = match state {
        ClaimState::Lost => {
            "(SELECT heartbeat FROM surefoot_trial WHERE study = ?1 AND number = ?2)"
        }
        _ => "{now}",
    };
    let sql = format!(
        "UPDATE surefoot_attempt SET state = ?3, ended = {ended} \
         WHERE study = ?1 AND number = ?2 AND state = 'running'"
    );
    session.execute(&sql, &cells![study.id, number, state.name()])?;
    Ok(())
}

fn claimed_before(session: &mut dyn Session, token: &Token) -> Result<Option<u64>, StorageError> {
    let sql = "SELECT number FROM surefoot_attempt WHERE token = ?1";
    let row = session.first(sql, &cells![token.as_str()])?;
    row.map(|row| session.reader("an attempt", row).get()).transpose()
}

/// Marks trials with overdue heartbeats as lost. Returns true if there were any.
fn mark_overdue(
    session: &mut dyn Session,
    study: StudyId,
    change: Change,
    limits: &ClaimLimits,
) -> Result<bool, StorageError> {
    let grace = i64::try_from(limits.heartbeat_timeout.as_millis()).unwrap_or(i64::MAX);
    let rows = session.query(
        "SELECT number, deaths FROM surefoot_trial \
         WHERE study = ?1 AND state = 'running' AND {now} - heartbeat > ?2 ORDER BY number",
        &cells![study.id, grace],
    )?;
    let any = !rows.is_empty();
    for row in rows {
        let mut row = session.reader("a trial", row);
        let (number, deaths) = (row.get()?, row.get()?);
        mark_lost(session, study, number, deaths, change, limits)?;
    }
    Ok(any)
}

/// Marks a trial as lost, or as failed after too many lost attempts.
fn mark_lost(
    session: &mut dyn Session,
    study: StudyId,
    number: u64,
    deaths_before: u32,
    change: Change,
    limits: &ClaimLimits,
) -> Result<(), StorageError> {
    let deaths = deaths_before + 1;
    end_attempt(session, study, number, ClaimState::Lost)?;
    if deaths < limits.max_attempts {
        session.execute(
            "UPDATE surefoot_trial SET state = 'lost', token = NULL, deaths = ?3, \
             changed = ?4 WHERE study = ?1 AND number = ?2",
            &cells![study.id, number, deaths, change],
        )?;
        return Ok(());
    }
    session.execute(
        "UPDATE surefoot_trial SET state = 'failed', token = NULL, deaths = ?3, \
         changed = ?4, end_change = ?4, ended = {now}, message = ?5 \
         WHERE study = ?1 AND number = ?2",
        &cells![study.id, number, deaths, change, format!("lost after {deaths} attempts"),],
    )?;
    Ok(())
}

/// Next trial to continue: lost ones first, so that none is left for the end.
fn next_open(session: &mut dyn Session, study: StudyId) -> Result<Option<u64>, StorageError> {
    let row = session.first(
        "SELECT number FROM surefoot_trial WHERE study = ?1 AND state IN ('lost', 'waiting') \
         ORDER BY CASE state WHEN 'lost' THEN 0 ELSE 1 END, number LIMIT 1",
        &cells![study.id],
    )?;
    row.map(|row| session.reader("a trial", row).get()).transpose()
}

fn any_running(session: &mut dyn Session, study: StudyId) -> Result<bool, StorageError> {
    let rows = session.query(
        "SELECT number FROM surefoot_trial WHERE study = ?1 AND state = 'running' LIMIT 1",
        &cells![study.id],
    )?;
    Ok(!rows.is_empty())
}

/// Adds a waiting trial, with its point if it has one.
fn insert(
    session: &mut dyn Session,
    study: StudyId,
    number: u64,
    token: &Token,
    point: Option<&str>,
    change: Change,
) -> Result<(), StorageError> {
    let point_change = point.map(|_| change);
    session.execute(
        "INSERT INTO surefoot_trial (study, number, state, creator, point, point_change, attempt, \
         deaths, reported, reporter, created, changed) \
         VALUES (?1, ?2, 'waiting', ?3, ?4, ?5, 0, 0, 0, 0, {now}, ?6)",
        &cells![study.id, number, token.as_str(), point, point_change, change],
    )?;
    Ok(())
}

/// Reads a worker's claim.
fn claim(
    session: &mut dyn Session,
    study: StudyId,
    number: u64,
    token: &Token,
) -> Result<Claim, StorageError> {
    let row = session.first(
        "SELECT until FROM surefoot_decision WHERE study = ?1 AND number = ?2 \
         ORDER BY decision DESC LIMIT 1",
        &cells![study.id, number],
    )?;
    let until = row.map(|row| session.reader("a decision", row).get()).transpose()?.flatten();
    let row = session.first(
        "SELECT attempt, point, run, reported FROM surefoot_trial \
         WHERE study = ?1 AND number = ?2",
        &cells![study.id, number],
    )?;
    let mut row = session.reader("a trial", row.unwrap_or_default());
    Ok(Claim {
        study,
        number,
        attempt: row.get()?,
        point: row.json()?,
        run: row.get()?,
        reported: row.get()?,
        until,
        token: token.as_str().to_owned(),
    })
}

/// Number of decisions of the scheduler.
fn decisions(session: &mut dyn Session, study: StudyId) -> Result<u64, StorageError> {
    let row = session.first(
        "SELECT decision FROM surefoot_decision WHERE study = ?1 ORDER BY decision DESC LIMIT 1",
        &cells![study.id],
    )?;
    let last: Option<u64> = row.map(|row| session.reader("a decision", row).get()).transpose()?;
    Ok(last.map_or(0, |last| last + 1))
}

fn insert_decision(
    session: &mut dyn Session,
    study: StudyId,
    number: u64,
    until: u64,
    scheduled: &Scheduled,
    change: Change,
) -> Result<(), StorageError> {
    session.execute(
        "INSERT INTO surefoot_decision (study, decision, number, until, budget, seen, change) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        &cells![
            study.id,
            scheduled.decisions,
            number,
            u32::try_from(until).ok(),
            scheduled.budget,
            scheduled.seen,
            change
        ],
    )?;
    Ok(())
}
