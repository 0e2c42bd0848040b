//! Whole searches among recorded trials.

use super::Arguments;
use super::recorded::{Recorded, SearchProblem};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Console;
use crate::output::simulate::{Gained, Gains, SearchedTask, protection, tables_text};
use std::num::NonZeroUsize;
use std::thread;
use surefoot_tune::pruner::PruningConfig;
use surefoot_tune::sampler::SamplerConfig;
use surefoot_tune::simulate::{Gain, RecordedTrial, Searched, TrialTable};

/// Searches with fewer trials than this are too short to compare.
const FEW: f64 = 20.0;

/// Looks up a sampler.
pub(super) fn sampler(name: &str) -> Result<SamplerConfig, Failure> {
    SamplerConfig::named(name).map_err(|error| Failure::input(error.message))
}

/// Compares searches under each rule with plain searches.
pub(super) fn run(
    records: Vec<Recorded>,
    sampler: &SamplerConfig,
    rules: &[(String, PruningConfig)],
    arguments: &Arguments,
    console: &Console,
) -> Result<Exit, Failure> {
    let share = arguments.share;
    if !(share > 0.0 && share <= 1.0) {
        let message = format!("--share must be above 0 and at most 1, not {share}");
        return Err(Failure::input(message));
    }
    let tables = tables(records)?;
    let seeds = arguments.seeds();
    let searches = |table: &TrialTable, rules: &PruningConfig| {
        searches(table, sampler, rules, &seeds, share * table.spent())
    };
    let mut plain: Vec<Vec<Vec<Searched>>> = Vec::new();
    let mut sizes = Vec::new();
    for (task, table) in &tables {
        let searched = searches(table, &PruningConfig::none());
        let gain = Gain::of(&searched, &searched).ok_or_else(|| {
            let message = format!("{task}: a search with --share {share} completes no trial");
            Failure::input(message).help("increase --share")
        })?;
        if gain.plain_trials < FEW {
            console.warn(&format!(
                "{task}: a search without pruners has only {:.1} trials; increase --share or record \
                 more trials",
                gain.plain_trials
            ));
        }
        sizes.push((task.as_str(), table.len(), gain.plain_trials));
        plain.push(searched);
    }
    console.say(&tables_text(&sizes, seeds.len(), sampler.name()));
    let names = rules.iter().map(|(name, _)| name.as_str());
    let tasks = tables.iter().map(|(task, _)| task.as_str());
    let output = Gains::new(names, tasks, arguments.by_task);
    console.say(&output.head());
    for (name, settings) in rules {
        let both = tables.iter().zip(&plain);
        let tasks = both.filter_map(|((task, table), plain)| {
            let gain = Gain::of(plain, &searches(table, settings))?;
            Some((task.as_str(), table.len(), gain))
        });
        let tasks: Vec<SearchedTask<'_>> = tasks.collect();
        let gained = Gained::new(name, sampler.name(), share, &tasks);
        console.event(&gained);
        console.say(&output.rows(&gained, &tasks));
    }
    console.say(&output.foot());
    if let Some((_, settings)) = rules.last().filter(|_| arguments.pruner.is_empty()) {
        console.say(&protection(settings));
    }
    Ok(Exit::Done)
}

/// Groups records by search problem.
pub(super) fn tables(records: Vec<Recorded>) -> Result<Vec<(String, TrialTable)>, Failure> {
    let mut joined: Vec<(String, Option<SearchProblem>, Vec<RecordedTrial>)> = Vec::new();
    for recorded in records {
        let (task, problem) = (recorded.task, recorded.problem);
        let mut same =
            joined.iter_mut().filter(|(_, other, _)| problem.is_some() && *other == problem);
        match same.next() {
            Some((_, _, trials)) => trials.extend(task.trials),
            None => joined.push((task.name, problem, task.trials)),
        }
    }
    let tables = joined.into_iter().map(|(name, problem, trials)| {
        let table = match problem {
            Some(problem) => TrialTable::new(problem.space, trials),
            None => TrialTable::spanned(trials)
                .map_err(|error| Failure::input(format!("{name}: {error}")))?,
        };
        if table.is_empty() {
            let message = format!("{name}: no completed trial has a point");
            return Err(Failure::input(message));
        }
        if table.spent() <= 0.0 {
            let message = format!("{name}: the time of its trials was not recorded");
            return Err(Failure::input(message));
        }
        if table.space().parameters().is_empty() {
            let message = format!("{name}: no parameter differs between its trials");
            return Err(Failure::input(message));
        }
        Ok((name, table))
    });
    tables.collect()
}

/// Runs one search per seed.
fn searches(
    table: &TrialTable,
    sampler: &SamplerConfig,
    rules: &PruningConfig,
    seeds: &[u64],
    budget: f64,
) -> Vec<Vec<Searched>> {
    let found = table.alerts(rules);
    in_parallel(seeds, |seed| table.search(&**sampler, seed, rules, &found, budget))
}

/// Runs one search per seed on all cores.
pub(super) fn in_parallel<T: Send>(
    seeds: &[u64],
    search: impl Fn(u64) -> Vec<T> + Sync,
) -> Vec<Vec<T>> {
    let search = &|seed: &u64| search(*seed);
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let share = seeds.len().div_ceil(cores).max(1);
    thread::scope(|scope| {
        let parts = seeds.chunks(share);
        let parts = parts.map(|part| scope.spawn(move || part.iter().map(search).collect()));
        let parts: Vec<thread::ScopedJoinHandle<'_, Vec<_>>> = parts.collect();
        let joined = parts.into_iter().map(|part| match part.join() {
            Ok(searches) => searches,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.flatten().collect()
    })
}
