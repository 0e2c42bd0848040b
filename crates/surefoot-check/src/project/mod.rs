//! Files of a check: search, parsing, import resolution.

mod encoding;
mod files;
mod modules;
mod parse;

pub(crate) use modules::Modules;
pub(crate) use parse::Script;
#[cfg(test)]
pub(crate) use parse::parse;

use std::path::{Component, Path, PathBuf};

use crate::{FileId, Unreadable};

/// The files of a check.
pub(crate) struct Project {
    /// Parsed files, in the order in which findings are reported.
    pub scripts: Vec<Script>,
    /// Number of requested files, which come first; the others are imported by them.
    pub requested: usize,
    /// For each file, true if it has anything to check.
    pub relevant: Vec<bool>,
    /// Resolved imports.
    pub modules: Modules,
    /// Files that cannot be read.
    pub unreadable: Vec<Unreadable>,
}

impl Project {
    /// Reads the files and directories at `paths`, and the project files that they import.
    pub(crate) fn read(paths: &[PathBuf]) -> Project {
        let mut unreadable = Vec::new();
        let found = files::find(paths, &mut unreadable);
        let mut scripts = Vec::new();
        for outcome in parse::read(&found) {
            match outcome {
                Ok(script) => scripts.push(script),
                Err(why) => unreadable.push(why),
            }
        }
        let requested = scripts.len();
        let modules = Modules::follow(&mut scripts, &mut unreadable);
        let relevant = modules.relevant(&scripts);
        unreadable.sort_by(|a, b| a.path.cmp(&b.path));
        Project { scripts, requested, relevant, modules, unreadable }
    }

    /// Returns a file.
    pub(crate) fn script(&self, file: FileId) -> &Script {
        &self.scripts[file.0 as usize]
    }
}

/// Removes `.`, and `..` after the name of a directory.
fn tidy(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(parts.components().next_back(), Some(Component::Normal(_))) =>
            {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    if parts.as_os_str().is_empty() { PathBuf::from(".") } else { parts }
}

/// A path relative to the current directory, if it is below it.
pub(crate) fn relative(path: &Path) -> PathBuf {
    let path = tidy(path);
    let below =
        std::env::current_dir().ok().and_then(|here| path.strip_prefix(here).map(tidy).ok());
    below.unwrap_or(path)
}
