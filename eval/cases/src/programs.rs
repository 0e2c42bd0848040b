//! Programs of others, as plans with a Keras model: what is found, and what a repair gains.
//!
//! Every folder has a `plan.toml` and a `model.keras` or `model.h5`. Its name ends in `f` for a posted fix
//! and in `h` for a healthy program; all others are faulty. Some fixes still train badly, so a fix counts
//! as healthy only if it learns by itself.

use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use surefoot_plan::{Document, keras};
use surefoot_record::Status;
use surefoot_train::{PreparedPlan, RepairMode, TrainSummary, Trainer};

/// Train a directory of programs alone and with repair
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The directory with a folder for each program
    directory: PathBuf,

    /// Seed of every plan
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Print JSON: one object for each program, and the totals last
    #[arg(long)]
    json: bool,
}

/// Skill at the end of a program that learns by itself.
const LEARNS: f64 = 0.3;

/// Result of one program.
#[derive(Serialize)]
struct Row {
    program: String,
    faulty: bool,
    /// True if it learns without a repair.
    learns: bool,
    /// Metric at the end without a repair.
    alone: Option<f64>,
    /// Metric of the best epoch without a repair, which is delivered then.
    alone_best: Option<f64>,
    /// Metric of the delivered model.
    delivered: Option<f64>,
    status: Status,
    problems: Vec<String>,
    remedies: Vec<String>,
    /// Steps with repair, relative to without.
    steps: f64,
    /// Seconds with repair, relative to without.
    seconds: f64,
}

#[derive(Default, Serialize)]
struct Totals {
    /// Faulty programs that do not learn by themselves.
    faulty: usize,
    found: usize,
    better: usize,
    /// Programs that learn by themselves.
    healthy: usize,
    alarmed: usize,
    /// Those of the alarmed that the repair really improved.
    alarmed_improved: usize,
    /// Delivered models below that of the program alone.
    worse: usize,
    /// Programs called repaired without a gain.
    unearned: usize,
}

/// Returns true if no delivered model is worse than that of the program alone.
pub(crate) fn run(arguments: &Arguments) -> Result<bool, String> {
    let mut totals = Totals::default();
    for folder in folders(&arguments.directory)? {
        let row = evaluate(&folder, arguments.seed)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        totals.add(&row);
        if arguments.json {
            println!("{}", serde_json::to_string(&row).map_err(|error| error.to_string())?);
        } else {
            let number = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{x:.3}"));
            println!(
                "{:<12} {:>7} -> {:>7}  {:<9} {} [{}]",
                row.program,
                number(row.alone),
                number(row.delivered),
                row.status.name(),
                row.problems.join(", "),
                row.remedies.join(", ")
            );
        }
    }
    if arguments.json {
        println!("{}", serde_json::to_string(&totals).map_err(|error| error.to_string())?);
        return Ok(totals.worse == 0);
    }
    let Totals { faulty, found, better, healthy, alarmed, alarmed_improved, worse, unearned } =
        totals;
    println!("\nfaulty: found {found} of {faulty}, better {better}");
    println!("learn alone: alarmed {alarmed} of {healthy}, {alarmed_improved} of them improved");
    println!("worse than alone: {worse}; called repaired without a gain: {unearned}");
    Ok(worse == 0)
}

impl Totals {
    fn add(&mut self, row: &Row) {
        let gained = row.delivered > row.alone;
        if row.learns {
            self.healthy += 1;
            self.alarmed += usize::from(row.status != Status::Normal);
            self.alarmed_improved += usize::from(row.status == Status::Repaired && gained);
        } else if row.faulty {
            self.faulty += 1;
            self.found += usize::from(row.status != Status::Normal);
            self.better += usize::from(gained);
        }
        self.worse += usize::from(row.delivered < row.alone_best);
        self.unearned += usize::from(row.status == Status::Repaired && !gained);
    }
}

/// The folders with a plan, by name.
fn folders(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", directory.display());
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.join("plan.toml").is_file() {
            folders.push(path);
        }
    }
    folders.sort();
    if folders.is_empty() {
        return Err(format!("{} has no folder with a plan.toml", directory.display()));
    }
    Ok(folders)
}

fn evaluate(folder: &Path, seed: u64) -> Result<Row, String> {
    let program = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let plan = prepared(folder, seed)?;
    let train = |mode| {
        let trainer = Trainer::prepared(Arc::clone(&plan)).repair(mode);
        trainer.train().map_err(|error| error.to_string())
    };
    let (alone, repaired) = (train(RepairMode::Off)?, train(RepairMode::Auto)?);
    let end = |trained: &TrainSummary| trained.summary.metric.before;
    let chance = alone.outline.facts.chance.unwrap_or(0.0);
    let skill = end(&alone).map_or(0.0, |metric| (metric - chance) / (1.0 - chance));
    let ratio = |with: f64, without: f64| with / without.max(f64::MIN_POSITIVE);
    let summary = &repaired.summary;
    Ok(Row {
        faulty: !program.ends_with(['f', 'h']),
        learns: skill >= LEARNS,
        alone: end(&alone),
        alone_best: alone.summary.metric.after,
        delivered: summary.metric.after,
        status: summary.status,
        problems: summary.problems.clone(),
        remedies: summary.remedies.clone(),
        steps: ratio(summary.steps as f64, alone.summary.steps as f64),
        seconds: ratio(summary.seconds, alone.summary.seconds),
        program,
    })
}

/// The plan of a program with its Keras model.
fn prepared(folder: &Path, seed: u64) -> Result<Arc<PreparedPlan>, String> {
    let models = ["model.keras", "model.h5"].map(|name| folder.join(name));
    let file = models.iter().find(|file| file.is_file()).ok_or("there is no model file")?;
    let model = keras::load(file).map_err(|error| error.to_string())?;
    let mut document =
        Document::load(folder.join("plan.toml")).map_err(|error| error.to_string())?;
    document.set("seed", &seed.to_string()).map_err(|error| error.to_string())?;
    let plan = PreparedPlan::from_keras(document, file, model, folder);
    plan.map(Arc::new).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(alone: f64, alone_best: f64, delivered: f64) -> Row {
        Row {
            program: "x".to_owned(),
            faulty: true,
            learns: true,
            alone: Some(alone),
            alone_best: Some(alone_best),
            delivered: Some(delivered),
            status: Status::Normal,
            problems: Vec::new(),
            remedies: Vec::new(),
            steps: 1.0,
            seconds: 1.0,
        }
    }

    #[test]
    fn a_model_below_the_best_epoch_of_the_program_alone_is_worse() {
        let worse = |row: Row| {
            let mut totals = Totals::default();
            totals.add(&row);
            totals.worse
        };
        assert_eq!(worse(row(0.8, 0.9, 0.85)), 1);
        assert_eq!(worse(row(0.8, 0.9, 0.9)), 0);
    }
}
