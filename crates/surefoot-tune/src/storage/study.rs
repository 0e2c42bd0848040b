//! Studies: created by the first worker, joined by the others.

use super::database::{Cell, Session, cells, shown};
use super::difference;
use super::trial::{Change, Millis};
use super::{Storage, StorageError};
use crate::direction::Direction;
use crate::space::{Parameter, Space};
use serde::{Deserialize, Serialize};

/// Identifies a study. A study that is deleted and created again has another id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StudyId {
    pub(super) id: i64,
    pub(super) created: Millis,
}

/// A study to create or join.
#[derive(Clone, Debug, PartialEq)]
pub struct NewStudy {
    /// Unique name in the storage.
    pub name: String,
    /// Text that must be the same for all workers, like the space, the direction and the seed.
    pub fingerprint: String,
    /// Text of the study file, for information.
    pub document: String,
    /// Parameters.
    pub space: Space,
    /// Direction of the objective value.
    pub direction: Direction,
    /// Seed of the sampler.
    pub seed: u64,
}

/// A study as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredStudy {
    /// Id for other calls.
    pub id: StudyId,
    /// Name.
    pub name: String,
    /// Text that is the same for all workers.
    pub fingerprint: String,
    /// Study file of the worker that created it.
    pub document: String,
    /// Parameters.
    pub space: Space,
    /// For each parameter, the change that added it; 0 for those that the study was created with.
    pub since: Vec<Change>,
    /// Direction of the objective value.
    pub direction: Direction,
    /// Seed of the sampler.
    pub seed: u64,
    /// Version of Surefoot that created it.
    pub program: String,
    /// Vector instructions of the machine that created it, as [`vectors`] names them.
    pub vectors: String,
    /// Creation time.
    pub created: Millis,
    /// Number of trials.
    pub trials: u64,
    /// Last change.
    pub change: Change,
}

/// A parameter as stored.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredParameter {
    #[serde(flatten)]
    pub(super) parameter: Parameter,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) since: Change,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(change: &Change) -> bool {
    *change == 0
}

impl StoredStudy {
    /// True if trials add parameters while they run.
    pub fn grows(&self) -> bool {
        self.since.iter().all(|since| *since > 0)
    }

    /// The parameters at a change, as of when the study was read.
    fn space_at(&self, change: Change) -> Space {
        let known = self.space.parameters().iter().zip(&self.since);
        let known = known.filter(|(_, since)| **since <= change);
        // Those that trials add have no conditions, so any part of them is a valid space.
        Space::new(known.map(|(parameter, _)| parameter.clone()).collect()).unwrap_or_default()
    }
}

const COLUMNS: &str = "id, name, fingerprint, document, space, direction, seed, program, vectors, \
                       created, trials, change";

/// Name of the widest vector instructions of this machine. Trainings on machines with others differ in
/// their bits, unless they are portable.
pub fn vectors() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        return "AVX-512";
    } else if is_x86_feature_detected!("avx2") {
        return "AVX2";
    }
    std::env::consts::ARCH
}

impl Storage {
    /// Creates a study, or joins the existing one of this name. Fails if they differ.
    pub fn join(&mut self, study: &NewStudy) -> Result<StoredStudy, StorageError> {
        let storage = self.name().to_owned();
        let space = json(&storage, &study.space)?;
        let found = self.write(|session| {
            session.execute(
                "INSERT INTO surefoot_study (name, fingerprint, document, space, direction, seed, \
                 program, vectors, created, trials, change) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, {now}, 0, 0) ON CONFLICT (name) DO NOTHING",
                &cells![
                    study.name.as_str(),
                    study.fingerprint.as_str(),
                    study.document.as_str(),
                    space.as_str(),
                    study.direction.name(),
                    study.seed.to_string(),
                    env!("CARGO_PKG_VERSION"),
                    vectors(),
                ],
            )?;
            one(session, &study.name)
        })?;
        let found = found.ok_or_else(|| StorageError::Damaged {
            storage: storage.clone(),
            what: format!("the study `{}`", study.name),
            message: "it disappeared after it was written".to_owned(),
        })?;
        same(storage, found, study)
    }

    /// Returns the study if it exists. Fails if they differ. Writes nothing.
    pub fn find(&mut self, study: &NewStudy) -> Result<Option<StoredStudy>, StorageError> {
        let found = self.read(|session| one(session, &study.name))?;
        let storage = self.name().to_owned();
        found.map(|found| same(storage, found, study)).transpose()
    }

    /// Returns the study with this name.
    pub fn study(&mut self, name: &str) -> Result<StoredStudy, StorageError> {
        if let Some(study) = self.read(|session| one(session, name))? {
            return Ok(study);
        }
        let studies = self.studies()?.into_iter().map(|study| study.name);
        Err(StorageError::NoStudy {
            study: name.to_owned(),
            studies: studies.collect(),
            storage: self.name().to_owned(),
        })
    }

    /// The parameters of a study at a change, those included that trials have added.
    pub fn space_at(&mut self, study: &StoredStudy, change: Change) -> Result<Space, StorageError> {
        if !study.grows() {
            return Ok(study.space.clone());
        }
        Ok(self.study(&study.name)?.space_at(change))
    }

    /// All studies, sorted by name.
    pub fn studies(&mut self) -> Result<Vec<StoredStudy>, StorageError> {
        self.read(|session| {
            let sql = format!("SELECT {COLUMNS} FROM surefoot_study ORDER BY name");
            let rows = session.query(&sql, &[])?;
            rows.into_iter().map(|row| read(session, row)).collect()
        })
    }
}

fn one(session: &mut dyn Session, name: &str) -> Result<Option<StoredStudy>, StorageError> {
    let sql = format!("SELECT {COLUMNS} FROM surefoot_study WHERE name = ?1");
    let row = session.first(&sql, &cells![name])?;
    row.map(|row| read(session, row)).transpose()
}

fn read(session: &dyn Session, row: Vec<Cell>) -> Result<StoredStudy, StorageError> {
    let mut row = session.reader("a study", row);
    let id = row.get()?;
    let name = row.get()?;
    let fingerprint = row.get()?;
    let document = row.get()?;
    let stored: Option<Vec<StoredParameter>> = row.json()?;
    let stored = stored.ok_or_else(|| row.damaged("missing space"))?;
    let since = stored.iter().map(|stored| stored.since).collect();
    let parameters = stored.into_iter().map(|stored| stored.parameter).collect();
    let space = Space::new(parameters).map_err(|error| row.damaged(error))?;
    let direction: String = row.get()?;
    let direction = Direction::named(&direction)
        .ok_or_else(|| row.damaged(format!("unknown direction `{direction}`")))?;
    let seed: String = row.get()?;
    let seed = seed.parse().map_err(|error| row.damaged(error))?;
    let program = row.get()?;
    let vectors = row.get()?;
    let created = row.get()?;
    Ok(StoredStudy {
        id: StudyId { id, created },
        name,
        fingerprint,
        document,
        space,
        since,
        direction,
        seed,
        program,
        vectors,
        created,
        trials: row.get()?,
        change: row.get()?,
    })
}

pub(super) fn json(storage: &str, value: &impl serde::Serialize) -> Result<String, StorageError> {
    serde_json::to_string(value).map_err(|error| StorageError::Database {
        storage: storage.to_owned(),
        message: format!("cannot serialize: {error}"),
    })
}

/// Fails if the studies differ.
fn same(
    storage: String,
    found: StoredStudy,
    wanted: &NewStudy,
) -> Result<StoredStudy, StorageError> {
    let differences = differences(&found, wanted);
    if differences.is_empty() {
        return Ok(found);
    }
    Err(StorageError::Differs { storage, study: found.name, differences })
}

/// Differences that keep a worker from joining.
fn differences(there: &StoredStudy, here: &NewStudy) -> Vec<String> {
    let mut differences = Vec::new();
    if there.direction != here.direction {
        differences.push(format!("direction is {}, here {}", there.direction, here.direction));
    }
    if there.seed != here.seed {
        differences.push(format!("seed is {}, here {}", there.seed, here.seed));
    }
    // Trials have added the parameters.
    let there_space = if there.grows() { Space::default() } else { there.space.clone() };
    let find = |space: &Space, name: &str| -> Option<Parameter> {
        space.parameters().iter().find(|p| p.name == name).cloned()
    };
    for parameter in there_space.parameters() {
        match find(&here.space, &parameter.name) {
            None => differences.push(format!("parameter `{}` is missing here", parameter.name)),
            Some(other) if other != *parameter => {
                differences.push(format!("parameter `{}` has other values", parameter.name));
            }
            Some(_) => {}
        }
    }
    for parameter in here.space.parameters() {
        if find(&there_space, &parameter.name).is_none() {
            differences.push(format!("parameter `{}` is new", parameter.name));
        }
    }
    if differences.is_empty() && there_space != here.space {
        differences.push("the parameters have another order".to_owned());
    }
    let fingerprint = shown(&here.fingerprint);
    if differences.is_empty() && there.fingerprint != fingerprint {
        differences = difference::of_texts(&there.fingerprint, &fingerprint);
    }
    differences
}
