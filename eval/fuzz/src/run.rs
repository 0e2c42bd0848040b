//! Run directories: one file of a run is replaced.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use surefoot_diagnose::Diagnosis;
use surefoot_plan::Plan;
use surefoot_record::{Environment, Record, Recorder};
use surefoot_train::{
    Callback, Predictor, RepairMode, RunContext, Step, StopReason, TrainError, Trainer,
};
use tempfile::TempDir;

const PLAN: &str = r#"
data = { source = { kind = "circles", samples = 60 } }
model = [
    { layer = "dense", units = 3, activation = "relu" },
    { layer = "dense", units = 1, activation = "sigmoid" },
]
training = { epochs = 6, batch_size = 8, checkpoint_every = 10 }
"#;

/// Interrupts a run between two checkpoints.
struct Interrupt;

impl Callback for Interrupt {
    fn on_step(&mut self, step: &Step<'_>, run: &mut RunContext) -> Result<(), TrainError> {
        if step.progress.step == 25 {
            run.stop(StopReason::Interrupted);
        }
        Ok(())
    }
}

/// A finished run and an interrupted one, and the files of both.
struct Template {
    folder: TempDir,
    /// Relative to the folder.
    files: Vec<PathBuf>,
}

static TEMPLATE: LazyLock<Option<Template>> = LazyLock::new(|| Template::new().ok());

impl Template {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        for (name, interrupts) in [("finished", false), ("interrupted", true)] {
            let plan = Plan::parse(PLAN, "plan.toml")?;
            let dir = folder.path().join(name);
            let trainer = Trainer::new(plan).record_at(&dir).workers(1).repair(RepairMode::Off);
            match interrupts {
                true => trainer.callback(&mut Interrupt).train()?,
                false => trainer.train()?,
            };
        }
        let mut files = Vec::new();
        list(folder.path(), Path::new(""), &mut files)?;
        files.sort();
        Ok(Self { folder, files })
    }
}

/// Lists the files below a folder, relative to it.
fn list(folder: &Path, below: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => list(folder, &path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}

/// Reads a run of which one file has another content. The first byte selects the file.
pub(crate) fn run(bytes: &[u8]) {
    let (Some(template), Some((&first, content))) = (&*TEMPLATE, bytes.split_first()) else {
        return;
    };
    let Some(replaced) = template.files.get(usize::from(first)) else { return };
    // A file system that fails is no finding.
    let Ok(copy) = tempfile::tempdir() else { return };
    let name = replaced.components().next().map(|name| name.as_os_str().to_owned());
    let Some(name) = name else { return };
    for file in template.files.iter().filter(|file| file.starts_with(&name)) {
        let to = copy.path().join(file);
        let _ = to.parent().map(fs::create_dir_all);
        let _ = match file == replaced {
            true => fs::write(&to, content),
            false => fs::copy(template.folder.path().join(file), &to).map(|_| ()),
        };
    }
    read(&copy.path().join(name));
}

fn read(dir: &Path) {
    if let Ok(record) = Record::open(dir) {
        let _ = record.check_plan();
        let _ = record.final_plan();
        let _ = record.events();
        let _ = record.digests();
        let _ = record.checkpoint();
        let _ = record.model();
        let _ = record.summary();
        let _ = record.steps().map(|steps| steps.count());
        let mut diagnosis = Diagnosis::builder().facts(record.header().facts.clone()).build();
        let _ = record.replay(&mut diagnosis);
    }
    let _ = Predictor::open(dir);
    let _ = Recorder::resume(dir, &Environment::default());
}

/// The files of the runs, each as the bytes that select and replace it by itself.
pub fn run_seeds() -> Vec<Vec<u8>> {
    let Some(template) = &*TEMPLATE else { return Vec::new() };
    let files = template.files.iter().zip(0_u8..);
    let seed = |(file, number): (&PathBuf, u8)| {
        let content = fs::read(template.folder.path().join(file)).unwrap_or_default();
        [vec![number], content].concat()
    };
    files.map(seed).collect()
}
