//! The table of crates in `docs/architecture.md` against the manifests.

#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Workspace crates that each crate depends on.
type Dependencies = BTreeMap<String, BTreeSet<String>>;

#[test]
fn the_documented_dependencies_are_those_of_the_manifests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    assert_eq!(documented(&root), declared(&root));
}

/// Rows `| \`surefoot-x\` | content | \`a\`, \`b\` |`; dependencies omit the prefix `surefoot-`.
fn documented(root: &Path) -> Dependencies {
    let text = fs::read_to_string(root.join("docs/architecture.md")).unwrap();
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, name, _, dependencies, _] = cells[..] else { return None };
        let name = name.strip_prefix("`surefoot")?.strip_suffix('`')?;
        let dependencies = dependencies.split('`').skip(1).step_by(2);
        let dependencies = dependencies.map(|short| format!("surefoot-{short}")).collect();
        Some((format!("surefoot{name}"), dependencies))
    });
    rows.collect()
}

fn declared(root: &Path) -> Dependencies {
    let crates = fs::read_dir(root.join("crates")).unwrap().map(|entry| {
        let entry = entry.unwrap();
        let manifest = fs::read_to_string(entry.path().join("Cargo.toml")).unwrap();
        let section = manifest.split("[dependencies]\n").nth(1).unwrap_or_default();
        let lines = section.lines().take_while(|line| !line.starts_with('['));
        let names = lines.filter_map(|line| line.split(['.', ' ', '=']).next());
        let names = names.filter(|name| name.starts_with("surefoot-")).map(str::to_owned).collect();
        (entry.file_name().into_string().unwrap(), names)
    });
    crates.collect()
}
