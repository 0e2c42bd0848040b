//! A check, from paths to findings.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::project::Project;
use crate::suppression::Suppressions;
use crate::{Checkpoint, FileId, Finding, Sources, Unreadable, parallel};

/// What a check assumes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The version of PyTorch whose nondeterministic operations are reported. The newest that is
    /// known if none is given.
    pub torch: Option<TorchVersion>,
}

/// A version of PyTorch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TorchVersion {
    /// The first number.
    pub major: u16,
    /// The second number.
    pub minor: u16,
}

impl fmt::Display for TorchVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Not a version of PyTorch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no version of PyTorch; write it as 2.13")]
pub struct NoSuchVersion(String);

impl FromStr for TorchVersion {
    type Err = NoSuchVersion;

    fn from_str(text: &str) -> Result<TorchVersion, NoSuchVersion> {
        let mut numbers = text.split('.').map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => Ok(TorchVersion { major, minor }),
            _ => Err(NoSuchVersion(text.to_owned())),
        }
    }
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The files, those asked for first, then what they import.
    pub sources: Sources,
    /// What was found, by file and place. What comments silence is left out.
    pub findings: Vec<Finding>,
    /// How many findings comments silence.
    pub suppressed: usize,
    /// What each training loop must save.
    pub checkpoints: Vec<Checkpoint>,
    /// What could not be checked.
    pub unreadable: Vec<Unreadable>,
    /// How many files were checked, without those that were only imported.
    pub files: usize,
}

/// Checks files, and all Python files in directories.
pub fn check(paths: &[PathBuf], settings: &Settings) -> Checked {
    parallel::with_deep_stack(|| check_project(Project::read(paths), settings))
}

fn check_project(mut project: Project, _settings: &Settings) -> Checked {
    let mut checked = Checked {
        files: project.given,
        unreadable: std::mem::take(&mut project.unreadable),
        ..Checked::default()
    };
    let suppressions: Vec<Suppressions> = (0..)
        .zip(&project.scripts)
        .map(|(file, script)| Suppressions::of(script, FileId(file)))
        .collect();
    checked.sources = Sources(
        project
            .scripts
            .into_iter()
            .map(|script| script.source)
            .collect(),
    );
    for silence in suppressions {
        checked.findings.extend(silence.unknown);
    }
    checked
}
