//! Whole searches among recorded trials.

use super::{Arguments, Record};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Console;
use crate::output::simulate::{Gained, Gains};
use std::num::NonZeroUsize;
use std::thread;
use surefoot_tune::sampler::{self, Settings as SamplerSettings};
use surefoot_tune::simulate::{Gain, Ground, Searched};
use surefoot_tune::stopper::Settings;

/// The sampler of a name.
pub(super) fn sampler(name: &str) -> Result<SamplerSettings, Failure> {
    SamplerSettings::named(name).ok_or_else(|| {
        let names: Vec<&str> = sampler::names().collect();
        Failure::input(format!(
            "there is no sampler `{name}`; there are {}",
            names.join(", ")
        ))
    })
}

/// Searches with each of the rules, and says what that gains.
pub(super) fn run(
    record: Record,
    sampler: &SamplerSettings,
    rules: &[(String, Settings)],
    arguments: &Arguments,
    console: &Console,
) -> Result<Exit, Failure> {
    let budget = arguments.budget;
    if !(budget > 0.0 && budget <= 1.0) {
        let message = format!("--budget is {budget}, not a share above 0 and up to 1");
        return Err(Failure::input(message));
    }
    let grounds = grounds(record)?;
    let seeds = arguments.seeds();
    let searches = |ground: &Ground, rules: &Settings| {
        searches(ground, sampler, rules, &seeds, budget * ground.spent())
    };
    let plain: Vec<Vec<Vec<Searched>>> = grounds
        .iter()
        .map(|(_, ground)| searches(ground, &Settings::none()))
        .collect();
    let table = Gains::new(rules.iter().map(|(name, _)| name.as_str()));
    console.say(&table.head());
    for (name, settings) in rules {
        let mut gained = Gained {
            event: "searched",
            rule: name,
            sampler: sampler.name(),
            tasks: Vec::new(),
        };
        for ((task, ground), plain) in grounds.iter().zip(&plain) {
            let gain = Gain::of(plain, &searches(ground, settings)).ok_or_else(|| {
                let message = format!("{task}: a search within the budget comes to nothing");
                Failure::input(message).help("give it more: --budget SHARE")
            })?;
            gained.tasks.push((task, gain));
        }
        console.event(&gained);
        console.say(&table.row(&gained));
    }
    Ok(Exit::Done)
}

/// What can be searched. Studies of one name and space are one ground.
fn grounds(record: Record) -> Result<Vec<(String, Ground)>, Failure> {
    let mut grounds: Vec<(String, Ground)> = Vec::new();
    for (task, space) in record.tasks.into_iter().zip(record.spaces) {
        let name = task.name;
        let ground = match space {
            Some(space) => Ground::new(space, task.trials),
            None => Ground::spanned(task.trials)
                .map_err(|error| Failure::input(format!("{name}: {error}")))?,
        };
        if ground.is_empty() {
            let message = format!("{name}: none of its trials has a point and ran to its end");
            return Err(Failure::input(message));
        }
        let mut same = grounds
            .iter_mut()
            .filter(|(other, to)| *other == name && to.space() == ground.space());
        match same.next() {
            Some((_, to)) => to.join(ground),
            None => grounds.push((name, ground)),
        }
    }
    Ok(grounds)
}

/// A search for each seed.
fn searches(
    ground: &Ground,
    sampler: &SamplerSettings,
    rules: &Settings,
    seeds: &[u64],
    budget: f64,
) -> Vec<Vec<Searched>> {
    let found = ground.alerts(rules);
    let search = |seed: &u64| {
        let sampler = sampler.clone().sampler();
        ground.search(sampler.as_ref(), *seed, rules, &found, budget)
    };
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
