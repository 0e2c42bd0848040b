//! Evaluates detectors and remedies on plans generated from a seed.

use clap::{Parser, Subcommand, ValueEnum};
use serde::Serialize;
use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use surefoot_plan::Rules;
use surefoot_zoo::{Case, Row, Tables, Treated};

const EXAMPLES: &str = "\
Examples:
  surefoot-zoo
      Generates 400 plans, six in ten with a fault, and shows what is found and repaired.

  surefoot-zoo --cases 60 --filter vanishing_gradient
      Only the faults that make gradients vanish, among the first 60 plans.

  surefoot-zoo --data eval/bench/.data
      Adds the real data sets that eval/bench/data has fetched.

  surefoot-zoo --json | tail -n 1
      The tables as one line of JSON.

  surefoot-zoo remedies --seed 7 --cases 40
      Each remedy alone, for each problem.

  surefoot-zoo thresholds --seed 7 --cases 40 --rules autotrainer
      Recall and precision of the detectors with other thresholds.

Seeds up to 102 are for development. Published results use seeds above.";

/// Evaluate detectors and remedies on plans generated from a seed
#[derive(Debug, Parser)]
#[command(name = "surefoot-zoo", after_long_help = EXAMPLES)]
struct Arguments {
    /// A single table instead of the whole evaluation
    #[command(subcommand)]
    table: Option<Table>,

    /// The seed of the zoo
    #[arg(long, value_name = "N", default_value_t = 103, global = true)]
    seed: u64,

    /// Number of plans
    #[arg(long, value_name = "N", default_value_t = 400, global = true)]
    cases: u64,

    /// Only these rules of diagnosis and repair [default: both]
    #[arg(long, value_name = "NAME", global = true)]
    rules: Vec<RulesName>,

    /// Only plans with this fault, problem or data
    ///
    /// An id such as dying_relu, the name of a fault such as low_rate, or of data such as circles.
    /// Can be repeated.
    #[arg(long, value_name = "NAME", global = true)]
    filter: Vec<String>,

    /// Add the real data sets that `eval/bench/data` has written to this directory
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Number of plans on each real data set
    #[arg(long, value_name = "N", default_value_t = 20, requires = "data")]
    real_cases: u64,

    /// Number of seeds for the paper's two motivating networks (needs MNIST in --data)
    #[arg(long, value_name = "N", default_value_t = 10, requires = "data")]
    motivating: u64,

    /// Plans trained at the same time [default: all cores]
    #[arg(long, value_name = "N", global = true)]
    workers: Option<NonZeroUsize>,

    /// Print JSON lines on stdout, the tables last
    #[arg(long, global = true)]
    json: bool,

    /// Print only errors (and JSON with --json)
    #[arg(long, short, global = true)]
    quiet: bool,
}

/// A table of the papers.
#[derive(Clone, Copy, Debug, Subcommand)]
enum Table {
    /// Each remedy alone, per problem (AutoTrainer, Table 6)
    Remedies,
    /// Recall and precision of detection with other thresholds (AutoTrainer, Fig. 8)
    Thresholds,
    /// Delay and cost of detection by the check interval (AutoTrainer, Table 5 and Fig. 7)
    Intervals,
    /// Accuracy, precision and recall of the models before and after repair (AutoTrainer, Table 3)
    Quality,
    /// Trainings that each indicator alone would end (BTTackler, Table 5)
    Indicators,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RulesName {
    Surefoot,
    Autotrainer,
}

/// Result of one of the paper's motivating networks.
#[derive(Serialize)]
struct Motivating {
    event: &'static str,
    /// Number of hidden layers.
    layers: usize,
    #[serde(flatten)]
    treated: Treated,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

impl Arguments {
    /// Prints for people: on stdout, or with `--json` on stderr.
    fn say(&self, text: &str) {
        match (self.quiet, self.json) {
            (true, _) => {}
            (false, true) => eprintln!("{text}"),
            (false, false) => println!("{text}"),
        }
    }

    /// The rules to evaluate.
    fn rules(&self) -> Vec<Rules> {
        let both =
            [(RulesName::Surefoot, Rules::Surefoot), (RulesName::Autotrainer, Rules::AutoTrainer)];
        let chosen = |name: &RulesName| self.rules.is_empty() || self.rules.contains(name);
        both.into_iter().filter(|(name, _)| chosen(name)).map(|(_, rules)| rules).collect()
    }

    fn event(&self, event: &impl Serialize) {
        if self.json {
            println!("{}", serde_json::to_string(event).unwrap_or_default());
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let mut cases = surefoot_zoo::cases(arguments.seed, arguments.cases);
    if let Some(dir) = &arguments.data {
        let dir =
            std::path::absolute(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let real = surefoot_zoo::real_cases(arguments.seed, &dir, arguments.real_cases);
        if real.is_empty() {
            return Err(format!(
                "{0} has none of the real data sets; fetch them with: eval/bench/data --dir {0}",
                dir.display()
            ));
        }
        cases.extend(real);
    }
    check_filter(&arguments.filter, &cases)?;
    cases.retain(|case| arguments.filter.is_empty() || matches(case, &arguments.filter));
    let scratch = scratch()?;
    let workers = workers(arguments);
    if let Some(table) = arguments.table {
        let result = single_table(table, arguments, &cases, &scratch, workers);
        let _ = std::fs::remove_dir_all(&scratch);
        return result;
    }
    let done = AtomicU64::new(0);
    let total = cases.len();
    let report = |row: &Row| {
        arguments.event(row);
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if !arguments.quiet && std::io::stderr().is_terminal() && done.is_multiple_of(20) {
            eprintln!("{done} of {total} plans");
        }
    };
    let rows = surefoot_zoo::evaluate(&cases, &scratch, workers, &arguments.rules(), &report);
    let result = rows.and_then(|rows| {
        if let Some(dir) = &arguments.data {
            motivating(arguments, dir)?;
        }
        Ok(Tables::new(arguments.seed, &rows))
    });
    let _ = std::fs::remove_dir_all(&scratch);
    let tables = result?;
    arguments.say(&tables.text());
    arguments.event(&tables);
    Ok(())
}

/// Prints one table of the papers.
fn single_table(
    table: Table,
    arguments: &Arguments,
    cases: &[Case],
    dir: &Path,
    workers: usize,
) -> Result<(), String> {
    let rules = arguments.rules();
    let text = match table {
        Table::Remedies => {
            let lines = surefoot_zoo::each_remedy(cases, dir, workers, &rules)?;
            lines.iter().for_each(|line| arguments.event(line));
            surefoot_zoo::remedies_text(&lines)
        }
        Table::Thresholds => {
            let lines = surefoot_zoo::sweep(cases, dir, workers, &rules)?;
            lines.iter().for_each(|line| arguments.event(line));
            surefoot_zoo::sweep_text(&lines)
        }
        Table::Intervals => {
            let lines = surefoot_zoo::intervals(cases, dir, workers, &rules)?;
            lines.iter().for_each(|line| arguments.event(line));
            surefoot_zoo::intervals_text(&lines)
        }
        Table::Quality => {
            let lines = surefoot_zoo::qualities(cases, dir, workers, &rules)?;
            lines.iter().for_each(|line| arguments.event(line));
            surefoot_zoo::qualities_text(&lines)
        }
        Table::Indicators => {
            let lines = surefoot_zoo::indicators(cases, dir, workers)?;
            lines.iter().for_each(|line| arguments.event(line));
            surefoot_zoo::indicators_text(&lines)
        }
    };
    arguments.say(&text);
    Ok(())
}

fn workers(arguments: &Arguments) -> usize {
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    arguments.workers.unwrap_or(cores).get()
}

/// Creates a directory for corrupted data.
fn scratch() -> Result<PathBuf, String> {
    let dir = std::env::temp_dir().join(format!("surefoot-zoo-{}", std::process::id()));
    std::fs::create_dir_all(&dir)
        .map_err(|error| format!("cannot create {}: {error}", dir.display()))?;
    Ok(dir)
}

/// Names that a filter can match.
fn names(case: &Case) -> Vec<String> {
    let mut names = vec![case.dataset.name().to_owned()];
    if let Some(injected) = &case.injected {
        names.push(injected.fault.problem().id().to_owned());
        names.push(injected.fault.name());
    }
    names
}

fn matches(case: &Case, filter: &[String]) -> bool {
    names(case).iter().any(|name| filter.contains(name))
}

fn check_filter(filter: &[String], cases: &[Case]) -> Result<(), String> {
    let mut known: Vec<String> = cases.iter().flat_map(names).collect();
    known.sort();
    known.dedup();
    match filter.iter().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(unknown) => {
            Err(format!("unknown filter `{unknown}`; use one of {}", known.join(", ")))
        }
    }
}

/// The paper's two networks (section 3), over many seeds.
fn motivating(arguments: &Arguments, dir: &Path) -> Result<(), String> {
    for layers in [34, 20] {
        let Some(plan) = surefoot_zoo::motivating(dir, layers) else {
            return Ok(());
        };
        let (mut found, mut repaired, mut before, mut after) = (Vec::new(), 0, 0.0, 0.0);
        for seed in 1..=arguments.motivating {
            let mut plan = plan.clone();
            plan.seed = arguments.seed + seed;
            let treated = surefoot_zoo::treat(&plan, Path::new("."))?;
            before += treated.before;
            after += treated.after;
            repaired += u64::from(treated.repaired);
            if let (Some(problem), Some([step, of])) = (&treated.problem, treated.delay) {
                found.push(format!("{problem} at step {step} of {of}"));
            }
            arguments.event(&Motivating { event: "motivating", layers, treated });
        }
        let runs = arguments.motivating.max(1) as f64;
        let paper = if layers == 34 { "93.2%" } else { "97.7%" };
        arguments.say(&format!(
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
