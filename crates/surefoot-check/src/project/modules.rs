//! Resolution of imports inside the project.
//!
//! A module is searched beside the script, then in its ancestors and their `src`, as Python finds it when
//! the script runs from its own folder, the root of its package or the root of the repository. Each file
//! is read once, so circular imports are harmless.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt};
use ruff_python_ast::{ModModule, Stmt};

use super::parse::{Script, read};
use crate::{FileId, Unreadable};

/// Number of ancestors of a script in which its imports are searched.
const LEVELS: usize = 5;
/// Maximum number of imported files that are read.
const MAX_IMPORTED_FILES: usize = 2_000;
/// Files that mark the root of a repository; the search ends there.
const ROOT_MARKERS: [&str; 4] = [".git", "pyproject.toml", "setup.py", "requirements.txt"];

/// Resolved imports.
#[derive(Default)]
pub(crate) struct Modules {
    resolved: HashMap<(FileId, String), FileId>,
}

impl Modules {
    /// Resolves the imports of `scripts` and reads the imported files, transitively.
    pub(super) fn follow(scripts: &mut Vec<Script>, unreadable: &mut Vec<Unreadable>) -> Modules {
        let mut modules = Modules::default();
        let mut finder = Finder::default();
        for (index, script) in scripts.iter().enumerate() {
            finder.note(&script.source.path, index);
        }
        let requested = scripts.len();
        let mut next = 0;
        while next < scripts.len() {
            let mut wanted: BTreeMap<PathBuf, Vec<(FileId, String)>> = BTreeMap::new();
            for (index, script) in scripts.iter().enumerate().skip(next) {
                let file = file_id(index);
                for name in imports(&script.module) {
                    let Some(path) = finder.find(&script.source.path, &name) else {
                        continue;
                    };
                    match finder.known(&path) {
                        Some(found) => {
                            modules.resolved.insert((file, name), found);
                        }
                        None => wanted.entry(path).or_default().push((file, name)),
                    }
                }
            }
            next = scripts.len();
            // Imports beyond the limit stay unresolved, like those of a library.
            while next - requested + wanted.len() > MAX_IMPORTED_FILES
                && wanted.pop_last().is_some()
            {}
            let paths: Vec<PathBuf> = wanted.keys().cloned().collect();
            for (outcome, (path, importers)) in read(&paths).into_iter().zip(wanted) {
                match outcome {
                    Ok(script) => {
                        let found = scripts.len();
                        finder.note(&path, found);
                        scripts.push(script);
                        for importer in importers {
                            modules.resolved.insert(importer, file_id(found));
                        }
                    }
                    Err(why) => {
                        if !unreadable.contains(&why) {
                            unreadable.push(why);
                        }
                    }
                }
            }
        }
        modules
    }

    /// Marks the scripts that import a training framework, directly or indirectly. The others have
    /// nothing to check.
    pub(super) fn relevant(&self, scripts: &[Script]) -> Vec<bool> {
        let mut relevant: Vec<bool> =
            scripts.iter().map(|script| uses_framework(&script.module)).collect();
        let mut importers: HashMap<FileId, Vec<FileId>> = HashMap::new();
        for ((importer, _), imported) in &self.resolved {
            importers.entry(*imported).or_default().push(*importer);
        }
        let mut open: Vec<FileId> =
            (0..scripts.len()).filter(|at| relevant[*at]).map(file_id).collect();
        while let Some(file) = open.pop() {
            for importer in importers.get(&file).into_iter().flatten() {
                let known = &mut relevant[importer.0 as usize];
                if !*known {
                    *known = true;
                    open.push(*importer);
                }
            }
        }
        relevant
    }

    /// File of the module `name` imported by `file`. Leading dots make the name relative.
    pub(crate) fn resolve(&self, file: FileId, name: &str) -> Option<FileId> {
        self.resolved.get(&(file, name.to_owned())).copied()
    }
}

/// Training frameworks.
const FRAMEWORKS: [&str; 15] = [
    "accelerate",
    "fastai",
    "flax",
    "haiku",
    "jax",
    "keras",
    "lightning",
    "mxnet",
    "optax",
    "paddle",
    "pytorch_lightning",
    "tensorflow",
    "tf_keras",
    "torch",
    "transformers",
];

fn uses_framework(module: &ModModule) -> bool {
    imports(module)
        .iter()
        .any(|name| FRAMEWORKS.contains(&name.split('.').next().unwrap_or_default()))
}

/// Finds modules on disk, with a cache.
#[derive(Default)]
struct Finder {
    known: HashMap<PathBuf, usize>,
    roots: HashMap<PathBuf, Vec<PathBuf>>,
    tops: HashMap<(PathBuf, String), bool>,
}

impl Finder {
    fn note(&mut self, path: &Path, index: usize) {
        self.known.insert(real(path), index);
    }

    fn known(&self, path: &Path) -> Option<FileId> {
        self.known.get(&real(path)).map(|index| file_id(*index))
    }

    fn find(&mut self, importer: &Path, name: &str) -> Option<PathBuf> {
        let folder = importer.parent().map_or_else(|| PathBuf::from("."), folder_of);
        let dots = name.chars().take_while(|c| *c == '.').count();
        let dotted = &name[dots..];
        if dots > 0 {
            let mut base = folder;
            for _ in 1..dots {
                base = base.join("..");
            }
            return module_at(&base, dotted);
        }
        let top = dotted.split('.').next().unwrap_or_default().to_owned();
        for root in self.roots(&folder) {
            let key = (root.clone(), top.clone());
            let exists = *self.tops.entry(key).or_insert_with(|| {
                root.join(format!("{top}.py")).is_file() || root.join(&top).is_dir()
            });
            if exists && let Some(path) = module_at(&root, dotted) {
                return Some(path);
            }
        }
        None
    }

    fn roots(&mut self, folder: &Path) -> Vec<PathBuf> {
        if let Some(roots) = self.roots.get(folder) {
            return roots.clone();
        }
        let absolute = real(folder);
        let mut roots = Vec::new();
        for (level, ancestor) in absolute.ancestors().take(LEVELS).enumerate() {
            if level == 0 || !ancestor.join("__init__.py").is_file() {
                // Shown paths stay relative if the requested ones are.
                let shown = if level == 0 { folder.to_owned() } else { ancestor.to_owned() };
                roots.push(shown);
                let sources = ancestor.join("src");
                if sources.is_dir() {
                    roots.push(sources);
                }
            }
            if ROOT_MARKERS.iter().any(|mark| ancestor.join(mark).exists()) {
                break;
            }
        }
        self.roots.insert(folder.to_owned(), roots.clone());
        roots
    }
}

fn folder_of(path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() { PathBuf::from(".") } else { path.to_owned() }
}

fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn module_at(root: &Path, dotted: &str) -> Option<PathBuf> {
    let mut path = root.to_owned();
    for part in dotted.split('.').filter(|part| !part.is_empty()) {
        path.push(part);
    }
    let package = path.join("__init__.py");
    if package.is_file() {
        return Some(super::relative(&package));
    }
    if dotted.is_empty() {
        return None;
    }
    let file = path.with_extension("py");
    file.is_file().then(|| super::relative(&file))
}

fn file_id(index: usize) -> FileId {
    FileId(u32::try_from(index).unwrap_or(u32::MAX))
}

/// Names of all modules that a file may import, at any level.
fn imports(module: &ModModule) -> Vec<String> {
    struct Imports(Vec<String>);

    impl<'a> StatementVisitor<'a> for Imports {
        fn visit_stmt(&mut self, statement: &'a Stmt) {
            match statement {
                Stmt::Import(import) => {
                    for alias in &import.names {
                        // `import a.b` runs `a` as well.
                        let name = alias.name.as_str();
                        let ends = name.match_indices('.').map(|(at, _)| at).chain([name.len()]);
                        self.0.extend(ends.map(|end| name[..end].to_owned()));
                    }
                }
                Stmt::ImportFrom(import) => {
                    let dots = ".".repeat(import.level as usize);
                    let module = import.module.as_ref().map_or("", |name| name.as_str());
                    let base = format!("{dots}{module}");
                    for alias in &import.names {
                        let separator = if module.is_empty() { "" } else { "." };
                        self.0.push(format!("{base}{separator}{}", alias.name.as_str()));
                    }
                    self.0.push(base);
                }
                _ => walk_stmt(self, statement),
            }
        }
    }

    let mut found = Imports(Vec::new());
    found.visit_body(&module.body);
    found.0.sort();
    found.0.dedup();
    found.0
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::Project;

    fn project(files: &[(&str, &str)]) -> (tempfile::TempDir, Project) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let project = Project::read(&[folder.path().join(files[0].0)]);
        (folder, project)
    }

    #[test]
    fn imports_beside_above_and_relative_are_followed() {
        let (_folder, project) = project(&[
            ("scripts/train.py", "import data\nfrom lib.models import net\nimport torch\n"),
            ("scripts/data.py", ""),
            ("lib/__init__.py", ""),
            ("lib/models/__init__.py", "from . import net\n"),
            ("lib/models/net.py", "from .. import losses\n"),
            ("lib/losses.py", ""),
            ("requirements.txt", ""),
        ]);
        assert_eq!(project.requested, 1);
        let mut names: Vec<_> =
            project.scripts.iter().map(|it| it.source.path.file_name().unwrap()).collect();
        names.sort();
        assert_eq!(
            names,
            ["__init__.py", "__init__.py", "data.py", "losses.py", "net.py", "train.py"]
        );
    }

    #[test]
    fn only_scripts_that_import_a_framework_are_relevant() {
        let (_folder, project) = project(&[
            ("a.py", "import b\nimport d\n"),
            ("b.py", "import c\n"),
            ("c.py", "import torch\n"),
            ("d.py", "import os\n"),
        ]);
        let of = |name: &str| {
            let at = project.scripts.iter().position(|it| it.source.path.ends_with(name)).unwrap();
            project.relevant[at]
        };
        assert_eq!(["a.py", "b.py", "c.py", "d.py"].map(of), [true, true, true, false]);
    }

    #[test]
    fn circular_imports_end() {
        let (_folder, project) = project(&[("a.py", "import b\n"), ("b.py", "import a\n")]);
        assert_eq!(project.scripts.len(), 2);
    }

    #[test]
    fn an_import_with_a_syntax_error_is_reported() {
        let (_folder, project) = project(&[("a.py", "import b\n"), ("b.py", "def (\n")]);
        assert_eq!(project.scripts.len(), 1);
        assert_eq!(project.unreadable.len(), 1);
    }
}
