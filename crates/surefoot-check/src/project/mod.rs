//! The files of a check: found, read, parsed, and known by their module names.

mod encoding;
mod files;
mod modules;
mod parse;

pub(crate) use modules::Modules;
pub(crate) use parse::Script;
#[cfg(test)]
pub(crate) use parse::parse;

use std::path::{Path, PathBuf};

use crate::{FileId, Unreadable};

/// All that was read for a check.
pub(crate) struct Project {
    /// Every file that could be parsed, in the order in which findings are told.
    pub scripts: Vec<Script>,
    /// How many of them, the first ones, were asked for. The rest was imported by those.
    pub given: usize,
    /// Which of them have anything to check.
    pub relevant: Vec<bool>,
    /// Which file a module is in.
    pub modules: Modules,
    /// What could not be read.
    pub unreadable: Vec<Unreadable>,
}

impl Project {
    /// Reads the files and directories at `paths`, and what they import from beside them.
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
        let given = scripts.len();
        let modules = Modules::follow(&mut scripts, &mut unreadable);
        let relevant = modules.relevant(&scripts);
        unreadable.sort_by(|a, b| a.path.cmp(&b.path));
        Project { scripts, given, relevant, modules, unreadable }
    }

    /// The file of this number.
    pub(crate) fn script(&self, file: FileId) -> &Script {
        &self.scripts[file.0 as usize]
    }
}

/// A path without `./` in front.
fn tidy(path: &Path) -> PathBuf {
    let parts: PathBuf =
        path.components().filter(|part| !matches!(part, std::path::Component::CurDir)).collect();
    if parts.as_os_str().is_empty() { PathBuf::from(".") } else { parts }
}
