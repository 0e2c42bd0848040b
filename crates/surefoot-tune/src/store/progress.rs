//! What a worker writes while it runs a trial. All of it names the claim.

use super::claim::{Claim, Turn, end_attempt, fate, held};
use super::database::{Session, cells};
use super::study::json;
use super::trial::{Change, End, Fate};
use super::{Error, Store};
use crate::space::Point;

/// What a worker says before it runs a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// What the trial is run with: [`Claim::point`] where there is one, else what the sampler said.
    pub point: Point,
    /// The change up to which the sampler knew the study ([`View::change`](super::View::change));
    /// `None` where no sampler was asked.
    pub seen: Option<Change>,
    /// How many stretches there will be if it runs to its end, where that is known beforehand.
    pub planned: Option<u32>,
    /// The directory of the run.
    pub run: Option<String>,
}

/// What a stretch took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Effort {
    /// Time.
    pub seconds: f64,
    /// Multiplications, where they are counted.
    pub operations: f64,
}

impl From<f64> for Effort {
    fn from(seconds: f64) -> Effort {
        Effort { seconds, operations: 0.0 }
    }
}

impl Store {
    /// Says what a trial is run with. From then on samplers know of it.
    pub fn start(&mut self, claim: &Claim, start: &Start) -> Result<(), Error> {
        let point = json(self.name(), &start.point)?;
        self.write(|session| {
            let turn = Turn::take(session, claim.study)?;
            held(session, claim)?;
            let rows = session.query(
                "SELECT point FROM surefoot_trial WHERE study = ?1 AND number = ?2",
                &cells![claim.study.id, claim.number],
            )?;
            let mut row = session.reader("a trial", rows.into_iter().next().unwrap_or_default());
            match row.optional_json::<Point>()? {
                Some(known) if known != start.point => {
                    return Err(Error::Contradiction {
                        number: claim.number,
                        message: "it already has another point".to_owned(),
                    });
                }
                Some(_) => {}
                None => {
                    session.execute(
                        "UPDATE surefoot_trial SET point = ?3, seen = ?4, pointed = ?5 \
                         WHERE study = ?1 AND number = ?2",
                        &cells![
                            claim.study.id,
                            claim.number,
                            point.as_str(),
                            start.seen,
                            turn.change
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
                    turn.change
                ],
            )?;
            turn.end(session, claim.study)
        })
    }

    /// Says how many stretches a trial will have, once that is known.
    pub fn plan(&mut self, claim: &Claim, planned: u32) -> Result<(), Error> {
        self.write(|session| {
            let turn = Turn::take(session, claim.study)?;
            held(session, claim)?;
            session.execute(
                "UPDATE surefoot_trial SET planned = ?3, changed = ?4 \
                 WHERE study = ?1 AND number = ?2",
                &cells![claim.study.id, claim.number, planned, turn.change],
            )?;
            turn.end(session, claim.study)
        })
    }

    /// Reports what the trial has reached after a stretch, from 1, and what the stretch took. This
    /// is a sign of life too.
    ///
    /// Stretches are reported in order, each before the checkpoint after it is written, so that no
    /// worker goes on after a stretch that was never reported. An attempt that goes on from a
    /// checkpoint reports the stretches after it again: what earlier attempts reported from there
    /// on is replaced.
    pub fn report(
        &mut self,
        claim: &Claim,
        step: u32,
        value: f64,
        effort: impl Into<Effort>,
    ) -> Result<(), Error> {
        let effort = effort.into();
        self.write(|session| {
            let turn = Turn::take(session, claim.study)?;
            held(session, claim)?;
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
                    turn.change
                ],
            )?;
            session.execute(
                "UPDATE surefoot_trial SET reported = ?3, reporter = ?4, heartbeat = {now} \
                 WHERE study = ?1 AND number = ?2",
                &cells![claim.study.id, claim.number, step, claim.attempt],
            )?;
            turn.end(session, claim.study)
        })
    }

    /// Ends a trial, for ever. `seconds` is what it took in all of whatever the study counts.
    pub fn finish(&mut self, claim: &Claim, end: &End, seconds: f64) -> Result<(), Error> {
        let reason = match end {
            End::Stopped { reason, .. } => Some(json(self.name(), reason)?),
            _ => None,
        };
        let message = match end {
            End::Failed { message } => Some(message.as_str()),
            _ => None,
        };
        self.write(|session| {
            let turn = Turn::take(session, claim.study)?;
            if fate(session, claim)? == Some(Fate::Over) {
                return same_end(session, claim, end);
            }
            held(session, claim)?;
            end_attempt(session, claim.study, claim.number, Fate::Over)?;
            session.execute(
                "UPDATE surefoot_trial SET state = ?3, value = ?4, seconds = ?5, reason = ?6, \
                 message = ?7, token = NULL, heartbeat = {now}, ended = {now}, told = ?8, \
                 changed = ?8 WHERE study = ?1 AND number = ?2",
                &cells![
                    claim.study.id,
                    claim.number,
                    end.word(),
                    end.value(),
                    seconds,
                    reason.as_deref(),
                    message,
                    turn.change
                ],
            )?;
            turn.end(session, claim.study)
        })
    }
}

/// Fails unless this stretch can be reported now: it is the next one, or one after the checkpoint
/// that an attempt goes on from.
fn check_order(session: &mut dyn Session, claim: &Claim, step: u32) -> Result<(), Error> {
    let rows = session.query(
        "SELECT reported, reporter FROM surefoot_trial WHERE study = ?1 AND number = ?2",
        &cells![claim.study.id, claim.number],
    )?;
    let mut row = session.reader("a trial", rows.into_iter().next().unwrap_or_default());
    let reported: u32 = row.count()?;
    let first_of_attempt = row.count::<u32>()? < claim.attempt;
    if step == reported + 1 || (first_of_attempt && (1..=reported).contains(&step)) {
        return Ok(());
    }
    Err(Error::Contradiction {
        number: claim.number,
        message: format!("stretch {step} is reported after stretch {reported}"),
    })
}

/// Whether this attempt has reported this already.
fn reported_before(
    session: &mut dyn Session,
    claim: &Claim,
    step: u32,
    value: f64,
) -> Result<bool, Error> {
    let rows = session.query(
        "SELECT value FROM surefoot_report \
         WHERE study = ?1 AND number = ?2 AND step = ?3 AND attempt = ?4",
        &cells![claim.study.id, claim.number, step, claim.attempt],
    )?;
    let Some(row) = rows.into_iter().next() else {
        return Ok(false);
    };
    let known = session.reader("a report", row).float()?;
    if same(known, value) {
        return Ok(true);
    }
    Err(Error::Contradiction {
        number: claim.number,
        message: format!("stretch {step} was reported as {known} and is now {value}"),
    })
}

/// Fails unless the trial ended as it is said to.
fn same_end(session: &mut dyn Session, claim: &Claim, end: &End) -> Result<(), Error> {
    let rows = session.query(
        "SELECT state, value FROM surefoot_trial WHERE study = ?1 AND number = ?2",
        &cells![claim.study.id, claim.number],
    )?;
    let mut row = session.reader("a trial", rows.into_iter().next().unwrap_or_default());
    let state = row.text()?;
    let value = row.optional_float()?;
    let equal = match (value, end.value()) {
        (Some(known), Some(value)) => same(known, value),
        (known, value) => known == value,
    };
    if state == end.word() && equal {
        return Ok(());
    }
    Err(Error::Over { number: claim.number })
}

/// Whether two numbers are the same, NaN and NaN too.
fn same(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}
