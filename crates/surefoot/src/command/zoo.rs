//! `surefoot zoo`: the evaluation of detectors and remedies.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Console, Role, to_stderr};
use clap::Args;
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use surefoot_zoo::{Case, Row, Tables, Treated};

const EXAMPLES: &str = "\
Examples:
  surefoot zoo
      Makes 400 plans, six in ten with a fault, and shows what is found and repaired.

  surefoot zoo --cases 60 --filter vanishing_gradient
      Only the faults that make gradients vanish, among the first 60 plans.

  surefoot zoo --data eval/bench/.data
      Adds the real data sets that eval/bench/data has fetched.

  surefoot zoo --json | tail -n 1
      The tables as one line of JSON.

Seeds up to 101 are for development: detectors and remedies were made looking at them. What is
reported comes from seeds above.";

/// Try detectors and remedies on plans made from a seed
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The seed of the zoo
    #[arg(long, value_name = "N", default_value_t = 102)]
    seed: u64,

    /// How many plans to make
    #[arg(long, value_name = "N", default_value_t = 400)]
    cases: u64,

    /// Only plans whose fault causes this problem, or that are about these data
    ///
    /// An id such as dying_relu, the name of a fault such as low_rate, or of data such as circles.
    /// May be given several times.
    #[arg(long, value_name = "NAME")]
    filter: Vec<String>,

    /// Add the real data sets that `eval/bench/data` has written to this directory
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// How many plans to make on each real data set
    #[arg(long, value_name = "N", default_value_t = 20, requires = "data")]
    real_cases: u64,

    /// On how many seeds to train the paper's two motivating networks (needs MNIST in --data)
    #[arg(long, value_name = "N", default_value_t = 10, requires = "data")]
    motivating: u64,

    /// Plans trained at the same time [default: all cores]
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,

    /// Print one JSON object a line on stdout, the tables last
    #[arg(long)]
    json: bool,

    /// Print nothing but errors (and JSON if asked for)
    #[arg(long, short)]
    quiet: bool,
}

/// What became of one of the paper's motivating networks.
#[derive(Serialize)]
struct Motivating {
    event: &'static str,
    /// How many hidden layers it has.
    layers: usize,
    #[serde(flatten)]
    treated: Treated,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let console = Console::new(arguments.json, arguments.quiet);
    let mut cases = surefoot_zoo::cases(arguments.seed, arguments.cases);
    if let Some(dir) = &arguments.data {
        let dir = std::path::absolute(dir)
            .map_err(|error| Failure::input(format!("{}: {error}", dir.display())))?;
        let real = surefoot_zoo::real_cases(arguments.seed, &dir, arguments.real_cases);
        if real.is_empty() {
            return Err(Failure::input(format!(
                "{} has none of the real data sets",
                dir.display()
            ))
            .help(format!("fetch them with: eval/bench/data --dir {}", dir.display())));
        }
        cases.extend(real);
    }
    check_filter(&arguments.filter, &cases)?;
    cases.retain(|case| arguments.filter.is_empty() || matches(case, &arguments.filter));
    let scratch = scratch()?;
    let workers = workers(arguments);
    let done = AtomicU64::new(0);
    let total = cases.len();
    let report = |row: &Row| {
        console.event(row);
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if console.draws() && done.is_multiple_of(20) {
            let text = format!("{done} of {total} plans");
            to_stderr(&Role::Quiet.paint(text));
        }
    };
    let rows = surefoot_zoo::evaluate(&cases, &scratch, workers, &report);
    let rows = rows.map_err(Failure::broken);
    let result = rows.and_then(|rows| {
        if let Some(dir) = &arguments.data {
            motivating(arguments, dir, workers, &console)?;
        }
        Ok(Tables::new(arguments.seed, &rows))
    });
    // Whatever happened, what was written is of no use any more.
    let _ = std::fs::remove_dir_all(&scratch);
    let tables = result?;
    console.say(&tables.text());
    console.event(&tables);
    Ok(Exit::Done)
}

fn workers(arguments: &Arguments) -> usize {
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    arguments.workers.unwrap_or(cores).get()
}

/// A directory for the files of spoiled data.
fn scratch() -> Result<PathBuf, Failure> {
    let dir = std::env::temp_dir().join(format!("surefoot-zoo-{}", std::process::id()));
    std::fs::create_dir_all(&dir)
        .map_err(|error| Failure::broken(format!("cannot create {}: {error}", dir.display())))?;
    Ok(dir)
}

/// The names that a case goes by.
fn names(case: &Case) -> Vec<String> {
    let mut names = vec![case.habitat.name().to_owned()];
    if let Some(injected) = &case.injected {
        names.push(injected.fault.problem().id().to_owned());
        names.push(injected.fault.name());
    }
    names
}

fn matches(case: &Case, filter: &[String]) -> bool {
    names(case).iter().any(|name| filter.contains(name))
}

fn check_filter(filter: &[String], cases: &[Case]) -> Result<(), Failure> {
    let mut known: Vec<String> = cases.iter().flat_map(names).collect();
    known.sort();
    known.dedup();
    match filter.iter().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(unknown) => Err(Failure::input(format!("no plan of the zoo is `{unknown}`"))
            .help(format!("there are {}", known.join(", ")))),
    }
}

/// The paper's two networks (section 3), over many seeds.
fn motivating(
    arguments: &Arguments,
    dir: &Path,
    workers: usize,
    console: &Console,
) -> Result<(), Failure> {
    for layers in [34, 20] {
        let Some(plan) = surefoot_zoo::motivating(dir, layers) else {
            return Ok(());
        };
        let (mut found, mut repaired, mut before, mut after) = (Vec::new(), 0, 0.0, 0.0);
        for seed in 1..=arguments.motivating {
            let mut plan = plan.clone();
            plan.seed = arguments.seed + seed;
            let treated =
                surefoot_zoo::treat(&plan, Path::new("."), workers).map_err(Failure::broken)?;
            before += treated.before;
            after += treated.after;
            repaired += u64::from(treated.repaired);
            if let (Some(problem), Some([step, of])) = (&treated.problem, treated.delay) {
                found.push(format!("{problem} at step {step} of {of}"));
            }
            console.event(&Motivating { event: "motivating", layers, treated });
        }
        let runs = arguments.motivating.max(1) as f64;
        let paper = if layers == 34 { "93.2%" } else { "97.7%" };
        console.say(&format!(
            "{layers} ReLU layers on MNIST, {} seeds: a problem in {}, repaired {repaired}; \
             accuracy {:.1}% before, {:.1}% after (paper: {paper})\n  {}\n",
            arguments.motivating,
            found.len(),
            100.0 * before / runs,
            100.0 * after / runs,
            found.join("; ")
        ));
    }
    Ok(())
}
