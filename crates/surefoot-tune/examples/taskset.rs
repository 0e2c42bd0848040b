//! Compares pruners on recorded learning curves.
//!
//! ```text
//! cargo run --release -p surefoot-tune --example taskset -- FOLDER [SEEDS [KEY=VALUE]...]
//! ```
//!
//! Draws a study of 100 trials from every curve file of a folder for each seed (default `0..20`), and prints
//! the steps saved and the top-ten and best trials kept by each pruner. Keys change the default rules:
//! `plc=0.0005`, `prospect.quantile=0.15`.

use std::error::Error;
use std::path::PathBuf;
use surefoot_diagnose::Problem;
use surefoot_tune::pruner::{PrunerConfig, PruningConfig};
use surefoot_tune::simulate::{Order, Tally, Task, measure, read_taskset};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("missing folder with curve files")?;
    let seeds = arguments.next().unwrap_or("0..20".to_owned());
    let (first, end) = seeds.split_once("..").ok_or("write seeds as FIRST..END")?;
    let order = Order::Drawn { trials: 100, seeds: (first.parse()?..end.parse()?).collect() };
    let mut base = PruningConfig::default();
    for change in arguments {
        let (key, value) = change.split_once('=').ok_or("write KEY=VALUE")?;
        base = base.with(key, value.parse()?)?;
    }
    let tasks = tasks(&folder)?;
    println!("{:14} {:>22}  of each task: saved/top ten/best", "", "saved  top ten  best");
    for (name, settings) in rules(&base)? {
        let tallies: Vec<Tally> =
            tasks.iter().map(|task| measure(task, &order, &settings)).collect();
        let mut total = Tally::default();
        tallies.iter().for_each(|tally| total.add(tally));
        let each: Vec<String> = tallies
            .iter()
            .map(|t| {
                format!(
                    "{}/{}/{}",
                    percent(t.saved()),
                    percent(t.top_share()),
                    percent(t.best_share())
                )
            })
            .collect();
        println!(
            "{name:14} {:>5.1}%  {:>5.1}% {:>5.1}%  {}  {:?}",
            100.0 * total.saved(),
            100.0 * total.top_share(),
            100.0 * total.best_share(),
            each.join("  "),
            total.by
        );
    }
    Ok(())
}

fn percent(share: f64) -> String {
    format!("{:.0}", 100.0 * share)
}

fn tasks(folder: &str) -> Result<Vec<Task>, Box<dyn Error>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_, std::io::Error>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    Ok(files.iter().map(|file| read_taskset(file)).collect::<Result<_, _>>()?)
}

/// No rule, every published pruner, the indicators alone and as published, and the default.
fn rules(base: &PruningConfig) -> Result<Vec<(String, PruningConfig)>, Box<dyn Error>> {
    let mut rules = vec![("none".to_owned(), PruningConfig::none())];
    for pruner in PrunerConfig::all() {
        rules.push((pruner.name().to_owned(), PruningConfig::only(pruner)));
    }
    let indicators = PruningConfig { pruners: Vec::new(), protect: 0, ..base.clone() };
    for problem in [Problem::AGV, Problem::PLC, Problem::ULC, Problem::NMG] {
        let alone = PruningConfig { indicators: vec![problem.clone()], ..indicators.clone() };
        rules.push((problem.id().to_owned(), alone));
    }
    rules.push(("indicators".to_owned(), indicators));
    rules.push(("bttackler".to_owned(), PruningConfig::bttackler()));
    rules.push(("default".to_owned(), base.clone()));
    Ok(rules)
}
