//! Studies: made by the first worker, joined by the others.

use super::database::{Cell, Session, cells, shown};
use super::difference;
use super::trial::{Change, Millis};
use super::{Error, Store};
use crate::direction::Direction;
use crate::space::{Parameter, Space};

/// A study in its store. One that is deleted and made again is another one, also where the database
/// gives it the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StudyId {
    pub(super) id: i64,
    pub(super) created: Millis,
}

/// A study as a worker brings it.
#[derive(Clone, Debug, PartialEq)]
pub struct NewStudy {
    /// Its name, which no other study in the store has.
    pub name: String,
    /// Whatever must be the same for all that join, as the caller writes it: two that differ are
    /// not one study. The space, the direction and the seed must be the same anyway.
    pub fingerprint: String,
    /// The text of the study file. It is kept for people; one with another budget may join.
    pub document: String,
    /// Where the study looks.
    pub space: Space,
    /// Which way is better.
    pub direction: Direction,
    /// What the draws of its samplers come from.
    pub seed: u64,
}

/// A study as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// What the other calls name it by.
    pub id: StudyId,
    /// Its name.
    pub name: String,
    /// What must be the same for all that join.
    pub fingerprint: String,
    /// The text of the study file of the worker that made it.
    pub document: String,
    /// Where it looks.
    pub space: Space,
    /// Which way is better.
    pub direction: Direction,
    /// What the draws of its samplers come from.
    pub seed: u64,
    /// The version of the Surefoot that made it.
    pub program: String,
    /// When it was made.
    pub created: Millis,
    /// How many trials it has.
    pub trials: u64,
    /// Its last change.
    pub change: Change,
}

const COLUMNS: &str = "id, name, fingerprint, document, space, direction, seed, program, created, \
                       trials, change";

impl Store {
    /// Makes a study, or joins the one of this name if it looks for the same.
    pub fn join(&mut self, study: &NewStudy) -> Result<Study, Error> {
        let store = self.name().to_owned();
        let space = json(&store, &study.space)?;
        let found = self.write(|session| {
            session.execute(
                "INSERT INTO surefoot_study (name, fingerprint, document, space, direction, seed, \
                 program, created, trials, change) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, {now}, 0, 0) ON CONFLICT (name) DO NOTHING",
                &cells![
                    study.name.as_str(),
                    study.fingerprint.as_str(),
                    study.document.as_str(),
                    space.as_str(),
                    study.direction.name(),
                    study.seed.to_string(),
                    env!("CARGO_PKG_VERSION"),
                ],
            )?;
            one(session, &study.name)
        })?;
        let found = found.ok_or_else(|| Error::Damaged {
            store: store.clone(),
            what: format!("the study `{}`", study.name),
            message: "it is gone as soon as it is written".to_owned(),
        })?;
        same(store, found, study)
    }

    /// The study, if it is there and the same. Nothing is written.
    pub fn find(&mut self, study: &NewStudy) -> Result<Option<Study>, Error> {
        let found = self.read(|session| one(session, &study.name))?;
        let store = self.name().to_owned();
        found.map(|found| same(store, found, study)).transpose()
    }

    /// The study of a name.
    pub fn study(&mut self, name: &str) -> Result<Study, Error> {
        if let Some(study) = self.read(|session| one(session, name))? {
            return Ok(study);
        }
        let studies = self.studies()?.into_iter().map(|study| study.name);
        Err(Error::NoStudy {
            study: name.to_owned(),
            studies: studies.collect(),
            store: self.name().to_owned(),
        })
    }

    /// All studies, by name.
    pub fn studies(&mut self) -> Result<Vec<Study>, Error> {
        self.read(|session| {
            let sql = format!("SELECT {COLUMNS} FROM surefoot_study ORDER BY name");
            let rows = session.query(&sql, &[])?;
            rows.into_iter().map(|row| read(session, row)).collect()
        })
    }
}

fn one(session: &mut dyn Session, name: &str) -> Result<Option<Study>, Error> {
    let sql = format!("SELECT {COLUMNS} FROM surefoot_study WHERE name = ?1");
    let rows = session.query(&sql, &cells![name])?;
    let row = rows.into_iter().next();
    row.map(|row| read(session, row)).transpose()
}

fn read(session: &dyn Session, row: Vec<Cell>) -> Result<Study, Error> {
    let mut row = session.reader("a study", row);
    let id = row.int()?;
    let name = row.text()?;
    let fingerprint = row.text()?;
    let document = row.text()?;
    let parameters: Vec<Parameter> = row.json()?;
    let space = Space::new(parameters).map_err(|error| row.damaged(error))?;
    let direction = row.text()?;
    let direction = Direction::named(&direction)
        .ok_or_else(|| row.damaged(format!("`{direction}` is no direction")))?;
    let seed = row.text()?;
    let seed = seed.parse().map_err(|error| row.damaged(error))?;
    let program = row.text()?;
    let created = row.int()?;
    Ok(Study {
        id: StudyId { id, created },
        name,
        fingerprint,
        document,
        space,
        direction,
        seed,
        program,
        created,
        trials: row.count()?,
        change: row.count()?,
    })
}

pub(super) fn json(store: &str, value: &impl serde::Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::Database {
        store: store.to_owned(),
        message: format!("this cannot be written: {error}"),
    })
}

/// The study that was found, unless it is another one.
fn same(store: String, found: Study, wanted: &NewStudy) -> Result<Study, Error> {
    let differences = differences(&found, wanted);
    if differences.is_empty() {
        return Ok(found);
    }
    Err(Error::Differs { store, study: found.name, differences })
}

/// What keeps a worker from joining, a clause each.
fn differences(there: &Study, here: &NewStudy) -> Vec<String> {
    let mut differences = Vec::new();
    if there.direction != here.direction {
        differences.push(format!("it is to {}, this one to {}", there.direction, here.direction));
    }
    if there.seed != here.seed {
        differences.push(format!("its seed is {}, this one's {}", there.seed, here.seed));
    }
    let find = |space: &Space, name: &str| -> Option<Parameter> {
        space.parameters().iter().find(|p| p.name == name).cloned()
    };
    for parameter in there.space.parameters() {
        match find(&here.space, &parameter.name) {
            None => differences.push(format!("only it has the parameter `{}`", parameter.name)),
            Some(other) if other != *parameter => {
                differences.push(format!("its parameter `{}` has other values", parameter.name));
            }
            Some(_) => {}
        }
    }
    for parameter in here.space.parameters() {
        if find(&there.space, &parameter.name).is_none() {
            differences.push(format!("only this one has the parameter `{}`", parameter.name));
        }
    }
    if differences.is_empty() && there.space != here.space {
        differences.push("its parameters have another order".to_owned());
    }
    let fingerprint = shown(&here.fingerprint);
    if differences.is_empty() && there.fingerprint != fingerprint {
        differences = difference::of_texts(&there.fingerprint, &fingerprint);
    }
    differences
}
