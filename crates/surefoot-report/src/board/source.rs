//! The given paths, and the runs and stores below them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::BoardError;

/// File name of a store in the directory of its study.
const STORE: &str = "study.db";

/// Files of a run that are read. None of them may be a link to somewhere else.
const FILES: [&str; 10] = [
    "plan.toml",
    "program.json",
    "header.json",
    "events.jsonl",
    "summary.json",
    "observations.steps.arrows",
    "observations.steps.parquet",
    "observations.layers.arrows",
    "observations.layers.parquet",
    "attempts",
];

/// Deepest directory below a given path.
const DEPTH: usize = 12;

/// Resolution of the time stamps of file systems.
const GRAIN: Duration = Duration::from_secs(2);

/// A given path.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// A directory with runs and studies.
    Directory(PathBuf),
    /// URL or file of a store.
    Store(String),
}

/// Reads the paths of the command line.
pub(super) fn parse(paths: &[String]) -> Result<Vec<Source>, BoardError> {
    let sources = paths.iter().map(|path| {
        let scheme = path.split_once("://").map(|(scheme, _)| scheme);
        match scheme {
            Some("postgres" | "postgresql" | "sqlite") => Ok(Source::Store(path.clone())),
            // What follows may be a password.
            Some(other) => Err(BoardError::Path {
                path: format!("{other}://"),
                message: "expected a directory, a store file, `sqlite:PATH` or `postgres://...`"
                    .to_owned(),
            }),
            None if path.starts_with("sqlite:") || Path::new(path).is_file() => {
                Ok(Source::Store(path.clone()))
            }
            None => Ok(Source::Directory(PathBuf::from(path))),
        }
    });
    sources.collect()
}

/// The run directory with an id `SOURCE/RELATIVE/PATH`; `None` if it is not below a given path.
pub(super) fn resolve(sources: &[Source], id: &str) -> Option<PathBuf> {
    let (index, relative) = id.split_once('/').unwrap_or((id, ""));
    let Source::Directory(root) = sources.get(index.parse::<usize>().ok()?)? else {
        return None;
    };
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    if !Path::new(relative).components().all(is_plain) {
        return None;
    }
    let dir = if relative.is_empty() { root.clone() } else { root.join(relative) };
    is_inside(sources, &dir).then_some(dir)
}

/// The id of a run directory below a given path.
pub(super) fn id_of(sources: &[Source], dir: &Path) -> Option<String> {
    let dir = dir.canonicalize().ok()?;
    sources.iter().enumerate().find_map(|(index, source)| {
        let Source::Directory(root) = source else { return None };
        let relative = dir.strip_prefix(root.canonicalize().ok()?).ok()?;
        Some(format!("{index}/{}", relative.display()))
    })
}

/// Returns true if a run directory and the files in it are below a given directory, after following links.
fn is_inside(sources: &[Source], dir: &Path) -> bool {
    let roots = sources.iter().filter_map(|source| match source {
        Source::Directory(root) => root.canonicalize().ok(),
        Source::Store(_) => None,
    });
    let roots: Vec<PathBuf> = roots.collect();
    let below = |path: &Path| {
        path.canonicalize().is_ok_and(|real| roots.iter().any(|root| real.starts_with(root)))
    };
    let is_link = |path: &Path| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
    let mut files = FILES.iter().map(|name| dir.join(name));
    below(dir) && files.all(|file| !is_link(&file) || below(&file))
}

/// Runs and stores below a directory.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) runs: Vec<PathBuf>,
    pub(super) stores: Vec<PathBuf>,
}

/// Looks for runs and stores. Directories that did not change are not read again.
#[derive(Debug, Default)]
pub(super) struct Walk {
    known: BTreeMap<PathBuf, Listing>,
}

#[derive(Clone, Debug)]
struct Listing {
    modified: SystemTime,
    is_run: bool,
    store: bool,
    children: Vec<PathBuf>,
}

impl Walk {
    /// Looks below `root`.
    pub(super) fn find(&mut self, root: &Path) -> Found {
        let mut found = Found::default();
        let mut known = BTreeMap::new();
        self.visit(root, 0, &mut found, &mut known);
        self.known = known;
        found
    }

    fn visit(
        &self,
        dir: &Path,
        depth: usize,
        found: &mut Found,
        known: &mut BTreeMap<PathBuf, Listing>,
    ) {
        let Some(listing) = self.list(dir) else {
            return;
        };
        if listing.store {
            // The runs of its trials are shown with the study.
            found.stores.push(dir.join(STORE));
        } else if listing.is_run {
            found.runs.push(dir.to_owned());
        } else if depth < DEPTH {
            for child in &listing.children {
                self.visit(child, depth + 1, found, known);
            }
        }
        let is_settled = SystemTime::now() > listing.modified + GRAIN;
        if is_settled {
            known.insert(dir.to_owned(), listing);
        }
    }

    fn list(&self, dir: &Path) -> Option<Listing> {
        let modified = fs::metadata(dir).ok()?.modified().ok()?;
        if let Some(listing) = self.known.get(dir).filter(|listing| listing.modified == modified) {
            return Some(listing.clone());
        }
        let mut listing = Listing { modified, is_run: false, store: false, children: Vec::new() };
        for entry in fs::read_dir(dir).ok()?.flatten() {
            let name = entry.file_name();
            let is_hidden = name.as_encoded_bytes().starts_with(b".");
            // Links are not followed.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !is_hidden => listing.children.push(entry.path()),
                // The header makes a directory a run.
                Ok(kind) if !kind.is_dir() && name == "header.json" => listing.is_run = true,
                Ok(kind) if kind.is_file() && name == STORE => listing.store = true,
                _ => {}
            }
        }
        listing.children.sort();
        Some(listing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(root: &Path) -> Vec<Source> {
        vec![Source::Store("study.db".to_owned()), Source::Directory(root.to_owned())]
    }

    #[test]
    fn paths_outside_are_not_resolved() {
        let all = tempfile::tempdir().unwrap();
        let (root, secret) = (all.path().join("runs"), all.path().join("secret"));
        for dir in [&root.join("a"), &root.join("b"), &secret] {
            fs::create_dir_all(dir).unwrap();
        }
        fs::write(secret.join("plan.toml"), "password").unwrap();
        std::os::unix::fs::symlink(&secret, root.join("link")).unwrap();
        std::os::unix::fs::symlink(secret.join("plan.toml"), root.join("b/plan.toml")).unwrap();
        let sources = sources(&root);
        assert_eq!(resolve(&sources, "1/a"), Some(root.join("a")));
        assert_eq!(resolve(&sources, "1/"), Some(root.clone()));
        assert_eq!(id_of(&sources, &root.join("a")).as_deref(), Some("1/a"));
        assert_eq!(id_of(&sources, &secret), None);
        let absolute = format!("1/{}", secret.display());
        let bad = ["1/../secret", "1/a/../../secret", "1/./a", "0/a", "7/a", "x", "", "1/link"];
        for id in bad.into_iter().chain([absolute.as_str(), "1/b", "1/none", "1//etc"]) {
            assert_eq!(resolve(&sources, id), None, "{id}");
        }
    }

    #[test]
    fn runs_and_stores_are_found_and_the_runs_of_trials_are_not() {
        let root = tempfile::tempdir().unwrap();
        for file in ["a/header.json", "deep/b/header.json", "s/study.db", "s/trial/header.json"] {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "{}").unwrap();
        }
        fs::create_dir_all(root.path().join("a/attempts/x")).unwrap();
        fs::write(root.path().join("a/attempts/x/header.json"), "{}").unwrap();
        let mut walk = Walk::default();
        let found = walk.find(root.path());
        assert_eq!(found.runs, [root.path().join("a"), root.path().join("deep/b")]);
        assert_eq!(found.stores, [root.path().join("s/study.db")]);
        fs::remove_dir_all(root.path().join("a")).unwrap();
        assert_eq!(walk.find(root.path()).runs.len(), 1);
        assert!(walk.find(&root.path().join("gone")).runs.is_empty());
    }

    #[test]
    fn urls_of_other_databases_are_rejected_without_their_password() {
        let error = parse(&["mysql://me:secret@db/x".to_owned()]).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
        let path = "sqlite:study.db".to_owned();
        assert!(matches!(parse(&[path]).unwrap()[..], [Source::Store(_)]));
    }
}
