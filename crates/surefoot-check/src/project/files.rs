//! From paths to the files that are checked.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::tidy;
use crate::Unreadable;
use crate::unreadable::Reason;

/// Directories that hold no scripts of the project: other people's code, and caches.
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

/// Files as they are, directories with all Python files below them; each once, in the order given
/// and by name within a directory.
pub(super) fn find(paths: &[PathBuf], unreadable: &mut Vec<Unreadable>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut seen = BTreeSet::new();
    for path in paths {
        let path = tidy(path);
        match fs::metadata(&path) {
            Ok(data) if data.is_dir() => {
                let before = files.len();
                walk(&path, &mut files, &mut seen, unreadable);
                if files.len() == before && !unreadable.iter().any(|u| u.path == path) {
                    unreadable.push(because(path, Reason::Empty));
                }
            }
            Ok(data) if data.is_file() => {
                if seen.insert(path.clone()) {
                    files.push(path);
                }
            }
            Ok(_) => unreadable.push(because(path, Reason::NotAFile)),
            Err(error) => {
                let reason = of_system(&error);
                unreadable.push(because(path, reason));
            }
        }
    }
    files
}

fn walk(
    directory: &Path,
    files: &mut Vec<PathBuf>,
    seen: &mut BTreeSet<PathBuf>,
    unreadable: &mut Vec<Unreadable>,
) {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => {
            unreadable.push(because(directory.to_owned(), of_system(&error)));
            return;
        }
    };
    let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = tidy(&entry.path());
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // Links to directories are not followed: they may lead round in a circle.
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() {
            if !name.starts_with('.') && !SKIPPED.contains(&&*name) && !is_environment(&path) {
                walk(&path, files, seen, unreadable);
            }
        } else if path.extension().is_some_and(|it| it == "py") {
            match fs::metadata(&path) {
                Ok(data) if data.is_file() => {
                    if seen.insert(path.clone()) {
                        files.push(path);
                    }
                }
                // A directory behind a link, or something that nobody wrote.
                Ok(_) => {}
                Err(error) => unreadable.push(because(path, of_system(&error))),
            }
        }
    }
}

/// Whether a directory is a virtual environment, whatever its name.
fn is_environment(directory: &Path) -> bool {
    directory.join("pyvenv.cfg").is_file()
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
    fn directories_are_walked_without_hidden_ones_and_environments() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for directory in ["a", ".git", "my_env", "a/__pycache__"] {
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
        ] {
            fs::write(root.join(file), "").unwrap();
        }
        let mut unreadable = Vec::new();
        let found = find(&[root.to_owned(), root.join("z.py")], &mut unreadable);
        assert_eq!(found, [root.join("a/b.py"), root.join("z.py")]);
        assert!(unreadable.is_empty());
    }

    #[test]
    fn a_path_that_leads_nowhere_is_told() {
        let mut unreadable = Vec::new();
        assert!(find(&["no/such/file.py".into()], &mut unreadable).is_empty());
        assert_eq!(unreadable[0].reason, Reason::Missing);
    }
}
