//! `surefoot simulate`: replays recorded trials under other pruners, samplers and schedulers.

mod methods;
mod recorded;
mod searches;

use self::recorded::Recorded;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Console;
use crate::output::simulate::{RuleResult, protection, table};
use clap::Args;
use serde_json::Value;
use std::num::NonZeroUsize;
use surefoot_diagnose::indicators;
use surefoot_tune::pruner::{DIAGNOSIS, NONE, PrunerConfig, PruningConfig};
use surefoot_tune::simulate::{Axis, Floor, Order, Tally, Task, measure, split, sweep};

const EXAMPLES: &str = "\
Examples:
  surefoot simulate runs/circles
      Compare all pruners and indicators, and the default combination: trials pruned, time saved,
      and best trials kept. Record complete trials with `surefoot tune --pruner none`.

  surefoot simulate runs/circles --pruner erg --pruner median --set median.n_startup_trials=10
      Two rules together.

  surefoot simulate runs/circles --set plc=0.01
      Another threshold.

  surefoot simulate runs/circles --sweep prospect.quantile=0.05,0.1,0.2
      Choose a value on every other trial and report on the rest.

  surefoot simulate taskset/ --trials 100 --seeds 20
      Draw 20 studies of 100 trials from each TaskSet curve file.

  surefoot simulate first/circles second/circles --sampler tpe --share 0.2 --seeds 100
      Simulate whole searches: each suggested point is answered with the nearest recorded trial. The
      budget of a search is a fifth of the time of all recorded trials.

  surefoot simulate taskset/ --methods
      Compare samplers, pruners and schedulers by the regret of 20 searches a task.

Exit codes: 0 success, 2 invalid input, 3 internal error.";

/// Replay recorded trials under other pruners and schedulers, without training
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Stores, study directories, or TaskSet curve files (JSON)
    #[arg(required = true, value_name = "STORE")]
    stores: Vec<String>,

    /// Study name, if a store has several
    #[arg(long, value_name = "NAME")]
    study: Option<String>,

    /// Use only this pruner or indicator; repeatable
    #[arg(long, value_name = "NAME")]
    pruner: Vec<String>,

    /// Set protect=N, a limit of an indicator (plc=0.01), or an option of a pruner (median.n_startup_trials=10)
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = super::train::setting)]
    settings: Vec<(String, String)>,

    /// Choose among these values on one part of the record and report on the rest: the one that saves most
    /// and keeps 92% of the top ten on every task and 99% of the best; repeatable
    #[arg(long, value_name = "KEY=A,B,C")]
    sweep: Vec<Axis>,

    /// Draw studies of N trials instead of replaying the recorded order
    #[arg(long, value_name = "N", group = "drawing")]
    trials: Option<NonZeroUsize>,

    /// Simulate searches with this sampler: random, sobol, tpe, gp or smac
    #[arg(long, value_name = "NAME", group = "drawing", conflicts_with = "sweep")]
    sampler: Option<String>,

    /// Compare all search methods: random, TPE, pruners, and schedulers that pause trials
    #[arg(
        long,
        group = "drawing",
        conflicts_with_all = ["sweep", "sampler", "trials", "pruner", "settings"]
    )]
    methods: bool,

    /// Parallel workers of a scheduled search
    #[arg(long, value_name = "N", default_value = "1", requires = "methods")]
    workers: NonZeroUsize,

    /// Budget of a search, as a fraction of the time of all recorded trials
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = 0.05,
        requires = "sampler",
        allow_negative_numbers = true
    )]
    share: f64,

    /// Number of studies to draw, or searches to run, for each task
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000),
        requires = "drawing"
    )]
    seeds: u64,

    /// First seed
    #[arg(long, value_name = "N", default_value_t = 0, requires = "drawing")]
    first_seed: u64,

    /// Show each task; the JSON output always has them
    #[arg(long)]
    by_task: bool,

    /// Print one JSON object per line on stdout
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn seeds(&self) -> Vec<u64> {
        let last = self.first_seed.saturating_add(self.seeds - 1);
        (self.first_seed..=last).collect()
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let console = Console::new(arguments.json, false);
    let base = settings(arguments)?;
    let sampler = arguments.sampler.as_deref().map(searches::sampler);
    let sampler = sampler.transpose()?;
    let records = Recorded::read(arguments, &console)?;
    let is_overview = arguments.pruner.is_empty();
    if arguments.methods {
        return methods::run(records, arguments, &console);
    }
    if let Some(sampler) = sampler {
        let rules = rules(&base.for_sampler(sampler.learns()), arguments)?;
        return searches::run(records, &sampler, &rules, arguments, &console);
    }
    // Drawn trials are a random search, whichever sampler suggested them.
    let is_drawn = arguments.trials.is_some();
    let learns = |recorded: &Recorded| recorded.learns && !is_drawn;
    let order = match arguments.trials {
        None => Order::Recorded,
        Some(trials) => Order::Drawn { trials: trials.get(), seeds: arguments.seeds() },
    };
    if !arguments.sweep.is_empty() {
        let base = base.for_sampler(records.iter().any(learns));
        let tasks: Vec<Task> = records.into_iter().map(|recorded| recorded.task).collect();
        return calibrate(&tasks, &order, &base, arguments, &console);
    }
    let mut rows = Vec::new();
    for (name, settings) in &rules(&base, arguments)? {
        let tally = |recorded: &Recorded| {
            let settings = settings.clone().for_sampler(learns(recorded));
            measure(&recorded.task, &order, &settings)
        };
        let tallies: Vec<Tally> = records.iter().map(tally).collect();
        let names = records.iter().map(|recorded| recorded.task.name.clone());
        let mut total = Tally::default();
        tallies.iter().for_each(|tally| total.add(tally));
        let outcome = RuleResult {
            event: "rule",
            rule: name.clone(),
            total,
            tasks: names.zip(tallies).collect(),
        };
        console.event(&outcome);
        rows.push(outcome);
    }
    console.say(&table(&rows, arguments.by_task));
    if is_overview {
        console.say(&protection(&base));
    }
    Ok(Exit::Done)
}

/// The default rules or the named ones, with `--set` applied.
fn settings(arguments: &Arguments) -> Result<PruningConfig, Failure> {
    let default = PruningConfig::default();
    let mut settings = match arguments.pruner.is_empty() {
        true => default,
        false if arguments.pruner == [NONE] => {
            let message = format!("`{NONE}` never prunes: nothing to simulate");
            return Err(Failure::input(message));
        }
        false => {
            let entries: Vec<Value> = arguments.pruner.iter().map(|n| n.as_str().into()).collect();
            default.clone().listed(&entries).map_err(Failure::input)?
        }
    };
    for (key, value) in &arguments.settings {
        // Options of other pruners apply to their rows in the overview.
        if arguments.pruner.is_empty() && arguments.sweep.is_empty() && is_of_another(key) {
            continue;
        }
        settings = changed(&settings, key, value)?;
    }
    Ok(settings)
}

/// True for an option of a pruner that is not in the default rules.
fn is_of_another(key: &str) -> bool {
    let name = key.split('.').next().unwrap_or(key);
    is_pruner(name) && is_missing(&PruningConfig::default(), name)
}

/// Returns the rules with one number changed.
fn changed(settings: &PruningConfig, key: &str, value: &str) -> Result<PruningConfig, Failure> {
    let number: f64 = value
        .trim()
        .parse()
        .map_err(|_| Failure::input(format!("`{key}` must be a number, not `{value}`")))?;
    settings.with(key, number).map_err(|error| {
        let failure = Failure::input(error.to_string());
        match key.split_once('.') {
            Some((name, _)) if is_pruner(name) && is_missing(settings, name) => {
                failure.help(format!("add --pruner {name}"))
            }
            _ => failure,
        }
    })
}

fn is_pruner(name: &str) -> bool {
    PrunerConfig::names().contains(&name)
}

fn is_missing(settings: &PruningConfig, name: &str) -> bool {
    settings.pruners.iter().all(|s| s.name() != name)
}

/// One named set of rules per row.
fn rules(
    base: &PruningConfig,
    arguments: &Arguments,
) -> Result<Vec<(String, PruningConfig)>, Failure> {
    match arguments.pruner.is_empty() {
        true => each(base, arguments),
        false => Ok(vec![(arguments.pruner.join(" + "), base.clone())]),
    }
}

/// Every rule alone, all indicators, also as published, and the default.
fn each(
    base: &PruningConfig,
    arguments: &Arguments,
) -> Result<Vec<(String, PruningConfig)>, Failure> {
    let mut rules = Vec::new();
    // Published rules have no protection.
    let is_set = arguments.settings.iter().any(|(key, _)| key == "protect");
    let protect = if is_set { base.protect } else { 0 };
    for default in PrunerConfig::all() {
        let name = default.name();
        let own = base.pruners.iter().find(|s| s.name() == name);
        let pruner = own.cloned().unwrap_or(default);
        let mut alone = PruningConfig { protect, ..PruningConfig::only(pruner) };
        for (key, value) in &arguments.settings {
            if own.is_none() && key.split('.').next() == Some(name) {
                alone = changed(&alone, key, value)?;
            }
        }
        rules.push((name.to_owned(), alone));
    }
    let diagnosis = PruningConfig { pruners: Vec::new(), protect, ..base.clone() };
    for problem in indicators::PROBLEMS {
        let alone = PruningConfig { indicators: vec![problem.clone()], ..diagnosis.clone() };
        rules.push((problem.id().to_owned(), alone));
    }
    rules.push((DIAGNOSIS.to_owned(), diagnosis));
    rules.push(("bttackler".to_owned(), PruningConfig::bttackler()));
    rules.push(("default".to_owned(), base.clone()));
    Ok(rules)
}

/// Chooses values on one part of the record and reports on the rest.
fn calibrate(
    tasks: &[Task],
    order: &Order,
    base: &PruningConfig,
    arguments: &Arguments,
    console: &Console,
) -> Result<Exit, Failure> {
    let keys = || arguments.sweep.iter().map(|axis| axis.key.as_str());
    for (i, key) in keys().enumerate() {
        let is_set = arguments.settings.iter().any(|(set, _)| set == key);
        if is_set || keys().take(i).any(|other| other == key) {
            return Err(Failure::input(format!("`{key}` is given twice")));
        }
    }
    let floor = Floor::default();
    let (development, rest) = split(tasks);
    let swept = sweep(&development, &rest, order, base, &arguments.sweep, &floor);
    let swept = swept.map_err(|error| {
        let failure = Failure::input(error.to_string());
        let missing = keys().filter_map(|key| Some(key.split_once('.')?.0));
        match missing.into_iter().find(|name| is_missing(base, name)) {
            Some(name) => failure.help(format!("add --pruner {name}")),
            None => failure,
        }
    })?;
    let named = |values: &[f64]| {
        let pairs = arguments.sweep.iter().zip(values);
        let pairs = pairs.map(|(axis, value)| format!("{}={value}", axis.key));
        pairs.collect::<Vec<_>>().join(" ")
    };
    let mut rows = Vec::new();
    for tried in &swept.tried {
        rows.push(RuleResult {
            event: "tried",
            rule: named(&tried.values),
            total: tried.total(),
            tasks: Vec::new(),
        });
    }
    let chosen = named(&swept.tried[swept.chosen].values);
    let mut total = Tally::default();
    swept.rest.iter().for_each(|tally| total.add(tally));
    let names = rest.iter().map(|task| task.name.clone());
    let held_out = RuleResult {
        event: "chosen",
        rule: chosen.clone(),
        total,
        tasks: names.zip(swept.rest.clone()).collect(),
    };
    rows.iter().for_each(|row| console.event(row));
    console.event(&held_out);
    console.say(&format!("Calibration part:\n{}", table(&rows, false)));
    if !swept.holds {
        console.warn(&format!(
            "no value keeps {:.0}% of the top ten on every task and {:.0}% of the best; {chosen} keeps most",
            100.0 * floor.top,
            100.0 * floor.best
        ));
    }
    let rest = table(&[held_out], arguments.by_task);
    console.say(&format!("Held-out part:\n{rest}"));
    Ok(Exit::Done)
}
