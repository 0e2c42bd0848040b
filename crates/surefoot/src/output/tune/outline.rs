//! Output of a dry run.

use crate::output::{Console, Role, number};
use serde::Serialize;
use std::collections::BTreeMap;
use surefoot_tune::storage::View;
use surefoot_tune::study::Task;
use surefoot_tune::{Condition, Domain, Parameter, Study, Value, pruner};

/// Overview of a study.
pub(crate) struct Outline<'a> {
    pub(crate) study: &'a Study,
    pub(crate) store: &'a str,
    /// Existing trials in the store.
    pub(crate) found: Option<&'a View>,
    pub(crate) workers: usize,
    pub(crate) threads: usize,
}

#[derive(Serialize)]
struct OutlineEvent<'a> {
    event: &'static str,
    study: &'a str,
    store: &'a str,
    /// Existing trials by state; null for a new study.
    found: Option<BTreeMap<&'a str, usize>>,
    objective: &'a str,
    direction: &'a str,
    seed: u64,
    scheduler: Option<&'a surefoot_tune::scheduler::SchedulerConfig>,
    sampler: &'a surefoot_tune::sampler::SamplerConfig,
    pruner: &'a pruner::PruningConfig,
    trials: Option<u64>,
    seconds: Option<f64>,
    operations: Option<f64>,
    parameters: &'a [Parameter],
    workers: usize,
    threads: usize,
}

impl Outline<'_> {
    pub(crate) fn show(&self, console: &Console) {
        let settings = &self.study.settings;
        console.say(&self.text());
        console.event(&OutlineEvent {
            event: "outline",
            study: &self.study.name,
            store: self.store,
            found: self.found.map(states),
            objective: settings.objective.name(),
            direction: settings.direction.name(),
            seed: settings.seed,
            scheduler: settings.scheduler.as_ref(),
            sampler: &settings.sampler,
            pruner: &settings.pruners,
            trials: settings.trials,
            seconds: settings.time.map(|time| time.as_secs_f64()),
            operations: settings.operations,
            parameters: self.study.space.parameters(),
            workers: self.workers,
            threads: self.threads,
        });
    }

    fn text(&self) -> String {
        let settings = &self.study.settings;
        let (objective, direction) = (settings.objective.name(), settings.direction.name());
        let name = Role::Strong.paint(&self.study.name);
        let mut facts = vec![("study", format!("{name}, {direction} {objective}"))];
        if let Task::Command(command) = &self.study.task {
            facts.push(("command", command.clone()));
        }
        facts.push(("store", format!("{}, {}", self.store, self.contents())));
        match &settings.scheduler {
            Some(scheduler) if !settings.sampler_is_named => {
                facts.push(("scheduler", format!("{}, seed {}", scheduler.name(), settings.seed)));
            }
            scheduler => {
                let name = scheduler.as_ref().map(|scheduler| scheduler.name().to_owned());
                facts.extend(name.map(|name| ("scheduler", name)));
                let sampler = settings.sampler.name();
                facts.push(("sampler", format!("{sampler}, seed {}", settings.seed)));
            }
        }
        facts.push(("pruners", pruners(&settings.pruners)));
        facts.push(("budget", self.budget()));
        let threads = number::counted(self.threads as u64, "thread");
        facts.push(("workers", format!("{}, {threads} each", self.workers)));
        let facts = facts.into_iter();
        let mut lines: Vec<String> =
            facts.map(|(key, value)| format!("  {key:<9} {value}")).collect();
        lines.push(String::new());
        let parameters = self.study.space.parameters();
        let width = parameters.iter().map(|p| p.name.len()).max().unwrap_or(0);
        for parameter in parameters {
            let name = format!("{:width$}", parameter.name);
            let mut line = format!("  {}  {}", Role::Strong.paint(name), range(&parameter.domain));
            for condition in &parameter.conditions {
                line.push_str(&Role::Quiet.paint(format!("  if {}", wanted(condition))));
            }
            lines.push(line);
        }
        lines.join("\n")
    }

    /// Existing trials in words.
    fn contents(&self) -> String {
        let Some(view) = self.found else {
            return "without this study yet".to_owned();
        };
        let count = view.trials().len();
        let states = states(view).into_iter();
        let states: Vec<String> = states.map(|(word, n)| format!("{n} {word}")).collect();
        match count {
            0 => "without trials yet".to_owned(),
            _ => {
                let trials = number::counted(count as u64, "trial");
                format!("with {trials}: {}", states.join(", "))
            }
        }
    }

    fn budget(&self) -> String {
        let settings = &self.study.settings;
        let parts = [
            settings.trials.map(|n| match settings.scheduler {
                Some(_) => format!("the epochs of {}", number::counted(n, "full training")),
                None => number::counted(n, "trial"),
            }),
            settings.time.map(number::rough_time),
            settings.operations.map(|n| format!("{} multiplications", number::short(n))),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        match parts.is_empty() {
            true => "none: runs until interrupted".to_owned(),
            false => parts.join(" or "),
        }
    }
}

/// Number of trials by state.
fn states(view: &View) -> BTreeMap<&str, usize> {
    let mut states = BTreeMap::new();
    for trial in view.trials() {
        *states.entry(trial.state.name()).or_insert(0) += 1;
    }
    states
}

fn pruners(settings: &pruner::PruningConfig) -> String {
    let mut names: Vec<&str> = settings.pruners.iter().map(|pruner| pruner.name()).collect();
    match settings.indicators == surefoot_diagnose::indicators::PROBLEMS {
        true => names.push(pruner::DIAGNOSIS),
        false => names.extend(settings.indicators.iter().map(|problem| problem.id())),
    }
    match (names.is_empty(), settings.protect) {
        (true, _) => "none".to_owned(),
        (false, 0) => names.join(", "),
        (false, 1) => format!("{}; the best is protected", names.join(", ")),
        (false, n) => format!("{}; the {n} best are protected", names.join(", ")),
    }
}

fn range(domain: &Domain) -> String {
    let number = number::short;
    match domain {
        Domain::Uniform(low, high) => format!("{} to {}", number(*low), number(*high)),
        Domain::LogUniform(low, high) => {
            format!("{} to {}, logarithmic", number(*low), number(*high))
        }
        Domain::Int(low, high) => format!("{low} to {high}, whole"),
        Domain::LogInt(low, high) => format!("{low} to {high}, whole, logarithmic"),
        Domain::Choice(values) => list(values),
    }
}

fn wanted(condition: &Condition) -> String {
    format!("{} is {}", condition.parameter, list(&condition.values))
}

fn list(values: &[Value]) -> String {
    let values: Vec<String> = values.iter().map(Value::to_string).collect();
    match values.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => values.join(""),
    }
}
