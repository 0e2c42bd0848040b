//! Claims: which worker runs which trial.

use super::database::{Session, cells};
use super::study::{StudyId, json};
use super::token::Token;
use super::trial::{Change, Fate};
use super::{Error, Store};
use crate::space::Point;
use std::time::Duration;

/// How far a worker may go when it asks for a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many trials the study may have in all; `None` for any number. Trials that are there
    /// already are run to their end even if they are more.
    pub trials: Option<u64>,
    /// How many workers may die of a trial before it has failed.
    pub deaths: u32,
    /// How old the last sign of life of a worker may be, by the clock of the database.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            trials: None,
            // One death can be chance and two can be bad luck. Three is the trial: it needs more
            // memory than there is, or takes its worker down with it.
            deaths: 3,
            // Four times the pulse of a worker (`Pulse`), so that a slow disk or a database that is
            // restarted does not look like a death.
            grace: Duration::from_secs(60),
        }
    }
}

/// What a worker gets that asks for a trial.
#[derive(Clone, Debug, PartialEq)]
pub enum Claimed {
    /// This one.
    Trial(Claim),
    /// None for now: all trials are given out, but others still run and may be lost.
    Wait,
    /// None any more: all trials are over.
    Done,
}

/// The right of a worker to run a trial, and what it has to know to do so.
///
/// It ends when the worker says so, or when the worker is thought dead and another one goes on with
/// the trial. All that is written in its name from then on is refused with [`Error::ClaimLost`].
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The study.
    pub study: StudyId,
    /// The number of the trial.
    pub number: u64,
    /// Which attempt this is, from 1. After the first, there may be a checkpoint to go on from.
    pub attempt: u32,
    /// What the trial is run with, if that is known: it was enqueued, or begun by another worker.
    /// Otherwise the worker asks its sampler.
    pub point: Option<Point>,
    /// The directory in which an earlier attempt ran.
    pub run: Option<String>,
    /// How many stretches earlier attempts have reported.
    pub reported: u32,
    pub(super) token: String,
}

/// The study, locked until the transaction is over, so that changes come one after the other.
pub(super) struct Turn {
    /// The change that this transaction makes.
    pub(super) change: Change,
    /// How many trials there are.
    pub(super) trials: u64,
}

impl Turn {
    /// Waits for the study and locks it.
    pub(super) fn take(session: &mut dyn Session, study: StudyId) -> Result<Turn, Error> {
        let rows = session.query(
            "SELECT change, trials FROM surefoot_study WHERE id = ?1 AND created = ?2 {lock}",
            &cells![study.id, study.created],
        )?;
        let row = rows.into_iter().next().ok_or_else(|| gone(session))?;
        let mut row = session.reader("the study", row);
        Ok(Turn { change: row.count::<u64>()? + 1, trials: row.count()? })
    }

    /// Makes the change known.
    pub(super) fn end(self, session: &mut dyn Session, study: StudyId) -> Result<(), Error> {
        session.execute(
            "UPDATE surefoot_study SET change = ?2, trials = ?3 WHERE id = ?1",
            &cells![study.id, self.change, self.trials],
        )?;
        Ok(())
    }
}

impl Store {
    /// Gives a worker a trial to run: one that another worker died of, one that waits, or a new
    /// one.
    ///
    /// Trials whose workers have given no sign of life for longer than the grace period are
    /// recognised here, by whoever asks. No trial is given to two.
    pub fn claim(
        &mut self,
        study: StudyId,
        worker: &str,
        limits: &Limits,
    ) -> Result<Claimed, Error> {
        let token = Token::new();
        self.write(|session| {
            let mut turn = Turn::take(session, study)?;
            if let Some(number) = claimed_before(session, &token)? {
                return Ok(Claimed::Trial(claim(session, study, number, &token)?));
            }
            let swept = sweep(session, study, turn.change, limits)?;
            let number = match next_open(session, study)? {
                Some(number) => number,
                None if limits.trials.is_none_or(|limit| turn.trials < limit) => {
                    let number = turn.trials;
                    insert(session, study, number, &token, None, turn.change)?;
                    turn.trials += 1;
                    number
                }
                None => {
                    if swept {
                        turn.end(session, study)?;
                    }
                    let runs = any_running(session, study)?;
                    return Ok(if runs { Claimed::Wait } else { Claimed::Done });
                }
            };
            session.execute(
                "UPDATE surefoot_trial SET state = 'running', attempt = attempt + 1, token = ?3, \
                 heartbeat = {now}, changed = ?4 WHERE study = ?1 AND number = ?2",
                &cells![study.id, number, token.as_str(), turn.change],
            )?;
            session.execute(
                "INSERT INTO surefoot_attempt (study, number, attempt, token, worker, began, fate) \
                 SELECT study, number, attempt, token, ?3, heartbeat, 'running' \
                 FROM surefoot_trial WHERE study = ?1 AND number = ?2",
                &cells![study.id, number, worker],
            )?;
            turn.end(session, study)?;
            Ok(Claimed::Trial(claim(session, study, number, &token)?))
        })
    }

    /// Marks the trials of a worker that is known to be dead, without waiting for its silence to last,
    /// and says which they were. No other worker may have its name.
    pub fn bury(
        &mut self,
        study: StudyId,
        worker: &str,
        limits: &Limits,
    ) -> Result<Vec<u64>, Error> {
        self.write(|session| {
            let turn = Turn::take(session, study)?;
            let rows = session.query(
                "SELECT t.number, t.deaths FROM surefoot_trial t JOIN surefoot_attempt a \
                 ON a.study = t.study AND a.number = t.number AND a.attempt = t.attempt \
                 WHERE t.study = ?1 AND t.state = 'running' AND a.worker = ?2 ORDER BY t.number",
                &cells![study.id, worker],
            )?;
            let mut numbers = Vec::new();
            for row in rows {
                let mut row = session.reader("a trial", row);
                let (number, deaths) = (row.count()?, row.count()?);
                lose(session, study, number, deaths, turn.change, limits)?;
                numbers.push(number);
            }
            if !numbers.is_empty() {
                turn.end(session, study)?;
            }
            Ok(numbers)
        })
    }

    /// Adds a trial at a point of the caller's choice, and says which number it has.
    pub fn enqueue(&mut self, study: StudyId, point: &Point) -> Result<u64, Error> {
        let token = Token::new();
        let point = json(self.name(), point)?;
        self.write(|session| {
            let mut turn = Turn::take(session, study)?;
            let rows = session.query(
                "SELECT number FROM surefoot_trial WHERE creator = ?1",
                &cells![token.as_str()],
            )?;
            if let Some(row) = rows.into_iter().next() {
                return session.reader("a trial", row).count();
            }
            let number = turn.trials;
            insert(session, study, number, &token, Some(&point), turn.change)?;
            turn.trials += 1;
            turn.end(session, study)?;
            Ok(number)
        })
    }

    /// Gives a trial back, because the worker has to leave. Another one can go on with it at once.
    pub fn release(&mut self, claim: &Claim) -> Result<(), Error> {
        self.write(|session| {
            let turn = Turn::take(session, claim.study)?;
            if fate(session, claim)? == Some(Fate::Released) {
                return Ok(());
            }
            held(session, claim)?;
            end_attempt(session, claim.study, claim.number, Fate::Released)?;
            session.execute(
                "UPDATE surefoot_trial SET state = 'waiting', token = NULL, changed = ?3 \
                 WHERE study = ?1 AND number = ?2",
                &cells![claim.study.id, claim.number, turn.change],
            )?;
            turn.end(session, claim.study)
        })
    }

    /// Says that the worker lives.
    pub fn heartbeat(&mut self, claim: &Claim) -> Result<(), Error> {
        self.write(|session| {
            let beats = session.execute(
                "UPDATE surefoot_trial SET heartbeat = {now} \
                 WHERE study = ?1 AND number = ?2 AND token = ?3 AND state = 'running'",
                &cells![claim.study.id, claim.number, claim.token.as_str()],
            )?;
            if beats == 0 {
                return Err(lost(claim));
            }
            Ok(())
        })
    }
}

/// The error for a study that was there before.
pub(super) fn gone(session: &dyn Session) -> Error {
    Error::Gone { store: session.store().to_owned() }
}

/// The error for a claim that holds no more.
pub(super) fn lost(claim: &Claim) -> Error {
    Error::ClaimLost { number: claim.number }
}

/// Fails unless the worker still holds the trial.
pub(super) fn held(session: &mut dyn Session, claim: &Claim) -> Result<(), Error> {
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

/// What became of the attempt that a claim is for.
pub(super) fn fate(session: &mut dyn Session, claim: &Claim) -> Result<Option<Fate>, Error> {
    let rows = session.query(
        "SELECT fate FROM surefoot_attempt WHERE token = ?1",
        &cells![claim.token.as_str()],
    )?;
    let Some(row) = rows.into_iter().next() else {
        return Ok(None);
    };
    Ok(Fate::of(&session.reader("an attempt", row).text()?))
}

/// Closes the attempt at a trial that is under way. A lost one ended with its last sign of life.
pub(super) fn end_attempt(
    session: &mut dyn Session,
    study: StudyId,
    number: u64,
    fate: Fate,
) -> Result<(), Error> {
    let ended = match fate {
        Fate::Lost => "(SELECT heartbeat FROM surefoot_trial WHERE study = ?1 AND number = ?2)",
        _ => "{now}",
    };
    let sql = format!(
        "UPDATE surefoot_attempt SET fate = ?3, ended = {ended} \
         WHERE study = ?1 AND number = ?2 AND fate = 'running'"
    );
    session.execute(&sql, &cells![study.id, number, fate.word()])?;
    Ok(())
}

fn claimed_before(session: &mut dyn Session, token: &Token) -> Result<Option<u64>, Error> {
    let rows = session
        .query("SELECT number FROM surefoot_attempt WHERE token = ?1", &cells![token.as_str()])?;
    let row = rows.into_iter().next();
    row.map(|row| session.reader("an attempt", row).count()).transpose()
}

/// Marks the trials whose workers are thought dead, and says whether there were any.
fn sweep(
    session: &mut dyn Session,
    study: StudyId,
    change: Change,
    limits: &Limits,
) -> Result<bool, Error> {
    let grace = i64::try_from(limits.grace.as_millis()).unwrap_or(i64::MAX);
    let rows = session.query(
        "SELECT number, deaths FROM surefoot_trial \
         WHERE study = ?1 AND state = 'running' AND {now} - heartbeat > ?2 ORDER BY number",
        &cells![study.id, grace],
    )?;
    let any = !rows.is_empty();
    for row in rows {
        let mut row = session.reader("a trial", row);
        let (number, deaths) = (row.count()?, row.count()?);
        lose(session, study, number, deaths, change, limits)?;
    }
    Ok(any)
}

/// Marks a trial whose worker has died, as others did before.
fn lose(
    session: &mut dyn Session,
    study: StudyId,
    number: u64,
    deaths_before: u32,
    change: Change,
    limits: &Limits,
) -> Result<(), Error> {
    let deaths = deaths_before + 1;
    end_attempt(session, study, number, Fate::Lost)?;
    if deaths < limits.deaths {
        session.execute(
            "UPDATE surefoot_trial SET state = 'lost', token = NULL, deaths = ?3, \
             changed = ?4 WHERE study = ?1 AND number = ?2",
            &cells![study.id, number, deaths, change],
        )?;
        return Ok(());
    }
    let times = if deaths == 1 { "once".to_owned() } else { format!("{deaths} times") };
    session.execute(
        "UPDATE surefoot_trial SET state = 'failed', token = NULL, deaths = ?3, \
         changed = ?4, told = ?4, ended = {now}, message = ?5 \
         WHERE study = ?1 AND number = ?2",
        &cells![study.id, number, deaths, change, format!("its workers died {times}"),],
    )?;
    Ok(())
}

/// The trial to go on with: first those that were lost, so that none is left for the end.
fn next_open(session: &mut dyn Session, study: StudyId) -> Result<Option<u64>, Error> {
    let rows = session.query(
        "SELECT number FROM surefoot_trial WHERE study = ?1 AND state IN ('lost', 'waiting') \
         ORDER BY CASE state WHEN 'lost' THEN 0 ELSE 1 END, number LIMIT 1",
        &cells![study.id],
    )?;
    let row = rows.into_iter().next();
    row.map(|row| session.reader("a trial", row).count()).transpose()
}

fn any_running(session: &mut dyn Session, study: StudyId) -> Result<bool, Error> {
    let rows = session.query(
        "SELECT number FROM surefoot_trial WHERE study = ?1 AND state = 'running' LIMIT 1",
        &cells![study.id],
    )?;
    Ok(!rows.is_empty())
}

/// Adds a trial that waits. Its point is known from this change on, if it has one.
fn insert(
    session: &mut dyn Session,
    study: StudyId,
    number: u64,
    token: &Token,
    point: Option<&str>,
    change: Change,
) -> Result<(), Error> {
    let pointed = point.map(|_| change);
    session.execute(
        "INSERT INTO surefoot_trial (study, number, state, creator, point, pointed, attempt, \
         deaths, reported, reporter, created, changed) \
         VALUES (?1, ?2, 'waiting', ?3, ?4, ?5, 0, 0, 0, 0, {now}, ?6)",
        &cells![study.id, number, token.as_str(), point, pointed, change],
    )?;
    Ok(())
}

/// The claim of a worker on a trial that is its own.
fn claim(
    session: &mut dyn Session,
    study: StudyId,
    number: u64,
    token: &Token,
) -> Result<Claim, Error> {
    let rows = session.query(
        "SELECT attempt, point, run, reported FROM surefoot_trial \
         WHERE study = ?1 AND number = ?2",
        &cells![study.id, number],
    )?;
    let mut row = session.reader("a trial", rows.into_iter().next().unwrap_or_default());
    Ok(Claim {
        study,
        number,
        attempt: row.count()?,
        point: row.optional_json()?,
        run: row.optional_text()?,
        reported: row.count()?,
        token: token.as_str().to_owned(),
    })
}
