//! The parsers of Surefoot as functions of bytes.
//!
//! Each [`Target`] reads bytes as one kind of file and must return, whatever they are: an error is
//! fine, a panic is not. `tests/mutations.rs` runs every target over its seeds and over keyed mutations
//! of them, on stable Rust. The crate `fuzz/` passes the targets to libFuzzer:
//!
//! ```text
//! cargo +nightly fuzz run parquet
//! ```

mod mutate;
mod run;

pub use mutate::mutated;
pub use run::run_seeds;

use std::path::{Path, PathBuf};
use surefoot_diagnose::Thresholds;
use surefoot_plan::{Data, Missing, Outliers, Plan, Scale, Source, SplitFractions};
use surefoot_record::logs::{self, Map};
use surefoot_tune::Study;

/// A parser to fuzz.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Name, also of its folder of seeds.
    pub name: &'static str,
    /// Reads bytes.
    pub read: fn(&[u8]),
    /// Mutations of each seed in a test, fewer for parsers that are slow.
    pub rounds: u64,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "plan", read: plan, rounds: 300 },
    Target { name: "study", read: study, rounds: 300 },
    Target { name: "csv", read: csv, rounds: 300 },
    Target { name: "npz", read: npz, rounds: 500 },
    Target { name: "parquet", read: parquet, rounds: 500 },
    Target { name: "keras", read: keras, rounds: 100 },
    Target { name: "tensorboard", read: tensorboard, rounds: 300 },
    Target { name: "logs", read: logs, rounds: 200 },
    Target { name: "python", read: python, rounds: 60 },
    Target { name: "run", read: run::run, rounds: 30 },
];

/// The target with a name.
///
/// # Panics
///
/// If there is none.
pub fn target(name: &str) -> &'static Target {
    let found = TARGETS.iter().find(|target| target.name == name);
    found.unwrap_or_else(|| panic!("no target `{name}`"))
}

/// Passes a new file of the given name and content to `read`.
fn with_file(name: &str, bytes: &[u8], read: impl FnOnce(&Path)) {
    // A file system that fails is no finding.
    let Ok(folder) = tempfile::tempdir() else { return };
    let path = folder.path().join(name);
    if std::fs::write(&path, bytes).is_ok() {
        read(&path);
    }
}

/// A plan, written out and read again.
fn plan(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(plan) = Plan::parse(text, "plan.toml") {
        let again = Plan::parse(&plan.to_toml(), "plan.toml");
        assert!(again.is_ok_and(|again| again == plan), "a plan changes when it is written out");
    }
}

/// A study and the plan of one of its points.
fn study(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(study) = Study::parse(text, "study.toml") {
        let point = study.space.point(|parameter| parameter.domain.at(0.5));
        let _ = study.plan(&point);
    }
}

/// Loads data, with and without gaps.
fn load(source: Source) {
    let mut data = Data {
        missing: Missing::Drop,
        outliers: Outliers::Clip,
        scale: Scale::Standardise,
        split: SplitFractions { validation: 0.3, test: 0.0 },
        ..Data::new(source)
    };
    let _ = surefoot_data::load(&data, 1, Path::new(""));
    data.missing = Missing::Refuse;
    let _ = surefoot_data::load(&data, 1, Path::new(""));
}

fn csv(bytes: &[u8]) {
    with_file("data.csv", bytes, |path| {
        load(Source::csv(path));
        let _ = surefoot_data::draft(path, path, None);
    });
}

fn npz(bytes: &[u8]) {
    with_file("data.npz", bytes, |path| {
        load(Source::Npz {
            path: path.to_owned(),
            features: "x".to_owned(),
            labels: "y".to_owned(),
        });
    });
}

fn parquet(bytes: &[u8]) {
    with_file("data.parquet", bytes, |path| {
        load(Source::Parquet { path: path.to_owned(), label: None });
    });
}

fn keras(bytes: &[u8]) {
    with_file("model.keras", bytes, |path| {
        let _ = surefoot_plan::keras::load(path);
    });
}

/// Reads a log and diagnoses its runs.
fn log(path: &Path) {
    for log in logs::read(path, &Map::new()).unwrap_or_default() {
        let _ = log.diagnose(Thresholds::default());
    }
}

fn tensorboard(bytes: &[u8]) {
    with_file("events.out.tfevents.1", bytes, log);
}

/// A log under each name that decides its format.
fn logs(bytes: &[u8]) {
    for name in ["log.csv", "log.json", "log.jsonl", "log.txt", "trainer_state.json"] {
        with_file(name, bytes, log);
    }
}

fn python(bytes: &[u8]) {
    with_file("train.py", bytes, |path| {
        let _ = surefoot_check::check(&[PathBuf::from(path)], &Default::default());
    });
}
