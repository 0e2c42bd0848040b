//! All search methods in one table.

use super::Arguments;
use super::recorded::Recorded;
use super::searches::{grounds, in_parallel, sampler};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Console;
use crate::output::regret::{MethodResult, methods_text, regret_table};
use surefoot_tune::pruner::{PrunerConfig, PruningConfig};
use surefoot_tune::sampler::{Sampler, SamplerConfig};
use surefoot_tune::scheduler::SchedulerConfig;
use surefoot_tune::simulate::{BUDGETS, Ground, RegretScale, Regrets, SearchedEpoch};

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
    let mut grounds = grounds(records)?;
    grounds.iter_mut().for_each(|(_, ground)| ground.count_in_epochs());
    let mut scales = Vec::new();
    for (task, ground) in &grounds {
        if ground.len() < LEAST_TRIALS {
            return Err(Failure::input(format!(
                "{task}: --methods needs at least {LEAST_TRIALS} complete trials to search among, and there are {}; record \
                 them with `surefoot tune STUDY --pruner none`",
                ground.len()
            )));
        }
        let scale = RegretScale::of(ground).ok_or_else(|| {
            Failure::input(format!("{task}: half of its trials have no finite final value"))
        })?;
        scales.push(scale);
    }
    let seeds = arguments.seeds();
    let sizes: Vec<(&str, usize)> =
        grounds.iter().map(|(task, ground)| (task.as_str(), ground.len())).collect();
    console.say(&methods_text(&sizes, seeds.len(), arguments.workers.get()));
    let search = |ground: &Ground, method: &Method| -> Vec<Vec<SearchedEpoch>> {
        // A search that ends in the middle of a trial lacks its epochs, so the budget is a trial larger.
        let budget = scales.iter().map(RegretScale::training).fold(0.0, f64::max) + BUDGETS[3];
        let budget = budget.max(scales.iter().map(RegretScale::limit).fold(0.0, f64::max));
        let draws = ground.random_draws();
        match method {
            Method::Trials(sampler, rules) => {
                let found = ground.alerts(rules);
                let sampler: &dyn Sampler = match sampler {
                    Some(sampler) => &**sampler,
                    None => &draws,
                };
                in_parallel(&seeds, |seed| {
                    ground.search_epochs(sampler, seed, rules, &found, budget)
                })
            }
            Method::Scheduled(scheduler) => in_parallel(&seeds, |seed| {
                ground.schedule(&**scheduler, &draws, seed, arguments.workers.get(), budget)
            }),
        }
    };
    let plain = Method::Trials(None, PruningConfig::none());
    let random: Vec<Vec<Vec<SearchedEpoch>>> =
        grounds.iter().map(|(_, ground)| search(ground, &plain)).collect();
    let mut results = Vec::new();
    for (name, method) in &methods()? {
        let mut tasks = Vec::new();
        for (((task, ground), scale), random) in grounds.iter().zip(&scales).zip(&random) {
            let searches = search(ground, method);
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
