//! All search methods in one table.

use super::Arguments;
use super::recorded::Recorded;
use super::searches::{in_parallel, sampler, tables};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Console;
use crate::output::regret::{MethodResult, methods_text, regret_table};
use surefoot_tune::pruner::{PrunerConfig, PruningConfig};
use surefoot_tune::sampler::{Sampler, SamplerConfig};
use surefoot_tune::scheduler::SchedulerConfig;
use surefoot_tune::simulate::{BUDGETS, RegretScale, Regrets, SearchedEpoch, TrialTable};

/// A way to search.
enum Method {
    /// Trials run to their end or are pruned. Points are drawn at random without a sampler.
    Trials(Option<SamplerConfig>, PruningConfig),
    /// Trials are paused and continued.
    Scheduled(SchedulerConfig),
}

/// Least number of recorded trials. A search among fewer says nothing about the method.
const LEAST_TRIALS: usize = 50;

/// The methods in the order of the table.
fn methods() -> Result<Vec<(String, Method)>, Failure> {
    let input = |error: surefoot_tune::ConfigError| Failure::input(error.message);
    let median = PruningConfig::only(PrunerConfig::named("median").map_err(input)?);
    let tpe = sampler("tpe")?;
    let default = PruningConfig::default();
    let mut methods = vec![
        ("random".to_owned(), Method::Trials(None, PruningConfig::none())),
        ("random, median pruner".to_owned(), Method::Trials(None, median)),
        (
            "random, default pruners".to_owned(),
            Method::Trials(None, default.clone().for_sampler(false)),
        ),
        ("tpe".to_owned(), Method::Trials(Some(tpe.clone()), PruningConfig::none())),
        ("tpe, default pruners".to_owned(), Method::Trials(Some(tpe), default.for_sampler(true))),
    ];
    let schedulers = SchedulerConfig::all();
    methods.extend(schedulers.map(|s| (s.name().to_owned(), Method::Scheduled(s))));
    // The scheduler of studies comes last, below those that it is compared with.
    methods.sort_by_key(|(name, _)| name == "freeze_thaw");
    Ok(methods)
}

/// Compares all methods by their regret.
pub(super) fn run(
    records: Vec<Recorded>,
    arguments: &Arguments,
    console: &Console,
) -> Result<Exit, Failure> {
    let mut tables = tables(records)?;
    tables.iter_mut().for_each(|(_, table)| table.count_in_epochs());
    let mut scales = Vec::new();
    for (task, table) in &tables {
        if table.len() < LEAST_TRIALS {
            return Err(Failure::input(format!(
                "{task}: --methods needs at least {LEAST_TRIALS} complete trials to search among, and there are {}; record \
                 them with `surefoot tune STUDY --pruner none`",
                table.len()
            )));
        }
        let scale = RegretScale::of(table).ok_or_else(|| {
            Failure::input(format!("{task}: half of its trials have no finite final value"))
        })?;
        scales.push(scale);
    }
    let seeds = arguments.seeds();
    let sizes: Vec<(&str, usize)> =
        tables.iter().map(|(task, table)| (task.as_str(), table.len())).collect();
    console.say(&methods_text(&sizes, seeds.len(), arguments.workers.get()));
    let search = |table: &TrialTable, method: &Method| -> Vec<Vec<SearchedEpoch>> {
        // A search that ends in the middle of a trial lacks its epochs, so the budget is a trial larger.
        let budget = scales.iter().map(RegretScale::training).fold(0.0, f64::max) + BUDGETS[3];
        let budget = budget.max(scales.iter().map(RegretScale::limit).fold(0.0, f64::max));
        let draws = table.random_draws();
        match method {
            Method::Trials(sampler, rules) => {
                let found = table.alerts(rules);
                let sampler: &dyn Sampler = match sampler {
                    Some(sampler) => &**sampler,
                    None => &draws,
                };
                in_parallel(&seeds, |seed| {
                    table.search_epochs(sampler, seed, rules, &found, budget)
                })
            }
            Method::Scheduled(scheduler) => in_parallel(&seeds, |seed| {
                table.schedule(&**scheduler, &draws, seed, arguments.workers.get(), budget)
            }),
        }
    };
    let plain = Method::Trials(None, PruningConfig::none());
    let random: Vec<Vec<Vec<SearchedEpoch>>> =
        tables.iter().map(|(_, table)| search(table, &plain)).collect();
    let mut results = Vec::new();
    for (name, method) in &methods()? {
        let mut tasks = Vec::new();
        for (((task, table), scale), random) in tables.iter().zip(&scales).zip(&random) {
            let searches = search(table, method);
            tasks.push((task.clone(), Regrets::of(scale, &searches, random)));
        }
        let each: Vec<Regrets> = tasks.iter().map(|(_, regrets)| regrets.clone()).collect();
        let result = MethodResult {
            event: "method",
            method: name.clone(),
            workers: arguments.workers.get(),
            total: Regrets::mean(&each),
            tasks,
        };
        console.event(&result);
        results.push(result);
    }
    console.say(&regret_table(&results, arguments.by_task));
    Ok(Exit::Done)
}
