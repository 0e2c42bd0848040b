//! Regret of samplers on benchmark functions, for `eval/bench/samplers`.
//!
//!     cargo run --release -p surefoot-tune --example regret -- values
//!     cargo run --release -p surefoot-tune --example regret -- run SAMPLER SEED SEED TRIALS [FUNCTION]...
//!     cargo run --release -p surefoot-tune --example regret -- impute ERROR SAMPLER SEED SEED TRIALS [FUNCTION]...
//!
//! `values` prints sample points with their values as JSON lines, to check implementations in other
//! languages. `run` prints the costs of a study for each function and each seed from the first up to, but
//! excluding, the second. SAMPLER is a name or a JSON table, as in a study. `impute` treats every trial
//! behind a fifth of the earlier ones as pruned, with an imputation error of ERROR times the distance from
//! the best to the median.

use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::error::Error;
use std::f64::consts::{E, PI};
use surefoot_random::{Key, Purpose};
use surefoot_tune::sampler::{SampleRequest, SamplerConfig};
use surefoot_tune::{History, Parameter, Point, Space, TrialOutcome, TrialResult, Value};

type Cost = fn(&Point) -> f64;

/// Functions by their names in `eval/bench/functions.json`.
const FUNCTIONS: [(&str, Cost); 12] = [
    ("sphere", sphere),
    ("branin", branin),
    ("rosenbrock", rosenbrock),
    ("hartmann", hartmann),
    ("ackley", ackley),
    ("rastrigin", rastrigin),
    ("styblinski", styblinski),
    ("valley", valley),
    ("network", network),
    ("conditional", conditional),
    ("cliff", cliff),
    ("diverging", diverging),
];

const USAGE: &str = "\
regret values
regret run SAMPLER SEED SEED TRIALS [FUNCTION]...
regret impute ERROR SAMPLER SEED SEED TRIALS [FUNCTION]...";

/// Sample points per function.
const POINTS: u64 = 20;

#[derive(Deserialize)]
struct Entry {
    parameters: Vec<Parameter>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["values"] => values(),
        ["run", ref rest @ ..] => run(None, rest),
        ["impute", error, ref rest @ ..] => run(Some(error.parse()?), rest),
        _ => Err(USAGE.into()),
    }
}

fn space(function: &str) -> Result<Space, Box<dyn Error>> {
    let text = include_str!("../../../eval/bench/functions.json");
    let mut entries: BTreeMap<String, Entry> = serde_json::from_str(text)?;
    let entry = entries.remove(function).ok_or("a function without a space")?;
    Ok(Space::new(entry.parameters)?)
}

fn values() -> Result<(), Box<dyn Error>> {
    for (name, cost) in FUNCTIONS {
        let space = space(name)?;
        for number in 0..POINTS {
            let key = Key::new(0, Purpose::Generate).epoch(number);
            let point = space.at(|index| key.uniform(index as u64));
            let value = cost(&point);
            println!("{}", json!({"function": name, "point": point, "value": value}));
        }
    }
    Ok(())
}

/// Runs studies with measured costs, or with imputed costs and an error.
fn run(error: Option<f64>, words: &[&str]) -> Result<(), Box<dyn Error>> {
    let [sampler, first, end, trials, functions @ ..] = words else {
        return Err(USAGE.into());
    };
    let settings = match SamplerConfig::named(sampler) {
        Ok(settings) => settings,
        Err(_) => serde_json::from_str(sampler)?,
    };
    let trials = trials.parse()?;
    for (name, cost) in FUNCTIONS {
        if !functions.is_empty() && !functions.contains(&name) {
            continue;
        }
        let space = space(name)?;
        for seed in first.parse()?..end.parse()? {
            let started = std::time::Instant::now();
            let costs = study(&settings, &space, seed, trials, cost, error);
            let seconds = started.elapsed().as_secs_f64();
            println!(
                "{}",
                json!({
                    "sampler": settings.name(),
                    "function": name,
                    "seed": seed,
                    "costs": costs,
                    "seconds": seconds,
                })
            );
        }
    }
    Ok(())
}

/// Costs of a study.
fn study(
    settings: &SamplerConfig,
    space: &Space,
    seed: u64,
    trials: u64,
    cost: Cost,
    error: Option<f64>,
) -> Vec<f64> {
    let mut history = History::default();
    let mut costs = Vec::new();
    for number in 0..trials {
        let point = settings.suggest(&SampleRequest { space, seed, number, history: &history });
        let cost = cost(&point);
        let key = Key::new(seed, Purpose::Generate).epoch(number);
        let imputed = error.and_then(|error| imputed(cost, &costs, error * key.normal(0)));
        let outcome = imputed.map_or(TrialOutcome::of(cost), TrialOutcome::imputed);
        costs.push(cost);
        history.tell(TrialResult { number, point, outcome });
    }
    costs
}

/// Imputed cost of a trial behind a fifth of the earlier ones; `None` for other trials. The error grows with
/// the distance from the best cost.
fn imputed(cost: f64, before: &[f64], error: f64) -> Option<f64> {
    let mut before: Vec<f64> = before.iter().copied().filter(|c| c.is_finite()).collect();
    before.sort_by(f64::total_cmp);
    let behind = before.iter().filter(|other| **other < cost).count();
    if !cost.is_finite() || before.len() < 3 || behind * 5 <= before.len() {
        return None;
    }
    let (best, median) = (before[0], before[before.len() / 2]);
    let usual = before[before.len() / 10];
    Some((cost + error * (median - best).max(cost - median)).max(usual))
}

/// Value of a numeric parameter.
fn number(point: &Point, name: &str) -> f64 {
    match point.get(name) {
        Some(&Value::Float(value)) => value,
        Some(&Value::Int(value)) => value as f64,
        other => panic!("{name} is {other:?}"),
    }
}

fn word<'a>(point: &'a Point, name: &str) -> &'a str {
    match point.get(name) {
        Some(Value::Text(word)) => word,
        other => panic!("{name} is {other:?}"),
    }
}

/// x1, x2 and so on.
fn coordinates<const N: usize>(point: &Point) -> [f64; N] {
    std::array::from_fn(|i| number(point, &format!("x{}", i + 1)))
}

fn sphere(p: &Point) -> f64 {
    let centre = [1.3, -2.1, 0.7, 3.1, -0.9];
    let x: [f64; 5] = coordinates(p);
    x.iter().zip(centre).map(|(x, c)| (x - c).powi(2)).sum()
}

fn branin(p: &Point) -> f64 {
    let [x, y] = coordinates(p);
    let bend = y - 5.1 / (4.0 * PI * PI) * x * x + 5.0 / PI * x - 6.0;
    bend * bend + 10.0 * (1.0 - 1.0 / (8.0 * PI)) * x.cos() + 10.0
}

fn rosenbrock(p: &Point) -> f64 {
    let x: [f64; 4] = coordinates(p);
    let term =
        |pair: &[f64]| 100.0 * (pair[1] - pair[0] * pair[0]).powi(2) + (1.0 - pair[0]).powi(2);
    x.windows(2).map(term).sum()
}

const HARTMANN: [(f64, [f64; 6], [f64; 6]); 4] = [
    (1.0, [10.0, 3.0, 17.0, 3.5, 1.7, 8.0], [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886]),
    (1.2, [0.05, 10.0, 17.0, 0.1, 8.0, 14.0], [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991]),
    (3.0, [3.0, 3.5, 1.7, 10.0, 17.0, 8.0], [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650]),
    (3.2, [17.0, 8.0, 0.05, 10.0, 0.1, 14.0], [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381]),
];

fn hartmann(p: &Point) -> f64 {
    let x: [f64; 6] = coordinates(p);
    let term = |&(weight, scales, centres): &(f64, [f64; 6], [f64; 6])| {
        let distance: f64 = (0..6).map(|i| scales[i] * (x[i] - centres[i]).powi(2)).sum();
        -weight * (-distance).exp()
    };
    HARTMANN.iter().map(term).sum()
}

fn ackley(p: &Point) -> f64 {
    let x: [f64; 5] = coordinates(p);
    let square = x.iter().map(|v| v * v).sum::<f64>() / 5.0;
    let wave = x.iter().map(|v| (2.0 * PI * v).cos()).sum::<f64>() / 5.0;
    -20.0 * (-0.2 * square.sqrt()).exp() - wave.exp() + 20.0 + E
}

fn rastrigin(p: &Point) -> f64 {
    let x: [f64; 4] = coordinates(p);
    x.iter().map(|v| v * v - 10.0 * (2.0 * PI * v).cos() + 10.0).sum()
}

fn styblinski(p: &Point) -> f64 {
    let x: [f64; 8] = coordinates(p);
    x.iter().map(|v| v.powi(4) - 16.0 * v * v + 5.0 * v).sum::<f64>() / 2.0
}

fn valley(p: &Point) -> f64 {
    let rate = number(p, "rate").log10() + 3.0;
    let batch = (number(p, "batch") / 64.0).log2();
    let decay = number(p, "decay").log10() + 4.0;
    let across = 4.0 * (rate - 0.3 * batch);
    across.powi(2)
        + 0.1 * batch.powi(2)
        + 0.05 * decay.powi(2)
        + (number(p, "warmup") - 0.1).powi(2)
}

fn network(p: &Point) -> f64 {
    let (activation, depth) = match word(p, "activation") {
        "gelu" => (0.0, 5.0),
        "relu" => (0.05, 5.0),
        "tanh" => (0.2, 2.0),
        _ => (0.6, 2.0),
    };
    let (optimizer, best_rate) = match word(p, "optimizer") {
        "adam" => (0.0, -3.0),
        "sgd" => (0.03, -1.0),
        _ => (0.08, -3.5),
    };
    let rate = (number(p, "rate").log10() - best_rate).powi(2).min(4.0);
    let width = (number(p, "width").log2() - 7.0).powi(2);
    let dropout = (number(p, "dropout") - 0.2).powi(2);
    let layers = (number(p, "layers") - depth).powi(2);
    activation + optimizer + 0.3 * rate + 0.03 * width + 0.5 * dropout + 0.02 * layers
}

fn conditional(p: &Point) -> f64 {
    let rate = number(p, "rate").log10();
    let optimizer = if word(p, "optimizer") == "sgd" {
        let slow = 0.9 - number(p, "momentum");
        0.5 * (rate + 2.0 - slow).powi(2) + slow.powi(2)
    } else {
        0.05 + 0.2 * (rate + 3.0).powi(2) + 5.0 * (number(p, "beta2") - 0.95).powi(2)
    };
    let layers = number(p, "layers") as usize;
    let depth = [0.3, 0.0, 0.1][layers - 1];
    let width = |i: usize| (number(p, &format!("width{i}")).log2() - (8.0 - i as f64)).powi(2);
    optimizer + depth + 0.04 * (1..=layers).map(width).sum::<f64>()
}

fn cliff(p: &Point) -> f64 {
    let [x, y, z] = ["x", "y", "z"].map(|name| number(p, name));
    if x + y > 1.2 || (x - 0.2).powi(2) + (z - 0.8).powi(2) < 0.02 {
        return f64::NAN;
    }
    4.0 * (x - 0.65).powi(2) + 4.0 * (y - 0.5).powi(2) + (z - 0.3).powi(2)
}

fn diverging(p: &Point) -> f64 {
    let momentum = number(p, "momentum");
    let step = (number(p, "rate") / (1.0 - momentum)).log10();
    let clip = number(p, "clip").log10();
    let value = (step + 0.5).powi(2) + 0.5 * (momentum - 0.8).powi(2) + 0.1 * clip.powi(2);
    if step > 0.0 { value + 10_f64.powf(30.0 * step.min(1.0)) } else { value }
}
