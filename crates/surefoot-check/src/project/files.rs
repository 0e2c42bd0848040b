//! From paths to the files that are checked.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use ignore::{DirEntry, WalkBuilder};

use super::tidy;
use crate::Unreadable;
use crate::unreadable::Reason;

/// Directories of dependencies, build outputs and caches.
const SKIPPED: [&str; 9] = [
    "__pycache__",
    "__pypackages__",
    "build",
    "dist",
    "env",
    "node_modules",
    "site-packages",
    "venv",
    "virtualenv",
];

/// Lists the files among `paths` and all Python files below the directories, each once, in the order given
/// and by name within a directory. Hidden directories, virtual environments and what `.gitignore` excludes
/// are skipped.
pub(super) fn find(paths: &[PathBuf], unreadable: &mut Vec<Unreadable>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut seen = BTreeSet::new();
    for path in paths {
        let path = tidy(path);
        match fs::metadata(&path) {
            Ok(data) if data.is_dir() => {
                let found = walk(&path, unreadable);
                if found.is_empty() && !unreadable.iter().any(|it| it.path == path) {
                    unreadable.push(because(path, Reason::Empty));
                }
                files.extend(found.into_iter().filter(|file| seen.insert(file.clone())));
            }
            Ok(data) if data.is_file() => {
                if seen.insert(path.clone()) {
                    files.push(path);
                }
            }
            Ok(_) => unreadable.push(because(path, Reason::NotAFile)),
            Err(error) => unreadable.push(because(path, of_system(&error))),
        }
    }
    files
}

fn walk(directory: &Path, unreadable: &mut Vec<Unreadable>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut walk = WalkBuilder::new(directory);
    walk.hidden(false).require_git(false).sort_by_file_name(Ord::cmp).filter_entry(is_followed);
    for entry in walk.build() {
        let path = match entry {
            Ok(entry) => tidy(entry.path()),
            Err(error) => {
                let path = path_of(&error).unwrap_or(directory).to_owned();
                let reason =
                    error.io_error().map_or_else(|| Reason::System(error.to_string()), of_system);
                unreadable.push(because(path, reason));
                continue;
            }
        };
        if path.extension().is_some_and(|it| it == "py") {
            match fs::metadata(&path) {
                Ok(data) if data.is_file() => files.push(path),
                Ok(_) => {}
                Err(error) => unreadable.push(because(path, of_system(&error))),
            }
        }
    }
    files
}

/// Returns false for directories that are not searched.
fn is_followed(entry: &DirEntry) -> bool {
    if entry.depth() == 0 || !entry.file_type().is_some_and(|it| it.is_dir()) {
        return true;
    }
    let name = entry.file_name().to_string_lossy();
    let is_environment = entry.path().join("pyvenv.cfg").is_file();
    !name.starts_with('.') && !SKIPPED.contains(&&*name) && !is_environment
}

fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
            path_of(err)
        }
        _ => None,
    }
}

pub(super) fn because(path: PathBuf, reason: Reason) -> Unreadable {
    Unreadable { path, reason, at: None }
}

pub(super) fn of_system(error: &std::io::Error) -> Reason {
    match error.kind() {
        std::io::ErrorKind::NotFound => Reason::Missing,
        _ => Reason::System(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_ignored_and_environment_directories_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for directory in ["a", ".git", "my_env", "a/__pycache__", "old"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        for file in [
            "z.py",
            "a/b.py",
            "a/notes.txt",
            ".git/c.py",
            "my_env/d.py",
            "a/__pycache__/e.py",
            "my_env/pyvenv.cfg",
            "old/f.py",
        ] {
            fs::write(root.join(file), "").unwrap();
        }
        fs::write(root.join(".gitignore"), "old/\n").unwrap();
        let mut unreadable = Vec::new();
        let found = find(&[root.to_owned(), root.join("z.py")], &mut unreadable);
        assert_eq!(found, [root.join("a/b.py"), root.join("z.py")]);
        assert!(unreadable.is_empty());
    }

    #[test]
    fn a_missing_path_is_reported() {
        let mut unreadable = Vec::new();
        assert!(find(&["no/such/file.py".into()], &mut unreadable).is_empty());
        assert_eq!(unreadable[0].reason, Reason::Missing);
    }
}
