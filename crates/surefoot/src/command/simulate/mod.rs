//! `surefoot simulate`: what other pruners would have done to recorded trials, and what that gains.

mod recorded;
mod searches;

use self::recorded::Recorded;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Console;
use crate::output::simulate::{Outcome, protection, table};
use clap::Args;
use serde_json::Value;
use std::num::NonZeroUsize;
use surefoot_diagnose::indicators;
use surefoot_tune::pruner::{DIAGNOSIS, NONE, PrunerConfig, PruningConfig};
use surefoot_tune::simulate::{Axis, Floor, Order, Tally, Task, measure, split, sweep};

const EXAMPLES: &str = "\
Examples:
  surefoot simulate runs/circles
      For every pruner and indicator alone, and for the default ones together: how many trials it
      would have stopped, what that saves, and how many of the truly best it keeps. Only trials
      that ran to their end are known in full: record them with `surefoot tune --pruner none`.

  surefoot simulate runs/circles --pruner erg --pruner median --set median.n_startup_trials=10
      Only these two together.

  surefoot simulate runs/circles --set plc=0.01
      With another threshold.

  surefoot simulate runs/circles --sweep prospect.quantile=0.05,0.1,0.2
      Chooses a value on every other trial, and reports on the rest.

  surefoot simulate taskset/ --trials 100 --seeds 20
      Curve files of TaskSet: draws 20 studies of 100 trials from each.

  surefoot simulate first/circles second/circles --sampler tpe --share 0.2 --seeds 100
      Whole searches: a point that the sampler asks for is answered by the nearest recorded trial.
      For each rule: how much sooner they find what the same searches without it find. A search
      may take a fifth of what all recorded trials took: with two studies of 30 trials each, that
      is about 15 trials without pruners.

Exit codes: 0 done, 2 the input is wrong, 3 something broke.";

/// Replay recorded trials through pruners and thresholds, or search among them, without training
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Stores, directories of studies, or curve files of TaskSet (JSON)
    #[arg(required = true, value_name = "STORE")]
    stores: Vec<String>,

    /// Which study, if a store has several
    #[arg(long, value_name = "NAME")]
    study: Option<String>,

    /// Only these pruners or indicators, together; may be given several times
    #[arg(long, value_name = "NAME")]
    pruner: Vec<String>,

    /// Change a number: protect=N, the limit of an indicator (plc=0.01), or that of a pruner (median.n_startup_trials=10)
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = super::train::setting)]
    settings: Vec<(String, String)>,

    /// Try these values on one part of the record and report on the rest with the one that saves most of those
    /// that keep 92% of the top ten on every task and 99% of the best; may be given several times
    #[arg(long, value_name = "KEY=A,B,C")]
    sweep: Vec<Axis>,

    /// Draw studies of so many trials, instead of replaying them in their order
    #[arg(long, value_name = "N", group = "drawing")]
    trials: Option<NonZeroUsize>,

    /// Search among the recorded trials with this sampler: random, sobol, tpe, gp or smac
    #[arg(long, value_name = "NAME", group = "drawing", conflicts_with = "sweep")]
    sampler: Option<String>,

    /// How much a search may take, as a share of what all trials took that it searches among: the
    /// more are recorded, the less it needs
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = 0.05,
        requires = "sampler",
        allow_negative_numbers = true
    )]
    share: f64,

    /// How many studies to draw, or searches to run, for each task
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000),
        requires = "drawing"
    )]
    seeds: u64,

    /// The seed of the first of them
    #[arg(long, value_name = "N", default_value_t = 0, requires = "drawing")]
    first_seed: u64,

    /// Show each task by itself as well, which the JSON always has
    #[arg(long)]
    by_task: bool,

    /// Print one JSON object a line on stdout
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
    if let Some(sampler) = sampler {
        let rules = rules(&base.for_sampler(sampler.learns()), arguments)?;
        return searches::run(records, &sampler, &rules, arguments, &console);
    }
    // Trials that are drawn are those of a random search, whoever asked for them.
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
        let outcome = Outcome {
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

/// The rules that are asked for: the default ones, or those that are named, with their numbers changed.
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
            PruningConfig::listed(&entries, default.protect).map_err(Failure::input)?
        }
    };
    for (key, value) in &arguments.settings {
        // A pruner that is not among these may be one of those that are shown alone.
        if arguments.pruner.is_empty() && arguments.sweep.is_empty() && is_of_another(key) {
            continue;
        }
        settings = changed(&settings, key, value)?;
    }
    Ok(settings)
}

/// Whether a key belongs to a pruner that a study does not have by default.
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
                failure.help(format!("name it: --pruner {name}"))
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

/// The rules that have a row each, by their names.
fn rules(
    base: &PruningConfig,
    arguments: &Arguments,
) -> Result<Vec<(String, PruningConfig)>, Failure> {
    match arguments.pruner.is_empty() {
        true => each(base, arguments),
        false => Ok(vec![(arguments.pruner.join(" + "), base.clone())]),
    }
}

/// Every rule alone as others have it, then the indicators together, then those of a study.
fn each(
    base: &PruningConfig,
    arguments: &Arguments,
) -> Result<Vec<(String, PruningConfig)>, Failure> {
    let mut rules = Vec::new();
    // As others have it, unless something else is said.
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
    rules.push(("default".to_owned(), base.clone()));
    Ok(rules)
}

/// Chooses thresholds on one part of the record, and reports on the rest.
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
            Some(name) => failure.help(format!("name it: --pruner {name}")),
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
        rows.push(Outcome {
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
    let on_the_rest = Outcome {
        event: "chosen",
        rule: chosen.clone(),
        total,
        tasks: names.zip(swept.rest.clone()).collect(),
    };
    rows.iter().for_each(|row| console.event(row));
    console.event(&on_the_rest);
    console.say(&format!("On the part for calibration:\n{}", table(&rows, false)));
    if !swept.holds {
        console.warn(&format!(
            "none of these keeps {:.0}% of the top ten on every task and {:.0}% of the best; {chosen} keeps most",
            100.0 * floor.top,
            100.0 * floor.best
        ));
    }
    let rest = table(&[on_the_rest], arguments.by_task);
    console.say(&format!("On the rest:\n{rest}"));
    Ok(Exit::Done)
}
